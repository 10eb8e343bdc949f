"""The event bus: services react to each other without holding references to each other.

An event is a notice, not a record: nothing here survives a crash; the publisher stores what must survive.
Each event type is a frozen dataclass in the module that publishes it.
"""

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Self, TypeVar

from common.errors import SoulError
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry


class Event:
    """Base of all event types."""

    __slots__ = ()


E = TypeVar("E", bound=Event)
Publish = Callable[[Event], None]
Handler = Callable[[E], Awaitable[None] | None]


def discard(event: Event) -> None:
    """Drop the event: a `Publish` without subscribers."""


class EventBus:
    """Delivers each published event to the handlers of its type, in the order of subscription.

    A synchronous handler runs inside `publish`. An asynchronous handler runs as a task of this bus; leaving the
    `async with` block cancels the tasks that have not ended. A handler that raises is journalled; neither the publisher
    nor the other handlers notice.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._handlers: defaultdict[type[Event], list[Handler[Any]]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def subscribe(self, event_type: type[E], handler: Handler[E]) -> None:
        """Call `handler` with each event that is exactly of this type."""
        self._handlers[event_type].append(handler)

    def publish(self, event: Event) -> None:
        """Deliver `event` now. Returns before asynchronous handlers have run; never raises for a handler."""
        for handler in self._handlers[type(event)]:
            try:
                pending = handler(event)
            except Exception as error:
                self._start(self._report(event, error))
            else:
                if inspect.isawaitable(pending):
                    self._start(self._run(event, pending))

    async def settle(self) -> None:
        """Wait until no asynchronous handler is running."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="event-handler")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, event: Event, pending: Awaitable[None]) -> None:
        try:
            await pending
        except Exception as error:
            await self._report(event, error)

    async def _report(self, event: Event, error: Exception) -> None:
        summary = f"A handler of {type(event).__name__} failed"
        reason = str(error) if isinstance(error, SoulError) else f"{type(error).__name__}: {error}"
        entry = Entry("error", "events", summary, line="error", reason=reason)
        try:
            await self._journal.record(entry)
        except SoulError:
            self._journal.show(entry)
