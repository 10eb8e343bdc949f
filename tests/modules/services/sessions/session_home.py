"""Conversations in a real database, with a folder as store and a scripted model service."""

import json
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.storage.local import Storage, open_storage
from adapters.storage.objects import media_prefix
from common.clock import FakeClock
from common.provenance import Provenance
from common.redact import Redactor
from common.result import ApiResult, Ok
from common.session_keys import OWNER_SESSION
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.llm.dialect import Message, PromptBlock
from modules.services.memory.rows import MemoryStore
from modules.services.sessions.archives import KEEP, Archive, Distiller, done, read_archive
from modules.services.sessions.archivist import Archivist, conversation
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.types import Session
from modules.services.skills.skills import Skills
from tests.fresh_database import open_database
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, calls, scripted_gateway
from tests.modules.services.sessions.session_values import joined
from tests.patience import HANG_S
from tests.project import ROOT

SECRET = "correct-horse-battery"
AGENT = "soul.test"
SKILLS = Skills.load(ROOT / "skills")
THREAD = "bluesky:thread:at://did:plc:x/app.bsky.feed.post/3k"
BUDGET = 100
SUMMARY = "Kit asked about the leaking roof, and the tiles are to be looked at on Friday."


def by_letters(text: str) -> int:
    """Estimate the tokens of a text at four characters each."""
    return len(text) // 4


def keeps(summary: str = SUMMARY, **lists: object) -> Reply:
    """Return an answer of the model that says what to keep."""
    return calls((KEEP, json.dumps({"summary": summary, **lists})))


@dataclass
class SessionHome:
    """Everything that a conversation needs, in one place."""

    folder: Path
    clock: FakeClock
    console: SilentConsole
    model: ScriptedModel
    database: Database
    storage: Storage
    sessions: Sessions
    memories: MemoryStore
    distiller: Distiller
    forgotten: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.archivist = self.archivist_with(self.storage)

    async def say(
        self, key: str, *said: Message, provenance: Provenance = Provenance.OWNER, apart_s: float = 60
    ) -> str:
        """Add each message in a transaction of its own, `apart_s` seconds apart; return the id of the session."""
        session_id = (await self.sessions.open(key)).id
        for message in said:
            session_id = await self.sessions.add(session_id, [(message, provenance)])
            await self.clock.advance(apart_s)
        return session_id

    async def talk(self, key: str = OWNER_SESSION, *, turns: int = 4, provenance: Provenance = Provenance.OWNER) -> str:
        """Add `turns` questions and answers about a roof; return the id of the session."""
        return await self.say(key, *roof_talk(turns), provenance=provenance)

    async def archives(self, key: str | None = None) -> list[Archive]:
        """Return up to 100 archives in the store, newest first; only those of the conversation with `key`, if given."""
        return await self.database.run(lambda connection: done(connection, key, 100))

    async def table(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""

        def look(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            return [dict(row) for row in connection.execute(query)]

        return await self.database.run(look)

    async def history(self, session_id: str) -> list[Message]:
        """Return the conversation as a model is shown it."""
        return conversation(await self.sessions.rows(session_id))

    async def archived(self, archive: Archive | None) -> list[Message]:
        """Return the messages in an archive."""
        assert archive is not None
        found = await read_archive(self.storage, archive)
        assert isinstance(found, Ok), found
        return joined((line.role, line.message) for line in found.data)

    async def note_the_end(self, session_key: str) -> None:
        self.ended.append(session_key)

    async def forget_media(self, session_key: str) -> ApiResult[int]:
        self.forgotten.append(session_key)
        return await self.storage.delete_all(media_prefix(session_key))

    def archivist_with(self, storage: Storage, *, on_end: Callable[[str], Awaitable[None]] | None = None) -> Archivist:
        """Return another archivist for the same sessions."""
        return Archivist(
            sessions=self.sessions,
            database=self.database,
            storage=storage,
            distiller=self.distiller,
            journal=Journal(self.database, self.console, self.clock, Redactor()),
            clock=self.clock,
            agent_id=AGENT,
            forget_media=self.forget_media,
            on_end=on_end or self.note_the_end,
        )

    def unreachable(self) -> Archivist:
        """Return an archivist whose store is a folder that cannot be made."""
        (self.folder / "blocked").write_text("a file, where a folder is wanted")
        return self.archivist_with(open_storage("", root=self.folder / "blocked" / "store"))


def roof_talk(turns: int) -> Sequence[Message]:
    return [
        message
        for number in range(turns)
        for message in (
            Message("user", f"Question {number}: Kit asks about the leaking roof, are the tiles to be looked at?"),
            Message("assistant", f"Answer {number}: on Friday; the tiles of the roof have been leaking since March."),
        )
    ]


async def told_first(_: Session) -> tuple[PromptBlock, ...]:
    """Return the task alone; only the prompter says who the SOUL is."""
    return (PromptBlock("dynamic", SKILLS.render("memory-extraction", "System Prompt", agent_name="Rowan")),)


@asynccontextmanager
async def open_session_home(folder: Path, model: ScriptedModel) -> AsyncIterator[SessionHome]:
    clock, console = FakeClock(), SilentConsole()
    database = await open_database(folder / "soul.db")
    storage = open_storage("", root=folder / "store")
    redactor = Redactor([SECRET])
    gateway = scripted_gateway(
        model.url,
        clock=clock,
        console=console,
        max_retries=0,
        idle_timeout_s=HANG_S,
    )
    distiller = Distiller(
        gateway=gateway,
        system=told_first,
        skills=SKILLS,
        redactor=redactor,
        rng=random.Random(7),
        estimate=by_letters,
        timezone="Europe/Berlin",
    )
    sessions = Sessions(database, clock, redactor, by_letters)
    try:
        yield SessionHome(folder, clock, console, model, database, storage, sessions, MemoryStore(database), distiller)
    finally:
        await gateway.aclose()
        await storage.aclose()
        await database.close()
