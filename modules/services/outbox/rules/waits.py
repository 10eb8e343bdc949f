"""Which waiting posts and messages are not to be looked at before a moment, and how many turns each person had of late.

The turns are in the journal before they begin, and read again at the start: neither a restart nor kill -9 gives anybody
new ones. The rest lives in memory; a restart looks at all that waits.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from datetime import timedelta
from operator import itemgetter

from adapters.atproto.types import Actor
from common.clock import Clock, parse_iso
from common.errors import BudgetExceeded, Transient
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Importance
from modules.services.outbox.rules.rules import DAY_S, HOUR_S
from modules.services.outbox.rules.types import EtiquetteRule

_LONGEST_PUT_OFF_S = 1800.0
_LONGEST_ECONOMY_S = 3600.0


class Waits:
    """Times are seconds; `first_pause_s` is half of the pause after the first failure of a post, which then doubles."""

    def __init__(self, clock: Clock, first_pause_s: float) -> None:
        self._clock = clock
        self._first_pause_s = first_pause_s
        self._not_before: dict[str, float] = {}
        self._turns: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._economy: dict[Importance, float] = {}

    def is_due(self, uri: str, importance: Importance) -> bool:
        """Whether a post may be looked at now."""
        moments = (self._not_before.get(uri, 0), self._turns.get(uri, 0), self._economy.get(importance, 0))
        return max(moments) <= self._clock.monotonic()

    def let_wait(self, uri: str, seconds: float) -> None:
        """It is not the turn of this post yet; that is no failure."""
        self._turns[uri] = self._clock.monotonic() + seconds

    def put_off(self, uri: str, error: Transient) -> None:
        """The network or the model failed for this post: the next run begins with another."""
        failures = self._failures[uri] = self._failures.get(uri, 0) + 1
        pause_s = max(min(self._first_pause_s * 2**failures, _LONGEST_PUT_OFF_S), error.retry_after or 0)
        self._not_before[uri] = self._clock.monotonic() + pause_s

    def economize(self, importance: Importance, error: BudgetExceeded) -> float:
        """There is no budget for authors who matter as much; returns for how long they wait."""
        pause_s = min(error.retry_after or _LONGEST_ECONOMY_S, _LONGEST_ECONOMY_S)
        self._economy[importance] = self._clock.monotonic() + pause_s
        return pause_s

    def forget(self, uris: Iterable[str]) -> None:
        """These posts are settled."""
        for uri in uris:
            for known in (self._not_before, self._turns, self._failures):
                known.pop(uri, None)

    def next_turn_in_s(self) -> float | None:
        """Seconds until the first post that waits its turn may be looked at; None if none does."""
        now = self._clock.monotonic()
        return min((moment - now for moment in self._turns.values() if moment > now), default=None)


_ACT = "turn"
_LONGEST_S = DAY_S
"""The longest window of the rules on turns."""


class PersonTurns:
    """Counts turns by did, for `loop`, about what `about` names. At `speed` 10 the windows are a tenth as long.

    A turn may count for places, too, each under a name of its own.
    """

    def __init__(self, clock: Clock, speed: float, *, journal: Journal, loop: str, about: str = "a post") -> None:
        self._about = about
        self._clock = clock
        self._speed = speed
        self._journal = journal
        self._loop = loop
        self._begun: defaultdict[str, deque[float]] = defaultdict(deque)
        self._is_recalled = False

    async def recall(self) -> None:
        """Count what the journal tells of the time before this start; does nothing when called again."""
        if self._is_recalled:
            return
        now, window = self._clock.now(), timedelta(seconds=_LONGEST_S / self._speed)
        for stored in await self._journal.with_act(self._loop, _ACT, now - window, now + window):
            # NOTE(self): what is told of the future was written before the clock was set back, so it is recent.
            age_s = max(0.0, (now - parse_iso(stored.at)).total_seconds())
            for name in (str(stored.entry.data["did"]), *stored.entry.data.get("places", ())):
                self._begun[name].append(self._clock.monotonic() - age_s)
        self._is_recalled = True

    async def begin_turn(self, author: Actor, places: Sequence[str] = ()) -> None:
        """Count a turn about what `author` wrote, which begins now, for them and for `places`."""
        data = {"act": _ACT, "did": author.did, "places": list(places)}
        begins = f"A turn about {self._about} of @{author.handle} begins"
        await self._journal.record(Entry("life", self._loop, begins, line=None, author=author.handle, data=data))
        for name in (author.did, *places):
            self._begun[name].append(self._clock.monotonic())

    def counts(self) -> dict[str, int]:
        """The turns of the last hour, for those who had any within a day."""
        now = self._clock.monotonic()
        for did, begun in list(self._begun.items()):
            while begun and begun[0] <= now - _LONGEST_S / self._speed:
                begun.popleft()
            if not begun:
                del self._begun[did]
        return {did: sum(one > now - HOUR_S / self._speed for one in begun) for did, begun in self._begun.items()}

    def wait(self, did: str, rules: Sequence[EtiquetteRule]) -> tuple[EtiquetteRule, float] | None:
        """The rule that keeps somebody waiting for longest, and the seconds; None if they may have a turn now."""
        waits = [(rule, wait_s) for rule in rules if (wait_s := self._wait_s(did, rule)) > 0]
        return max(waits, key=itemgetter(1), default=None)

    def _wait_s(self, did: str, rule: EtiquetteRule) -> float:
        begun, limit = self._begun.get(did, ()), int(rule.limit)
        if len(begun) < limit:
            return 0.0
        return begun[-limit] + (rule.window_s or 0.0) / self._speed - self._clock.monotonic()
