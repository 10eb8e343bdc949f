"""Who we tell the room that we are: after each joining, and whenever we have changed; not while we must be silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from adapters.space.client import SpaceClient
from common.constants import HOUR_MS
from common.redact import LEAK, Redactor
from modules.lives.space.identity import build_identity_summary, reflection_summary
from modules.lives.space.telling import LOOP
from modules.runtime.home import Home, SoulDocument, read_self
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.queue import CommitmentQueue


@dataclass(slots=True)
class Presenter:
    """Presents the SOUL of `home`; `silence` says why nothing may be told just now, "" if something may."""

    client: SpaceClient
    home: Home
    soul: SoulDocument
    queue: CommitmentQueue
    redactor: Redactor
    journal: Journal
    silence: Callable[[], str] = lambda: ""
    _owed: bool = field(default=False, init=False)

    async def introduce(self) -> None:
        """Tell who we are; where nobody listens, nothing is told, and while we must be silent, later."""
        self._owed = bool(self.silence())
        if self._owed:
            return
        done = self.queue.get_recently_completed_commitments(HOUR_MS)
        work = f"{done[0].type}: {done[0].description}" if done else ""
        self_md = await asyncio.to_thread(read_self, self.home)
        summary = build_identity_summary(self_md, self.soul.text, work)
        if self.redactor.finds_in(list(asdict(summary).values())):
            await self.journal.record(Entry("error", LOOP, f"[space] Not introduced: {LEAK}", line="error"))
            return
        await self.client.send_identity(summary)

    async def catch_up(self) -> None:
        """Tell it now, if we came in while we had to be silent."""
        if self._owed:
            await self.introduce()

    async def reflected(self, text: str) -> None:
        """SELF.md changed by a reflection: tell what was learned, if that can be told, and who we are now."""
        if not self.client.is_active:
            return
        summary = reflection_summary(text)
        if summary and not self.silence() and not self.redactor.finds_in(summary):
            await self.client.send_reflection(summary)
        await self.introduce()
