"""Builds the life of tasks: claims, tasks of plans, their reviews, and their merges."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from common.clock import parse_iso
from common.constants import SECOND_MS
from common.result import GONE, Err
from common.text.untrusted import one_line
from modules.lives.tasks.code import CodeWork
from modules.lives.tasks.execute import Execution
from modules.lives.tasks.handle import ClaimDoor, HeldTasks, TaskHandler, TaskLife
from modules.lives.tasks.merge.handle import MERGES, ConflictHandler, MergeHandler
from modules.lives.tasks.merge.perceive import OwnPulls
from modules.lives.tasks.merge.rehearse import MergeRehearsal
from modules.lives.tasks.merge.wishes import WishHandler
from modules.lives.tasks.offering import Offering
from modules.lives.tasks.program import ProgramHandler, ProgramWork
from modules.lives.tasks.review.handle import Checkout, ReviewHandler
from modules.lives.tasks.review.judge import Judge
from modules.lives.tasks.review.perceive import ReviewPerceiver
from modules.lives.tasks.review.revise import RevisionHandler
from modules.lives.tasks.scenarios import ScenarioHandler
from modules.lives.tasks.types import TaskWorker
from modules.runtime.sandbox.policy import MIB
from modules.runtime.sandbox.runner import Sandbox, toolchains
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.prompt.prompter import Prompter
from modules.services.claims.claim_requests import PlanReader
from modules.services.claims.claimer import Claimer, Claims, TaskComments, plain
from modules.services.claims.lease_store import TASKS, TaskLeases, TaskOrders
from modules.services.coding.agent import CodingAgent
from modules.services.coding.environment.installer import CACHE, Installer
from modules.services.coding.environment.types import Indexes
from modules.services.coding.policy import CodingLimits
from modules.services.coding.trajectory import Trajectories
from modules.services.craft.proposals import Proposals
from modules.services.craft.record import FrictionRecord
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.owner import TellOwner
from modules.services.plans.types import Task
from modules.services.presence.home_lease_policy import HOME_LEASE, read_lease
from modules.services.work.loop import WorkLoop
from modules.services.work.types import Handler
from modules.services.workspaces.acting import FOUND_WORK, ActingTurns, GoneAccounts
from modules.services.workspaces.health import WorkspaceGaps
from soul.composition.services import Services
from soul.composition.wiring.turns import build_work_loop

Rounds = TypeVar("Rounds", bound=RevisionHandler)
REVIEWS = "reviews"
_BY_CHARS = 200
_REVIEW_INTERVAL_MS = 120 * SECOND_MS
_TRIED_AGAIN_AFTER = timedelta(hours=1)
_POSTS_READ = 10
_REVIEW_SHARE = 2
"""A review may use the tokens of a coding task divided by this: one half."""


def build_claims(services: Services) -> Claims:
    """Build the claims of this SOUL."""
    github, clock, phrase = services.github, services.clock, services.phrases.phrase
    leases, memory = TaskLeases(services.database, services.home.memory, clock), services.home.memory
    gone = GoneAccounts(github, partial(_seen_since, services), clock)
    reader = PlanReader(github, leases, services.trust, clock, gone)

    def words(task: Task) -> str:
        claimed = phrase("github.task_claim", number=task.number, title=plain(task.title))
        return services.redactor.text(claimed)

    return Claims(
        claimer=Claimer(github, leases, reader, words, clock, released=partial(phrase, "github.task_released")),
        reader=reader,
        comments=TaskComments(services.outbox, phrase, services.redactor),
        acting=ActingTurns(
            lambda: github.login, services.peer_registry.usernames_seen_since, clock, memory / FOUND_WORK
        ),
        words=words,
    )


async def _seen_since(services: Services, login: str, moment: datetime) -> bool:
    """Return whether a SOUL posted on Bluesky or held the lease of its home since `moment`; False if unknown there.

    A SOUL whose posts or lease cannot be read counts as seen.
    """
    peer = services.peer_registry.get(login)
    if peer is None or not peer.bluesky_did:
        return False
    held = await services.atproto.get_record(f"at://{peer.bluesky_did}/{HOME_LEASE}/self")
    feed = (await services.atproto.get_author_feed(peer.bluesky_did, _POSTS_READ)).or_else(None)
    if feed is None or (isinstance(held, Err) and held.kind not in GONE):
        return True
    lease = held.or_else(None)
    until = read_lease(lease.value).until if lease else None
    return (until is not None and until >= moment) or any(
        parse_iso(one.post.created_at) >= moment for one in feed.items
    )


def build_tasks(
    services: Services, claims: Claims, prompter: Prompter, tell: TellOwner
) -> tuple[TaskLife, tuple[WorkLoop, ...]]:
    """Build the life of tasks, and the loops in which tasks are done, reviewed and merged."""
    installer = build_installer(services)
    code = build_code_work(services, installer)
    revisions = _build_rounds(RevisionHandler, services, claims.reader, code)
    conflicts = _build_rounds(ConflictHandler, services, claims.reader, code)
    scenarios = build_scenarios(services, claims, code)
    program = _build_program(services, installer, tell)
    life = build_task_life(services, claims, code, (revisions, conflicts, scenarios, program))
    reviews, merges = build_review_loop(services, claims.reader, prompter, installer), build_merge_loop(services, code)
    return life, (life.loop, reviews, merges)


def _build_program(services: Services, installer: Installer, tell: TellOwner) -> ProgramHandler:
    """Build the handler that changes the SOUL's own program, whose pull requests no SOUL is asked to review."""
    work = build_code_work(services, installer, ProgramWork)
    settings, limits, clock = services.settings, work.agent.limits, services.clock
    gate_s, memory = settings.soul_program_minutes * 60, settings.soul_program_memory_mb * MIB
    limits = replace(limits, seconds=limits.seconds + gate_s, suite_seconds=gate_s, suite_bytes=memory)
    work = replace(work, offering=replace(work.offering, peers=tuple), agent=replace(work.agent, limits=limits))
    return ProgramHandler(
        work=work,
        identity=services.repository_identity,
        skills=services.skills,
        table=services.work,
        friction=FrictionRecord(services.database, clock, services.home.memory),
        proposals=Proposals(services.database, clock),
        tell=tell,
        name=settings.agent_name,
        clock=clock,
    )


