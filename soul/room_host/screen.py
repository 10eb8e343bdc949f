"""What the room's program asks of a place where rows are shown and the host's words are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from soul.room_host.rows import Row

OnLine = Callable[[str], None]
"""Gets each line that the host has finished, trimmed and not empty."""


class Screen(Protocol):
    """A terminal, or lines in and out."""

    @property
    def is_behind(self) -> bool:
        """Whether what was shown has not come out yet, so that more of it had better wait."""
        ...

    def show(self, row: Row) -> None:
        """Below what was shown before; also before and after `run`."""
        ...

    def print(self, lines: list[str]) -> None:
        """Lines of ours as they are: a banner, a list."""
        ...

    def refresh(self) -> None:
        """Who is here, or what they do, has changed."""
        ...

    async def run(self, submit: OnLine) -> None:
        """Listen to the host until it wants to go; cancelled when the program ends for another reason."""
        ...
