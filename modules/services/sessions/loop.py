"""When conversations are tidied: what was left unfinished is finished, and those that have fallen silent are ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from common.clock import Clock, iso
from common.constants import DAY_MS, MINUTE_MS
from common.session_keys import is_main
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.sessions.archivist import Archivist
from modules.services.sessions.sessions import Sessions

OWNER_IDLE_RESET_MS = 30 * MINUTE_MS

_INTERVAL_MS = 5 * MINUTE_MS
_OTHERS_IDLE_MS = DAY_MS


@dataclass
class SessionTidyLoop(Loop):
    """Looks every few minutes. Half an hour of silence ends a talk with the owner, and one that `is_over` by its key.

    Any other conversation ends after a day of silence.
    """

    name = "sessions"
    jitter = 0.0
    needs_idle = True
    at_start = True

    sessions: Sessions
    archivist: Archivist
    clock: Clock
    is_over: Callable[[str], bool]
    _put_off: Counter[str] = field(default_factory=Counter, init=False)
    """How often the end of a session was put off; those that were put off least come first."""

    @property
    def interval_ms(self) -> float:
        return self.clock.real(_INTERVAL_MS)

    async def run(self) -> Outcome:
        """Finish, then end what is idle."""
        finished = [outcome.status for outcome in await self.archivist.finish_prepared()]
        now = self.clock.now()
        ended = 0
        idle = await self.sessions.idle(now - timedelta(milliseconds=OWNER_IDLE_RESET_MS))
        for session in sorted(idle, key=lambda one: self._put_off[one.id]):
            ends_soon = is_main(session.key) or self.is_over(session.key)
            quiet_since = now - timedelta(milliseconds=OWNER_IDLE_RESET_MS if ends_soon else _OTHERS_IDLE_MS)
            if session.last_active_at >= iso(quiet_since):
                continue
            outcome = await self.archivist.reset(session.key, reason="it is over", quiet_since=quiet_since)
            if outcome.status == "postponed":
                # NOTE(self): no model now, or no budget, and so for all others; at worst they wait for the next look.
                self._put_off[session.id] += 1
                break
            self._put_off.pop(session.id, None)
            ended += outcome.status != "waiting"
        done, left = finished.count("done"), finished.count("waiting")
        if not (done or left or ended):
            return Outcome(ran=False, reason="no conversation has fallen silent")
        return Outcome(ran=True, reason=f"{ended} conversations ended, {done} finished, {left} wait for the store")
