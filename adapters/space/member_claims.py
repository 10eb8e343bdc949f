"""Who works at what, as far as a room told us: peers' claims for a minute each, and what became of our own.

The room never says yes to a renewal and says no only in words, so an answer is matched to the claims that still wait
for one. Nothing survives a crash. Pure; times are monotonic seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from adapters.space.member_name import MemberName
from adapters.space.types import ActionDone, Claimed
from common.constants import SECOND_MS, SPACE_CLAIM_TTL_MS

CLAIM_TTL_S: Final = SPACE_CLAIM_TTL_MS / SECOND_MS
SOMEBODY: Final = "another agent"
"""Who holds a claim that we lost, where the room's words name nobody that we know."""

_ANSWER_WITHIN_S = 10.0
_KEPT = 1_000

Key = tuple[str, str]


class Claims:
    """Of peers, and of `me`."""

    def __init__(self, me: MemberName) -> None:
        self._me = me
        self._peers: dict[Key, tuple[Claimed, float]] = {}
        self._asked: deque[tuple[Key, float]] = deque(maxlen=_KEPT)
        self._lost: dict[Key, None] = {}

    def asked(self, action: str, target: str, now: float) -> None:
        """We claim it, or renew our claim: whatever we knew of a loss is out of date."""
        self._asked.append(((action, target), now))
        self._lost.pop((action, target), None)

    def claimed(self, claim: Claimed, now: float) -> None:
        """The room told of a claim, a peer's or our own."""
        key = (claim.action, claim.target)
        if claim.name == self._me.current:
            self._answered(key)
            self._peers.pop(key, None)
            return
        self._peers.pop(key, None)
        self._peers[key] = (claim, now + CLAIM_TTL_S)
        while len(self._peers) > _KEPT:
            self._peers.pop(next(iter(self._peers)))

    def done(self, result: ActionDone) -> None:
        """The work is over, whoever did it."""
        self._peers.pop((result.action, result.target), None)

    def left(self, name: str) -> None:
        """Who is gone holds nothing."""
        self._peers = {key: held for key, held in self._peers.items() if held[0].name != name}

    def conflict(self, message: str, names: Iterable[str], now: float, at: str) -> Key | None:
        """The room refused a claim of ours; which one, if any waits for an answer. `names`: who may hold it."""
        waiting = [key for key, since in self._asked if now - since <= _ANSWER_WITHIN_S]
        named = [key for key in waiting if key[1] in message]
        key = next(iter((*(key for key in named if key[0] in message), *named, *waiting)), None)
        if key is None:
            return None
        self._answered(key)
        self._lost[key] = None
        while len(self._lost) > _KEPT:
            self._lost.pop(next(iter(self._lost)))
        if key not in self._peers:
            holder = next((name for name in sorted(names, key=len, reverse=True) if name in message), SOMEBODY)
            self.claimed(Claimed(holder, "", *key, at), now)
        return key

    def holder(self, action: str, target: str, now: float) -> str | None:
        """The peer that works at it; None if nobody does."""
        held = self._peers.get((action, target))
        return held[0].name if held and now < held[1] else None

    def live(self, now: float) -> tuple[Claimed, ...]:
        """Peers' claims that still hold, oldest first."""
        self._peers = {key: held for key, held in self._peers.items() if now < held[1]}
        return tuple(claim for claim, _ in self._peers.values())

    @property
    def lost(self) -> set[Key]:
        """Claims of ours that the room refused because somebody was first, until we claim them again."""
        return set(self._lost)

    def _answered(self, key: Key) -> None:
        for waiting in self._asked:
            if waiting[0] == key:
                self._asked.remove(waiting)
                return
