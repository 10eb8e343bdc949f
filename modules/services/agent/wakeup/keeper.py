"""The wakeup context as a file: written while the SOUL lives, read once when it wakes, given to one turn of each kind.

`.memory/boot-context.md` is for the owner's session, `.memory/boot-context.public.md` beside it for all others. Both
are views of what `soul.db` knows and are replaced in one step: a crash leaves the one before. The copy that another
program may want is a courtesy; that it cannot be written stops nothing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from common.constants import TEXT_MAX_BYTES
from common.errors import MachineTrouble, StorageError
from common.files import read_bounded, write_atomic
from common.text.tokens import estimate_roughly
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.wakeup.context import Estimate, render_wakeup_context
from modules.services.agent.wakeup.state import Gather

BUDGET_TOKENS = 4000

_LOOP = "boot"


def wakeup_file(memory: Path) -> Path:
    """Return where what is read at waking lies, for the `.memory` folder."""
    return memory / "boot-context.md"


def page(path: Path, *, main: bool) -> Path:
    """Where the page for the owner's session lies, or the one for all others."""
    return path if main else path.with_suffix(f".public{path.suffix}")


class WakeupContext:
    """Writes it, and gives what it read at start to the first turns."""

    def __init__(
        self,
        path: Path,
        *,
        gather: Gather,
        journal: Journal,
        export: Path | None = None,
        budget: int = BUDGET_TOKENS,
        estimate: Estimate = estimate_roughly,
    ) -> None:
        self._path = path
        self._public = page(path, main=False)
        self._gather = gather
        self._journal = journal
        self._export = export
        self._budget = budget
        self._estimate = estimate
        self._unread: dict[bool, str] = {}

    async def read(self) -> None:
        """Once, at start: what the life before left. A file that cannot be read is told and does without."""
        for main, path in ((True, self._path), (False, self._public)):
            try:
                self._unread[main] = (await asyncio.to_thread(read_bounded, path, TEXT_MAX_BYTES)).decode()
            except FileNotFoundError:
                continue
            except (OSError, MachineTrouble, UnicodeDecodeError) as error:
                await self._warn(f"{path.name} cannot be read; waking without it", str(error))

    def unread(self, *, main: bool) -> str:
        """What the next turn is told: all of it with the owner, the public page with others.

        "" once a turn has been told it (`note_told`), and when the life before left nothing.
        """
        return self._unread.get(main, "")

    def note_told(self, *, main: bool) -> None:
        """Note that a model has read it."""
        self._unread.pop(main, None)

    async def write(self) -> None:
        """Render what is there now: at a clean stop, after a reflection, after a look at the plans.

        Raises:
            StorageError: the disk is full or refuses; what stood there stays.

        """
        state = await self._gather()
        full, public = (
            render_wakeup_context(state, self._budget, estimate=self._estimate, public=public)
            for public in (False, True)
        )
        await asyncio.to_thread(write_atomic, self._path, full)
        await asyncio.to_thread(write_atomic, self._public, public)
        if self._export is None:
            return
        try:
            await asyncio.to_thread(write_atomic, self._export, full)
        except StorageError as error:
            await self._warn("The copy of the wakeup context was not written", str(error))

    async def _warn(self, summary: str, reason: str) -> None:
        await self._journal.record(Entry("error", _LOOP, summary, line="warn", reason=reason))
