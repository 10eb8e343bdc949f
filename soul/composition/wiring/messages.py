"""Builds the life of direct messages."""

from common.intervals import MESSAGES_INTERVAL_MS
from modules.lives.messages.alarms import OrderHandler, Orders, OwnerNotices
from modules.lives.messages.handle_others import LOOP as OTHERS
from modules.lives.messages.handle_others import OthersHandler, OthersResponder
from modules.lives.messages.perceive import LOOP, MessagePerceiver
from modules.lives.messages.respond import OwnerMessageHandler, OwnerTeller
from modules.lives.messages.state import MessageState
from modules.lives.messages.types import OwnerHandler
from modules.runtime.scheduler.policy import Loop
from modules.runtime.scheduler.scheduler import Attention
from modules.services.rights.answering import PersonRequests
from modules.services.rights.requests import ForgetRequests, ForgottenPeople
from modules.services.work.limits import PersonTurns
from modules.services.work.loop import WorkLoop
from modules.services.work.types import OWNER_MESSAGE, OWNER_TALK
from soul.composition.services import Services
from soul.composition.wiring.turns import TurnServices, build_work_loop


def message_loops(
    services: Services, turn_services: TurnServices, requests: PersonRequests, handler: OwnerHandler
) -> list[Loop]:
    """Build the loops of this life; none if the owner switched it off."""
    if not services.settings.soul_direct_messages:
        return []
    state = MessageState(services.database, services.clock, services.redactor, services.me)
    at_once, in_a_turn = (
        OwnerMessageHandler(
            kind=kind,
            state=state,
            work=services.work,
            outbox=services.outbox,
            orders=Orders(services.work, services.outbox),
            handler=handler,
            journal=services.journal,
            clock=services.clock,
            standing=services.control.standing,
            timezone=services.settings.soul_timezone,
        )
        for kind in (OWNER_MESSAGE, OWNER_TALK)
    )
    teller = OwnerTeller(
        state=state,
        notices=OwnerNotices(state, services.outbox),
        outbox=services.outbox,
        journal=services.journal,
        clock=services.clock,
        timezone=services.settings.soul_timezone,
        quiet_hours=services.settings.alarm_quiet_hours,
    )
    perceiver = MessagePerceiver(
        atproto=services.atproto,
        state=state,
        etiquette=services.etiquette,
        forgotten=ForgottenPeople(services.database, ForgetRequests(services.home.memory), services.clock),
        clock=services.clock,
        messages_from=services.settings.soul_messages_from,
        journal=services.journal,
    )
    # NOTE(self): a command needs no attention, and a turn with the owner takes the SOUL's by itself.
    every_ms, own = MESSAGES_INTERVAL_MS, Attention
    return [
        build_work_loop(
            services, (at_once,), (perceiver, teller), name=LOOP, every_ms=every_ms, at_start=True, attention=own()
        ),
        build_work_loop(services, (in_a_turn,), name="message-talk", every_ms=every_ms, attention=own()),
        _others_loop(services, turn_services, requests, state),
    ]


def _others_loop(
    services: Services, turn_services: TurnServices, requests: PersonRequests, state: MessageState
) -> WorkLoop:
    clock = services.clock
    responder = OthersResponder(
        me=services.me,
        prompter=turn_services.prompter,
        skills=services.skills,
        turn_runner=turn_services.turn_runner,
        relationships=services.relationships,
        clock=clock,
        rng=services.rng,
    )
    handler = OthersHandler(
        state=state,
        work=services.work,
        responder=responder,
        outbox=services.outbox,
        requests=requests,
        etiquette=services.etiquette,
        preferences=services.preferences,
        relationships=services.relationships,
        draft_experiences=services.draft_experiences,
        turns=PersonTurns(clock, journal=services.journal, loop=OTHERS, about="direct messages"),
        clock=clock,
    )
    orders = OrderHandler(
        notices=OwnerNotices(state, services.outbox),
        outbox=services.outbox,
        clock=clock,
        timezone=services.settings.soul_timezone,
        quiet_hours=services.settings.alarm_quiet_hours,
    )
    return build_work_loop(services, (handler, orders), (handler,), name=OTHERS, every_ms=MESSAGES_INTERVAL_MS)
