"""The limits on turns of an account or a place, each with its reason. `docs/manners.md` shows them too."""

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter

from adapters.atproto.types import Actor
from common.clock import Clock, parse_iso
from common.errors import UNANSWERED
from common.provenance import Importance
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.work.types import Disposition

_HOUR_S = 3600.0
_DAY_S = 24 * _HOUR_S


@dataclass(frozen=True, slots=True)
class TurnLimit:
    """At most `limit` turns within `window_s` lived seconds; `explanation` says its purpose in one line."""

    name: str
    limit: int
    window_s: float
    explanation: str

    @property
    def reason(self) -> str:
        """The reason why something waits."""
        return f"{self.name}: {self.limit} turns are enough for now"


TURNS_PER_PERSON = TurnLimit(
    "turns-per-person",
    8,
    _HOUR_S,
    "Posts of one person, neither owner nor peer, that the model reads, whatever comes of it. Later ones wait."
    " Direct messages are counted separately, with the same limit.",
)
TURNS_PER_PEER = TurnLimit(
    "turns-per-peer",
    20,
    _HOUR_S,
    "Posts of one listed peer that the model reads, whatever comes of it. Later ones wait.",
)
TURNS_PER_DAY = TurnLimit(
    "turns-per-day",
    60,
    _DAY_S,
    "Posts of one account, other than the owner's, that the model reads. Later ones wait.",
)
TURNS_PER_REPOSITORY = TurnLimit(
    "turns-per-repository",
    20,
    _HOUR_S,
    "Calls in one repository on GitHub by anybody but the owner that the model reads. Later ones wait.",
)
TURNS_ON_GITHUB = TurnLimit(
    "turns-on-github",
    40,
    _HOUR_S,
    "Calls on GitHub, in all repositories together, by people who are neither owner nor peer, that the model"
    " reads. Later ones wait.",
)

TURN_LIMITS = (TURNS_PER_PERSON, TURNS_PER_PEER, TURNS_PER_DAY, TURNS_PER_REPOSITORY, TURNS_ON_GITHUB)
LONGEST_S = max(one.window_s for one in TURN_LIMITS)
"""The longest window, in lived seconds."""


def limits_of(importance: Importance) -> Sequence[TurnLimit]:
    """Return the limits of an account of this importance, other than the owner's."""
    return (TURNS_PER_PERSON if importance == "stranger" else TURNS_PER_PEER), TURNS_PER_DAY


TURN = "turn"
"""The code of a row that waits for a turn, and the act under which the journal records each turn."""


class PersonTurns:
    """Counts turns by DID, for `loop`, about what `about` names.

    A turn may also count for places, each under its own name.
    """

    def __init__(self, clock: Clock, *, journal: Journal, loop: str, about: str = "a post") -> None:
        self._about = about
        self._clock = clock
        self._journal = journal
        self._loop = loop
        self._begun: defaultdict[str, deque[datetime]] = defaultdict(deque)
        self._is_recalled = False

    async def recall(self) -> None:
        """Count the turns in the journal from before this start; does nothing when called again."""
        if self._is_recalled:
            return
        now, window = self._clock.now(), timedelta(seconds=self._clock.real(LONGEST_S))
        for stored in await self._journal.with_act(self._loop, TURN, now - window, now + window):
            data = stored.entry.data
            names = (str(data["did"] or data.get("hash")), *data.get("places", ()))
            self._note(names, parse_iso(stored.at), is_returned=bool(data.get("returned")))
        self._is_recalled = True

    async def must_wait(
        self, author: Actor, limits: Sequence[TurnLimit], places: Mapping[str, Sequence[TurnLimit]] = {}
    ) -> Disposition | None:
        """Return that what `author` wrote has to wait for a turn; None if it may have one now."""
        await self.recall()
        if before := self._begun.pop(await self._journal.person_hash(author.did), None):  # forgotten, and back again
            self._begun[author.did] = deque(sorted([*before, *self._begun[author.did]]))
        counted = {author.did: limits, **places}
        waits = [wait for name, each in counted.items() if (wait := self.wait(name, each))]
        if not waits:
            return None
        limit, seconds = max(waits, key=itemgetter(1))
        return Disposition("later", TURN, limit.reason, retry_in_s=self._clock.lived(seconds))

    @asynccontextmanager
    async def turn(self, author: Actor, importance: Importance, places: Sequence[str] = ()) -> AsyncIterator[None]:
        """Count the turn in the block for `author` and for `places`, unless it is the owner's or no model answers."""
        if importance == "owner":
            yield
            return
        await self._record(author, places)
        try:
            yield
        except UNANSWERED:
            await self._record(author, places, is_returned=True)
            raise

    async def _record(self, author: Actor, places: Sequence[str], *, is_returned: bool = False) -> None:
        data = {"act": TURN, "did": author.did, "places": list(places)} | ({"returned": 1} if is_returned else {})
        how = "does not count, as no model answered" if is_returned else "begins"
        summary = f"A turn about {self._about} of @{author.handle} {how}"
        await self._journal.record(Entry("life", self._loop, summary, line=None, author=author.handle, data=data))
        self._note((author.did, *places), self._clock.now(), is_returned=is_returned)
        over = [name for name, begun in self._begun.items() if not begun or self._lived_s(begun[-1]) >= LONGEST_S]
        for name in over:
            del self._begun[name]

    def _note(self, names: Iterable[str], moment: datetime, *, is_returned: bool) -> None:
        for begun in map(self._begun.__getitem__, names):
            if not is_returned:
                begun.append(moment)
            elif begun:
                begun.pop()

    def _lived_s(self, begun: datetime) -> float:
        return self._clock.since(begun).total_seconds()

    def wait(self, did: str, limits: Sequence[TurnLimit]) -> tuple[TurnLimit, float] | None:
        """Return the limit that makes an account wait longest, and the seconds; None if it may have a turn now."""
        waits = [(limit, wait_s) for limit in limits if (wait_s := self._wait_s(did, limit)) > 0]
        return max(waits, key=itemgetter(1), default=None)

    def _wait_s(self, did: str, limit: TurnLimit) -> float:
        begun = self._begun.get(did, ())
        if len(begun) < limit.limit:
            return 0.0
        return self._clock.real(limit.window_s - self._lived_s(begun[-limit.limit]))
