"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

from typing import Protocol

from adapters.atproto.client import Atproto
from common.clock import Clock
from common.pace import Pace
from common.redact import Redactor
from common.settings import Settings
from modules.lives.messages.loop import MessageLoop, MessageTalkLoop
from modules.lives.messages.perceive import MessagePerceiver
from modules.lives.messages.respond import MessageResponder
from modules.lives.messages.state import MessageState
from modules.lives.messages.types import OwnerHandler
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.types import Loop
from modules.services.agent.identity.identity import Me
from modules.services.outbox.outbox import Outbox


class MessageServices(Protocol):
    """What the life is built from."""

    settings: Settings
    me: Me
    database: Database
    clock: Clock
    pace: Pace
    journal: Journal
    redactor: Redactor
    atproto: Atproto
    outbox: Outbox


def message_loops(services: MessageServices, handler: OwnerHandler) -> list[Loop]:
    """Return the loops of this life; none where the owner turned it off."""
    if not services.settings.soul_direct_messages:
        return []
    owner_did = services.me.owner_did
    state = MessageState(services.database, services.clock, services.redactor)
    responder = MessageResponder(
        state=state,
        outbox=services.outbox,
        handler=handler,
        journal=services.journal,
        clock=services.clock,
        owner_did=owner_did,
        speed=services.settings.soul_speed,
    )
    perceiver = MessagePerceiver(atproto=services.atproto, state=state, clock=services.clock, owner_did=owner_did)
    return [
        MessageLoop(services.pace, perceiver, responder, services.journal),
        MessageTalkLoop(services.pace, responder),
    ]
