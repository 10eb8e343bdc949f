"""Handles due schedules: a reminder is told to the owner, everything else is a turn of the SOUL's own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from common.clock import local, spoken
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.rhythm.turns import SKILL, OwnTurns
from modules.services.agent.prompt.fitting import HEARTBEAT
from modules.services.owner_files import OwnerFiles
from modules.services.schedules.schedules import KIND, Schedules, schedule_of
from modules.services.work.types import Disposition, Handler, WorkItem

_WHAT_CHARS = 120


@dataclass(kw_only=True)
class ScheduleHandler(Handler):
    """Handles each due time once, and tells the owner the result."""

    kind = KIND
    is_public = False
    line = "info"

    schedules: Schedules
    turns: OwnTurns
    owner_files: OwnerFiles

    def needs_attention(self, item: WorkItem) -> bool:
        return not schedule_of(item).is_reminder

    async def handle(self, item: WorkItem) -> Disposition:
        one = schedule_of(item)
        if one.is_reminder:
            return Disposition("told", "reminder", one.noted or "it was scheduled")
        told = self.turns.skills.render(
            SKILL,
            "Scheduled",
            what=one.what,
            due=spoken(local(one.due, self.schedules.timezone)),
            by_owner=one.by == "owner",
            repeat="" if one.repeat == "once" else one.repeat,
            last=spoken(local(one.last, self.schedules.timezone)) if one.last else "",
        )
        asked_by = Provenance.OWNER if one.by == "owner" else Provenance.SELF
        private = [one.what]
        if one.by == "soul":  # NOTE(self): it may repeat HEARTBEAT.md, which the owner wrote only for the SOUL.
            private.append(await self.owner_files.read(HEARTBEAT) or "")
        return await self.turns.run(item, told, private=private, task=one.what, asked_by=asked_by)

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Store what the owner is told, and the next due time of a schedule that repeats."""
        one = schedule_of(item)
        if one.is_reminder:
            headline = f"{self.turns.me.agent_name} reminds you"
            words = f"{one.what} ({one.noted})" if one.note else one.what
            whose = Provenance.STRANGER if one.note else Provenance.SELF
            await self.turns.tell(item.cause_id, headline, words, whose, at_once=True)
        else:
            by_owner = one.by == "owner"
            words = f"{one_line(one.what, _WHAT_CHARS)}: {disposition.reason}"
            told, what = replace(disposition, reason=words), f"what {'you' if by_owner else 'it'} scheduled"
            await self.turns.tell_end(item, told, what, is_owners=by_owner)
        await self.schedules.go_on(item)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition."""
        one = schedule_of(item)
        what = one_line(one.what, _WHAT_CHARS)
        if disposition.act == "later":
            return f"Scheduled, has to wait: {what}"
        return f"Reminder for you: {what}" if one.is_reminder else f"Scheduled: {what}"
