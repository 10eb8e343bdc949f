"""What the records of rights hold of a person, and all stores in soul.db that hold anything of people."""

from __future__ import annotations

from modules.runtime.database.people import MARKS, PersonalRows, PersonalTable
from modules.runtime.journal.people import JOURNAL_OF_PEOPLE
from modules.services.experiences.log import EXPERIENCES_OF_PEOPLE
from modules.services.inbox.received import INBOX_OF_PEOPLE
from modules.services.memory.people import MEMORIES_OF_PEOPLE
from modules.services.outbox.people import ACTS_OF_PEOPLE
from modules.services.rituals.store import RITUALS_OF_PEOPLE
from modules.services.sessions.people import SESSIONS_OF_PEOPLE
from modules.services.work.table import WORK_OF_PEOPLE

# NOTE(self): a mute and the wish for no reply stay as a hash (`modules/services/rights/tombstones.py`).
_RIGHTS_OF_PEOPLE = PersonalRows(
    "rights",
    (
        PersonalTable(
            name="ai_preferences",
            theirs="did = :did",
            shown="'declared ' || preference",
            tells="EXISTS (SELECT 1 FROM json_each(preference) WHERE value <> 'unset')",
            at="read_at",
        ),
        PersonalTable(name="muted_people", theirs="did = :did", shown="'muted'", at="since"),
        PersonalTable(name="no_reply_people", theirs="did = :did", shown="'asked for no reply'", at="since"),
    ),
)

STORES = (
    INBOX_OF_PEOPLE,
    ACTS_OF_PEOPLE,
    WORK_OF_PEOPLE,
    EXPERIENCES_OF_PEOPLE,
    SESSIONS_OF_PEOPLE,
    MEMORIES_OF_PEOPLE,
    _RIGHTS_OF_PEOPLE,
    JOURNAL_OF_PEOPLE,
    MARKS,
    RITUALS_OF_PEOPLE,
)
