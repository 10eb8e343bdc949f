"""Connects the SOUL's knowledge, where it is stored, and the parts of a prompt with their sources."""

import platform
import random
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from adapters.storage.local import Storage
from common.clock import Clock, iso, local
from common.errors import PolicyBlocked, Transient
from common.provenance import Provenance
from common.redact import Redactor
from common.session_keys import OWNER_SESSION, room_session
from common.settings import Settings
from common.text.untrusted import one_line
from common.version import __version__
from common.wording import deed
from modules.runtime.console import Console
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.home import Home, SoulDocument
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.service_health import ServiceHealth
from modules.runtime.watched_storage import WatchedStorage, storage_of
from modules.services.agent.attention_list import AttentionList, DegradedServices
from modules.services.agent.media import Media
from modules.services.agent.onboarding import Onboarding
from modules.services.agent.prompt.estimate import Estimator
from modules.services.agent.prompt.prompter import Changes, Core, Prompter, PromptNotice, Runtime
from modules.services.agent.prompt.sources import (
    Before,
    Peers,
    PromptTurn,
    SkillLine,
    Sources,
)
from modules.services.inbox import messages
from modules.services.memory.profiles import Profiles, profile_block
from modules.services.memory.recall import MemoryRecall, MemoryRenderer, Recalled
from modules.services.memory.rows import MemoryStore
from modules.services.memory.view_sync import DayFiles, DayText, MemoryFile
from modules.services.outbox import store
from modules.services.owner_files import LocalOwnerFiles, OwnerFiles, StoredOwnerFiles
from modules.services.sessions.sessions import Sessions
from modules.services.skills.skills import Framer, LocalSkills, Skills

_REJECTED = timedelta(days=30)
_MOST_REJECTED = 5
_REASON_CHARS = 200


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
        home: Home,
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
        self._workspace = home.workspace if settings.soul_workspace == "store" else None
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
        self._database = database
        self._clock = clock

    async def wake(self) -> None:
        """At start, tell of files that are not read, and import what people changed in the files by hand."""
        if unread := self._files_left_at_home():
            summary = f"Not read, as SOUL_WORKSPACE is store: {', '.join(unread)} in the folder workspace"
            await self._journal.record(Entry("life", "start", summary, line="warn", reason="delete or move them"))
        await self.onboarding.wake()
        try:
            await self.refresh()
        except (PolicyBlocked, Transient) as error:
            summary = "The files of memory could not be brought in step with it"
            await self._journal.record(Entry("error", "memory", summary, line="warn", reason=str(error)))

    def _files_left_at_home(self) -> list[str]:
        """Return the pages in the folder `workspace` if the files of the SOUL are in the store."""
        return sorted(one.name for one in self._workspace.glob("*.md")) if self._workspace else []

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

    async def profile(self, *, public: bool = True) -> str:
        """Return the part of a prompt that has the profiles, and why the owner rejected acts lately.

        A `public` one lacks the owner's own profile. Of the acts only the kind is told: their words may be others'.
        """
        known = profile_block(
            await self.profiles.get(), self._skills, self.stores.estimator.estimate, public_only=public
        )
        since = iso(self._clock.now() - _REJECTED)
        rejected = await self._database.read(lambda rows: store.rejections(rows, since, _MOST_REJECTED))
        acts = "\n".join(f"- {deed(kind)}: {one_line(why, _REASON_CHARS)}" for kind, why in rejected)
        told = self._skills.render("memory", "Rejected", acts=acts).strip() if acts else ""
        return "\n\n".join(filter(None, (known, told)))

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


def build_sources(
    settings: Settings,
    skills: Skills,
    rng: random.Random,
    knowledge: Knowledge,
    *,
    memory_md: Callable[[], Awaitable[str]],
    attention_list: AttentionList,
    wakeup_context: Callable[[str], Awaitable[str]],
    onboarding: Callable[[], bool],
    peers: Peers,
    said_before: Before,
) -> Sources:
    """Return the sources of the parts of a prompt.

    `rng` draws the boundaries around others' words. `memory_md` returns that file, `wakeup_context` what is left to
    read after waking, for a session's key, and `onboarding` whether the first talk is due. `peers` returns what the
    SOUL and its peers did together, `said_before` what it and a person said to each other.
    """
    stores = knowledge.stores

    def memory_renderer() -> MemoryRenderer:
        return MemoryRenderer(skills, Framer(skills, rng), settings.soul_timezone)

    async def daily(*, least: Provenance, began: datetime | None) -> Sequence[DayText]:
        return await knowledge.day_files.told(memory_renderer(), least=least, began=began)

    async def recall(turn: PromptTurn, *, shown: Collection[int]) -> Recalled:
        search = partial(knowledge.recall.recall, turn.query, memory_renderer(), shown=shown)
        return await search(public_only=turn.public, least=turn.least, person=turn.person)

    async def degraded() -> str:
        return DegradedServices(stores.health, skills, settings.soul_timezone).text()

    async def skills_listing() -> Sequence[SkillLine]:
        return [(entry.name, entry.description, entry.when) for entry in await knowledge.local_skills.listing()]

    return Sources(
        owner_files=stores.owner_files,
        profile=knowledge.profile,
        memory_md=memory_md,
        daily=daily,
        recall=recall,
        degraded=degraded,
        attention_list=attention_list.text,
        wakeup_context=wakeup_context,
        skills_listing=skills_listing,
        own_skills=knowledge.local_skills.told,
        peers=peers,
        said_before=said_before,
        onboarding=onboarding,
    )


def prompter_over(
    settings: Settings,
    home: Home,
    soul: SoulDocument,
    skills: Skills,
    sources: Sources,
    *,
    estimator: Estimator,
    tell: Callable[[PromptNotice], Awaitable[None]],
    changes: Changes,
) -> Prompter:
    """Return a prompter over `sources`."""
    return Prompter(
        home=home,
        soul=soul,
        core=Core(skills),
        skills=skills,
        sources=sources,
        runtime=Runtime(
            agent_name=settings.agent_name,
            host=platform.node(),
            version=__version__,
            model=lambda: settings.ai_gateway_model,
        ),
        budget=partial(estimator.prompt_within, settings.bootstrap_max_tokens),
        estimate=estimator.estimate,
        tell=tell,
        changes=changes,
        timezone=settings.soul_timezone,
    )


_NOT_LOOKED_FOR = frozenset({"direct_message", "space_chat"})
"""The kinds that have no key and are sent at the first try without checking whether they are there already."""


def make_up_for_lost(connection: sqlite3.Connection) -> None:
    """Once after a restore, prevent that anything is said again that may have been said since."""
    if not marks.get(connection, marks.RESTORED):
        return
    for intent in store.in_state(connection, "pending"):
        if intent.kind in _NOT_LOOKED_FOR:
            at = intent.first_sent_at or intent.created_at
            store.update(connection, replace(intent, state="sending", first_sent_at=at, sent_at=intent.sent_at or at))
    messages.read_anew(connection)
    marks.remove(connection, marks.RESTORED)
