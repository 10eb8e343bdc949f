"""Proves that the journal keeps every entry with its reason, stays within its limits, and never holds a secret."""

from pathlib import Path

import pytest

from common.clock import iso
from common.errors import StorageError
from modules.runtime.journal.types import Entry, EntryKind
from tests.modules.runtime.journal.conftest import SECRET, JournalHome

THEIRS, OURS = "at://did:plc:ada/app.bsky.feed.post/1", "at://did:plc:soul/app.bsky.feed.post/2"


async def test_an_entry_comes_back_as_it_was_recorded(journal_home: JournalHome) -> None:
    entry = Entry(
        kind="decision",
        loop="awareness",
        summary="answer @ada",
        line="act",
        reason="she asked",
        trigger_uri=THEIRS,
        author="ada.example",
        intent_id="i1",
        data={"tokens": 12, "parts": ["core", "thread"], "nested": {"ok": True}},
    )
    number = await journal_home.journal.record(entry)
    (stored,) = await journal_home.journal.recent(5)
    assert (stored.id, stored.at, stored.entry) == (number, iso(journal_home.clock.now()), entry)


async def test_the_line_is_shown_with_its_reason_and_quiet_entries_are_not(journal_home: JournalHome) -> None:
    await journal_home.journal.record(Entry("life", "soul", "awake", line="sys", reason="started by owner"))
    await journal_home.journal.record(Entry("life", "soul", "heartbeat", line=None))
    assert journal_home.console.lines == [("sys", "awake", "started by owner")]


async def test_secrets_enter_neither_row_nor_terminal(journal_home: JournalHome) -> None:
    await journal_home.journal.record(
        Entry(
            "error",
            f"loop {SECRET}",
            f"failed with {SECRET}",
            reason=f"reason {SECRET}",
            trigger_uri=f"at://{SECRET}",
            author=SECRET,
            data={SECRET: [{"deep": f"Bearer {SECRET}"}]},
        )
    )
    rows = await journal_home.database.run(
        lambda connection: [tuple(row) for row in connection.execute("SELECT * FROM journal")]
    )
    assert SECRET not in str(rows) + str(journal_home.console.lines)
    assert str(rows).count("[redacted]") == 7


async def test_recent_gives_the_newest_first_and_only_the_kinds_asked_for(journal_home: JournalHome) -> None:
    kinds: tuple[EntryKind, ...] = ("life", "act", "decision", "act")
    for number, kind in enumerate(kinds):
        await journal_home.journal.record(Entry(kind, "x", str(number)))
    assert [one.entry.summary for one in await journal_home.journal.recent(3)] == ["3", "2", "1"]
    assert [one.entry.summary for one in await journal_home.journal.recent(9, ["act", "life"])] == ["3", "1", "0"]
    assert await journal_home.journal.recent(9, []) == []


async def test_pruning_takes_the_old_and_then_the_oldest_above_the_count(journal_home: JournalHome) -> None:
    born = journal_home.clock.now()
    for number in range(10):
        await journal_home.journal.record(Entry("life", "x", str(number)))
        await journal_home.clock.advance(86_400)
    assert await journal_home.journal.prune() == 0
    assert await journal_home.journal.prune(max_days=7.5) == 3
    assert await journal_home.journal.prune(max_entries=4) == 3
    assert [one.entry.summary for one in await journal_home.journal.recent(99)] == ["9", "8", "7", "6"]
    assert await journal_home.journal.began() == born


async def test_pruning_takes_the_oldest_above_the_bytes_and_leaves_the_rest(journal_home: JournalHome) -> None:
    for number in range(10):
        await journal_home.journal.record(
            Entry("life", "x", str(number), reason="r" * 97, data={})
        )  # 100 bytes in total
    assert await journal_home.journal.prune(max_bytes=1000) == 0
    assert await journal_home.journal.prune(max_bytes=999) == 1
    assert await journal_home.journal.prune(max_bytes=350) == 6
    assert [one.entry.summary for one in await journal_home.journal.recent(99)] == ["9", "8", "7"]


async def test_half_a_surrogate_pair_can_be_journalled(journal_home: JournalHome) -> None:
    await journal_home.journal.record(Entry("model", "x", "the model said \ud83d", data={"raw": "\ud83d"}))
    (stored,) = await journal_home.journal.recent(1)
    assert stored.entry.summary == "the model said ?"


async def test_values_that_are_no_json_are_written_as_words(journal_home: JournalHome) -> None:
    await journal_home.journal.record(
        Entry("life", "x", "y", data={"path": Path("/tmp"), "at": journal_home.clock.now()})  # noqa: S108
    )
    (stored,) = await journal_home.journal.recent(1)
    assert stored.entry.data["path"] == "/tmp"  # noqa: S108


async def test_a_full_disk_is_the_callers_to_know(journal_home: JournalHome) -> None:
    await journal_home.database.run(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchone())
    with pytest.raises(StorageError, match="Disk full"):
        await journal_home.journal.record(Entry("life", "x", "y" * 100_000))
    assert journal_home.console.lines == []
