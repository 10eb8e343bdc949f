"""What a workspace can do, wherever it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Warn = Callable[[str], None]
Change = Callable[[str | None], str]


class OwnerFiles(Protocol):
    """Texts by name, such as `GOALS.md`, `memory/2026-11-22.md` or `skills/tea/SKILL.md`.

    Raises:
        PolicyBlocked: what is asked for is no such name, may not be written, or would overwrite what is no text.
        StorageError: the disk of this machine is full or refuses.
        Transient: the store cannot be reached now, or refuses.

    """

    async def read(self, name: str) -> str | None:
        """A text; None if there is none, or nothing in it. What is no UTF-8 text is None too, with a warning."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Put this text there, whatever was there."""
        ...

    async def update(self, name: str, change: Change) -> None:
        """Put there what `change` makes of the text that is there, None if there is none. It may be asked again."""
        ...

    async def rename(self, name: str, new: str) -> None:
        """Give a file a new name; what had that name is replaced."""
        ...

    async def names(self, folder: str = "") -> tuple[str, ...]:
        """All that can be read, in order; with a `folder`, such as `skills/`, what lies there."""
        ...