def build_task_life(
    services: Services,
    claims: Claims,
    worker: TaskWorker,
    handlers: Sequence[Handler] = (),
) -> TaskLife:
    """Build the life in which `worker` does claimed tasks, and `handlers` do other long work."""
    clock, journal = services.clock, services.journal
    orders = _build_orders(services)
    phrase = services.phrases.phrase
    handler = TaskHandler(
        claims=claims,
        trust=services.trust,
        workspaces=services.workspaces,
        worker=worker,
        execution=Execution(claims.claimer, claims.reader, claims.comments, phrase, journal, clock, orders),
        orders=orders,
        door=ClaimDoor(services.outbox, services.etiquette, journal, claims.words, clock),
        journal=journal,
        clock=clock,
        publish=services.events.publish,
        why_no_budget=lambda: services.budget.why_not("commitment"),
    )
    loop = build_work_loop(
        services,
        (handler, *handlers),
        (HeldTasks(claims.claimer, services.work),),
        name=TASKS,
        social_only=False,
        # NOTE(self): not the SOUL's attention, which a task would occupy for hours.
        attention=Attention(),
    )
    return TaskLife(loop, orders, worker)


def build_installer(services: Services) -> Installer:
    """Build the installer of the packages that repositories depend on; one per home, which has one cache."""
    settings = services.settings
    return Installer(Indexes.of(settings), services.home.root / CACHE, services.clock, settings.coding_builds)


def build_code_work(services: Services, installer: Installer, kind: type[CodeWork] = CodeWork) -> CodeWork:
    """Build the worker for the tasks of plans, of class `kind`."""
    settings, home = services.settings, services.home
    private = (home.memory, home.env, home.session)
    sandbox = Sandbox(redactor=services.redactor, private=private, tools=toolchains(), unsafe=settings.soul_unsafe_exec)
    limits = CodingLimits(
        steps=settings.coding_steps,
        tokens=settings.coding_tokens,
        usd=settings.coding_usd,
        seconds=settings.coding_minutes * 60,
        network=settings.coding_network,
        suite_seconds=settings.coding_suite_minutes * 60,
    )
    agent = CodingAgent(
        gateway=services.gateway,
        skills=services.skills,
        sandbox=sandbox,
        store=Trajectories(services.database),
        budget=services.budget,
        attention=services.attention,
        clock=services.clock,
        limits=limits,
        profile=services.knowledge.profile,
    )
    return kind(
        offering=_build_offering(services),
        agent=agent,
        git=services.git,
        skills=services.skills,
        rng=services.rng,
        redactor=services.redactor,
        root=home.root,
        name=settings.agent_name,
        installer=installer,
        may_run=settings.soul_coding and sandbox.is_there,
    )


def build_scenarios(services: Services, claims: Claims, code: CodeWork) -> ScenarioHandler:
    """Build the handler that tests the scenarios of a workspace after a plan, with the agent of `code`."""
    gaps = WorkspaceGaps(services.github, GitHubWriter(services.outbox, _TRIED_AGAIN_AFTER), services.trust)
    return ScenarioHandler(code, claims.reader, claims.claimer.requests, gaps, services.clock)


