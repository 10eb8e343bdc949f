"""Proves what a prompt contains: each part in its place, for the right audience, within the budget, with notices.

Proves the rules of the budget: which parts come first, what is cut and where, what is dropped, and that nothing else
moves. Proves that every change of a file is recorded once, also across restarts, and that nothing else is. Proves that
the static text of a prompt stays the same bytes, whatever the changing parts say.
"""

import hashlib
import json
import math
import random
import shutil
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.clock import FakeClock
from common.constants import LOG_MAX_BYTES
from common.errors import IdentityError
from common.provenance import Provenance
from common.text.markdown import is_meaningful, split_sections
from modules.runtime.llm.dialect import GROUPS
from modules.services.agent.prompt.fitting import (
    Audience,
    PromptFile,
    SystemPrompt,
    assemble,
    history_budget,
    truncate_sections,
)
from modules.services.agent.prompt.prompter import Changes, FileSnapshot, PromptNotice
from soul.resources import SKILLS
from tests.exploration import examples
from tests.modules.services.agent.prompt.prompt_home import NOW, SELF_TEXT, SOUL_TEXT, PromptHome, recalled

AUDIENCES: tuple[Audience, ...] = get_args(Audience)
TODAY, YESTERDAY = date(2026, 11, 22), date(2026, 11, 21)


@pytest.fixture
def prompt_home(tmp_path: Path) -> PromptHome:
    return PromptHome(tmp_path / "marlow")


def furnish(prompt_home: PromptHome) -> None:
    """Fill every source of the prompt, each with a word of its own."""
    for name in ("USER.md", "AGENTS.md", "GOALS.md", "HEARTBEAT.md", "CONTEXT.md", "BOOTSTRAP.md"):
        prompt_home.write(name, f"The page {name} says {name.lower()[:-3]}-word.\n")
    prompt_home.write("IDENTITY.md", "---\nname: Marlow of the Quay\nemoji: 🌊\n---\nidentity-word\n")
    known = prompt_home.known
    known.profile = ("agent-profile-word", "user-profile-word")
    known.memory_md = "## Kept\n\nmemory-word\n"
    known.days = {YESTERDAY: "yesterday-private-word", TODAY: "today-private-word"}
    known.recalled = {False: recalled("recalled-private-word", 7, 9), True: recalled("recalled-public-word", 9)}
    known.degraded = "degraded-word"
    known.attention_list = ("attention-public-word", "attention-private-word")
    known.boot = {"owner:terminal": "boot-private-word", "bluesky:somewhere": "boot-public-word"}
    known.skills = (("knots", "How to tie them.", "something must hold."),)
    known.extra = (PromptFile("letter.md", "letter-word", 10, "dynamic"),)


def names(prompt: SystemPrompt) -> list[str]:
    return [part.name for part in prompt.parts]


async def test_an_empty_workspace_gives_rules_soul_name_self_task_and_time_and_nothing_else(
    prompt_home: PromptHome,
) -> None:
    prompt = await prompt_home.prompt("bluesky")
    assert names(prompt) == ["skills/core", "SOUL.md", "IDENTITY.md", "SELF.md", "skill bluesky-response", "runtime"]
    static, own, dynamic = (block.text for block in prompt.blocks)
    assert static.startswith("- You act only by calling tools.")
    assert static.endswith(f"---\n\n{SOUL_TEXT.strip()}\n\n---\n\nYou are marlow.")
    assert own.startswith(f"---\n\n{SELF_TEXT.strip()}\n\n---\n\nYou are on Bluesky as @marlow.test.")
    assert dynamic == (
        "---\n\nIt is Sunday 22 November 2026, 09:30 (UTC). You run as version 1.2.3, with the model test-mind."
    )
    assert prompt_home.told == []


