"""The watch over whether the SOUL may act: reads the owner's record wherever it lies, and keeps the profile honest."""

from __future__ import annotations

from modules.lives.bluesky.disclosure import Disclosure
from modules.runtime.control_watch import ControlLoop
from soul.composition.services import Services


def control_watch(services: Services) -> ControlLoop:
    """The loop; once the SOUL may act, it sees to it first that the profile says what it is."""
    disclosure = Disclosure(
        atproto=services.atproto,
        database=services.database,
        journal=services.journal,
        clock=services.clock,
        label=services.settings.soul_bot_label,
        contact=services.settings.operator_contact,
    )
    return ControlLoop(
        control=services.control,
        repos=services.repos,
        journal=services.journal,
        clock=services.clock,
        owner_did=services.me.owner_did,
        own_did=lambda: services.atproto.did,
        when_free=disclosure.ensure_once,
        speed=services.settings.soul_speed,
    )
