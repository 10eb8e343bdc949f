"""Proves that odd skills of its own, and what others bring about, neither break a SOUL nor change it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from modules.runtime.journal.types import Entry
from tests.modules.services.craft.test_friction import on_two_days, record_of
from tests.modules.services.outbox.running_outbox import RunningOutbox, open_running_outbox
from tests.running_town import RunningTown, awake, replying


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningOutbox]:
    async with open_running_outbox(tmp_path) as opened:
        yield opened


BY_STRANGERS = {
    "an edit of theirs that was lost": Entry(
        "error", "github", "Replaced an edit by @mallory on acme/site#7", line="warn", reason="it is in the history"
    ),
    "what of theirs no parser reads": Entry(
        "error",
        "awareness",
        "2 notifications could not be read and will get no answer",
        line="warn",
        reason="unreadable",
    ),
    "a plan that they broke": Entry("error", "github-awareness", "Plans could not be read: acme/site#3: nonsense"),
    "a budget that they used up": Entry(
        "life", "budget", "Saving: 70 % of the day is used", line="warn", data={"step": "cheaper", "day": "x"}
    ),
    "a loop that fails at what they sent": Entry(
        "error", "awareness", "awareness: Bluesky: the answer is too large", line="warn"
    ),
}


@pytest.mark.parametrize("what", BY_STRANGERS)
async def test_no_friction_becomes_ready_by_what_strangers_did_alone(
    running: RunningOutbox, tmp_path: Path, what: str
) -> None:
    found = await on_two_days(running, record_of(running, tmp_path), BY_STRANGERS[what])
    assert (found.own, found.state) == (0, "seen"), found.description


async def test_strangers_whose_drafts_the_owner_rejects_make_no_friction_ready(
    running: RunningOutbox, tmp_path: Path
) -> None:
    entry = Entry(
        "act",
        "outbox",
        "Rejected reply: x",
        trigger_uri="at://did:plc:mallory/app.bsky.feed.post/1",
        author="mallory.test",
        data={"kind": "reply", "what": "rejected", "target": "at://did:plc:mallory/app.bsky.feed.post/1"},
        dids=("did:plc:mallory",),
    )
    found = await on_two_days(running, record_of(running, tmp_path), entry)
    assert (found.own, found.state) == (0, "seen")


@pytest.mark.parametrize("turns", ["[[mentions]]", "[{mentions: yes}]", '["\\Uffffffff"]'])
async def test_a_page_with_odd_turns_costs_only_that_skill(running_town: RunningTown, turns: str) -> None:
    home = running_town.make_home("rowan")
    page = home.workspace / "skills" / "odd" / "SKILL.md"
    page.parent.mkdir(parents=True)
    page.write_text(f"---\nname: odd\ndescription: Odd.\nturns: {turns}\n---\n\nSay the hour.\n")
    running_town.mind.answer = replying("Tin, at least where I sit. What do you hear?")
    async with awake(home) as life:
        running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
        await life.look()
    assert len(running_town.texts("rowan")) == 1
