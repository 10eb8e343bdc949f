"""Proves when the SOUL posts unasked, and where its thoughts start.

Proves that a post that invites an answer is told apart from one that does not.
"""

import random
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.constants import PORTABLE_MAX_GRAPHEMES
from common.errors import SkillError
from common.text.graphemes import grapheme_len
from modules.lives.bluesky.expression_policy import (
    ENDINGS_APART,
    ExpressionPrompt,
    add_invitation,
    can_post_original,
    generate_expression_prompt,
    invites,
    lacks_invitation,
    next_expression_time,
    next_morning,
)
from modules.services.identity.identity import SelfExtract
from modules.services.own_feed.expressions import Prompts
from modules.services.skills.skills import Skills
from tests.modules.lives.bluesky.bluesky_values import START
from tests.project import ROOT

ONE = "You hold this: {{value}}"
TWO = "First {{value1}}, then {{ value2 }}."
SINGLES = (
    *("purpose", "values", "questions", "patterns", "learnings", "explorations", "currentFocus", "identity"),
    *("relationships",),
)
PAIRS = ("values+patterns", "questions+learnings", "purpose+focus")
TEMPLATES = {**dict.fromkeys(SINGLES, ONE), **dict.fromkeys(PAIRS, TWO)}
FALLBACKS = [("Notice something.", "observation"), ("Wonder about something.", "curiosity")]
FULL = SelfExtract(
    identity="an identity",
    purpose="a purpose",
    values=("value a", "value b"),
    questions=("a question",),
    patterns=("a pattern",),
    learnings=("a learning",),
    explorations=("an exploration",),
    current_focus=("a focus",),
    relationships=("a relationship",),
)


def prompt(extract: SelfExtract, recent: list[str] | None = None, seed: int = 0) -> ExpressionPrompt:
    return generate_expression_prompt(
        extract, TEMPLATES, recent or [], random.Random(seed), fallbacks=FALLBACKS, suffix="Ask something."
    )


@given(seed=st.integers(), hours=st.floats(min_value=-48, max_value=48))
def test_the_next_thought_keeps_its_distance_to_the_last_and_to_now(seed: int, hours: float) -> None:
    last = START + timedelta(hours=hours)
    due = next_expression_time(START, last, random.Random(seed))
    assert due >= START + timedelta(minutes=2)
    assert due >= last + timedelta(hours=3)
    assert due <= max(START + timedelta(minutes=10), last + timedelta(hours=4))


@given(seed=st.integers())
def test_a_first_thought_comes_within_minutes_and_a_restart_changes_nothing(seed: int) -> None:
    first = next_expression_time(START, None, random.Random(seed))
    assert timedelta(minutes=2) <= first - START <= timedelta(minutes=10)
    long_ago = START - timedelta(days=9)
    assert next_expression_time(START, long_ago, random.Random(seed)) - START <= timedelta(minutes=10)


@given(seed=st.integers(), speed=st.sampled_from([10, 60, 1000]))
def test_a_faster_life_shortens_every_wait(seed: int, speed: int) -> None:
    hour = 3_600_000 / speed
    due = next_expression_time(START, START, random.Random(seed), 3 * hour, 4 * hour, soonest_ms=(hour / 30, hour / 6))
    assert timedelta(hours=3) <= (due - START) * speed <= timedelta(hours=4) + timedelta(seconds=1)


@pytest.mark.parametrize("hour", [23, 0, 3, 6])
def test_the_night_is_quiet(hour: int) -> None:
    decision = can_post_original(0, hour)
    assert (decision.should, decision.code) == (False, "quiet_hours")


def test_twelve_posts_are_enough_for_a_day() -> None:
    assert can_post_original(11, 12)
    decision = can_post_original(12, 12)
    assert not decision
    assert decision.code == "daily_limit"
    assert "12 posts" in decision.reason


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("purpose", "You hold this: a purpose"),
        ("questions", "You hold this: a question"),
        ("patterns", "You hold this: a pattern"),
        ("learnings", "You hold this: a learning"),
        ("explorations", "You hold this: an exploration"),
        ("currentFocus", "You hold this: a focus"),
        ("identity", "You hold this: an identity"),
        ("relationships", "You hold this: a relationship"),
        ("questions+learnings", "First a question, then a learning."),
        ("purpose+focus", "First a purpose, then a focus."),
    ],
)
def test_every_source_finds_its_words_in_self(source: str, words: str) -> None:
    templates = {source: TEMPLATES[source]}
    made = generate_expression_prompt(FULL, templates, [], random.Random(0), fallbacks=[], suffix="")
    assert made == (words, source)


def test_every_source_and_every_bullet_gets_its_turn() -> None:
    made = [prompt(FULL, seed=seed) for seed in range(400)]
    sources = Counter(one.source for one in made)
    assert set(sources) == set(TEMPLATES)
    assert max(sources.values()) < 4 * min(sources.values())
    assert {one.prompt.split("\n")[0] for one in made if one.source == "values"} == {
        "You hold this: value a",
        "You hold this: value b",
    }


def test_the_invitation_ends_every_prompt() -> None:
    assert prompt(FULL).prompt.endswith("\n\nAsk something.")
    assert prompt(SelfExtract()).prompt.endswith("\n\nAsk something.")


