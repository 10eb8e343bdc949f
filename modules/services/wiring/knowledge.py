"""The SOUL's knowledge and where it is stored: object store, pictures, workspace, memory, conversations."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from adapters.storage.local import Storage
from common.clock import Clock, local
from common.errors import PolicyBlocked, Transient
from common.redact import Redactor
from common.session_keys import OWNER_SESSION, room_session
from common.settings import Settings
from modules.runtime.console import Console
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.service_health import ServiceHealth
from modules.runtime.watched_storage import WatchedStorage, storage_of
from modules.services.agent.media import Media
from modules.services.agent.onboarding import Onboarding
from modules.services.agent.prompt.estimate import Estimator
from modules.services.memory.profiles import Profiles
from modules.services.memory.recall import MemoryRecall
from modules.services.memory.rows import MemoryStore
from modules.services.memory.view_sync import DayFiles, MemoryFile
from modules.services.owner_files import LocalOwnerFiles, OwnerFiles, StoredOwnerFiles
from modules.services.sessions.sessions import Sessions
from modules.services.skills.skills import LocalSkills, Skills


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of a SOUL."""

    storage: Storage
    media: Media
    owner_files: OwnerFiles
    estimator: Estimator
    health: ServiceHealth
    memories: MemoryStore

    async def hydrate(self, key: str) -> tuple[str, bytes] | None:
        """Return the type and the bytes of a picture for the model; None if it is gone."""
        found = (await self.media.load(key)).or_else(None)
        return (found.content_type, found.data) if found else None


class Knowledge:
    """Memory, profiles, conversations and skills of one SOUL, over its `stores`."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        *,
        database: Database,
        skills: Skills,
        journal: Journal,
        console: Console,
        redactor: Redactor,
        clock: Clock,
    ) -> None:
        estimate, zone = stores.estimator.estimate, settings.soul_timezone
        memories, files = stores.memories, stores.owner_files
        self.stores = stores
        self.timezone = zone
        self.profiles = Profiles(database, clock)
        self.recall = MemoryRecall(memories, clock, estimate)
        self.memory_file = MemoryFile(store=memories, database=database, files=files, clock=clock)
        self.day_files = DayFiles(store=memories, files=files, clock=clock, timezone=zone)
        self.sessions = Sessions(database, clock, redactor, estimate)
        self.room_session = room_session(settings.space_name)
        self.onboarding = Onboarding(database=database, files=files, journal=journal, clock=clock)
        self.local_skills = LocalSkills(
            owner_files=files, storage=stores.storage, shipped=skills.names, warn=partial(console.line, "warn")
        )
        self._journal = journal
        self._skills = skills

    async def wake(self) -> None:
        """At start, import what people changed in the files by hand."""
        await self.onboarding.wake()
        try:
            await self.refresh()
        except (PolicyBlocked, Transient) as error:
            summary = "The files of memory could not be brought in step with it"
            await self._journal.record(Entry("error", "memory", summary, line="warn", reason=str(error)))

    async def refresh(self) -> None:
        """Update the files that are views of memory."""
        try:
            await self.sync_memory_file()
        finally:
            await self.day_files.sync()

    async def sync_memory_file(self) -> str:
        """Import what was edited in MEMORY.md, report what could not be kept, and return the current file."""
        synced = await self.memory_file.sync()
        if synced.unkept:
            summary = f"MEMORY.md stays as you wrote it; not taken in: {', '.join(synced.unkept)}"
            await self._journal.record(Entry("error", "memory", summary, line="warn", reason="name the sections anew"))
        return synced.text

    async def owner_words(self) -> list[str]:
        """Return what the owner wrote in the current conversation, without the line that opened the first talk."""
        opening = self._skills.render("commissioning", "Opening")
        return [said for said in await self.sessions.owner_words(OWNER_SESSION) if said != opening]

    async def write_day(self, moment: datetime) -> None:
        """Write the notes of the day of `moment`; record a failure in the journal."""
        day = local(moment, self.timezone).date()
        try:
            await self.day_files.write(day)
        except (PolicyBlocked, Transient) as error:
            summary = f"The notes of {day:%Y-%m-%d} could not be written"
            await self._journal.record(Entry("error", "sessions", summary, line="warn", reason=str(error)))


def open_stores(
    settings: Settings,
    home: Home,
    *,
    database: Database,
    health: ServiceHealth,
    console: Console,
    clock: Clock,
    stack: AsyncExitStack,
) -> Stores:
    """Open the stores. What must be closed is put on `stack`. Raises `Fatal` with a remedy."""
    storage = WatchedStorage(storage_of(settings, home.store), partial(health.note, "storage"))
    stack.push_async_callback(storage.aclose)
    return Stores(
        storage=storage,
        media=Media(storage, clock),
        owner_files=_owner_files(settings, home, storage, console),
        estimator=Estimator(home.memory / "token-ratios.json", model=settings.ai_gateway_model, console=console),
        health=health,
        memories=MemoryStore(database),
    )


def _owner_files(settings: Settings, home: Home, storage: Storage, console: Console) -> OwnerFiles:
    warn = partial(console.line, "warn")
    if settings.soul_workspace == "store":
        return StoredOwnerFiles(storage, settings.agent_name, warn=warn)
    return LocalOwnerFiles(home, warn=warn)