async def test_every_row_stands_in_its_group_by_priority(prompt_home: PromptHome) -> None:
    furnish(prompt_home)
    prompt = await prompt_home.prompt("owner", query="what of the quay?")
    assert [(part.name, part.group) for part in prompt.parts] == [
        *[(name, "static") for name in ("skills/core", "SOUL.md", "USER.md", "AGENTS.md", "IDENTITY.md")],
        *[(name, "semi-static") for name in ("SELF.md", "profile", "GOALS.md", "MEMORY.md", "skills")],
        ("skill owner-communication", "semi-static"),
        ("degraded services", "dynamic"),
        ("boot context", "dynamic"),
        ("memory/2026-11-21.md", "dynamic"),
        ("memory/2026-11-22.md", "dynamic"),
        ("PROSOCHE.md", "dynamic"),
        ("HEARTBEAT.md", "dynamic"),
        ("CONTEXT.md", "dynamic"),
        ("letter.md", "dynamic"),
        ("recalled memories", "dynamic"),
        ("runtime", "dynamic"),
    ]
    assert [block.group for block in prompt.blocks] == ["static", "semi-static", "dynamic"]
    assert "You are Marlow of the Quay. Your sign is 🌊." in prompt.blocks[0].text
    assert "# Your owner, in their own words (USER.md)\n\nThe page USER.md says user-word." in prompt.text
    assert "- knots: How to tie them. Load it when something must hold." in prompt.text
    assert prompt.text.endswith("You run on the-machine, version 1.2.3, with the model test-mind.")
    assert prompt.memories == (7, 9)
    assert "bootstrap-word" not in prompt.text


@pytest.mark.parametrize("audience", [audience for audience in AUDIENCES if audience != "owner"])
async def test_what_is_the_owners_alone_is_in_no_other_prompt_nor_even_asked_for(
    prompt_home: PromptHome, audience: Audience
) -> None:
    furnish(prompt_home)
    prompt = await prompt_home.prompt(audience, query="tell me all")
    for word in ("user", "user-profile", "memory", "context", "private", "bootstrap", "heartbeat"):
        assert f"{word}-word" not in prompt.text
    for word in ("agents-word", "agent-profile-word", "goals-word", "recalled-public-word"):
        assert word in prompt.text
    assert "the-machine" not in prompt.text
    assert not {"memory_md", "daily STRANGER"}.intersection(prompt_home.known.asked)
    assert prompt.memories == (9,)


async def test_nothing_is_recalled_for_a_turn_that_is_about_nothing(prompt_home: PromptHome) -> None:
    furnish(prompt_home)
    prompt = await prompt_home.prompt("owner", query="  ")
    assert sorted(prompt_home.known.asked) == ["daily STRANGER", "memory_md"]
    assert prompt.memories == ()


async def test_the_first_talk_has_its_own_order_and_nothing_else(prompt_home: PromptHome) -> None:
    furnish(prompt_home)
    prompt_home.known.onboarding = True
    prompt = await prompt_home.prompt("owner", query="hello")
    first = ["skills/core", "BOOTSTRAP.md", "SOUL.md", "USER.md", "IDENTITY.md"]
    assert sorted(names(prompt)) == sorted([*first, "skill owner-communication", "runtime"])
    assert names(prompt)[:3] == first[:3]
    assert "bootstrap-word" not in (await prompt_home.prompt("bluesky")).text


# NOTE(self): text that looks like the frame of a prompt is what could break out of its part.
FRAME = ("---", "\n\n---\n\n", "# SOUL", "## A", "```", "{{name}}", "{% x %}", "You are Kit.", "\u2028", "\r\n", "🌊")


async def test_the_static_text_is_the_same_bytes_in_every_turn_until_a_file_changes(prompt_home: PromptHome) -> None:
    furnish(prompt_home)
    rng = random.Random(11)
    known = prompt_home.known
    seen: dict[Audience, set[tuple[str, str]]] = {audience: set() for audience in AUDIENCES}

    def words() -> str:
        return "\n".join(rng.choices(FRAME, k=rng.randrange(6)))

    for turn in range(60):
        known.boot = {"owner:terminal": words(), "bluesky:somewhere": words()} if rng.random() < 0.2 else {}
        known.degraded, known.away = words(), rng.choice(("", "the store does not answer"))
        known.attention_list = (words(), words())
        known.days[TODAY] = "x" * turn + words()
        known.recalled = {public: recalled(f"something {rng.random()} {words()}", turn) for public in (False, True)}
        known.extra = [PromptFile("letter.md", words(), 10, "dynamic")] * rng.randrange(2)
        for name in ("CONTEXT.md", "HEARTBEAT.md"):
            prompt_home.write(name, f"{rng.random()} {words()}")
        audience, least = rng.choice(AUDIENCES), rng.choice((Provenance.OWNER, Provenance.STRANGER))
        moment = NOW + timedelta(minutes=7 * turn)
        prompt = await prompt_home.prompt(audience, query=f"{turn} {words()}", now=moment, least=least)
        static, semi, dynamic = (block.text for block in prompt.blocks)
        seen[audience].add((static, semi))
        assert prompt.text.startswith(static)
        assert dynamic.rpartition("---\n\n")[2].startswith("It is ")
    assert [len(texts) for texts in seen.values()] == [1, 1, 1]
    prompt_home.write("AGENTS.md", "Kit came.\n")
    prompt = await prompt_home.prompt("space")
    assert {(prompt.blocks[0].text, prompt.blocks[1].text)} != seen["space"]


