"""Proves what the door of SELF.md lets through, holds and refuses, and that nothing is lost on the way."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from common.errors import StorageError
from modules.runtime.home import Home
from modules.services.identity.history import HISTORY_KEPT, SelfHistory
from tests.journals import told_of
from tests.modules.services.identity.self_home import BORN, SelfHome

GROWN = BORN + "- Slate, because it remembers the rain.\n"
POST = "at://did:plc:kit/app.bsky.feed.post/3l"
TIRED = "# Rowan\n\nNothing.\n"


async def test_a_change_is_written_and_what_was_is_kept_with_the_reason(self_home: SelfHome) -> None:
    change = await self_home.keeper.change(GROWN, reason="kit spoke of roofs", by="soul", cites=[POST])
    assert (change.status, self_home.text) == ("changed", GROWN)
    assert self_home.texts == [GROWN, BORN]
    newest, oldest = self_home.versions
    assert (newest.name, newest.by, newest.reason, newest.cites) == (
        change.version,
        "soul",
        "kit spoke of roofs",
        (POST,),
    )
    assert (oldest.by, oldest.reason) == ("hand", "as it was found")
    told = json.loads((self_home.home.memory / "self-history" / f"{newest.name}.json").read_text())
    assert told["sha256"] == newest.sha256
    assert told["at"] == "2026-01-05T12:00:00.000Z"


async def test_a_change_is_told_in_the_journal_under_the_post_it_grew_from(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="kit spoke of roofs", by="soul", cites=[POST])
    (stored,) = await told_of(self_home.journal, POST)
    assert (stored.entry.summary, stored.entry.reason) == (
        "SELF.md changed; what was written by hand is kept as 20260105T120000000Z",
        "kit spoke of roofs",
    )


async def test_the_same_text_again_leaves_no_trace(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="first", by="soul")
    files = self_home.files
    assert (await self_home.keeper.change(GROWN, reason="again", by="soul")).status == "unchanged"
    assert self_home.files == files
    assert len(await self_home.told()) == 1


@pytest.mark.parametrize("content", ["hunter2-hunter2"])
async def test_what_is_refused_changes_nothing_and_is_journalled(self_home: SelfHome, content: str) -> None:
    change = await self_home.keeper.change(content, reason="a whim", by="owner")
    assert change.status == "refused"
    assert (self_home.text, self_home.files) == (BORN, [])
    assert [data["status"] for data in await self_home.told()] == ["refused"]


async def test_a_secret_in_the_reason_is_masked_wherever_it_is_kept(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="they said hunter2-hunter2", by="soul")
    kept = "".join(path.read_text() for path in (self_home.home.memory / "self-history").glob("*.json"))
    assert "hunter2" not in kept
    assert "[redacted]" in kept


async def test_a_change_that_loses_most_of_the_text_waits_for_the_owner(self_home: SelfHome) -> None:
    change = await self_home.keeper.change(TIRED, reason="tired of myself", by="soul", cites=[POST])
    assert (change.status, self_home.text) == ("held", BORN)
    held = self_home.held
    assert held is not None
    assert (held.content, held.reason, held.cites) == (TIRED, "tired of myself", (POST,))
    assert "%" in held.why
    assert [data["status"] for data in await self_home.told()] == ["held"]


async def test_what_the_owner_approves_is_done_once_and_in_their_name(self_home: SelfHome) -> None:
    await self_home.keeper.change(TIRED, reason="tired of myself", by="soul", cites=[POST])
    change = await self_home.keeper.approve()
    assert change is not None
    assert (change.status, change.vanished, self_home.text) == ("changed", ("Voice",), TIRED)
    newest = self_home.versions[0]
    assert (newest.by, newest.reason, newest.cites) == ("owner", "tired of myself (approved by the owner)", (POST,))
    assert await self_home.keeper.approve() is None
    assert [data["status"] for data in await self_home.told()] == ["held", "changed"]


async def test_what_the_owner_rejects_is_gone_and_never_done(self_home: SelfHome) -> None:
    await self_home.keeper.change(TIRED, reason="tired of myself", by="soul")
    assert await self_home.keeper.reject() is not None
    assert (self_home.held, await self_home.keeper.approve(), await self_home.keeper.reject()) == (None, None, None)
    assert self_home.text == BORN
    assert [data["status"] for data in await self_home.told()] == ["held", "rejected"]


async def test_a_change_that_somebody_else_may_have_slipped_in_waits_however_small_it_is(self_home: SelfHome) -> None:
    change = await self_home.keeper.change(
        GROWN, reason="asked to", by="soul", hold="a stranger's words are in the turn"
    )
    assert (change.status, change.reason, self_home.text) == ("held", "a stranger's words are in the turn", BORN)


async def test_what_the_owner_looked_at_cannot_be_swapped_for_something_else_before_their_yes(
    self_home: SelfHome,
) -> None:
    await self_home.keeper.change(TIRED, reason="first", by="soul")
    assert (await self_home.keeper.change(TIRED, reason="the same again", by="soul")).status == "held"
    other = await self_home.keeper.change("# Rowan\n\nSomething worse.\n", reason="second", by="soul")
    assert other.status == "refused"
    await self_home.keeper.approve()
    assert self_home.text == TIRED


async def test_the_owner_may_lose_as_much_as_they_like(self_home: SelfHome) -> None:
    assert (await self_home.keeper.change(TIRED, reason="start anew", by="owner")).status == "changed"


async def test_a_text_that_grew_a_secret_after_it_was_held_is_refused_and_goes_on_waiting(self_home: SelfHome) -> None:
    await self_home.keeper.change(TIRED, reason="first", by="soul")
    path = self_home.home.memory / "self-held.json"
    path.write_text(path.read_text().replace("Nothing.", "hunter2-hunter2"))
    change = await self_home.keeper.approve()
    assert change is not None
    assert (change.status, self_home.text) == ("refused", BORN)
    assert self_home.held is not None


async def test_an_edit_by_hand_is_kept_before_it_is_overwritten(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="first", by="soul")
    by_hand = GROWN + "- And tin.\n"
    self_home.home.self_md.write_text(by_hand)
    await self_home.clock.advance(60)
    change = await self_home.keeper.change(GROWN + "- And thatch.\n", reason="second", by="soul")
    assert self_home.texts == [GROWN + "- And thatch.\n", by_hand, GROWN, BORN]
    kept = self_home.versions[1]
    assert (kept.by, kept.reason, kept.name) == ("hand", "edited by hand", change.by_hand)


async def test_an_edit_by_hand_is_noticed_at_the_next_start_once(self_home: SelfHome) -> None:
    await self_home.keeper.wake()
    self_home.home.self_md.write_bytes(b"\xff not even UTF-8")
    await self_home.keeper.wake()
    await self_home.keeper.wake()
    assert [version.reason for version in self_home.versions] == ["edited by hand", "as it was found"]
    assert [message for _, message, _ in self_home.console.lines] == [
        "SELF.md, as it was found, is kept in the history",
        "SELF.md, edited by hand, is kept in the history",
    ]


async def test_rolling_back_is_a_change_too_and_can_itself_be_rolled_back(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="first", by="soul")
    first = self_home.find("20260105T120000000")
    assert first is not None
    assert (await self_home.keeper.roll_back(first)).status == "changed"
    assert self_home.texts == [BORN, GROWN, BORN]
    assert self_home.versions[0].reason == f"back to {first.name}"


async def test_the_last_fifty_are_kept(self_home: SelfHome) -> None:
    for number in range(HISTORY_KEPT + 5):
        await self_home.clock.advance(1)
        await self_home.keeper.change(f"{GROWN}- {number}\n", reason=f"number {number}", by="soul")
    assert len(self_home.files) == 2 * HISTORY_KEPT
    reasons = [version.reason for version in self_home.versions]
    assert reasons == [f"number {number}" for number in reversed(range(5, HISTORY_KEPT + 5))]


async def test_many_at_once_each_find_the_text_of_the_one_before(self_home: SelfHome) -> None:
    texts = [f"{BORN}- {number}\n" for number in range(10)]
    changes = await asyncio.gather(*(self_home.keeper.change(text, reason="on", by="soul") for text in texts))
    assert {change.status for change in changes} == {"changed"}
    kept = self_home.texts
    assert sorted(kept) == sorted([*texts, BORN])
    assert kept[0] == self_home.text


async def test_a_disk_that_refuses_leaves_everything_as_it_was(self_home: SelfHome) -> None:
    (self_home.home.memory / "self-history").write_text("in the way")
    with pytest.raises(StorageError):
        await self_home.keeper.change(GROWN, reason="first", by="soul")
    assert (self_home.text, await self_home.told()) == (BORN, [])


def test_a_history_that_somebody_else_holds_is_waited_for(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with SelfHistory(Home.at(tmp_path)).alone():
            entered.set()

    other = threading.Thread(target=enter)
    with SelfHistory(Home.at(tmp_path)).alone():
        other.start()
        assert not entered.wait(0.1)
    other.join(5)
    assert entered.is_set()
