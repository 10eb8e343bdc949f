"""Puts the alarms for the owner together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from adapters.web.client import WebClient
from adapters.web.transport import http_transport_factory
from modules.lives.growth.perceive import unreported_ends
from modules.lives.messages.alarms import AlarmHandler, AlarmPerceiver, Webhook
from modules.lives.messages.state import MessageState
from modules.services.commitments.queue import CommitmentQueue
from modules.services.work.loop import WorkLoop
from soul.composition.services import Services
from soul.composition.wiring.work import build_work_loop


@dataclass(frozen=True, slots=True)
class Alarms:
    """What sees alarms, and the loop that tells of them."""

    perceiver: AlarmPerceiver
    loop: WorkLoop


def build_alarms(services: Services, queue: CommitmentQueue) -> Alarms:
    """Return the alarms of one SOUL."""
    settings, clock = services.settings, services.clock
    way_out = http_transport_factory(settings.alarm_url, private_ok=settings.soul_allow_private_net)
    web = WebClient(way_out())
    services.stack.push_async_callback(web.aclose)
    webhook = Webhook(settings.alarm_url, web, services.redactor)
    state = MessageState(services.database, clock, services.redactor, services.me)
    perceiver = AlarmPerceiver(
        name=settings.agent_name,
        work=services.work,
        journal=services.journal,
        situation=services.situation,
        commitments=queue.all,
        reflections=partial(unreported_ends, services.work),
        webhook=webhook,
        clock=clock,
        timezone=settings.soul_timezone,
        quiet_hours=settings.alarm_quiet_hours,
    )
    handler = AlarmHandler(state=state, outbox=services.outbox, webhook=webhook, sends=settings.soul_direct_messages)
    loop = build_work_loop(services, (handler,), (perceiver,), name="alarms", at_start=True)
    return Alarms(perceiver, loop)
