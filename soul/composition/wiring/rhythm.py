"""Builds what happens at set times: schedules and HEARTBEAT.md, the chores before its report, rituals, and alarms."""

from datetime import timedelta
from functools import partial

from adapters.web.client import WebClient, http_transport_factory
from modules.lives.growth.perceive import unreported_ends
from modules.lives.messages.alarms import AlarmHandler, AlarmKept, OwnerNotices, Webhook
from modules.lives.messages.state import MessageState
from modules.lives.rhythm import HeartbeatHandler, OwnTurns, ScheduleHandler
from modules.lives.rituals.handle import MemoHandler, OpeningHandler, OwnerComments
from modules.lives.rituals.perceive import RitualLife, RitualPerceiver
from modules.lives.rituals.writing import RitualWriter
from modules.runtime.status import Chore
from modules.services.agent.attention_list import AttentionList
from modules.services.agent.prompt.prompter import Prompter
from modules.services.commitments.queue import CommitmentQueue
from modules.services.owner import TellOwner
from modules.services.work.loop import WorkLoop
from soul.composition.services import Services
from soul.composition.wiring.bluesky import BlueskyLife
from soul.composition.wiring.presence import build_owner_follow
from soul.composition.wiring.turns import TurnServices, build_work_loop


def build_rhythm(
    services: Services, turn_services: TurnServices, tell: TellOwner
) -> tuple[ScheduleHandler, HeartbeatHandler]:
    """Build the handlers of schedules and of HEARTBEAT.md; `tell` tells the owner what came of them."""
    settings, clock = services.settings, services.clock
    runner, skills = turn_services.turn_runner, services.skills
    turns = OwnTurns(turn_services.prompter, runner, skills, services.outbox, clock, tell, services.me)
    owner_files = services.knowledge.stores.owner_files
    scheduled = ScheduleHandler(schedules=services.schedules, turns=turns, owner_files=owner_files)
    heartbeat = HeartbeatHandler(
        every=timedelta(hours=settings.heartbeat_hours),
        work=services.work,
        owner_files=owner_files,
        turns=turns,
        clock=clock,
        timezone=settings.soul_timezone,
    )
    return scheduled, heartbeat


def build_ritual_life(services: Services, prompter: Prompter) -> RitualLife:
    """Build the life of rituals."""
    owner_comments = OwnerComments(
        services.outbox, services.github, services.trust, services.experiences, services.me.timezone
    )
    writer = RitualWriter(
        me=services.me,
        identity=services.identity,
        soul=services.soul,
        gateway=services.gateway,
        prompter=prompter,
        skills=services.skills,
        clock=services.clock,
        rng=services.rng,
    )
    opening = OpeningHandler(
        rituals=services.rituals,
        writer=writer,
        outbox=services.outbox,
        atproto=services.atproto,
        owner_comments=owner_comments,
        keep_hours=services.clock.keeps_hours,
    )
    memo = MemoHandler(
        rituals=services.rituals,
        writer=writer,
        outbox=services.outbox,
        atproto=services.atproto,
        github=services.github,
        trust=services.trust,
        workspaces=services.workspaces,
        preferences=services.preferences,
        owner_comments=owner_comments,
        experiences=services.experiences,
        table=services.work,
        agent_name=services.me.agent_name,
    )
    perceiver = RitualPerceiver(
        rituals=services.rituals,
        work=services.work,
        outbox=services.outbox,
        experiences=services.experiences,
        clock=services.clock,
        me=services.me,
        writes_memos=services.github.configured and not services.social_only,
    )
    return RitualLife(services.rituals, services.work, (opening, memo), perceiver)


def build_chores(
    services: Services,
    turn_services: TurnServices,
    bluesky: BlueskyLife,
    attention_list: AttentionList,
) -> tuple[Chore, ...]:
    """Return the chores in the order in which they run."""
    return (
        Chore("list of conversations", bluesky.tidying.run),
        Chore("list of what the account does not want to read", services.moderation.refresh),
        Chore("follow of the owner", build_owner_follow(services).ensure_once),
        Chore("journal", services.journal.prune),
        Chore("count of the budget", services.budget.tidy),
        Chore("daily copy of the database", services.daily_copy.write),
        Chore("files of memory", services.knowledge.refresh),
        Chore("notes of the talk", turn_services.context_file.renew),
        Chore("list of what asks for attention", attention_list.refresh),
        Chore("page to wake up with", turn_services.wakeup_context.write),
    )


def build_alarms(services: Services, queue: CommitmentQueue) -> tuple[AlarmHandler, WorkLoop]:
    """Build the handler that detects and sends alarms, and its loop."""
    settings, clock = services.settings, services.clock
    way_out = http_transport_factory(settings.alarm_url, private_ok=settings.soul_allow_private_net)
    web = WebClient(way_out())
    services.stack.push_async_callback(web.aclose)
    webhook = Webhook(settings.alarm_url, web, services.redactor)
    state = MessageState(services.database, clock, services.redactor, services.me)
    handler = AlarmHandler(
        name=settings.agent_name,
        work=services.work,
        journal=services.journal,
        outbox=services.outbox,
        situation=services.situation,
        notices=OwnerNotices(state, services.outbox),
        sends=settings.soul_direct_messages,
        commitments=queue.all,
        reflections=partial(unreported_ends, services.work),
        webhook=webhook,
        publish=services.events.publish,
        clock=clock,
        timezone=settings.soul_timezone,
        quiet_hours=settings.alarm_quiet_hours,
    )
    loop = build_work_loop(services, (handler,), (handler,), name="alarms", at_start=True)
    services.events.subscribe(AlarmKept, lambda _: loop.wake())
    return handler, loop
