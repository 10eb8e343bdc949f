"""Proves of what a prompt is made: each part in its place, for the right audience, within the budget, and told."""

from __future__ import annotations

import json
import random
import shutil
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from common.errors import IdentityError
from common.provenance import Provenance
from modules.services.agent.prompt.fitting import Audience, PromptFile, SystemPrompt
from modules.services.agent.prompt.prompter import PromptNotice
from soul.resources import SKILLS
from tests.modules.services.agent.prompt.prompt_home import NOW, SELF_TEXT, SOUL_TEXT, PromptHome, recalled

AUDIENCES: tuple[Audience, ...] = get_args(Audience)
TODAY, YESTERDAY = date(2026, 11, 22), date(2026, 11, 21)


@pytest.fixture
def prompt_home(tmp_path: Path) -> PromptHome:
    return PromptHome(tmp_path / "marlow")


def furnish(prompt_home: PromptHome) -> None:
    """Something in every row of the table, each with a word of its own."""
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
    for word in ("user-word", "user-profile-word", "memory-word", "context-word", "private-word", "bootstrap-word"):
        assert word not in prompt.text
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


async def test_the_static_text_is_the_same_bytes_in_every_turn_until_a_file_changes(prompt_home: PromptHome) -> None:
    furnish(prompt_home)
    rng = random.Random(11)
    seen: dict[Audience, set[tuple[str, str]]] = {audience: set() for audience in AUDIENCES}
    for turn in range(60):
        prompt_home.known.boot = {"owner:terminal": "woke up"} if rng.random() < 0.2 else {}
        prompt_home.known.degraded = rng.choice(("", "the store is down"))
        prompt_home.known.days[TODAY] = "x" * turn
        prompt_home.known.recalled[True] = recalled(f"something {rng.random()}", turn)
        prompt_home.write("CONTEXT.md", str(rng.random()))
        audience = rng.choice(AUDIENCES)
        prompt = await prompt_home.prompt(audience, query=str(turn), now=NOW + timedelta(minutes=7 * turn))
        static, semi, dynamic = (block.text for block in prompt.blocks)
        seen[audience].add((static, semi))
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
