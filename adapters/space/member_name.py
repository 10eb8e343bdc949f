"""The name under which a member joins: its own or, while another program holds that, an alias.

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
    """The aliases of `name`: `ada-2`, `ada-3` and so on up to `ada-99`."""
    return tuple(f"{name}-{number}" for number in _ALIASES)


class MemberName:
    """The name of one member.

    Attributes:
        own: the configured one.
        current: the one in use.

    """

    def __init__(self, own: str, rng: random.Random) -> None:
        self.own = self.current = own
        self._rng = rng
        self._since = float("-inf")

    @property
    def is_own(self) -> bool:
        return self.current == self.own

    def give_way(self, now: float) -> str:
        """Switches to another alias and returns it: first `ada-2`, then a random one that nobody can predict."""
        others = [alias for alias in aliases(self.own) if alias != self.current]
        self.current = others[0] if self.is_own else self._rng.choice(others)
        self._since = now
        return self.current

    def is_free_again(self, present: Iterable[str], now: float) -> bool:
        """Whether the own name may be taken back: nobody present has it, and we switched at least 10 minutes ago.

        The delay bounds the cost of a program that takes the name and leaves again and again.
        """
        if self.is_own or now - self._since < TAKE_BACK_AFTER_S:
            return False
        return appearance(self.own) not in {appearance(name) for name in present}

    def take_back(self) -> None:
        """Switches back to the own name."""
        self.current = self.own
