"""The claims that a member knows of: those of peers for a minute each, and the outcome of its own.

A room never confirms a renewal, and refuses a claim only by an error text, so an error is matched to the claims that
still wait for an answer. Lost with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from cachetools import FIFOCache, TTLCache

from adapters.space.member_name import MemberName
from adapters.space.types import ActionDone, Claimed
from common.clock import Clock
from common.constants import SECOND_MS, SPACE_CLAIM_TTL_MS

CLAIM_TTL_S: Final = SPACE_CLAIM_TTL_MS / SECOND_MS
SOMEBODY: Final = "another agent"
"""The holder of a claim that we lost, if the error names no member that we know."""

_ANSWER_WITHIN_S = 10.0
_KEPT = 1_000

Key = tuple[str, str]


class MemberClaims:
    """The claims of peers and of `me`."""

    def __init__(self, me: MemberName, clock: Clock) -> None:
        self._me = me
        self._clock = clock
        self._peers = TTLCache[Key, Claimed](_KEPT, CLAIM_TTL_S, timer=clock.monotonic)
        self._asked: deque[tuple[Key, float]] = deque(maxlen=_KEPT)
        self._lost = FIFOCache[Key, None](_KEPT)

    def asked(self, action: str, target: str) -> None:
        """A claim or renewal of ours is being sent; an earlier refusal of it is forgotten."""
        self._asked.append(((action, target), self._clock.monotonic()))
        self._lost.pop((action, target), None)

    def claimed(self, claim: Claimed) -> None:
        """The room broadcast a claim, of a peer or our own."""
        key = (claim.action, claim.target)
        if claim.name == self._me.current:
            self._answered(key)
            self._peers.pop(key, None)
            return
        self._peers[key] = claim

    def done(self, result: ActionDone) -> None:
        """A result was broadcast: the claim on it ends."""
        self._peers.pop((result.action, result.target), None)

    def left(self, name: str) -> None:
        """Drops the claims of a member that left."""
        for key in [key for key, claim in self._peers.items() if claim.name == name]:
            self._peers.pop(key, None)

    def conflict(self, message: str, names: Iterable[str], at: str) -> Key | None:
        """The room refused a claim; returns which, if any waits for an answer. `names`: the possible holders."""
        now = self._clock.monotonic()
        waiting = [key for key, since in self._asked if now - since <= _ANSWER_WITHIN_S]
        named = [key for key in waiting if key[1] in message]
        key = next(iter((*(key for key in named if key[0] in message), *named, *waiting)), None)
        if key is None:
            return None
        self._answered(key)
        self._lost[key] = None
        if key not in self._peers:
            holder = next((name for name in sorted(names, key=len, reverse=True) if name in message), SOMEBODY)
            self.claimed(Claimed(holder, "", *key, at))
        return key

    def holder(self, action: str, target: str) -> str | None:
        """The peer that holds a claim; None if nobody does."""
        held = self._peers.get((action, target))
        return held.name if held else None

    def live(self) -> tuple[Claimed, ...]:
        """The live claims of peers, oldest first."""
        return tuple(self._peers.values())

    @property
    def lost(self) -> set[Key]:
        """Our claims that the room refused because another member held them, until we claim them again."""
        return set(self._lost)

    def _answered(self, key: Key) -> None:
        for waiting in self._asked:
            if waiting[0] == key:
                self._asked.remove(waiting)
                return
