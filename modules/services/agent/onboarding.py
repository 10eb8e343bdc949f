"""The first conversation with the owner, held once for each home: whether it is still due, and its result.

The mark `commissioned_at` in `soul.db` decides. It is set in one transaction with the profiles and the journal entry;
`BOOTSTRAP.md` is renamed only after that. If the process is killed in between, the next start recognises the file by
its hash and renames it.
"""

import hashlib
import sqlite3
from collections.abc import Mapping

from common.clock import Clock, iso
from common.errors import PolicyBlocked, SoulError, Transient
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.memory.profiles import initialise
from modules.services.owner_files import OwnerFiles

SKILL = "commissioning"
TOOL = "complete_commissioning"
BOOTSTRAP_FILE = "BOOTSTRAP.md"
BOOTSTRAP_DONE = "BOOTSTRAP.done.md"
ONBOARDED_AT = "commissioned_at"

_COMPLETED_HASH = "commissioning_file"
_IGNORED_HASH = "commissioning_file_ignored"
_BY = "commissioning"
_LOOP = "commissioning"


class Onboarding:
    """Knows whether the first conversation is due, and completes it. `wake` is called once, at start."""

    def __init__(self, *, database: Database, files: OwnerFiles, journal: Journal, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._journal = journal
        self._clock = clock
        self._due = False
        self._found = ""

    async def wake(self) -> None:
        """Find out whether the conversation is due, and finish what a crash interrupted. Only warns if it cannot."""
        try:
            text = await self._files.read(BOOTSTRAP_FILE)
        except Transient as error:
            summary = f"Whether there is a {BOOTSTRAP_FILE} cannot be seen now"
            await self._journal.record(Entry("error", _LOOP, summary, line="warn", reason=str(error)))
            return
        if text is None:
            return
        self._found = found = _hash(text)
        known = await self._database.run(_marks)
        self._due = ONBOARDED_AT not in known
        if self._due:
            return
        if known.get(_COMPLETED_HASH) == found:
            await self._put_away()
        elif known.get(_IGNORED_HASH) != found:
            summary = f"workspace/{BOOTSTRAP_FILE} is ignored: the first talk was held on {known[ONBOARDED_AT][:10]}"
            entry = Entry("life", _LOOP, summary, line="warn", reason="it happens once in a life")

            def ignore(connection: sqlite3.Connection) -> tuple[None, Entry]:
                marks.put(connection, {_IGNORED_HASH: found})
                return None, entry

            await self._journal.record_with(ignore)

    def due(self) -> bool:
        """Return whether the next conversation with the owner is the first."""
        return self._due

    def postpone(self) -> None:
        """Put it off until the next start, because the owner wants to talk about something else."""
        self._due = False

    async def complete(self, agent: Mapping[str, str], user: Mapping[str, str]) -> None:
        """Complete the first conversation with what was learned about the SOUL and its owner.

        Raises:
            PolicyBlocked: it was held already.
            StorageError: the disk is full or fails; nothing is changed then.

        """
        now = self._clock.now()

        def settle(connection: sqlite3.Connection) -> tuple[None, Entry]:
            if held(connection):
                raise PolicyBlocked("The first talk was held already", remedy="Change one field with profile_update.")
            initialise(connection, agent, user, _BY, now)
            marks.put(connection, {ONBOARDED_AT: iso(now), _COMPLETED_HASH: self._found})
            known = {"agent": sorted(agent), "user": sorted(user)}
            summary = "The first talk is held: we know who we are to each other"
            return None, Entry("life", _LOOP, summary, line="mem", data=known)

        await self._journal.record_with(settle)
        self._due = False
        if self._found:
            await self._put_away()

    async def _put_away(self) -> None:
        """Rename the file, which no longer matters; log a failure, and leave the next attempt to the next start."""
        try:
            await self._files.rename(BOOTSTRAP_FILE, BOOTSTRAP_DONE)
        except SoulError as error:
            summary = f"workspace/{BOOTSTRAP_FILE} could not be renamed to {BOOTSTRAP_DONE}"
            await self._journal.record(Entry("error", _LOOP, summary, line="warn", reason=str(error)))


def held(connection: sqlite3.Connection) -> bool:
    """Return whether the first conversation was held already."""
    return ONBOARDED_AT in _marks(connection)


def _marks(connection: sqlite3.Connection) -> dict[str, str]:
    return marks.get_all(connection, (ONBOARDED_AT, _COMPLETED_HASH, _IGNORED_HASH))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
