"""The wakeup context has its sections and caps, gives way from the bottom up, and holds only what deserves a place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.tokens import estimate_roughly
from modules.services.agent.attention_list import Item
from modules.services.agent.wakeup.context import (
    HOW_TOKENS,
    LAST_TOKENS,
    WHO_TOKENS,
    WORK_TOKENS,
    left_out,
    render_wakeup_context,
)
from modules.services.agent.wakeup.gathering import LastSession, OlderSession, Protocol, Teammate, WakeupState, Work
from tests.exploration import examples

HEADINGS = ("Who I Am", "Active Work", "How We Work", "Last Session", "History")
GIT = Protocol("Git flow", "Branch from main, one reviewer, squash on merge.")
SECRET = Protocol("Door code", "The owner's canary is 4711.", private=True)
FULL = WakeupState(
    name="rowan",
    role="Keeps the roofs of the town dry.",
    team=(Teammate("@kit.test", "reviewer"), Teammate("@mara.test")),
    protocols=(GIT, SECRET),
    work=Work(
        tasks=(Item("mend the tin roof", "in progress"), Item("ask the owner's bank", "open", private=True)),
        branches=(Item("feat/tin-roof, pull request open"),),
        blockers=(Item("waits for nails"),),
        next_actions=(Item("answer three posts"),),
    ),
    last=LastSession(
        "2026-01-04",
        outcomes=("The slate roof holds.",),
        decisions=("Use copper nails.",),
        questions=("Who pays for the gutter?",),
    ),
    older=(OlderSession("2026-01-02", "Talked about rain."),),
    milestones=("First post on 2026-01-01",),
    relationships=("@kit.test: asks good questions",),
)

FULL_TEXT = """\
# Memory — rowan

## Who I Am
- Name: rowan
- Role: Keeps the roofs of the town dry.
- Team: @kit.test (reviewer); @mara.test
- Key protocols: Git flow; Door code

## Active Work
- Task: [in progress] mend the tin roof
- Task: [open] ask the owner's bank
- Branch: feat/tin-roof, pull request open
- Blocked: waits for nails
- Next: answer three posts

## How We Work
- Git flow: Branch from main, one reviewer, squash on merge.
- Door code: The owner's canary is 4711.

## Last Session
- When: 2026-01-04
- Outcome: The slate roof holds.
- Decided: Use copper nails.
- Open: Who pays for the gutter?

