"""Builds the alarms for the owner."""

from __future__ import annotations

from functools import partial

from adapters.web.client import WebClient, http_transport_factory
from modules.lives.growth.perceive import unreported_ends
from modules.lives.messages.alarms import AlarmHandler, AlarmKept, Webhook
from modules.lives.messages.orders import OwnerNotices
from modules.lives.messages.state import MessageState
from modules.services.commitments.queue import CommitmentQueue
from modules.services.work.loop import WorkLoop
from soul.composition.services import Services
from soul.composition.wiring.work import build_work_loop


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
