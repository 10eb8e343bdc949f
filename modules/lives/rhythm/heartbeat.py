"""Turns for HEARTBEAT.md: every few waking hours the SOUL does what the file says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from common.clock import Clock, iso, local, parse_iso, spoken
from common.provenance import Provenance
from common.text.markdown import is_meaningful
from modules.lives.rhythm.turns import SKILL, OwnTurns
from modules.runtime.scheduler.quiet_hours import is_quiet, not_at_night
from modules.services.agent.prompt.fitting import HEARTBEAT
from modules.services.owner_files import OwnerFiles
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, Perceiver, WorkItem

KIND = "heartbeat-turn"


@dataclass(kw_only=True)
class HeartbeatHandler(Handler, Perceiver):
    """Adds a row when it is time and the file says something, and runs its turn. `every`: lived time, 0 for never."""

    kind = KIND
    is_public = False
    line = "info"

    every: timedelta
    work: WorkTable
    owner_files: OwnerFiles
    turns: OwnTurns
    clock: Clock
    timezone: str

    async def perceive(self) -> None:
        now = self.clock.now()
        if not self.every or is_quiet(now, self.timezone, keeps_hours=self.clock.keeps_hours):
            return
        for last in await self.work.newest(KIND, 1):
            if last.state == "pending" or self.clock.since(parse_iso(last.created_at)) < self.every:
                return
        if await self._text():
            await self.work.add(NewWork(KIND, iso(now)))

    async def due(self) -> datetime | None:
        """Return when the next turn is due; None for never, or if one waits already."""
        if not self.every or not await self._text():
            return None
        moment = self.clock.now()
        for last in await self.work.newest(KIND, 1):
            if last.state == "pending":
                return None
            moment = parse_iso(last.created_at) + self.clock.real(self.every)
        return not_at_night(max(moment, self.clock.now()), self.timezone, keeps_hours=self.clock.keeps_hours)

    async def handle(self, item: WorkItem) -> Disposition:
        text = await self._text()
        if not text:
            return Disposition("silent", "empty", f"{HEARTBEAT} says nothing any more")
        before = [one for one in await self.work.newest(KIND, 2) if one.id != item.id]
        last = spoken(local(parse_iso(before[0].created_at), self.timezone)) if before else ""
        told = self.turns.skills.render(SKILL, "Heartbeat", text=text, last=last)
        return await self.turns.run(item, told, private=(told,), task=text, asked_by=Provenance.SELF)

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Tell the owner what was done, if anything was."""
        await self.turns.tell_end(item, disposition, f"what was due in {HEARTBEAT}", is_owners=False)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition."""
        did = {"silent": "nothing to do", "later": "has to wait", "done": "did what was due"}
        return f"{HEARTBEAT}: {did.get(disposition.act, disposition.act)}"

    async def _text(self) -> str:
        """Return the text of the file, or "" if it says nothing."""
        text = await self.owner_files.read(HEARTBEAT) or ""
        return text if is_meaningful(text) else ""
