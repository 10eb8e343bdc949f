"""What keeps the SOUL from everybody whom the owner muted: a rule at admission, a gate at departure. Keeps nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from adapters.atproto.records import parse_at_uri
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.types import Intent, ProposedAction, Verdict, Wait
from modules.services.rights import store

_RULE = "mute"
_REASON = "the owner muted this account"
_ASK_AGAIN_S = 60.0


def mute_rule(connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:  # noqa: ARG001 - the shape of a rule
    """Refuse a reply, a like, a repost or a follow to a muted account; what the owner asked for passes."""
    if who := _muted_addressee(connection, action):
        return [Verdict(_RULE, "block", _REASON, who, instead="silence")]
    return [Verdict(_RULE)]


def mute_gate(connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:  # noqa: ARG001 - the shape of a gate
    """Keep in what was accepted before its addressee was muted. It leaves when the mute ends, unless it expired."""
    return Wait(_REASON, _ASK_AGAIN_S) if _muted_addressee(connection, intent) else None


def _muted_addressee(connection: sqlite3.Connection, act: ProposedAction | Intent) -> str:
    """Return the DID of the muted account that an act reaches; "" where it reaches none, or may reach it."""
    at = parse_at_uri(act.target)
    did = act.body.to if isinstance(act.body, DirectMessageBody) else at.repo if at else act.target
    return did if act.kind != "delete" and not act.by_owner and store.muted_among(connection, [did]) else ""
