"""Builds the life of growth: reflection, reading, and proposals."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from modules.lives.craft.handle import ImprovementHandler, SkillMaker
from modules.lives.craft.issues import IssueMaker, ProgramMaker
from modules.lives.craft.perceive import CraftPerceiver
from modules.lives.growth.handle import GrowthReport, Materials, ReflectionHandler
from modules.lives.growth.perceive import ReflectionPerceiver, add_reflection
from modules.lives.growth.reading import ReadingHandler, ReadingPerceiver
from modules.runtime.sandbox.runner import Sandbox
from modules.services.craft.bounds import PROGRAM
from modules.services.craft.proposals import Maker, Proposal, ProposalGates, Proposals
from modules.services.craft.record import FrictionRecord
from modules.services.github_threads import THREAD
from modules.services.identity.entries import OWN_SKILL
from modules.services.identity.history import held_documents
from modules.services.own_feed.expressions import Expressions
from modules.services.owner import TellOwner
from modules.services.work.types import Handler, Perceiver
from soul.composition.services import Services
from soul.composition.wiring.turns import TurnServices


@dataclass(frozen=True, slots=True)
class GrowthLife:
    """The handlers and perceivers of growth for the loop of work, and the report for the owner."""

    handlers: tuple[Handler, ...]
    reflection: ReflectionPerceiver
    questions: ReadingPerceiver
    craft: CraftPerceiver
    report: GrowthReport

    @property
    def perceivers(self) -> tuple[Perceiver, ...]:
        """The perceivers that find work that is due."""
        return self.craft, self.reflection, self.questions


def build_growth_life(
    services: Services, turn_services: TurnServices, expressions: Expressions, tell: TellOwner
) -> GrowthLife:
    """Build the life; `expressions` are the SOUL's own posts, `tell` sends findings and proposals to the owner."""
    clock, timezone = services.clock, services.settings.soul_timezone
    improvement, craft = _build_craft(services, turn_services, tell)
    materials = Materials(
        home=services.home,
        skills=services.skills,
        experiences=services.experiences,
        relationships=services.relationships,
        expressions=expressions,
        outbox=services.outbox,
        journal=services.journal,
        friction=craft.friction,
        proposals=craft.proposals,
        local_skills=services.knowledge.local_skills,
        clock=clock,
        rng=services.rng,
        timezone=timezone,
    )
    handler = ReflectionHandler(
        home=services.home,
        materials=materials,
        experiences=services.experiences,
        prompter=turn_services.prompter,
        turn_runner=turn_services.turn_runner,
        identity=services.identity,
        journal=services.journal,
        publish=services.events.publish,
        clock=clock,
        timezone=timezone,
    )
    perceiver = ReflectionPerceiver(
        table=services.work,
        events=lambda: services.relationships.reflection.events,
        began=services.journal.began,
        clock=clock,
        timezone=timezone,
    )
    per_day = services.settings.reading_per_day
    reading = ReadingHandler(
        per_day=per_day,
        prompter=turn_services.prompter,
        turn_runner=turn_services.turn_runner,
        memories=services.knowledge.stores.memories,
        preferences=services.preferences,
        skills=services.skills,
        journal=services.journal,
        clock=clock,
        tell=tell,
        name=services.settings.agent_name,
        timezone=timezone,
    )
    questions = ReadingPerceiver(services.work, services.identity, services.journal.began, clock, per_day)
    report = GrowthReport(
        services.home, services.journal, services.database, services.experiences, craft.friction, clock
    )
    handlers = (handler, reading, improvement) if per_day else (handler, improvement)
    return GrowthLife(handlers, perceiver, questions, craft, report)


def _build_craft(
    services: Services, turn_services: TurnServices, tell: TellOwner
) -> tuple[ImprovementHandler, CraftPerceiver]:
    """Build the handler that makes proposals, and the perceiver that looks for something to propose."""
    clock, settings = services.clock, services.settings
    friction = FrictionRecord(services.database, clock, services.home.memory)
    proposals = Proposals(services.database, clock)
    improvement = ImprovementHandler(
        friction=friction,
        proposals=proposals,
        makers=_makers(services, friction, tell),
        prompter=turn_services.prompter,
        turn_runner=turn_services.turn_runner,
        skills=services.skills,
        clock=clock,
        tell=tell,
        name=settings.agent_name,
        home=services.home,
        local_skills=services.knowledge.local_skills,
    )
    perceiver = CraftPerceiver(
        friction=friction,
        proposals=proposals,
        table=services.work,
        identity=services.identity,
        gates=ProposalGates(
            timedelta(milliseconds=settings.improvement_burn_in_ms), timedelta(hours=settings.improvement_min_hours)
        ),
        stands=partial(_stands, services),
        began=services.journal.began,
        attention=services.attention,
        clock=clock,
    )
    return improvement, perceiver


def _makers(services: Services, friction: FrictionRecord, tell: TellOwner) -> tuple[Maker, ...]:
    """Build a maker for each rung of a proposal; in a social-only life, for skills alone."""
    settings = services.settings

    async def reflect() -> None:
        why = "it writes a skill that it decided to propose"
        await add_reflection(services.work, services.clock, services.settings.soul_timezone, why)

    skill = SkillMaker(home=services.home, may_write=settings.soul_workspace == "home", reflect=reflect)
    if services.social_only:
        return (skill,)
    issue = IssueMaker(
        repository=settings.soul_maker_repository,
        friction=friction,
        identity=services.repository_identity,
        outbox=services.outbox,
        skills=services.skills,
        clock=services.clock,
    )
    minutes = settings.coding_minutes + settings.soul_program_minutes
    most = f"at most {settings.coding_tokens:,} tokens and {minutes:g} minutes"
    asks = f"your approval opens the issue and begins the work on its own program: {most}"
    issues = replace(issue, repository=settings.soul_program_repository, rung="program", asks=asks)
    may_code = settings.soul_coding and Sandbox(redactor=services.redactor, unsafe=settings.soul_unsafe_exec).is_there
    table, trust = services.work, services.trust
    return skill, issue, ProgramMaker(issues=issues, table=table, trust=trust, tell=tell, may_code=may_code)


async def _stands(services: Services, proposal: Proposal) -> str:
    """Return in one string the states of a proposal, its held change, its acts, its work, and its pull request."""
    held = await asyncio.to_thread(held_documents, services.home)
    acts = await services.outbox.by_cause(proposal.cause)
    states: list[str] = [*(one.state for one in acts), *(one.state for one in await services.work.newest(PROGRAM, 1))]
    if number := proposal.made.partition("/pull/")[2]:
        pull = f"{services.settings.soul_program_repository}#{number}/".lower()
        states += [one.version for one in await services.work.newest(THREAD, 9, key_prefix=pull)]
    return " ".join(map(str, (proposal.id, proposal.state, OWN_SKILL + proposal.made in held, *states)))
