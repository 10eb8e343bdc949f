"""Stores an experience at once, or, if it is about a draft, when that has left; refused drafts give none."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import NewExperience
from modules.services.outbox.outbox import Outbox
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem

KIND = "draft-experience"
_PAUSE_S = 60.0
_UNDER_WAY = frozenset({"held", "pending", "sending"})


@dataclass(kw_only=True)
class DraftExperiences(Handler):
    """Keeps a row of work for each draft that is to become an experience."""

    kind = KIND
    is_public = False
    pause_s = _PAUSE_S
    tells = True

    log: ExperienceLog
    outbox: Outbox
    work: WorkTable

    async def record(self, new: NewExperience, draft_id: str | None = None) -> None:
        """Store an experience; with the id of a draft's intent, wait until that has left."""
        if draft_id:
            await self.work.add(NewWork(KIND, draft_id, asdict(new), author=new.did))
        else:
            await self.log.record(new)

    async def handle(self, item: WorkItem) -> Disposition:
        draft = await self.outbox.get(item.key)
        if draft and draft.state in _UNDER_WAY:
            return Disposition("later", "under-way", "the draft has not left yet")
        if draft is None or draft.state != "done":
            return Disposition("silent", "not-sent", "the draft never left")
        new = NewExperience(**item.payload)
        await self.log.record(replace(new, about=draft.body.public_text or new.about))
        return Disposition("done", "noted", "the draft left")
