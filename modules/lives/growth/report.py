"""What the owner is shown of how the SOUL grows: the last changes with their reasons, and what troubles it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from common.clock import Clock
from modules.lives.growth.types import KIND
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import StoredEntry
from modules.services.experiences.friction import FrictionReport
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import Experience

REFLECTED = "reflected"
"""The `act` of the journal entry of a reflection that changed SELF.md."""

_LOOKED_BACK = timedelta(days=7)
_CHANGES_SHOWN, _BECAUSE_SHOWN = 5, 5


@dataclass(frozen=True, slots=True)
class GrowthReport:
    """Gathers it, as fields of the status file."""

    journal: Journal
    experiences: ExperienceLog
    friction: FrictionReport
    clock: Clock

    async def gather(self) -> dict[str, Any]:
        """Return `changes`, newest first, `friction`, most frequent first, and how many experiences wait (`open`)."""
        now = self.clock.now()
        entries = await self.journal.with_act(KIND, REFLECTED, now - _LOOKED_BACK, now)
        counted = await self.friction.counts()
        return {
            "open": len(await self.experiences.open()),
            "changes": [await self._change(one) for one in reversed(entries[-_CHANGES_SHOWN:])],
            "friction": [{"category": one.category, "loop": one.loop, "count": one.count} for one in counted],
        }

    async def _change(self, stored: StoredEntry) -> dict[str, Any]:
        data = stored.entry.data
        found = await self.experiences.named([str(name) for name in data["experiences"]])
        return {
            "at": stored.at,
            "version": data["version"],
            "reason": stored.entry.reason,
            "learned": data["learned"],
            "diff": data["diff"],
            "because": [because(one) for one in found[:_BECAUSE_SHOWN]],
        }


def because(one: Experience) -> dict[str, str]:
    """Return an experience as it is shown behind a change; of a stranger's only where it was."""
    is_stranger = one.trust == "stranger"
    who = "" if is_stranger else one.person
    about = "" if is_stranger else one.about
    return {"name": one.name, "type": one.type, "source": one.source, "trust": one.trust, "who": who, "about": about}
