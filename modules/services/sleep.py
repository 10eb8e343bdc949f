"""Falls asleep when nothing is due: looks once more itself, hands over to the watcher, and ends the process.

What cannot be read keeps it awake. The watcher stores the state while the SOUL is still awake, at least a minute before
that last look, and sees what comes after it. The minute is for data that one server showed the watcher and another does
not show yet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from adapters.watch import SPENT, SleepWatch, wake_token
from adapters.web.spacing import Urgency, urgency
from common.clock import Clock, iso
from common.constants import MINUTE_MS, SECOND_MS
from common.errors import Fatal
from common.intervals import GITHUB_INTERVAL_MS, NOTIFICATIONS_INTERVAL_MS
from common.result import ApiResult, Err, Ok
from modules.runtime import sleep_note as note
from modules.runtime.scheduler.policy import Loop, Outcome, Runs

LEAST = timedelta(minutes=10)
"""In lived time; a shorter sleep is not worth the restart."""
_LOOKS_MS = {"bluesky": NOTIFICATIONS_INTERVAL_MS, "github": GITHUB_INTERVAL_MS, "room": NOTIFICATIONS_INTERVAL_MS}
LOOKS_S = {service: interval_ms / SECOND_MS for service, interval_ms in _LOOKS_MS.items()}
"""Lived seconds between two looks of the watcher: as often as the SOUL itself looks while it is awake."""
WORKSPACES = timedelta(hours=1)
"""The time for which a SOUL leaves its workspaces alone: claims lapse and plans fall due there without any act."""
LONGEST = timedelta(hours=20)
"""Daily work such as copies waits no longer than until the next day."""


@dataclass(frozen=True, slots=True)
class AwaitedNext:
    """The wait of one part of a SOUL.

    Attributes:
        awake: why it may not sleep; "" if it may.
        due: when it must wake.
        is_own: whether nobody else waits for what is due then.

    """

    awake: str = ""
    due: datetime | None = None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """The decision whether a SOUL may sleep: the `reasons` why not (empty if it may), and when it wakes at the latest.

    `promised_at` is when something is due that somebody else waits for.
    """

    reasons: tuple[str, ...]
    wake_at: datetime
    promised_at: datetime | None


def judge(
    pending: Mapping[str, AwaitedNext], now: datetime, *, least: timedelta = LEAST, longest: timedelta = LONGEST
) -> Rest:
    """Return whether a SOUL may sleep whose parts, by name, wait for this."""
    parts = pending.values()
    wake_at = min((one.due for one in parts if one.due is not None), default=now + longest)
    reasons = [one.awake for one in parts if one.awake]
    if soon := [name for name, one in pending.items() if one.due and one.due - now < least]:
        reasons.append(f"something is due soon: {', '.join(soon)}")
    promised_at = min((one.due for one in parts if one.due and not one.is_own), default=None)
    return Rest(tuple(dict.fromkeys(reasons)), min(wake_at, now + longest), promised_at)


_CHECKS_MS = 20.0 * SECOND_MS
_PUT_OFF = timedelta(hours=1)
LifeEnd = Literal["ended", "asleep", "anew"]
"""The continuation of a life after its end: none by itself, a start by the watcher, or a start at once."""


@dataclass(kw_only=True)
class SleepLoop(Loop):
    """Checks a few times a minute whether the SOUL may sleep. `asleep` is set when the process is to end for it.

    Attributes:
        parts: what each part of the SOUL waits for, by name.
        looks: returns the loops that read the network, ready to look at once; each runs once more before it
            sleeps, and a failure keeps it awake.
        figures: returns its figures, for the watcher.
        put_off: stops its own thoughts until a time: the budget in dollars of all watched SOULs is used up.
        awaited: returns where else than on Bluesky something for it may come, as the fields of a `SleepNote`.
        runs: the scheduler.

    """

    name: str = note.SLEEP
    jitter: float = 0.0

    parts: Mapping[str, Callable[[], Awaitable[AwaitedNext]]]
    looks: Callable[[], Sequence[str]]
    awaited: Callable[[], Mapping[str, Any]]
    figures: Callable[[], Awaitable[note.Figures]]
    put_off: Callable[[datetime], None]
    watch: SleepWatch
    memory: Path
    soul: str
    did: Callable[[], str]
    runs: Callable[[], Runs]
    clock: Clock
    asleep: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_known_awake: bool = field(default=False, init=False)
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _began: tuple[Mapping[str, Any], float] | None = field(default=None, init=False)
    """What the watcher watches since it stored the state, and from when it may take over, in monotonic seconds."""

    @property
    def interval_ms(self) -> float:
        return self.clock.real(_CHECKS_MS)

    @property
    def _minute_s(self) -> float:
        return self.clock.real(float(MINUTE_MS)) / SECOND_MS

    async def prepare(self) -> None:
        """Have the watcher store the state as the SOUL begins, so that the minute passes while it is busy."""
        async with self._beginning:
            await self._begin()

    async def run(self) -> Outcome:
        async with self._beginning:
            begun = await self._begin()
        rest = await self.rest()
        if rest.reasons:
            told = await self.watch.tell(asdict(await self.figures()))
            if isinstance(told, Err) and told.status == SPENT:
                self.put_off(self.clock.now() + self.clock.real(_PUT_OFF))
            again_s = self._minute_s if isinstance(begun, Err) else None
            return Outcome(ran=False, reason="; ".join(rest.reasons), next_in_s=again_s)
        if isinstance(begun, Err):
            return Outcome(ran=False, reason=f"no watcher: {begun.error}", next_in_s=self._minute_s)
        awaited, ready_s = begun.data
        if (left_s := ready_s - self.clock.monotonic()) > 0:
            return Outcome(ran=False, reason="it falls asleep soon unless something comes", next_in_s=left_s)
        note.clear_request(self.memory)
        with urgency(Urgency.AT_ONCE):
            looked = [(name, await self.runs().run_guarded(name)) for name in self.looks()]
        unread = [f"{name}: {look.reason}" for name, look in looked if not look.ran]
        unread += ["there is more to watch than before"] if self.awaited() != awaited else []
        rest = await self.rest()
        if unread or rest.reasons:
            busy = [look.next_in_s for _, look in looked if not look.ran and look.next_in_s]
            if rest.reasons or not busy:  # after another minute, the same loop could be running again
                await self._release()
            again_s = None if rest.reasons else min(busy, default=self._minute_s)
            return Outcome(ran=False, reason="; ".join([*unread, *rest.reasons]), next_in_s=again_s)
        every_s = {service: self.clock.real(seconds) for service, seconds in LOOKS_S.items()}
        sleeps = note.SleepNote(
            self.soul,
            self.did(),
            iso(self.clock.now()),
            iso(rest.wake_at),
            every_s=every_s,
            promised_at=iso(rest.promised_at) if rest.promised_at else "",
            figures=await self.figures(),
            **awaited,
        )
        note.write_watcher(self.memory, self.watch.url, self.watch.name, wake_token(self.watch.token))
        note.write_note(self.memory, sleeps)  # a watcher on this machine puts its own in this place
        if isinstance(held := await self.watch.hold(asdict(sleeps)), Err):
            note.woke(self.memory)
            await self._release()
            await self._begin()
            return Outcome(ran=False, reason=held.error, next_in_s=self._minute_s)
        self.asleep.set()
        return Outcome(ran=True, reason=f"falls asleep until {sleeps.wake_at}")

    async def _begin(self) -> ApiResult[tuple[Mapping[str, Any], float]]:
        """Have the watcher store the state unless it has; return what it watches, and from when it may take over."""
        if not self._is_known_awake:  # it is known to be awake once the watcher has released it
            self._is_known_awake = not isinstance(await self.watch.release(), Err)
        awaited = self.awaited()
        if self._began is None or self._began[0] != awaited:
            self._began = None
            if isinstance(begun := await self.watch.begin(awaited), Err):
                return begun
            self._began = awaited, self.clock.monotonic() + self._minute_s
        return Ok(self._began)

    async def _release(self) -> None:
        self._began = None
        await self.watch.release()

    async def end(self) -> LifeEnd:
        """Return how to continue after everything has stopped: `anew` if something came that nobody would see."""
        if not self.asleep.is_set():
            return "ended"
        if not (await self.rest()).reasons:
            return "asleep"
        await self.watch.release()
        note.woke(self.memory)
        return "anew"

    async def rest(self) -> Rest:
        """Return whether it may sleep now, and until when."""
        pending = {name: await self._of(name, part) for name, part in self.parts.items()}
        least, longest = self.clock.real(LEAST), LONGEST
        return judge(pending, self.clock.now(), least=least, longest=max(longest, least + timedelta(seconds=1)))

    async def _of(self, name: str, part: Callable[[], Awaitable[AwaitedNext]]) -> AwaitedNext:
        try:
            return await part()
        except Fatal:
            raise
        except Exception as error:
            return AwaitedNext(f"{name} cannot be read: {type(error).__name__}")
