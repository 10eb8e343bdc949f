"""Trouble is counted from a week of the journal, and not again for each look at the status."""

from __future__ import annotations

from pathlib import Path

from modules.runtime.journal.types import Entry
from modules.services.experiences.friction import Friction, FrictionReport
from tests.modules.services.outbox.running_outbox import open_running_outbox


async def test_trouble_is_counted_at_most_once_a_minute(tmp_path: Path) -> None:
    async with open_running_outbox(tmp_path) as running:
        friction = FrictionReport(running.journal, running.clock)
        await running.journal.record(Entry("error", "prompt", "It had no room."))
        assert await friction.counts() == [Friction("memory", "prompt", 1)]
        await running.journal.record(Entry("error", "prompt", "It had no room."))
        assert await friction.counts() == [Friction("memory", "prompt", 1)]
        await running.clock.advance(61)
        assert await friction.counts() == [Friction("memory", "prompt", 2)]
