"""How much of a room anybody can hear: whoever says more in a minute is left. Nothing survives a crash. Pure.

A room of ours stays below it, whatever its members do: see `room_allowance`.
"""

from __future__ import annotations

from typing import Final

WINDOW_S: Final = 60.0
MOST_BYTES: Final = 64 * 1024 * 1024
"""Eight records of the largest size; a room of ten who all talk without a pause says a third of it."""
MOST_FRAMES: Final = 30_000


class Intake:
    """Counts what came in on one connection; times are monotonic seconds."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._bytes = self._frames = 0

    def is_too_much(self, size: int, now: float) -> bool:
        """Take a frame of so many bytes or characters into account; whether it is one too many."""
        if now - self._since >= WINDOW_S:
            self._since, self._bytes, self._frames = now, 0, 0
        self._bytes += size
        self._frames += 1
        return self._bytes > MOST_BYTES or self._frames > MOST_FRAMES
