"""Connects the parts of a prompt with their sources: for a life, and for a look at a prompt from outside."""

from __future__ import annotations

import platform
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from functools import partial

from common.provenance import Provenance
from common.settings import Settings
from common.version import __version__
from modules.runtime.home import Home, SoulDocument
from modules.services.agent.attention_list import AttentionList, DegradedServices
from modules.services.agent.prompt.estimate import Estimator
from modules.services.agent.prompt.prompter import Changes, Core, Prompter, PromptNotice, Runtime
from modules.services.agent.prompt.sources import (
    Before,
    Peers,
    PromptTurn,
    SkillLine,
    Sources,
    nothing,
    nothing_said,
)
from modules.services.memory.profiles import profile_block
from modules.services.memory.recall import MemoryRenderer, Recalled
from modules.services.memory.view_sync import DayText
from modules.services.skills.skills import Framer, Skills
from modules.services.wiring.knowledge import Knowledge


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
    peers: Peers = nothing,
    said_before: Before = nothing_said,
    counted: bool = True,
) -> Sources:
    """Return the sources of the parts of a prompt.

    `rng` draws the boundaries around others' words. `memory_md` returns that file, `wakeup_context` what is left to
    read after waking, for a session's key, and `onboarding` whether the first talk is due. `peers` returns what the
    SOUL and its peers did together, `said_before` what it and a person said to each other. Without `counted`, recalled
    memories are not counted as recalled, and only the functions given here write anything.
    """
    stores = knowledge.stores

    def memory_renderer() -> MemoryRenderer:
        return MemoryRenderer(skills, Framer(skills, rng), settings.soul_timezone)

    async def profile(*, public: bool) -> str:
        known = await knowledge.profiles.get()
        return profile_block(known, skills, stores.estimator.estimate, public_only=public)

    async def daily(*, least: Provenance, began: datetime | None) -> Sequence[DayText]:
        return await knowledge.day_files.told(memory_renderer(), least=least, began=began)

    async def recall(turn: PromptTurn, *, shown: Collection[int]) -> Recalled:
        search = partial(knowledge.recall.recall, turn.query, memory_renderer(), shown=shown, counted=counted)
        return await search(public_only=turn.public, least=turn.least, person=turn.person)

    async def degraded() -> str:
        return DegradedServices(stores.health, skills, settings.soul_timezone).text()

    async def skills_listing() -> Sequence[SkillLine]:
        return [(entry.name, entry.description, entry.when) for entry in await knowledge.local_skills.listing()]

    return Sources(
        owner_files=stores.owner_files,
        profile=profile,
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
    changes: Changes | None = None,
) -> Prompter:
    """Return a prompter over `sources`; without `changes` it writes nothing."""
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
