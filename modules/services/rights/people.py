"""What the records of rights hold of a person, and all stores in soul.db that hold anything of people.

Each method is one step of a transaction that its caller opened.
"""

from __future__ import annotations

import sqlite3
from typing import Protocol

from common.person import Held, Trace
from modules.runtime.database.people import MARKS
from modules.runtime.journal.people import JournalPeople
from modules.services.experiences.log import EXPERIENCES_OF_PEOPLE
from modules.services.inbox.received import INBOX_OF_PEOPLE
from modules.services.memory.people import MemoryPeople
from modules.services.outbox.people import OutboxPeople
from modules.services.rituals.store import RITUALS_OF_PEOPLE
from modules.services.sessions.people import SessionPeople
from modules.services.work.table import WORK_OF_PEOPLE


class Holder(Protocol):
    """A store that can tell what it holds of a person, and delete it."""

    @property
    def store(self) -> str:
        """What it is called."""
        ...

    @property
    def tables(self) -> frozenset[str]:
        """The tables that it answers for."""
        ...

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return what it holds of the person; the connection knows `names_person`."""
        ...

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete it; return how many rows that were."""
        ...


class RightsPeople:
    """What a person declared about AI, whether the owner muted them, and whether they asked for no reply.

    Both of these go with what is forgotten, and stay as a hash.
    """

    store = "rights"
    tables = frozenset({"ai_preferences", "muted_people", "no_reply_people", "forgotten_people"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return the declaration, and since when they are muted or get no reply."""
        did = (trace.person.did,)
        words = [f"declared {row[0]}" for row in connection.execute(_DECLARED, did)]
        words += [f"muted since {row[0]}" for row in connection.execute(_MUTED, did)]
        words += [f"asked for no reply, since {row[0]}" for row in connection.execute(_NO_REPLY, did)]
        return Held(self.store, len(words), tuple(words))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete all of it; that somebody is forgotten stays, as a hash (`modules/services/rights/tombstones.py`)."""
        did = (trace.person.did,)
        return sum(connection.execute(statement, did).rowcount for statement in _DELETIONS)


_DECLARED = "SELECT preference FROM ai_preferences WHERE did = ?"
_NO_REPLY = "SELECT since FROM no_reply_people WHERE did = ?"
_DELETIONS = (
    "DELETE FROM ai_preferences WHERE did = ?",
    "DELETE FROM muted_people WHERE did = ?",
    "DELETE FROM no_reply_people WHERE did = ?",
)
_MUTED = "SELECT since FROM muted_people WHERE did = ?"

HOLDERS: tuple[Holder, ...] = (
    INBOX_OF_PEOPLE,
    OutboxPeople(),
    WORK_OF_PEOPLE,
    EXPERIENCES_OF_PEOPLE,
    SessionPeople(),
    MemoryPeople(),
    RightsPeople(),
    JournalPeople(),
    MARKS,
    RITUALS_OF_PEOPLE,
)