def _build_offering(services: Services) -> Offering:
    """Build the part that turns finished work into pull requests."""
    registry = services.peer_registry
    return Offering(
        github=services.github,
        trust=services.trust,
        outbox=services.outbox,
        clock=services.clock,
        phrase=services.phrases.phrase,
        peers=lambda: [one.github_username for one in registry.get_linked_peers()],
        file_lines=services.foreign.file_lines,
    )


def _build_rounds(kind: type[Rounds], services: Services, plans: PlanReader, code: CodeWork) -> Rounds:
    return kind(
        github=services.github,
        trust=services.trust,
        plans=plans,
        code=code,
        checkout=Checkout(services.git, services.home.root),
        table=services.work,
        orders=_build_orders(services),
        outbox=services.outbox,
        journal=services.journal,
        skills=services.skills,
        clock=services.clock,
        rng=services.rng,
    )


def _build_orders(services: Services) -> TaskOrders:
    """Build the owner's orders about tasks, which are stored in the rows of the tasks."""
    return TaskOrders(services.work, services.events.publish)


def build_review_loop(services: Services, plans: PlanReader, prompter: Prompter, installer: Installer) -> WorkLoop:
    """Build the loop that reviews pull requests of the workspaces."""
    settings, home, registry = services.settings, services.home, services.peer_registry
    sandbox = Sandbox(
        redactor=services.redactor,
        private=(home.memory, home.env, home.session),
        tools=toolchains(),
        unsafe=settings.soul_unsafe_exec and settings.soul_coding,
        bwrap=shutil.which("bwrap") if settings.soul_coding else None,
    )
    judge = Judge(
        gateway=services.gateway,
        prompter=prompter,
        skills=services.skills,
        attention=services.attention,
        clock=services.clock,
        rng=services.rng,
        github=services.github,
        tokens=settings.coding_tokens // _REVIEW_SHARE,
        redactor=services.redactor,
    )
    handler = ReviewHandler(
        github=services.github,
        trust=services.trust,
        plans=plans,
        checkout=Checkout(services.git, home.root),
        sandbox=sandbox,
        judge=judge,
        outbox=services.outbox,
        phrase=services.phrases.phrase,
        network=settings.coding_network,
        installer=installer,
        suite_seconds=settings.coding_suite_minutes * 60,
        clock=services.clock,
    )
    perceiver = ReviewPerceiver(
        services.github,
        services.workspaces,
        services.trust,
        services.work,
        lambda: [one.github_username for one in registry.get_linked_peers()],
        services.outbox.by_cause,
    )
    return build_work_loop(
        services,
        (handler,),
        (perceiver,),
        name=REVIEWS,
        every_ms=_REVIEW_INTERVAL_MS,
        social_only=False,
        # NOTE(self): not the SOUL's attention, which the tests would occupy for minutes.
        attention=Attention(),
    )


def build_wishes(services: Services) -> WishHandler:
    """Build the handler that opens follow-up issues for what reviewers of our merged pull requests asked for."""
    writer, gateway = GitHubWriter(services.outbox, _TRIED_AGAIN_AFTER), services.gateway
    return WishHandler(
        services.github, services.trust, writer, gateway, services.skills, services.rng, services.attention
    )


def build_merge_loop(services: Services, code: CodeWork) -> WorkLoop:
    """Build the loop that looks after our own pull requests, and tests their merges as `code` tests its work."""
    registry, settings = services.peer_registry, services.settings
    checkout = Checkout(services.git, services.home.root)
    rehearsal = MergeRehearsal(services.github, checkout, services.work, code)
    handler = MergeHandler(
        github=services.github,
        trust=services.trust,
        table=services.work,
        orders=_build_orders(services),
        outbox=services.outbox,
        journal=services.journal,
        clock=services.clock,
        publish=services.events.publish,
        peers=lambda: [one.github_username for one in registry.get_linked_peers()],
        seen=registry.usernames_seen_since,
        phrase=services.phrases.phrase,
        by=lambda: one_line(f"{settings.agent_name}:{services.gateway.model}", _BY_CHARS),
        may_merge_alone=settings.soul_merge_alone,
        failing=rehearsal.failing,
    )
    return build_work_loop(
        services,
        (handler, build_wishes(services)),
        (OwnPulls(services.github, services.workspaces, services.trust, services.work),),
        name=MERGES,
        social_only=False,
        # NOTE(self): not the SOUL's attention, as no model is asked, and tests take minutes.
        attention=Attention(),
    )