def test_a_thin_self_starts_from_something_general_with_its_own_source() -> None:
    assert {prompt(SelfExtract(), seed=seed).source for seed in range(40)} == {"observation", "curiosity"}


def test_a_pair_needs_both_halves_and_identity_may_be_a_name() -> None:
    sources = {prompt(SelfExtract(name="Ada", values=("v",)), seed=seed).source for seed in range(60)}
    assert sources == {"identity", "values"}


@given(st.integers(0, 10_000), st.lists(st.sampled_from(SINGLES), max_size=6))
def test_none_of_the_last_three_sources_comes_again(seed: int, recent: list[str]) -> None:
    assert prompt(FULL, recent, seed).source not in recent[-3:]


def test_where_self_offers_only_what_was_just_used_a_general_start_is_better() -> None:
    only = SelfExtract(purpose="p")
    assert prompt(only, ["purpose"]).source in {"observation", "curiosity"}


def test_where_everything_was_just_used_self_still_comes_first() -> None:
    assert prompt(SelfExtract(purpose="p"), ["purpose", "observation", "curiosity"]).source == "purpose"


def test_words_of_self_are_never_taken_for_a_template() -> None:
    tricky = SelfExtract(values=("{{value2}} {{value}}",), patterns=("p",))
    made = generate_expression_prompt(tricky, {"values+patterns": TWO}, [], random.Random(0), fallbacks=[], suffix="")
    assert made.prompt == "First {{value2}} {{value}}, then p."


def test_a_skill_that_offers_nothing_stops_the_process() -> None:
    with pytest.raises(SkillError):
        generate_expression_prompt(SelfExtract(), TEMPLATES, [], random.Random(0), fallbacks=[], suffix="")


def test_a_source_that_nobody_answers_is_chosen_less_often() -> None:
    counts = Counter(
        generate_expression_prompt(
            FULL, TEMPLATES, [], random.Random(seed), fallbacks=[], suffix="", unanswered={"values"}
        ).source
        for seed in range(2000)
    )
    others = [counts[source] for source in (*SINGLES, *PAIRS) if source != "values"]
    assert 0 < counts["values"] < min(others) / 2


@given(hours=st.floats(0, 240), seed=st.integers())
def test_what_was_due_at_night_or_after_the_days_last_post_waits_for_a_moment_in_the_morning(
    hours: float, seed: int
) -> None:
    now = START + timedelta(hours=hours)
    moment = next_morning(now, random.Random(seed))
    assert 7 <= moment.hour <= 10
    assert timedelta(0) < moment - now <= timedelta(hours=27)


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("Rivers are patient.", False),
        ("Do you keep a log of mistakes?", True),
        ("What squeaks on your bike only in one weather?", True),
        ("It broke twice (and yours?).", True),
        ("雨の音が好きですか？", True),  # noqa: RUF001 - as Japanese writes it
        ("これはどう思いますか。", True),
        ("静か。", False),
        ("Τι νομίζετε;", True),  # noqa: RUF001 - as Greek writes it
        ("Ի՞նչ եք կարծում", True),
        ("ما رأيك؟", True),
        ("Slate; tin.", False),
        ("A checklist I use: https://example.com/a", True),
        ("I prefer the one which lies between two rivers.", False),
        ("?", False),
        ("", False),
    ],
)
def test_a_question_or_a_link_invites(draft: str, expected: bool) -> None:  # noqa: FBT001 - a table's column
    assert invites(draft) is expected


def test_only_where_none_of_the_latest_posts_invites_another_that_does_not_lacks_an_invitation() -> None:
    plain = ["Rivers are patient."] * ENDINGS_APART
    assert lacks_invitation("Tin sings.", plain)
    assert lacks_invitation("Tin sings.", [*plain, "And you?"])
    assert not lacks_invitation("Tin sings.", [*plain[1:], "And you?"])
    assert not lacks_invitation("Does tin sing?", plain)
    assert not lacks_invitation("Tin sings.", plain[1:])


@given(draft=st.text(max_size=400), invitations=st.lists(st.text(min_size=1, max_size=60), max_size=4))
def test_an_invitation_is_added_only_where_it_fits(draft: str, invitations: list[str]) -> None:
    whole = add_invitation(draft, invitations)
    assert whole == draft or grapheme_len(whole) <= PORTABLE_MAX_GRAPHEMES


def test_an_added_invitation_follows_the_thought() -> None:
    assert add_invitation("Rivers are patient.\n", [" Are you? "]) == "Rivers are patient. Are you?"
    assert add_invitation("x" * 290, ["Are you?", "And how do you see it?"]) == "x" * 290 + " Are you?"


def test_the_same_thought_gets_the_same_invitation_and_others_get_others() -> None:
    invitations = ["How about you?", "Anyone else?", "Does this resonate?"]
    assert add_invitation("Rivers are patient.", invitations) == add_invitation("Rivers are patient.", invitations)
    ends = {add_invitation(f"River {name} is patient.", invitations)[-6:] for name in "abcdefghijklmnop"}
    assert len(ends) == len(invitations)


def test_each_invitation_that_may_be_added_invites() -> None:
    offered = Prompts(Skills.load(ROOT / "skills")).invitations("Direct")
    assert len(offered) >= 5
    assert all(map(invites, offered))
