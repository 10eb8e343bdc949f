"""What a turn is told, and what it can do with what the SOUL knows: the prompter with its sources, and the tools."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Sequence

from common.version import __version__
from local_tools.memory_tools import MemoryTools, memory_tools
from local_tools.skill_tools import skill_tools
from modules.boot_gathering import BootGathering
from modules.boot_keeper import BootContext
from modules.console import LineKind
from modules.foreign_text import Framer
from modules.journal.types import Entry
from modules.memory.profiles import profile_block
from modules.memory.recall import Recalled, Telling
from modules.memory.view_sync import DayText
from modules.memory.views import VIEW
from modules.prompt.changes import Changes
from modules.prompt.core import Core
from modules.prompt.prompter import Notice, Prompter
from modules.prompt.sources import SkillLine, Sources
from modules.prompt.tools_file import ToolsFile
from modules.prompt.words import Runtime
from modules.prosoche import Attention, Prosoche
from modules.sessions.types import OWNER_SESSION, is_main
from modules.tools.registry import Registry
from modules.tools.types import Provenance, Tool, Turn
from soul.rails import Rails
from soul.resources import SKILLS


def tools_to_know(rails: Rails) -> Sequence[Tool]:
    """Remember, look back, change profiles, load a skill."""
    knowledge = rails.knowledge

    async def owner_words() -> Sequence[str]:
        opening = rails.skills.render("commissioning", "Opening")
        return [said for said in await knowledge.sessions.owner_words(OWNER_SESSION) if said != opening]

    async def due() -> bool:
        return knowledge.commissioning.due()

    memory = MemoryTools(
        store=knowledge.keeping.memories,
        profiles=knowledge.profiles,
        skills=rails.skills,
        journal=rails.journal,
        clock=rails.clock,
        rng=rails.rng,
        session_of=_session_of,
        owner_words=owner_words,
        commissioning_due=due,
        complete=knowledge.commissioning.complete,
        timezone=rails.settings.soul_timezone,
    )
    return (*memory_tools(memory), *skill_tools(knowledge.local_skills))


def build_prosoche(rails: Rails, waiting: Callable[[], Awaitable[int]]) -> Prosoche:
    """What asks for attention; `waiting` is how many posts wait to be met."""

    async def mentions() -> Attention:
        return Attention(mentions=await waiting())

    return Prosoche(
        sources=(mentions,),
        skills=rails.skills,
        files=rails.knowledge.keeping.workspace,
        timezone=rails.settings.soul_timezone,
    )


def build_boot_context(rails: Rails, waiting: Callable[[], Awaitable[int]]) -> BootContext:
    """What the SOUL reads when it wakes."""
    settings = rails.settings
    gathering = BootGathering(
        database=rails.database,
        memories=rails.knowledge.keeping.memories,
        outbox=rails.outbox,
        clock=rails.clock,
        name=lambda: rails.identity.display_name,
        extract=rails.identity.extract,
        peers=settings.soul_peers,
        waiting=waiting,
        standing=rails.control.standing,
        bonds=lambda: [f"@{handle}: {count} exchanges" for handle, count in rails.relationships.summary().top_engagers],
        timezone=settings.soul_timezone,
    )
    return BootContext(
        rails.home.memory / "boot-context.md",
        gather=gathering.gather,
        journal=rails.journal,
        export=settings.boot_context_export,
        budget=settings.boot_context_tokens,
        estimate=rails.knowledge.keeping.estimator.estimate,
    )


def build_prompter(rails: Rails, registry: Registry, prosoche: Prosoche, boot_context: BootContext) -> Prompter:
    """The prompter of all lives."""
    settings, knowledge, skills = rails.settings, rails.knowledge, rails.skills
    keeping = knowledge.keeping

    def telling() -> Telling:
        return Telling(skills, Framer(skills, rails.rng), settings.soul_timezone)

    async def profile(*, public: bool) -> str:
        known = await knowledge.profiles.get()
        return profile_block(known, skills, keeping.estimator.estimate, public_only=public)

    async def memory_md() -> str:
        await knowledge.sync_memory_file()
        return await keeping.workspace.read(VIEW) or ""

    async def daily(*, public: bool, least: Provenance) -> Sequence[DayText]:
        return await knowledge.day_files.told(telling(), public_only=public, least=least)

    async def recall(query: str, *, public: bool, least: Provenance) -> Recalled:
        return await knowledge.recall.recall(query, telling(), public_only=public, least=least)

    async def degraded() -> str:
        return keeping.health.text()

    async def woken_with(session_key: str) -> str:
        return boot_context.unread(main=is_main(session_key))

    async def skills_listing() -> Sequence[SkillLine]:
        return [(entry.name, entry.description, entry.when) for entry in await knowledge.local_skills.listing()]

    async def tell(notice: Notice) -> None:
        line: LineKind = "error" if notice.level == "error" else "warn"
        await rails.journal.record(Entry("error", "prompt", notice.summary, line=line, reason=notice.reason))

    return Prompter(
        home=rails.home,
        soul=rails.soul,
        core=Core(SKILLS, skills),
        skills=skills,
        sources=Sources(
            workspace=keeping.workspace,
            profile=profile,
            memory_md=memory_md,
            daily=daily,
            recall=recall,
            degraded=degraded,
            prosoche=prosoche.text,
            boot_context=woken_with,
            skills_listing=skills_listing,
            tools_md=ToolsFile(keeping.workspace, registry, skills).text,
            commissioning=knowledge.commissioning.due,
        ),
        runtime=Runtime(
            agent_name=settings.agent_name,
            host=platform.node(),
            version=__version__,
            mode=lambda: rails.attention.mode,
            model=lambda: settings.ai_gateway_model,
        ),
        budget=settings.bootstrap_max_tokens,
        estimate=keeping.estimator.estimate,
        tell=tell,
        changes=Changes(
            rails.home.memory / "status" / "bootstrap-changes.jsonl",
            rails.home.memory / "status" / "bootstrap-hashes.json",
            rails.clock,
        ),
        timezone=settings.soul_timezone,
    )


def _session_of(turn: Turn) -> str:
    return OWNER_SESSION if turn.loop == "owner" else turn.cause_id or ""
