"""The watch over whether the SOUL may act: reads the owner's record wherever it lies, and keeps the profile honest."""

from __future__ import annotations

from modules.lives.bluesky.disclosure import Disclosure
from modules.runtime.control_watch import ControlLoop
from soul.rails import Rails


def control_watch(rails: Rails) -> ControlLoop:
    """The loop; once the SOUL may act, it sees to it first that the profile says what it is."""
    disclosure = Disclosure(
        atproto=rails.atproto,
        database=rails.database,
        journal=rails.journal,
        clock=rails.clock,
        label=rails.settings.soul_bot_label,
        contact=rails.settings.operator_contact,
    )
    return ControlLoop(
        control=rails.control,
        repos=rails.repos,
        journal=rails.journal,
        clock=rails.clock,
        owner_did=rails.me.owner_did,
        own_did=lambda: rails.atproto.did,
        when_free=disclosure.ensure_once,
        speed=rails.settings.soul_speed,
    )