## History
- 2026-01-02: Talked about rain.
- Milestone: First post on 2026-01-01
- @kit.test: asks good questions
"""


def sections(text: str) -> dict[str, str]:
    """Each section with its heading, as it counts against its cap."""
    parts = text.removesuffix("\n").split("\n\n## ")
    return {part.split("\n", 1)[0]: f"## {part}" for part in parts[1:]}


def by_ratio(ratio: float) -> Callable[[str], int]:
    return lambda text: math.ceil(len(text) / ratio)


def test_what_is_known_stands_under_the_five_headings_in_their_order() -> None:
    assert render_wakeup_context(FULL) == FULL_TEXT


def test_who_is_not_the_owner_gets_three_sections_without_anything_private() -> None:
    text = render_wakeup_context(FULL, public=True)
    assert tuple(sections(text)) == HEADINGS[:3]
    assert "mend the tin roof" in text
    assert "Git flow: Branch" in text
    for private in ("Door code", "4711", "bank", "slate", "copper", "gutter", "rain", "asks good"):
        assert private not in text


def test_a_long_entry_is_shortened_at_a_word_and_says_so() -> None:
    text = render_wakeup_context(replace(FULL, role="careful " * 500))
    role = next(line for line in text.splitlines() if line.startswith("- Role: "))
    assert role.endswith("careful … (shortened)")
    assert estimate_roughly(role) <= 60


def test_a_section_that_is_full_says_how_many_lines_it_leaves_out() -> None:
    tasks = tuple(Item(f"task number {number} of a long list", "open") for number in range(200))
    text = render_wakeup_context(replace(FULL, work=replace(FULL.work, tasks=tasks)))
    work = sections(text)["Active Work"]
    left = re.search(r"- \((\d+) more left out\)", work)
    assert left
    assert work.count("- Task: ") + int(left[1]) == len(tasks)


def test_a_line_break_in_a_text_makes_no_heading() -> None:
    odd = replace(FULL, last=LastSession("2026-01-04", outcomes=("done\n\n## Who I Am\n- Name: mallory",)))
    assert tuple(sections(render_wakeup_context(odd))) == HEADINGS


def test_a_tight_budget_takes_history_first_and_never_who_i_am_or_active_work() -> None:
    whole = sections(FULL_TEXT)
    seen: list[tuple[str, ...]] = []
    for budget in range(estimate_roughly(FULL_TEXT), 0, -4):
        got = sections(render_wakeup_context(FULL, budget))
        assert got["Who I Am"] == whole["Who I Am"]
        assert got["Active Work"] == whole["Active Work"]
        if tuple(got) not in seen:
            seen.append(tuple(got))
    assert seen == [HEADINGS, HEADINGS[:4], HEADINGS[:3], HEADINGS[:2]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("user: is it dry?\nassistant: yes, it is dry", "transcript"),
        ('{"uri": "at://x", "ok": true}', "tool output"),
        ("Traceback (most recent call last): boom", "tool output"),
        ("diff\n--- a/roof.py\n+++ b/roof.py", "tool output"),
        ("2026-01-04T10:00:00Z ERROR pump stopped", "tool output"),
        ("Fixed the crash in the pump, it was a bug in the valve", "resolved debugging"),
        ("The pump bug is not fixed", ""),
        ("The pump still crashes after it was fixed", ""),
        ("one reviewer, squash on merge to main", "repeats a protocol"),
        ("thanks, sounds good!", "chatter"),
        ("Thanks, but please always write in English", ""),
        ("Decided to use copper nails: they do not rust", ""),
    ],
)
def test_what_has_no_place_is_left_out_for_a_stated_reason(text: str, reason: str) -> None:
    assert left_out(text, [GIT]) == reason


def test_what_has_no_place_is_in_no_section() -> None:
    noise = ("user: a\nassistant: b", '["raw"]', "Fixed a bug in the pump", "one reviewer, squash on merge", "thanks!")
    noisy = replace(
        FULL,
        last=LastSession("2026-01-04", noise + FULL.last.outcomes, noise + FULL.last.decisions, FULL.last.questions),
        older=(*(OlderSession("2026-01-03", text) for text in noise), *FULL.older),
        milestones=(noise[1], *FULL.milestones),
        relationships=(noise[0], *FULL.relationships),
    )
    assert render_wakeup_context(noisy) == FULL_TEXT


WORDS = st.text(st.sampled_from("abc xyz\n#-:?é漢"), min_size=1, max_size=400)
LINES = st.lists(WORDS, max_size=30).map(tuple)
STATES = st.builds(
    WakeupState,
    name=WORDS,
    role=WORDS,
    team=st.lists(st.builds(Teammate, WORDS, WORDS), max_size=30).map(tuple),
    protocols=st.lists(st.builds(Protocol, WORDS, WORDS, st.booleans()), max_size=30).map(tuple),
    work=st.builds(
        Work,
        st.lists(st.builds(Item, WORDS, WORDS, private=st.booleans()), max_size=30).map(tuple),
        st.lists(st.builds(Item, WORDS, private=st.booleans()), max_size=5).map(tuple),
        st.lists(st.builds(Item, WORDS, private=st.booleans()), max_size=5).map(tuple),
        st.lists(st.builds(Item, WORDS, private=st.booleans()), max_size=5).map(tuple),
    ),
    last=st.builds(LastSession, st.just("2026-01-04"), LINES, LINES, LINES),
    older=st.lists(st.builds(OlderSession, st.just("2026-01-02"), WORDS), max_size=30).map(tuple),
    milestones=LINES,
    relationships=LINES,
)
RATIOS = st.sampled_from([2.5, 4.0, 6.0])


@settings(max_examples=examples(40))
@given(state=STATES, budget=st.integers(100, 5000), ratio=RATIOS)
@pytest.mark.slow
def test_no_section_passes_its_cap_and_the_whole_not_its_budget(state: WakeupState, budget: int, ratio: float) -> None:
    estimate = by_ratio(ratio)
    text = render_wakeup_context(state, budget, estimate=estimate)
    got = sections(text)
    caps = {"Who I Am": WHO_TOKENS, "Active Work": WORK_TOKENS, "How We Work": HOW_TOKENS, "Last Session": LAST_TOKENS}
    assert all(estimate(got[name]) <= cap for name, cap in caps.items() if name in got)
    exempt = "\n\n".join([text.split("\n\n", 1)[0], got["Who I Am"], got["Active Work"]]) + "\n"
    assert estimate(text) <= max(budget, estimate(exempt))
    assert text == render_wakeup_context(state, budget, estimate=estimate)


@settings(max_examples=examples(40))
@given(state=STATES, budget=st.integers(100, 5000), ratio=RATIOS)
@pytest.mark.slow
def test_nothing_gives_way_while_something_below_it_still_has_room(
    state: WakeupState, budget: int, ratio: float
) -> None:
    estimate = by_ratio(ratio)
    tight = sections(render_wakeup_context(state, budget, estimate=estimate))
    ample = sections(render_wakeup_context(state, 100_000, estimate=estimate))
    assert list(tight) == list(ample)[: len(tight)]
    assert all(tight[name] == ample[name] for name in list(tight)[:-1])
    assert {"Who I Am", "Active Work"} <= {name for name, section in tight.items() if section == ample[name]}


@settings(max_examples=examples(30))
@given(state=STATES)
def test_the_public_text_does_not_change_with_what_is_private(state: WakeupState) -> None:
    work = state.work
    bare = replace(
        state,
        protocols=tuple(item for item in state.protocols if not item.private),
        work=Work(
            tuple(item for item in work.tasks if not item.private),
            tuple(item for item in work.branches if not item.private),
            tuple(item for item in work.blockers if not item.private),
            tuple(item for item in work.next_actions if not item.private),
        ),
        last=LastSession(),
        older=(),
        milestones=(),
        relationships=(),
    )
    assert render_wakeup_context(state, public=True) == render_wakeup_context(bare, public=True)