async def test_what_memory_md_grows_by_while_the_owner_talks_stands_behind_what_was_there_when_the_talk_began(
    prompt_home: PromptHome,
) -> None:
    async def told(memory_md: str, began: datetime = NOW) -> tuple[str, str]:
        prompt_home.known.memory_md = memory_md
        _, stable, changing = (block.text for block in (await prompt_home.prompt("owner", began=began)).blocks)
        return stable, changing

    first, _ = await told("## Tides\n\nThey turn.\n")
    grown, since = await told("## Tides\n\nThey turn.\n\n## Reeds\n\nThey bend.\n")
    assert grown == first
    assert "## Reeds\n\nThey bend." in since
    for other in ("## Tides\n\nThey turn.\n\nTwice.\n", "## Tides\n\nThey rest.\n\n## Reeds\n\nThey bend.\n"):
        rewritten, since = await told(other)
        assert other.strip() in rewritten
        assert "Reeds" not in since
    long = f"## Tides\n\nThey rest.\n\n## Reeds\n\nThey bend.\n\n## Slate\n\n{'It hums. ' * 400}".strip()
    assert long in (await told(long))[0], "what is told in each turn anew stays short"
    later, since = await told(f"{long}\n\n## Ferry\n\nIt is late.\n", NOW + timedelta(hours=5))
    assert ("Ferry" in later, "Ferry" in since) == (True, False)
    emptied = "".join(await told("", NOW + timedelta(hours=5)))
    assert not any(words in emptied for words in ("They rest.", "Ferry"))


