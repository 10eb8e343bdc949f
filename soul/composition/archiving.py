"""The archivist of one SOUL, and what it sets in motion when a conversation is condensed or over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from common.clock import local
from common.errors import PolicyBlocked, Transient
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import PromptBlock
from modules.services.agent.memory.sqlite_rows import remember
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.session_keys import is_main
from modules.services.agent.sessions.archivist import Archivist
from modules.services.agent.sessions.distiller import TRANSCRIPT_TOKENS, Distiller
from modules.services.agent.sessions.notes import forget_notes
from modules.services.agent.sessions.types import Session
from soul.composition.services import Services

_SKILL = "memory-extraction"


def build_archivist(services: Services, prompter: Prompter) -> Archivist:
    """Build it."""
    settings, knowledge = services.settings, services.knowledge
    stores, zone = knowledge.stores, settings.soul_timezone

    async def to_distil(session: Session) -> Sequence[PromptBlock]:
        prompt = await prompter.prompt(
            skill=_SKILL,
            variables={"agent_name": settings.agent_name},
            audience="owner" if is_main(session.key) else "bluesky",
            session_key=session.key,
            now=services.clock.now(),
            bare=True,
        )
        return prompt.blocks

    async def write_day(moment: datetime) -> None:
        try:
            await knowledge.day_files.write(local(moment, zone).date())
        except (PolicyBlocked, Transient) as error:
            summary = f"The notes of {local(moment, zone):%Y-%m-%d} could not be written"
            await services.journal.record(Entry("error", "sessions", summary, line="warn", reason=str(error)))

    return Archivist(
        sessions=knowledge.sessions,
        database=services.database,
        storage=stores.storage,
        memories=stores.memories,
        distiller=Distiller(
            gateway=services.gateway,
            system=to_distil,
            skills=services.skills,
            redactor=services.redactor,
            rng=services.rng,
            estimate=stores.estimator.estimate,
            timezone=zone,
            transcript_tokens=min(TRANSCRIPT_TOKENS, settings.context_tokens // 2),
        ),
        journal=services.journal,
        clock=services.clock,
        agent_id=settings.agent_name,
        forget_media=stores.media.forget,
        on_kept=write_day,
        on_end=partial(forget_notes, stores.workspace),
        remember=remember if stores.in_database else None,
    )
