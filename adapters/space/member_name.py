"""Under which name a member comes into a room: its own, or, while somebody else is there under it, another one.

Pure; times are monotonic seconds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

from common.text.lookalikes import appearance

TAKE_BACK_AFTER_S: Final = 600.0
_ALIASES = range(2, 100)


def aliases(name: str) -> tuple[str, ...]:
    """The names that stand in for `name`: `ada-2`, `ada-3` and so on up to `ada-99`."""
    return tuple(f"{name}-{number}" for number in _ALIASES)


class MemberName:
    """The name of one member.

    Attributes:
        own: the one that its owner gave it.
        current: the one under which it comes now.

    """

    def __init__(self, own: str, rng: random.Random) -> None:
        self.own = self.current = own
        self._rng = rng
        self._since = float("-inf")

    @property
    def is_own(self) -> bool:
        return self.current == self.own

    def give_way(self, now: float) -> str:
        """Take another name, as the current one is somebody else's for now, and return it.

        The first is `ada-2`; whoever takes that one as well cannot know which comes next.
        """
        others = [alias for alias in aliases(self.own) if alias != self.current]
        self.current = others[0] if self.is_own else self._rng.choice(others)
        self._since = now
        return self.current

    def is_free_again(self, present: Iterable[str], now: float) -> bool:
        """Whether we may take our own name back: nobody present has it, and we gave way at least 10 minutes ago.

        The ten minutes bound what it costs us if somebody takes it and leaves it again and again.
        """
        if self.is_own or now - self._since < TAKE_BACK_AFTER_S:
            return False
        return appearance(self.own) not in {appearance(name) for name in present}

    def take_back(self) -> None:
        """Come under our own name again."""
        self.current = self.own
