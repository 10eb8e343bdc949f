"""Proves that an event reaches the handlers of its type, and that a failing handler harms no other."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from common.clock import SystemClock
from common.errors import StorageError
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.events import Event, EventBus, discard
from modules.runtime.journal.rows import Journal


@dataclass(frozen=True, slots=True)
class Rained(Event):
    millimetres: int = 1


@dataclass(frozen=True, slots=True)
class Snowed(Event):
    pass


@dataclass
class RunningBus:
    bus: EventBus
    journal: Journal
    database: Database
    console: SilentConsole

    async def failures(self) -> list[tuple[str, str]]:
        await self.bus.settle()
        return [(one.entry.summary, one.entry.reason) for one in await self.journal.recent(9, kinds=["error"])]


@pytest.fixture
async def running_bus(database: Database) -> AsyncIterator[RunningBus]:
    console = SilentConsole()
    journal = Journal(database, console, SystemClock(), Redactor())
    async with EventBus(journal) as bus:
        yield RunningBus(bus, journal, database, console)


async def test_handlers_of_a_type_are_called_in_order_before_publish_returns(running_bus: RunningBus) -> None:
    seen: list[str] = []
    running_bus.bus.subscribe(Rained, lambda event: seen.append(f"first {event.millimetres}"))
    running_bus.bus.subscribe(Rained, lambda event: seen.append(f"second {event.millimetres}"))
    running_bus.bus.subscribe(Snowed, lambda _: seen.append("snow"))
    running_bus.bus.publish(Rained(3))
    assert seen == ["first 3", "second 3"]


async def test_an_event_without_a_handler_is_discarded(running_bus: RunningBus) -> None:
    running_bus.bus.publish(Snowed())
    discard(Snowed())
    assert await running_bus.failures() == []


async def test_an_asynchronous_handler_runs_after_publish_and_delays_nobody(running_bus: RunningBus) -> None:
    gate, seen = asyncio.Event(), []

    async def slow(event: Rained) -> None:
        await gate.wait()
        seen.append(event.millimetres)

    running_bus.bus.subscribe(Rained, slow)
    running_bus.bus.subscribe(Rained, lambda event: seen.append(-event.millimetres))
    running_bus.bus.publish(Rained(2))
    assert seen == [-2]
    gate.set()
    await running_bus.bus.settle()
    assert seen == [-2, 2]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_handler_that_fails_is_journalled_and_the_others_are_called(
    running_bus: RunningBus, *, asynchronous: bool
) -> None:
    seen: list[int] = []

    def fails(event: Rained) -> None:
        raise ValueError(f"{event.millimetres} is too much")

    async def fails_later(event: Rained) -> None:
        fails(event)

    running_bus.bus.subscribe(Rained, fails_later if asynchronous else fails)
    running_bus.bus.subscribe(Rained, lambda event: seen.append(event.millimetres))
    running_bus.bus.publish(Rained(7))
    assert seen == [7]
    assert await running_bus.failures() == [("A handler of Rained failed", "ValueError: 7 is too much")]


async def test_a_failure_that_cannot_be_journalled_is_shown(running_bus: RunningBus) -> None:
    def fails(_: Rained) -> None:
        raise StorageError("the disk is full")

    running_bus.bus.subscribe(Rained, fails)
    await running_bus.database.run(lambda connection: connection.execute("PRAGMA query_only = on"))
    running_bus.bus.publish(Rained())
    await running_bus.bus.settle()
    assert ("error", "A handler of Rained failed", "the disk is full") in running_bus.console.lines


async def test_what_still_runs_at_the_end_is_cancelled(running_bus: RunningBus) -> None:
    ended: list[str] = []

    async def never(_: Rained) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async with EventBus(running_bus.journal) as bus:
        bus.subscribe(Rained, never)
        bus.publish(Rained())
        await asyncio.sleep(0)
    assert ended == ["cancelled"]
