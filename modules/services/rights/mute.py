"""The rule at admission that keeps the SOUL from everybody whom the owner muted. Keeps nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from adapters.atproto.records import parse_at_uri
from modules.services.outbox.types import ProposedAction, Verdict
from modules.services.rights import store

_RULE = "mute"
_REASON = "the owner muted this account"


def mute_rule(connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:  # noqa: ARG001 - the shape of a rule
    """Refuse a reply, a like, a repost or a follow to a muted account; what the owner asked for passes."""
    at = parse_at_uri(action.target)
    did = at.repo if at else action.target
    if action.kind != "delete" and not action.by_owner and did in store.muted(connection):
        return [Verdict(_RULE, "block", _REASON, did, instead="silence")]
    return [Verdict(_RULE)]
