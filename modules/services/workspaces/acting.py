"""Which of several SOULs does what all of them could do in a workspace, such as closing a plan that is there twice.

All reckon the same way: for each piece of work the lowest hash of a login and the name of the work decides. The others
do it later, if it is still to be done, so that nothing waits for a SOUL that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from common.clock import Clock
from common.election import elect

SEEN_WITHIN = timedelta(hours=24)
"""A peer that was seen within this time counts."""
OTHERS_AFTER = timedelta(minutes=10)
"""So long the others leave a piece of work to the SOUL whose it is."""
_FORGOTTEN_AFTER = 3


def is_acting_soul(login: str, peers: Iterable[str], key: str) -> bool:
    """Return whether the piece of work `key` is ours, among us and the logins of peers. Without a login none is."""
    own = login.lower()
    return bool(login) and elect({own, *(peer.lower() for peer in peers if peer)}, key) == own


class ActingTurns:
    """Says when a piece of work may be done by us.

    Args:
        login: our account on GitHub.
        peers: returns the logins of the peers that were seen since a moment.
        clock: the time.

    """

    def __init__(self, login: str, peers: Callable[[datetime], Iterable[str]], clock: Clock) -> None:
        self._login = login
        self._peers = peers
        self._clock = clock
        self._others_after_s = clock.real(OTHERS_AFTER.total_seconds())
        self._asked: dict[str, tuple[float, float]] = {}

    def ask_for_turn(self, key: str, of: str = "") -> bool:
        """Note that the piece of work `key` is still to be done; return whether we do it now.

        It is that of the login `of`, if one is given and was seen lately; else that of one of all, by their hash.
        To be called at each look that finds it: where half an hour passes without, the wait begins anew.
        """
        now = self._clock.monotonic()
        forgotten = now - _FORGOTTEN_AFTER * self._others_after_s
        self._asked = {one: (since, asked) for one, (since, asked) in self._asked.items() if asked > forgotten}
        since = self._asked.get(key, (now, now))[0]
        self._asked[key] = (since, now)
        peers = {one.lower() for one in self._peers(self._clock.now() - SEEN_WITHIN)}
        known = {of.lower()} & {self._login.lower(), *peers} - {""}
        if self._login.lower() in known or (not known and is_acting_soul(self._login, peers, key)):
            return True
        return now - since >= self._others_after_s
