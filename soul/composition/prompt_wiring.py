"""What a turn is told, and what it can do with what the SOUL knows: the prompter with its sources, and the tools."""

from __future__ import annotations

import platform
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from common.provenance import Provenance
from common.settings import Settings
from common.version import __version__
from local_tools.memory_tools import MemoryTools, memory_tools
from local_tools.skill_tools import skill_tools
from modules.runtime.console import LineKind
from modules.runtime.home import Home, SoulDocument
from modules.runtime.journal.types import Entry
from modules.services.agent.attention_list import Attention, Blocked, Prosoche
from modules.services.agent.framing import Framer
from modules.services.agent.memory.profiles import profile_block
from modules.services.agent.memory.recall import Recalled, Telling
from modules.services.agent.memory.view_sync import DayText
from modules.services.agent.owner_files import Workspace
from modules.services.agent.prompt.changes import Changes
from modules.services.agent.prompt.core import Core
from modules.services.agent.prompt.degraded import DegradedServices
from modules.services.agent.prompt.prompter import Notice, Prompter
from modules.services.agent.prompt.sources import SkillLine, Sources
from modules.services.agent.prompt.tools_file import ToolsFile
from modules.services.agent.prompt.words import Runtime
from modules.services.agent.session_keys import OWNER_SESSION, is_main
from modules.services.agent.skills.skills import Skills
from modules.services.agent.tools.registry import Registry
from modules.services.agent.tools.types import Tool, Turn
from modules.services.agent.wakeup.gathering import BootGathering
from modules.services.agent.wakeup.keeper import BootContext
from modules.services.commitments.due import DueCommitments
from modules.services.commitments.types import QueuedCommitment
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.types import Intent
from soul.composition.services import Services
from soul.composition.stores import Knowledge
from soul.resources import SKILLS

Promised = Callable[[], Sequence[QueuedCommitment]]


def tools_to_know(services: Services) -> Sequence[Tool]:
    """Remember, look back, change profiles, load a skill."""
    knowledge = services.knowledge

    async def owner_words() -> Sequence[str]:
        opening = services.skills.render("commissioning", "Opening")
        return [said for said in await knowledge.sessions.owner_words(OWNER_SESSION) if said != opening]

    async def due() -> bool:
        return knowledge.commissioning.due()

    memory = MemoryTools(
        store=knowledge.stores.memories,
        profiles=knowledge.profiles,
        skills=services.skills,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
        session_of=_session_of,
        owner_words=owner_words,
        commissioning_due=due,
        complete=knowledge.commissioning.complete,
        timezone=services.settings.soul_timezone,
    )
    return (*memory_tools(memory), *skill_tools(knowledge.local_skills))


def build_prosoche(services: Services, waiting: Callable[[], Awaitable[int]], promised: Promised) -> Prosoche:
    """What asks for attention; `waiting` is how many posts wait to be met, `promised` what is still to be kept."""
    return attention_to(
        services.settings,
        services.skills,
        services.knowledge.stores.workspace,
        waiting=waiting,
        drafts=services.outbox.held,
        promised=promised,
    )


def attention_to(
    settings: Settings,
    skills: Skills,
    files: Workspace,
    *,
    waiting: Callable[[], Awaitable[int]],
    drafts: Callable[[], Awaitable[Sequence[Intent]]],
    promised: Promised,
) -> Prosoche:
    """The same from what is given: `drafts` are the acts that wait for the owner's yes."""

    async def mentions() -> Attention:
        return Attention(mentions=await waiting())

    async def held() -> Attention:
        # NOTE(self): a draft may repeat what strangers said, so a turn of the owner's is told of it without its words.
        return Attention(
            blocked=tuple(
                Blocked(f"{draft.kind} {draft.id[:SHORT_ID_CHARS]}", draft.error or "", private=True, asked=True)
                for draft in await drafts()
            )
        )

    return Prosoche(
        sources=(mentions, held, DueCommitments(promised)), skills=skills, files=files, timezone=settings.soul_timezone
    )


def build_boot_context(services: Services, waiting: Callable[[], Awaitable[int]]) -> BootContext:
    """What the SOUL reads when it wakes."""
    settings = services.settings
    gathering = BootGathering(
        database=services.database,
        memories=services.knowledge.stores.memories,
        outbox=services.outbox,
        clock=services.clock,
        name=lambda: services.identity.display_name,
        extract=services.identity.extract,
        peers=settings.soul_peers,
        waiting=waiting,
        standing=services.control.standing,
        bonds=lambda: [
            f"@{handle}: {count} exchanges" for handle, count in services.relationships.summary().top_engagers
        ],
        timezone=settings.soul_timezone,
    )
    return BootContext(
        boot_file(services.home),
        gather=gathering.gather,
        journal=services.journal,
        export=settings.boot_context_export,
        budget=settings.boot_context_tokens,
        estimate=services.knowledge.stores.estimator.estimate,
    )


