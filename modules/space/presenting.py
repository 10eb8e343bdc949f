"""Who we tell the room that we are: after each joining, and whenever we have changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from adapters.space.client import SpaceClient
from common.constants import HOUR_MS
from modules.commitments.queue import CommitmentQueue
from modules.home import Home, SoulDocument, read_self
from modules.space.identity import build_identity_summary, reflection_summary


@dataclass(frozen=True, slots=True)
class Presenter:
    """Presents the SOUL of `home`."""

    client: SpaceClient
    home: Home
    soul: SoulDocument
    queue: CommitmentQueue

    async def introduce(self) -> None:
        """Tell who we are; where nobody listens, nothing is told."""
        done = self.queue.get_recently_completed_commitments(HOUR_MS)
        work = f"{done[0].type}: {done[0].description}" if done else ""
        self_md = await asyncio.to_thread(read_self, self.home)
        await self.client.send_identity(build_identity_summary(self_md, self.soul.text, work))

    async def reflected(self, text: str) -> None:
        """SELF.md changed by a reflection: tell what was learned, if that can be told, and who we are now."""
        if not self.client.is_active:
            return
        if summary := reflection_summary(text):
            await self.client.send_reflection(summary)
        await self.introduce()
