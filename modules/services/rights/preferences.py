"""Reads what people declared about the use of their posts by AI, and caches it for a day.

A row is written after each reading; a crash in between costs one more reading. If memories lie on a server and a person
denies embedding, the reading counts as done only when the server has deleted theirs.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from cachetools import TTLCache

from adapters.atproto.client import Atproto, PublicRepos
from adapters.atproto.types import Record
from common.clock import Clock
from common.person import Person, Trace
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.database.database import Database
from modules.runtime.database.people import know_person
from modules.services.inbox import received
from modules.services.memory.people import MEMORIES_OF_PEOPLE
from modules.services.rights import store, tombstones
from modules.services.rights.policy import INTENTS, PREFERENCE, Preference, may_stand_in_prompt, preference_of
from modules.services.sessions.store import drop_turns

logger = logging.getLogger(__name__)

FRESH = timedelta(hours=24)
UNREADABLE_S = 60.0
READ_WITHIN_S = 40.0
"""The seconds that one person's server may take for all requests; others wait meanwhile."""

_AT_ONCE = 4
_MOST_UNREADABLE = 1_000
_NOTHING_THERE = frozenset({400, 404, 410})
"""The statuses by which a server or the directory says that no such account exists; no other status means that."""


@dataclass(slots=True)
class Preferences:
    """The preferences of people, by DID.

    Attributes:
        repos: reads the records of any account.
        atproto: knows our account.
        database: stores what was read.
        clock: says when to read again.
        owner_did: the owner's account. The owner's preferences and ours are never read.

    """

    repos: PublicRepos
    atproto: Atproto
    database: Database
    clock: Clock
    owner_did: str
    _unreadable: TTLCache[str, bool] = field(init=False)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE), init=False)

    def __post_init__(self) -> None:
        self._unreadable = TTLCache(_MOST_UNREADABLE, UNREADABLE_S, timer=self.clock.monotonic)

    async def muted(self, dids: Iterable[str]) -> frozenset[str]:
        """Return the DIDs that the owner muted."""
        return await self.database.run(partial(store.muted_among, dids=frozenset(dids)))

    async def forgotten(self, dids: Iterable[str]) -> frozenset[str]:
        """Return the DIDs that are forgotten; what these people wrote to others is not read."""
        return frozenset(await self.database.run(partial(tombstones.forgotten, dids=frozenset(dids))))

    async def hidden(self, dids: Iterable[str]) -> frozenset[str]:
        """Return the DIDs whose words are not read: those muted or forgotten."""
        asked = frozenset(dids)
        return await self.muted(asked) | await self.forgotten(asked)

    async def readable(self, dids: Iterable[str]) -> frozenset[str]:
        """Return the DIDs whose words may stand in a prompt."""
        asked = frozenset(dids)
        declared = await self.of(asked - await self.hidden(asked))
        return frozenset(did for did, preference in declared.items() if may_stand_in_prompt(preference))

    async def left_alone(self, dids: Iterable[str]) -> frozenset[str]:
        """Return the DIDs to whom nothing is said: those muted or forgotten, and those who asked for no reply."""
        asked = frozenset(dids)
        silent = await self.database.run(partial(store.no_reply_among, dids=asked))
        return silent | await self.hidden(asked)

    async def may_be_remembered(self, session_key: str) -> bool:
        """Return whether nobody who wrote to us in that conversation denies embedding of their words for search."""
        return await self.database.run(partial(_may_be_remembered, session_key=session_key))

    async def renew(self, session_key: str) -> None:
        """Read again, if a day has passed, what those who wrote to us in that conversation declared.

        The words of people who now deny inference leave the conversation before any of it stands in another prompt.
        """
        await self.of(await self.database.run(partial(_writers, session_key=session_key)))

    async def of(self, dids: Iterable[str]) -> Mapping[str, Preference]:
        """Return the preferences of these people; those that could not be read are missing.

        What was read within a day is not read again. If a reading fails, the last known preferences hold. A person who
        declared nothing costs at most two requests.
        """
        ours = {self.owner_did, self.atproto.did}
        asked = set(dids)
        people = sorted(asked - ours)
        known = await self.database.run(partial(store.get, dids=people)) if people else {}
        now = self.clock.now()
        due = [did for did in people if did not in known or now - known[did][1] >= FRESH]
        read = await asyncio.gather(*(self._read(did) for did in due if did not in self._unreadable))
        return (
            {did: Preference() for did in asked & ours}
            | {did: preference for did, (preference, _) in known.items()}
            | {did: preference for did, preference in read if preference is not None}
        )

    async def _read(self, did: str) -> tuple[str, Preference | None]:
        async with self._places:
            try:
                async with self.clock.timeout(READ_WITHIN_S):
                    found = await self._look(did)
            except TimeoutError:
                found = Err(f"no whole answer within {READ_WITHIN_S:g} s", kind="transient")
        if isinstance(found, Err):
            self._unreadable[did] = True
            return did, None
        now = self.clock.now()
        await self.database.run(partial(_keep, did=did, preference=found.data, now=now))
        return did, found.data

    @answering
    async def _look(self, did: str) -> ApiResult[Preference]:
        there = await self.repos.collections(did)
        if isinstance(there, Err):
            return Ok(Preference()) if there.status in _NOTHING_THERE else there
        records: dict[str, tuple[Record, ...]] = {PREFERENCE: (), INTENTS: ()}
        for collection in records.keys() & set(there.data):
            records[collection] = (await self.repos.list_records(did, collection)).or_raise()
        return Ok(preference_of(records[PREFERENCE], records[INTENTS], (self.atproto.did, self.atproto.handle)))


def _may_be_remembered(connection: sqlite3.Connection, session_key: str) -> bool:
    known = store.get(connection, _writers(connection, session_key))
    return all(preference.embedding != "deny" for preference, _ in known.values())


def _writers(connection: sqlite3.Connection, session_key: str) -> frozenset[str]:
    """Return the people who wrote to us in a conversation; none if it is not a thread."""
    at = session_key.find("at://")
    written = received.in_thread(connection, session_key[at:]) if at >= 0 else []
    return frozenset(one.author_did for one in written)


def _keep(connection: sqlite3.Connection, did: str, preference: Preference, now: datetime) -> None:
    """Store what a person declared, and delete what it no longer allows.

    Denied inference deletes their turns from current conversations, newly denied embedding the memories of them.
    """
    before, _ = store.get(connection, [did]).get(did, (Preference(), now))
    if not tombstones.forgotten(connection, [did]):
        store.put(connection, did, preference, now)
    person = Person(did, tuple(filter(None, (received.latest_handle(connection, did),))))
    know_person(connection, person)
    if not may_stand_in_prompt(preference):
        drop_turns(connection, did)
    if preference.embedding == "deny" != before.embedding:
        MEMORIES_OF_PEOPLE.forget(connection, Trace(person))
