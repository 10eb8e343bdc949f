"""What is done when a schedule is due: a reminder is told to the owner, all else is a turn of the SOUL's own."""

from __future__ import annotations

from dataclasses import dataclass

from common.clock import local, spoken
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.rhythm.turns import SKILL, OwnTurns
from modules.lives.rhythm.types import TellOwner
from modules.services.schedules.schedules import KIND, Schedules, schedule_of
from modules.services.work.types import Disposition, Handler, WorkItem

_WHAT_CHARS = 120


@dataclass(kw_only=True)
class ScheduleHandler(Handler):
    """Handles each due time once. What the owner scheduled ends with a message to them."""

    kind = KIND
    is_public = False
    line = "info"

    schedules: Schedules
    turns: OwnTurns
    tell: TellOwner
    name: str

    async def handle(self, item: WorkItem) -> Disposition:
        one = schedule_of(item)
        if one.is_reminder:
            return Disposition("told", "reminder", "it was scheduled")
        told = self.turns.skills.render(
            SKILL,
            "Scheduled",
            what=one.what,
            due=spoken(local(one.due, self.schedules.timezone)),
            now=spoken(local(self.schedules.clock.now(), self.schedules.timezone)),
            by_owner=one.by == "owner",
        )
        asked_by = Provenance.OWNER if one.by == "owner" else Provenance.SELF
        return await self.turns.run(item, told, private=one.what, query=one.what, asked_by=asked_by)

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Keep what the owner is to be told, and the next time of a schedule that repeats."""
        one = schedule_of(item)
        if one.is_reminder:
            await self.tell(item.cause_id, f"{self.name} reminds you", one.what, at_once=True)
        elif one.by == "owner":
            ended = "gave up" if disposition.act == "dropped" else "did"
            words = f"{one_line(one.what, _WHAT_CHARS)}: {disposition.reason}"
            await self.tell(item.cause_id, f"{self.name} {ended} what you scheduled", words, at_once=False)
        await self.schedules.go_on(item)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return what the journal says of it."""
        one = schedule_of(item)
        what = one_line(one.what, _WHAT_CHARS)
        if disposition.act == "later":
            return f"Scheduled, has to wait: {what}"
        return f"Reminder for you: {what}" if one.is_reminder else f"Scheduled: {what}"