def boot_file(home: Home) -> Path:
    """Where what is read at waking lies."""
    return home.memory / "boot-context.md"


def build_prompter(services: Services, registry: Registry, prosoche: Prosoche, boot_context: BootContext) -> Prompter:
    """The prompter of all lives."""
    knowledge, skills, status = services.knowledge, services.skills, services.home.memory / "status"

    async def woken_with(session_key: str) -> str:
        return boot_context.unread(main=is_main(session_key))

    async def tell(notice: Notice) -> None:
        line: LineKind = "error" if notice.level == "error" else "warn"
        await services.journal.record(Entry("error", "prompt", notice.summary, line=line, reason=notice.reason))

    return prompter_over(
        services.settings,
        services.home,
        services.soul,
        skills,
        build_sources(
            services.settings,
            skills,
            services.rng,
            knowledge,
            memory_md=knowledge.sync_memory_file,
            tools_md=ToolsFile(knowledge.stores.workspace, registry, skills).text,
            prosoche=prosoche,
            boot_context=woken_with,
            commissioning=knowledge.commissioning.due,
        ),
        estimate=knowledge.stores.estimator.estimate,
        mode=lambda: services.attention.mode,
        tell=tell,
        changes=Changes(status / "bootstrap-changes.jsonl", status / "bootstrap-hashes.json", services.clock),
    )


def build_sources(
    settings: Settings,
    skills: Skills,
    rng: random.Random,
    knowledge: Knowledge,
    *,
    memory_md: Callable[[], Awaitable[str]],
    tools_md: Callable[[], Awaitable[str]],
    prosoche: Prosoche,
    boot_context: Callable[[str], Awaitable[str]],
    commissioning: Callable[[], bool],
    counted: bool = True,
) -> Sources:
    """Where the parts of a prompt come from; but for what is given, nothing is written as long as it is not `counted`.

    Args:
        settings: have the time zone.
        skills: have the words.
        rng: draws the marks around others' words.
        knowledge: what the SOUL knows.
        memory_md: MEMORY.md.
        tools_md: TOOLS.md.
        prosoche: what asks for attention.
        boot_context: what is left to read after waking, for a session's key.
        commissioning: whether the first talk is due.
        counted: whether what comes to mind is remembered as having come to mind.

    """
    stores = knowledge.stores

    def telling() -> Telling:
        return Telling(skills, Framer(skills, rng), settings.soul_timezone)

    async def profile(*, public: bool) -> str:
        known = await knowledge.profiles.get()
        return profile_block(known, skills, stores.estimator.estimate, public_only=public)

    async def daily(*, public: bool, least: Provenance) -> Sequence[DayText]:
        return await knowledge.day_files.told(telling(), public_only=public, least=least)

    async def recall(query: str, *, public: bool, least: Provenance) -> Recalled:
        return await knowledge.recall.recall(query, telling(), public_only=public, least=least, counted=counted)

    async def degraded() -> str:
        return DegradedServices(stores.health, skills, settings.soul_timezone).text()

    async def skills_listing() -> Sequence[SkillLine]:
        return [(entry.name, entry.description, entry.when) for entry in await knowledge.local_skills.listing()]

    return Sources(
        workspace=stores.workspace,
        profile=profile,
        memory_md=memory_md,
        daily=daily,
        recall=recall,
        degraded=degraded,
        prosoche=prosoche.text,
        boot_context=boot_context,
        skills_listing=skills_listing,
        tools_md=tools_md,
        commissioning=commissioning,
    )


def prompter_over(
    settings: Settings,
    home: Home,
    soul: SoulDocument,
    skills: Skills,
    sources: Sources,
    *,
    estimate: Callable[[str], int],
    mode: Callable[[], str],
    tell: Callable[[Notice], Awaitable[None]],
    changes: Changes | None = None,
) -> Prompter:
    """A prompter over `sources`; without `changes` it writes nothing."""
    return Prompter(
        home=home,
        soul=soul,
        core=Core(SKILLS, skills),
        skills=skills,
        sources=sources,
        runtime=Runtime(
            agent_name=settings.agent_name,
            host=platform.node(),
            version=__version__,
            mode=mode,
            model=lambda: settings.ai_gateway_model,
        ),
        budget=settings.bootstrap_max_tokens,
        estimate=estimate,
        tell=tell,
        changes=changes,
        timezone=settings.soul_timezone,
    )


def _session_of(turn: Turn) -> str:
    return OWNER_SESSION if turn.loop == "owner" else turn.cause_id or ""
