"""What the SOUL knows and where it keeps it: store, media, workspace, memory, conversations; built on the services."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from adapters.storage.store import Credentials, Storage, open_storage
from common.clock import Clock
from common.errors import PolicyBlocked, Transient
from common.redact import Redactor
from common.result import Err
from common.settings import Settings
from modules.runtime.console import Console
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.service_health import ServiceHealth
from modules.runtime.watched_storage import WatchedStorage
from modules.services.agent.media import Media
from modules.services.agent.memory.export import Snapshots
from modules.services.agent.memory.profiles import Profiles
from modules.services.agent.memory.recall import Recall
from modules.services.agent.memory.recovery import Recovery
from modules.services.agent.memory.sqlite_store import SqliteMemories
from modules.services.agent.memory.types import MemoryStore
from modules.services.agent.memory.view_sync import DayFiles, MemoryFile
from modules.services.agent.onboarding import Commissioning
from modules.services.agent.owner_files import LocalWorkspace, StoredWorkspace, Workspace
from modules.services.agent.prompt.estimate import Estimator
from modules.services.agent.sessions.sessions import Sessions
from modules.services.agent.skills.local import LocalSkills
from modules.services.agent.skills.skills import Skills


@dataclass(frozen=True, slots=True)
class Stores:
    """Where things are kept, before there is anybody to think about them."""

    storage: Storage
    media: Media
    workspace: Workspace
    estimator: Estimator
    health: ServiceHealth
    memories: MemoryStore
    in_database: bool

    async def hydrate(self, key: str) -> tuple[str, bytes] | None:
        """A picture for the model: its type and its bytes; None when it is gone."""
        found = await self.media.load(key)
        return None if isinstance(found, Err) else (found.data.content_type, found.data.data)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is kept, and what is made of it."""

    stores: Stores
    journal: Journal
    profiles: Profiles
    recall: Recall
    memory_file: MemoryFile
    day_files: DayFiles
    sessions: Sessions
    commissioning: Commissioning
    recovery: Recovery
    local_skills: LocalSkills

    async def wake(self) -> None:
        """At start: bring back what a damaged file lost, and take in what hands wrote."""
        await self.recovery.wake()
        await self.commissioning.wake()
        try:
            await self.refresh()
        except (PolicyBlocked, Transient) as error:
            summary = "The files of memory could not be brought in step with it"
            await self.journal.record(Entry("error", "memory", summary, line="warn", reason=str(error)))

    async def refresh(self) -> None:
        """Bring the files that are views in step with memory."""
        try:
            await self.sync_memory_file()
        finally:
            await self.day_files.sync()

    async def sync_memory_file(self) -> str:
        """Take in what a hand wrote into MEMORY.md, and say what could not be kept; the file as it is now."""
        synced = await self.memory_file.sync()
        if synced.unkept:
            summary = f"MEMORY.md stays as you wrote it; not taken in: {', '.join(synced.unkept)}"
            await self.journal.record(Entry("error", "memory", summary, line="warn", reason="name the sections anew"))
        return synced.text


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
    """Open where things are kept. What must be closed is put on `stack`. Raises `Fatal` with a remedy."""
    inside = open_storage(
        settings.storage_url,
        root=home.store,
        credentials=Credentials(settings.storage_access_key_id, settings.storage_secret_access_key.get_secret_value()),
    )
    storage = WatchedStorage(inside, partial(health.note, "storage"))
    stack.push_async_callback(storage.aclose)
    memories, in_database = _memories(settings, database, stack)
    return Stores(
        storage=storage,
        media=Media(storage, clock),
        workspace=_workspace(settings, home, storage, console),
        estimator=Estimator(home.memory / "token-ratios.json", model=settings.ai_gateway_model),
        health=health,
        memories=memories,
        in_database=in_database,
    )


def gather_knowledge(
    settings: Settings,
    home: Home,
    stores: Stores,
    *,
    database: Database,
    skills: Skills,
    journal: Journal,
    console: Console,
    redactor: Redactor,
    clock: Clock,
) -> Knowledge:
    """Build what thinks about it."""
    estimate, zone = stores.estimator.estimate, settings.soul_timezone
    return Knowledge(
        stores=stores,
        journal=journal,
        profiles=Profiles(database, clock),
        recall=Recall(stores.memories, clock, estimate),
        memory_file=MemoryFile(store=stores.memories, database=database, files=stores.workspace, clock=clock),
        day_files=DayFiles(store=stores.memories, files=stores.workspace, clock=clock, timezone=zone),
        sessions=Sessions(database, clock, redactor, estimate),
        commissioning=Commissioning(database=database, files=stores.workspace, journal=journal, clock=clock),
        recovery=Recovery(
            database=database,
            path=home.database,
            storage=stores.storage,
            agent_id=settings.agent_name,
            snapshots=Snapshots(database),
            journal=journal,
            clock=clock,
            timezone=zone,
        ),
        local_skills=LocalSkills(
            workspace=stores.workspace,
            storage=stores.storage,
            shipped=skills.names,
            warn=partial(console.line, "warn"),
        ),
    )


def _memories(settings: Settings, database: Database, stack: AsyncExitStack) -> tuple[MemoryStore, bool]:
    """Where memories lie, and whether that is the SOUL's own database."""
    url = settings.database_url.get_secret_value()
    if not url:
        return SqliteMemories(database), True
    from modules.services.agent.memory.postgres_store import PostgresMemories  # noqa: PLC0415 - an optional library

    memories = PostgresMemories(url, settings.agent_name)
    stack.push_async_callback(memories.aclose)
    return memories, False


def _workspace(settings: Settings, home: Home, storage: Storage, console: Console) -> Workspace:
    warn = partial(console.line, "warn")
    if settings.soul_workspace == "store":
        return StoredWorkspace(storage, settings.agent_name, warn=warn)
    return LocalWorkspace(home, warn=warn)
