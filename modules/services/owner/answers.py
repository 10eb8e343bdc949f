"""Answers the owner's messages one after another, and goes on trying while the model service is down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from common.clock import Clock, doubled, local, parse_iso
from common.errors import BudgetExceeded, Fatal, MachineTrouble, Transient
from common.text.untrusted import one_line
from modules.runtime.console import Console
from modules.services.owner.owner import OwnerAnswer, OwnerTalk, problem_of

OWNER_RETRY_FIRST_S = 30.0
OWNER_RETRY_LONGEST_S = 300.0

_EXCERPT_CHARS = 60
_LOOK_S = 1.0
_NO_WORDS = "(no words)"


class OwnerAnswers:
    """The terminal's side of the talk with the owner. `receive` takes a message, `run` gives the answers.

    Args:
        talk: keeps the messages, and thinks.
        console: is told what is going on.
        say: shows an answer.
        clock: tells when, and waits.
        timezone: of the times that are shown; "" for the machine's.

    """

    def __init__(
        self, talk: OwnerTalk, *, console: Console, say: Callable[[str], None], clock: Clock, timezone: str = ""
    ) -> None:
        self._talk = talk
        self._console = console
        self._say = say
        self._clock = clock
        self._timezone = timezone
        self._line_arrived = asyncio.Event()
        self._failures = 0
        self._late = False  # whether what waits has waited for longer than its turn

    async def receive(self, line: str) -> None:
        """Keep a message, and have it answered. Raises `StorageError`."""
        await self._talk.receive(line)
        if self._failures and (waiting := await self._counted()):
            self._console.line("info", f"Kept; {_messages(waiting)} for an answer")
        self._line_arrived.set()

    async def run(self, *, greet: bool) -> None:
        """Answer until cancelled; `greet`: speak first where the two have never talked. Raises `Fatal`."""
        while not await self._tried(partial(self._begin, greet)):
            pass
        while True:
            self._line_arrived.clear()
            if await self._tried(self._answer_all):
                await self._next_line()

    async def _next_line(self) -> None:
        """Wait for a line of this terminal, or for one that another process kept, such as the owner's page."""
        while not self._line_arrived.is_set() and not await self._counted():
            with suppress(TimeoutError):
                async with self._clock.timeout(_LOOK_S):
                    await self._line_arrived.wait()

    async def _begin(self, greet: bool) -> None:  # noqa: FBT001 - bound by `partial`
        waiting = await self._talk.waiting()
        if waiting and not self._late:
            self._late = True
            self._console.line("info", f"From before, {_messages(waiting)} for an answer")
        if greet and not waiting and (greeting := await self._talk.open()):
            self._say(greeting)

    async def _answer_all(self) -> None:
        while await self._talk.waiting():
            if not self._late:
                self._console.line("think", "Thinking about what you said")
            if answer := await self._talk.answer_next():
                self._show(answer)
        self._late = False

    def _show(self, answer: OwnerAnswer) -> None:
        if answer.failed:
            self._console.line("error", *problem_of(answer.failed))
            return
        if self._late:
            at = local(parse_iso(answer.message.received_at), self._timezone)
            excerpt = one_line(answer.message.text, _EXCERPT_CHARS)
            self._console.line("think", f"Answering what you said at {at:%H:%M}", excerpt)
        self._say(answer.text or _NO_WORDS)

    async def _tried(self, attempt: Callable[[], Awaitable[None]]) -> bool:
        """Whether there is nothing to try again; if there is, the owner has been told, and there was a pause."""
        try:
            await attempt()
        except (BudgetExceeded, MachineTrouble, Transient) as error:
            await self._pause(error)
            return False
        except Fatal:
            raise
        except Exception as error:
            self._console.line("error", *problem_of(error))
        self._failures = 0
        return True

    async def _pause(self, error: BudgetExceeded | MachineTrouble | Transient) -> None:
        """Wait before the next try, until the owner speaks; the reason is told the first time."""
        if not self._failures:
            why = "The model does not answer now"
            if isinstance(error, BudgetExceeded):
                why = "Today's budget allows no answer now"
            elif isinstance(error, MachineTrouble):
                why = "This machine allows no answer now"
            waiting = await self._counted()
            kept = f"; {_messages(waiting)} and will be answered" if waiting else ""
            self._console.line("warn", why + kept, f"{error} {error.remedy}".strip())
        wait_s = doubled(OWNER_RETRY_FIRST_S, self._failures, OWNER_RETRY_LONGEST_S)
        self._failures += 1
        self._late = True
        pause = asyncio.create_task(self._clock.sleep(max(wait_s, getattr(error, "retry_after", None) or 0)))
        line_arrived = asyncio.create_task(self._line_arrived.wait())
        try:
            await asyncio.wait({pause, line_arrived}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            line_arrived.cancel()

    async def _counted(self) -> int:
        """Return how many messages wait, for a line to the owner; 0 where the database cannot be asked just now."""
        try:
            return await self._talk.waiting()
        except Transient:
            return 0


def _messages(count: int) -> str:
    return "1 of your messages waits" if count == 1 else f"{count} of your messages wait"
