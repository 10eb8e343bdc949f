"""CONTEXT.md: the state of the talk with the owner while it goes on, besides the owner's own lines in it.

It is a view, rewritten before each turn of that talk and at each heartbeat, and emptied when the talk is over. It holds
only words of the program, what the owner or the SOUL scheduled, and, if the talk before held others' words, what the
owner wrote last in it, as no summary of it is shown then.
"""

import sqlite3
from dataclasses import dataclass

from common.clock import local, parse_iso
from common.session_keys import OWNER_SESSION
from common.text.graphemes import shortened
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import of_loop_between
from modules.services.agent.prompt.sources import CONTEXT
from modules.services.day.gathering import DayReader
from modules.services.experiences import owner_lines
from modules.services.owner_files import OwnerFiles, with_state
from modules.services.schedules import first_scheduled
from modules.services.sessions.archives import unshown_since
from modules.services.sessions.store import going_on
from modules.services.skills.skills import Skills

_MOST_DONE, _MOST_LINES, _LINE_CHARS = 3, 8, 100
_ALL_LATER = "~"


@dataclass(frozen=True, slots=True)
class ContextFile:
    """Writes CONTEXT.md."""

    files: OwnerFiles
    database: Database
    days: DayReader
    skills: Skills
    timezone: str

    async def renew(self) -> None:
        """Write the current state, or none if no talk goes on. Raises what `files` raises."""
        state = await self.database.run(self._state)
        if with_state(text := await self.files.read(CONTEXT) or "", state) != text.strip():
            await self.files.update(CONTEXT, lambda found: with_state(found or "", state))

    def _state(self, connection: sqlite3.Connection) -> str:
        if (session := going_on(connection, OWNER_SESSION)) is None:
            return ""
        now = self.days.situation(connection)
        answers = of_loop_between(connection, "owner", session.created_at, _ALL_LATER)
        unshown = unshown_since(connection, OWNER_SESSION)
        before = owner_lines(connection, unshown, session.created_at, _MOST_LINES) if unshown else []
        done = [(one["at"], one["data"]["tools"]) for one in answers if one["data"].get("tools")]
        return self.skills.render(
            "workspace",
            "Context",
            before=_lines(
                *(
                    f"{local(parse_iso(one.at), self.timezone):%d %b %H:%M} “{shortened(one.about, _LINE_CHARS)}”"
                    for one in before
                )
            ),
            under_way=_lines(*now.tasks, *first_scheduled(now.schedules, self.timezone)),
            done=_lines(
                *(f"{local(parse_iso(at), self.timezone):%H:%M} {', '.join(names)}" for at, names in done[-_MOST_DONE:])
            ),
        ).strip()


def _lines(*told: str) -> str:
    return "\n".join(f"- {one}" for one in told)
