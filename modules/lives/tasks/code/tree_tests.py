"""The tests of the files of a task: run again only once something in the files changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from adapters.git.worktree import Worktree
from modules.lives.tasks.offering import read

T = TypeVar("T")


@dataclass(slots=True)
class TreeTests(Generic[T]):
    """Runs the tests of a worktree by `run`, and keeps the result for as long as its files stay as they are."""

    work: Worktree
    run: Callable[[Path], Awaitable[T]]
    _kept: tuple[str, T] | None = field(default=None, init=False)
    """The files as the tests left them, and the result."""

    async def result(self) -> T:
        """Return what the tests came to. Raises `TaskStopped` where Git fails, else as `run` does."""
        if self._kept is None or self._kept[0] != read(await self.work.snapshot()):
            result = await self.run(self.work.tree)
            self._kept = (read(await self.work.snapshot()), result)
        return self._kept[1]
