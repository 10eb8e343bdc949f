"""The members of a room and what each is doing, for a host or a page. Kept in memory only.

Durations use the monotonic clock, so a corrected wall clock does not change them.
"""

from dataclasses import dataclass, replace

from cachetools import FIFOCache

from adapters.space.types import (
    ActionDone,
    AgentState,
    Claimed,
    Joined,
    Left,
    Presence,
    PresenceList,
    Said,
    SpaceEvent,
    StateChanged,
    Typing,
)
from common.constants import SPACE_CLAIM_TTL_MS

TYPING_S = 10.0
_MOST_CLAIMS = 500


@dataclass(frozen=True, slots=True)
class RosterEntry:
    """A member of the room. `since` and `typing_until` are in monotonic seconds."""

    name: str
    version: str
    since: float
    typing_until: float = 0.0
    state: AgentState = "idle"
    detail: str = ""
    presence: Presence | None = None

    def is_typing(self, now: float) -> bool:
        return now < self.typing_until


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A member's claim on an action; it ends when the action is done, or at `until` in monotonic seconds."""

    name: str
    action: str
    target: str
    until: float


class Roster:
    """The members and claims of one room, kept up to date by its events."""

    def __init__(self) -> None:
        self._entries: dict[str, RosterEntry] = {}
        self._claims = FIFOCache[tuple[str, str], ShownClaim](_MOST_CLAIMS)

    @property
    def entries(self) -> tuple[RosterEntry, ...]:
        """The members, in the order in which they joined."""
        return tuple(self._entries.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def claims(self, now: float) -> tuple[ShownClaim, ...]:
        """Return the claims that have not ended."""
        return tuple(claim for claim in self._claims.values() if now < claim.until)

    def find(self, name: str) -> RosterEntry | None:
        """Return the member of this name, or else one whose name differs only in case, or None."""
        folded = name.casefold()
        return self._entries.get(name) or next((one for one in self.entries if one.name.casefold() == folded), None)

    def follow(self, event: SpaceEvent, now: float) -> None:
        """Apply an event; `now` in monotonic seconds."""
        match event:
            case Joined():
                self._entries[event.name] = RosterEntry(event.name, event.version, now)
            case Left():
                self._entries.pop(event.name, None)
                for key in [key for key, claim in self._claims.items() if claim.name == event.name]:
                    del self._claims[key]
            case PresenceList():
                self._entries = {one.name: self._present(one, now) for one in event.agents}
            case Typing():
                self._change(event.name, typing_until=now + TYPING_S)
            case Said():
                self._change(event.name, typing_until=0.0)
            case StateChanged():
                self._change(event.name, state=event.state, detail=event.detail)
            case Claimed():
                claim = ShownClaim(event.name, event.action, event.target, now + SPACE_CLAIM_TTL_MS / 1000)
                self._claims[event.action, event.target] = claim
            case ActionDone():
                self._claims.pop((event.action, event.target), None)
            case _:
                return

    def _present(self, one: Presence, now: float) -> RosterEntry:
        known = self._entries.get(one.name) or RosterEntry(one.name, one.version, now)
        return replace(known, version=one.version, presence=one)

    def _change(
        self, name: str, *, typing_until: float | None = None, state: AgentState | None = None, detail: str = ""
    ) -> None:
        entry = self._entries.get(name)
        if entry is None:
            return
        if typing_until is not None:
            entry = replace(entry, typing_until=typing_until)
        if state is not None:
            entry = replace(entry, state=state, detail=detail)
        self._entries[name] = entry