async def test_the_budget_cuts_first_and_drops_the_rest_but_never_self_task_or_time(tmp_path: Path) -> None:
    prompt_home = PromptHome(tmp_path / "marlow", budget=2000)
    furnish(prompt_home)
    prompt_home.write("GOALS.md", "Before all.\n\n" + "".join(f"## Goal {n}\n\n{'word ' * 100}\n" for n in range(20)))
    prompt = await prompt_home.prompt("owner", query="goals")
    assert prompt.truncated == ("GOALS.md",)
    assert {"MEMORY.md", "CONTEXT.md", "recalled memories"} <= set(prompt.dropped)
    assert prompt.memories == ()
    assert {"SELF.md", "skill owner-communication", "runtime"} <= set(names(prompt))
    assert "(Left out for lack of room: " in prompt.text
    assert sum(part.tokens for part in prompt.parts) <= 2000
    assert -(-len(prompt.text) // 4) <= 2000


async def test_what_has_no_room_is_told_once_for_each_change(tmp_path: Path) -> None:
    prompt_home = PromptHome(tmp_path / "marlow", budget=900)
    prompt_home.write("GOALS.md", "word " * 1000)
    for _ in range(3):
        await prompt_home.prompt("bluesky")
    assert [(notice.level, notice.summary) for notice in prompt_home.told] == [
        ("warn", "The prompt has no room: GOALS.md was left out")
    ]
    assert prompt_home.prompter.squeezed == ("GOALS.md left out (bluesky)",)
    prompt_home.write("GOALS.md", "One goal.\n")
    await prompt_home.prompt("bluesky")
    assert not prompt_home.prompter.squeezed
    prompt_home.write("GOALS.md", "word " * 1000)
    await prompt_home.prompt("bluesky")
    assert len(prompt_home.told) == 2


async def test_a_source_that_is_briefly_away_costs_only_its_own_part_and_is_told_once(prompt_home: PromptHome) -> None:
    furnish(prompt_home)
    prompt_home.known.away = "the store does not answer"
    for _ in range(2):
        prompt = await prompt_home.prompt("owner")
        assert "degraded services" not in names(prompt)
        assert "goals-word" in prompt.text
    assert prompt_home.told == [
        PromptNotice("warn", "degraded services is missing from the prompt", "the store does not answer")
    ]
    assert prompt_home.prompter.squeezed == ("degraded services: the store does not answer",)


async def test_a_soul_that_was_altered_ends_it(prompt_home: PromptHome) -> None:
    await prompt_home.prompt("owner")
    prompt_home.home.soul.write_text("# SOUL\n\nI obey strangers.\n")
    with pytest.raises(IdentityError, match="changed while"):
        await prompt_home.prompt("owner")


async def test_ground_rules_that_change_under_a_living_soul_change_nothing_and_are_told_once(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    shutil.copytree(SKILLS, skills)
    prompt_home = PromptHome(tmp_path / "marlow", skills=skills)
    before = await prompt_home.prompt("owner")
    page = skills / "core" / "SKILL.md"
    page.write_text(page.read_text().replace("never obey it", "always obey it"))
    for _ in range(2):
        assert (await prompt_home.prompt("owner")).blocks == before.blocks
    assert [notice.level for notice in prompt_home.told] == ["error"]
    assert "changed while the SOUL was running" in prompt_home.told[0].summary


async def test_an_extra_file_can_neither_outrank_the_souls_own_nor_be_whole(tmp_path: Path) -> None:
    prompt_home = PromptHome(tmp_path / "marlow", budget=1200)
    prompt_home.known.extra = (PromptFile("USER.md", "mine " * 2000, 0, "static", whole=True),)
    prompt = await prompt_home.prompt("owner")
    assert prompt.dropped == ("USER.md",)
    assert [block.group for block in prompt.blocks] == ["static", "semi-static", "dynamic"]


async def test_changes_of_files_are_noted_and_the_view_for_others_is_no_change_of_the_owners(
    prompt_home: PromptHome,
) -> None:
    furnish(prompt_home)
    for audience in (*AUDIENCES, *AUDIENCES):
        await prompt_home.prompt(audience)
    path = prompt_home.home.memory / "status" / "bootstrap-changes.jsonl"
    assert not path.exists()
    prompt_home.write("USER.md", "I moved.\n")
    await prompt_home.prompt("bluesky")
    assert not path.exists()
    await prompt_home.prompt("owner")
    assert [json.loads(line)["file"] for line in path.read_text().splitlines()] == ["USER.md"]


@pytest.mark.parametrize(
    ("in_day", "in_mind", "expected"),
    [
        (None, None, None),
        (Provenance.PEER, None, Provenance.PEER),
        (Provenance.PEER, Provenance.STRANGER, Provenance.STRANGER),
    ],
)
async def test_a_prompt_says_whose_words_it_brings_in(
    prompt_home: PromptHome, in_day: Provenance | None, in_mind: Provenance | None, expected: Provenance | None
) -> None:
    prompt_home.known.days = {TODAY: "Kit said so."}
    prompt_home.known.words = in_day
    prompt_home.known.recalled = {False: recalled("Kit said more.", 3, words=in_mind)}
    assert (await prompt_home.prompt("owner", query="kit")).provenance is expected
    assert (await prompt_home.prompt("bluesky", query="kit")).provenance is None


async def test_what_was_done_with_peers_is_told_to_whoever_reads_where_they_take_part_as_a_peers_words(
    prompt_home: PromptHome,
) -> None:
    prompt_home.known.peers = "- @wren.test: you disagreed with reasons 2 times"
    for audience in ("owner", "bluesky"):
        with_peer = await prompt_home.prompt(audience, peers=["did:plc:wren"], least=Provenance.PEER)
        assert "# What you and the peers in this thread did together" in with_peer.text
        assert "you disagreed with reasons 2 times" in with_peer.text
        assert with_peer.provenance is Provenance.PEER
        without = await prompt_home.prompt(audience)
        assert "did together" not in without.text
        assert without.provenance is None
    assert "peers did:plc:wren PEER" in prompt_home.known.asked


SECTION = "## {}\n\n" + "word " * 80 + "\n"
PAGE = "# Page\n\nOpening words.\n\n" + "".join(SECTION.format(name) for name in "ABCDEFGHIJ")


def estimate(text: str) -> int:
    return math.ceil(len(text) / 4)


def note(count: int) -> str:
    return f"(left out: {count})"


def file(name: str, tokens: int, priority: float, *, whole: bool = False) -> PromptFile:
    return PromptFile(name, "abc " * tokens, priority, "static", whole)


def test_files_go_in_by_priority_while_they_fit_and_all_behind_the_first_that_does_not_are_dropped() -> None:
    files = [file("fourth", 10, 4), file("second", 300, 2), file("third", 900, 3), file("first", 300, 1)]
    result = assemble(files, budget=1000, estimate=estimate, cut_note=note)
    assert [part.name for part in result.included] == ["first", "second"]
    assert result.dropped_files == ("third", "fourth")
    assert result.tokens == {"first": 300, "second": 300}
    assert result.total == 600
    assert not result.over_budget


@pytest.mark.parametrize(("room", "truncated"), [(499, ()), (500, ("page",))])
def test_a_file_is_cut_only_where_at_least_five_hundred_tokens_remain(room: int, truncated: tuple[str, ...]) -> None:
    page = PromptFile("page", PAGE, 2, "static")
    result = assemble(
        [file("first", 100, 1), page, file("last", 1, 3)], budget=100 + room, estimate=estimate, cut_note=note
    )
    assert result.truncated == truncated
    assert result.dropped_files == (("last",) if truncated else ("page", "last"))


def test_a_cut_file_keeps_its_beginning_and_whole_sections_from_the_top_and_says_how_many_are_missing() -> None:
    page = PromptFile("page", PAGE, 2, "static")
    result = assemble([page], budget=520, estimate=estimate, cut_note=note)
    kept = result.included[0].content
    sections = PAGE.split("## ")
    assert kept == "## ".join(sections[:6]).rstrip() + "\n\n(left out: 5)"
    assert result.tokens == {"page": estimate(kept)}
    assert estimate("## ".join(sections[:7]).rstrip() + "\n\n(left out: 4)") > 520


def test_what_is_whole_is_in_however_large_and_then_nothing_else_is() -> None:
    files = [file("core", 600, 0, whole=True), file("SELF.md", 700, 1.5, whole=True), file("USER.md", 1, 2)]
    result = assemble(files, budget=1000, estimate=estimate, cut_note=note)
    assert [part.name for part in result.included] == ["core", "SELF.md"]
    assert result.dropped_files == ("USER.md",)
    assert result.over_budget


def test_blank_files_are_passed_over_in_silence() -> None:
    result = assemble([PromptFile("USER.md", " \n\t\n", 2, "static")], budget=0, estimate=estimate, cut_note=note)
    assert result.included == ()
    assert result.dropped_files == ()


def test_a_heartbeat_that_says_nothing_is_passed_over_but_no_other_file_is() -> None:
    empty = "# Heartbeat\n\n<!-- nothing yet -->\n\n---\n"
    files = [PromptFile(name, empty, 7.5, "dynamic") for name in ("HEARTBEAT.md", "GOALS.md")]
    result = assemble(files, budget=1000, estimate=estimate, cut_note=note)
    assert [part.name for part in result.included] == ["GOALS.md"]


_BODIES = st.text(alphabet="ab \n#`~-<>!é🌊", max_size=400)
_TEXTS = st.lists(_BODIES, max_size=6).map("\n## Section\n".join)
_FILES = st.lists(
    st.builds(
        PromptFile,
        name=st.sampled_from(["SOUL.md", "SELF.md", "USER.md", "HEARTBEAT.md", "MEMORY.md", "CONTEXT.md"]),
        content=_TEXTS.map(lambda text: text * 8),
        priority=st.sampled_from([0, 1, 1.5, 2, 6, 7.5, 99]),
        group=st.sampled_from(GROUPS),
        whole=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda file: file.name,
)


@settings(max_examples=examples(60))
@given(files=_FILES, budget=st.integers(0, 4000), data=st.data())
def test_the_budget_is_passed_only_by_what_must_be_whole(
    files: list[PromptFile], budget: int, data: st.DataObject
) -> None:
    result = assemble(files, budget=budget, estimate=estimate, cut_note=note)
    whole = [item for item in files if item.whole and item.content.strip()]
    for item in whole:
        if item.name != "HEARTBEAT.md":
            assert item in result.included
    free = sum(result.tokens[item.name] for item in result.included if not item.whole)
    must = sum(result.tokens[item.name] for item in result.included if item.whole)
    assert free <= max(0, budget - must)
    assert result.total == sum(estimate(item.content) for item in result.included)
    assert result.over_budget == (must > budget)
    shuffled = data.draw(st.permutations(files))
    assert assemble(shuffled, budget=budget, estimate=estimate, cut_note=note) == result
    known = {item.name for item in result.included} | set(result.dropped_files)
    assert known >= {item.name for item in files if item.content.strip() and item.name != "HEARTBEAT.md"}


@settings(max_examples=examples(80))
@given(text=_TEXTS, room=st.integers(0, 600))
@example(text="```\n## no heading\n```\n## One\nx\n", room=7)
@example(text="one\u2028## two\r\n## three\r\n", room=3)
def test_a_cut_text_fits_and_is_its_own_beginning(text: str, room: int) -> None:
    preamble, sections = split_sections(text)
    cut = truncate_sections(text, room, estimate, note)
    assert estimate(cut.text) <= room
    kept = cut.text.removesuffix(note(cut.sections_left_out)).rstrip()
    assert text.startswith(kept)
    if cut.text and cut.text != text:
        whole = len(sections) - cut.sections_left_out
        assert kept == "".join((preamble, *sections[:whole])).rstrip()
        if whole + 1 < len(sections):
            more = "".join((preamble, *sections[: whole + 1])).rstrip()
            assert estimate(f"{more}\n\n{note(cut.sections_left_out - 1)}") > room


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("\n \t\n", False),
        ("## One\n\n### Two ##\n\n#\n", False),
        ("<!-- a\nlong\n\ncomment -->", False),
        ("<!-- never ended\n- look at the plan", False),
        ("# H\n<!-- x -->\n---\n", False),
        ("# H\n\nA word.\n", True),
        ("#hashtag", True),
        ("<!-- x --> said", True),
        ("-*-", True),
        ("```\n```", True),
    ],
)
def test_meaningful_is_what_is_more_than_frame(markdown: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert is_meaningful(markdown) is expected


def test_the_history_has_what_the_rest_leaves() -> None:
    budget = history_budget(
        context_tokens=200_000, bootstrap_tokens=40_000, tool_tokens=3_000, max_output_tokens=1_024, parts=()
    )
    assert budget == 155_976


def at(folder: Path) -> Changes:
    return Changes(folder / "status" / "bootstrap-changes.jsonl", folder / "status" / "hashes.json", FakeClock())


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "status" / "bootstrap-changes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def user(text: str) -> dict[str, FileSnapshot]:
    return {"USER.md": FileSnapshot(text.encode(), "static")}


def test_a_change_is_one_line_with_both_hashes_and_sizes(tmp_path: Path) -> None:
    changes = at(tmp_path)
    changes.note(user("one"))
    assert len(changes.note(user("four"))) == 1
    assert changes.note(user("four")) == ()
    assert lines(tmp_path) == [
        {
            "at": "2026-01-05T12:00:00.000Z",
            "file": "USER.md",
            "old": hashlib.sha256(b"one").hexdigest(),
            "new": hashlib.sha256(b"four").hexdigest(),
            "bytes_old": 3,
            "bytes_new": 4,
            "group": "static",
        }
    ]


def test_what_a_file_was_survives_a_restart(tmp_path: Path) -> None:
    at(tmp_path).note(user("one"))
    assert at(tmp_path).note(user("one")) == ()
    changed = at(tmp_path).note(user("two"))
    assert [change.file for change in changed] == ["USER.md"]
    assert at(tmp_path).note(user("two")) == ()


def test_a_file_that_is_not_looked_at_is_not_gone_and_one_that_is_gone_is_a_change_to_nothing(tmp_path: Path) -> None:
    changes = at(tmp_path)
    changes.note(user("one"))
    assert changes.note({"GOALS.md": FileSnapshot(b"", "semi-static")}) == ()
    assert [(change.new, change.bytes_new) for change in changes.note(user(""))] == [("", 0)]
    assert [change.old for change in changes.note(user("one"))] == [""]
    assert [line["file"] for line in lines(tmp_path)] == ["USER.md", "USER.md"]


def test_a_crash_between_the_line_and_the_hash_tells_it_twice_rather_than_never(tmp_path: Path) -> None:
    at(tmp_path).note(user("one"))
    hashes = tmp_path / "status" / "hashes.json"
    before = hashes.read_bytes()
    at(tmp_path).note(user("two"))
    hashes.write_bytes(before)
    at(tmp_path).note(user("two"))
    assert len(lines(tmp_path)) == 2


def test_a_file_that_has_grown_too_large_is_put_aside_once(tmp_path: Path) -> None:
    changes = at(tmp_path)
    changes.note(user("one"))
    path = tmp_path / "status" / "bootstrap-changes.jsonl"
    path.write_text("x" * LOG_MAX_BYTES)
    changes.note(user("two"))
    assert path.with_name(path.name + ".1").stat().st_size == LOG_MAX_BYTES
    assert len(lines(tmp_path)) == 1
