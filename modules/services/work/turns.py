"""How many turns each person, and each place, had of late; who had enough waits.

Turns are in the journal before they begin, and read again at the start: neither a restart nor kill -9 gives anybody new
ones.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from operator import itemgetter

from adapters.atproto.types import Actor
from common.clock import Clock, parse_iso
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.work.limits import LONGEST_S, TurnLimit
from modules.services.work.types import Disposition

_ACT = "turn"


class PersonTurns:
    """Counts turns by did, for `loop`, about what `about` names.

    A turn may count for places, too, each under a name of its own.
    """

    def __init__(self, clock: Clock, *, journal: Journal, loop: str, about: str = "a post") -> None:
        self._about = about
        self._clock = clock
        self._journal = journal
        self._loop = loop
        self._begun: defaultdict[str, deque[float]] = defaultdict(deque)
        self._is_recalled = False

    async def recall(self) -> None:
        """Count what the journal tells of the time before this start; does nothing when called again."""
        if self._is_recalled:
            return
        now, window = self._clock.now(), timedelta(seconds=self._clock.real(LONGEST_S))
        for stored in await self._journal.with_act(self._loop, _ACT, now - window, now + window):
            # NOTE(self): what is told of the future was written before the clock was set back, so it is recent.
            age_s = max(0.0, (now - parse_iso(stored.at)).total_seconds())
            data = stored.entry.data
            for name in (str(data["did"] or data.get("hash")), *data.get("places", ())):
                self._begun[name].append(self._clock.monotonic() - age_s)
        self._is_recalled = True

    async def take(
        self, author: Actor, limits: Sequence[TurnLimit], places: Mapping[str, Sequence[TurnLimit]] = {}
    ) -> Disposition | None:
        """Count a turn about what `author` wrote, for them and for `places`; or return that it has to wait for one."""
        await self.recall()
        if before := self._begun.pop(await self._journal.person_hash(author.did), None):  # forgotten, and back again
            self._begun[author.did] = deque(sorted([*before, *self._begun[author.did]]))
        counted = {author.did: limits, **places}
        waits = [wait for name, each in counted.items() if (wait := self.wait(name, each))]
        if not waits:
            await self.begin_turn(author, list(places))
            return None
        limit, seconds = max(waits, key=itemgetter(1))
        return Disposition("later", "turn", limit.reason, retry_in_s=self._clock.lived(seconds))

    async def begin_turn(self, author: Actor, places: Sequence[str] = ()) -> None:
        """Count a turn about what `author` wrote, which begins now, for them and for `places`."""
        data = {"act": _ACT, "did": author.did, "places": list(places)}
        begins = f"A turn about {self._about} of @{author.handle} begins"
        await self._journal.record(Entry("life", self._loop, begins, line=None, author=author.handle, data=data))
        now = self._clock.monotonic()
        for name in (author.did, *places):
            self._begun[name].append(now)
        over = [name for name, begun in self._begun.items() if begun[-1] <= now - self._clock.real(LONGEST_S)]
        for name in over:
            del self._begun[name]

    def wait(self, did: str, limits: Sequence[TurnLimit]) -> tuple[TurnLimit, float] | None:
        """The limit that keeps somebody waiting for longest, and the seconds; None if they may have a turn now."""
        waits = [(limit, wait_s) for limit in limits if (wait_s := self._wait_s(did, limit)) > 0]
        return max(waits, key=itemgetter(1), default=None)

    def _wait_s(self, did: str, limit: TurnLimit) -> float:
        begun = self._begun.get(did, ())
        if len(begun) < limit.limit:
            return 0.0
        return begun[-limit.limit] + self._clock.real(limit.window_s) - self._clock.monotonic()
