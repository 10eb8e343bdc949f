"""The claims of a room: one holder for each action and target, for a minute. Pure; times in monotonic s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from adapters.space.types import Claimed
from common.constants import SPACE_CLAIM_TTL_MS

REBROADCAST_AFTER_S = 45.0
MOST_OF_A_MEMBER = 20
MOST_CLAIMS = 500
_TTL_S = SPACE_CLAIM_TTL_MS / 1000

Key = tuple[str, str]
Verdict = Literal["new", "renewed", "rebroadcast", "conflict"]


@dataclass(frozen=True, slots=True)
class _Held:
    claim: Claimed
    renewed_at: float
    told_at: float


class RoomClaims:
    """The claims by (action, target). A joined string would confuse "a:b" on "c" with "a" on "b:c"."""

    def __init__(self) -> None:
        self._held: dict[Key, _Held] = {}

    def claim(self, wanted: Claimed, now: float) -> tuple[Verdict, Claimed]:
        """Makes or renews a claim.

        Returns:
            `new`, `renewed` (nothing to broadcast) or `rebroadcast` (members may have dropped it) with the claim as it
            stands; `conflict` with the claim of the present holder.

        """
        key = (wanted.action, wanted.target)
        held = self._held.get(key)
        if held is not None and held.claim.name == wanted.name:
            rebroadcast = now - held.told_at > REBROADCAST_AFTER_S
            told_at = now if rebroadcast else held.told_at
            self._held[key] = replace(held, claim=wanted, renewed_at=now, told_at=told_at)
            return ("rebroadcast" if rebroadcast else "renewed"), wanted
        if held is not None and now - held.renewed_at < _TTL_S:
            return "conflict", held.claim
        self._held.pop(key, None)
        self._held[key] = _Held(wanted, now, now)
        self._keep_few(wanted.name)
        return "new", wanted

    def done(self, name: str, action: str, target: str, now: float) -> Claimed | None:
        """Ends the claim of `name` after its result. The live claim of another member stays, and is returned."""
        key = (action, target)
        held = self._held.get(key)
        if held is not None and held.claim.name != name and now - held.renewed_at < _TTL_S:
            return held.claim
        self._held.pop(key, None)
        return None

    def drop_all_of(self, name: str) -> None:
        self._keep(held for held in self._held.values() if held.claim.name != name)

    def drop_expired(self, now: float) -> None:
        """Drops claims that were not renewed within a minute."""
        self._keep(held for held in self._held.values() if now - held.renewed_at <= _TTL_S)

    def live(self, now: float) -> tuple[Claimed, ...]:
        """The claims that still hold, oldest first."""
        return tuple(held.claim for held in self._held.values() if now - held.renewed_at < _TTL_S)

    def _keep_few(self, name: str) -> None:
        """Drops the oldest claim of `name` if it has too many, or of whoever has most if all have too many."""
        of_name = sum(held.claim.name == name for held in self._held.values())
        if len(self._held) > MOST_CLAIMS and of_name <= MOST_OF_A_MEMBER:
            name = Counter(held.claim.name for held in self._held.values()).most_common(1)[0][0]
        elif of_name <= MOST_OF_A_MEMBER:
            return
        del self._held[next(key for key, held in self._held.items() if held.claim.name == name)]

    def _keep(self, held: Iterable[_Held]) -> None:
        self._held = {(each.claim.action, each.claim.target): each for each in held}
