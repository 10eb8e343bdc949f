"""Keeps what is done for a task in, unless the task is ours: asked each time before such an act leaves.

What was proposed under a claim that is over, because the program was killed or paused for long, never leaves.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import datetime

from common.clock import iso
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.types import Intent, Wait

_KINDS: frozenset[IntentKind] = frozenset({"ref", "contents", "push", "pull_request"})
_NAME = re.compile(r"([^@\s]{1,240})@([0-9]{1,9}):.*")
_ASK_AGAIN_S = 60.0
_HELD = "SELECT 1 FROM task_leases WHERE key = ? AND epoch = ? AND stage = 'held' AND until > ?"


def task_act(key: str, epoch: int, what: str) -> str:
    """Return the name of an act for a task under one claim; `key` as in `claim_key`."""
    return f"{key}@{epoch}:{what}"


def lease_gate(connection: sqlite3.Connection, intent: Intent, now: datetime, /) -> Wait | None:
    """Return why a branch, a file or a pull request for a task may not leave: its claim is over; else None.

    What has set out may have arrived, and is looked for.
    """
    named = _NAME.fullmatch(intent.target) if intent.kind in _KINDS and intent.first_sent_at is None else None
    if named is None or connection.execute(_HELD, (named[1], int(named[2]), iso(now))).fetchone():
        return None
    return Wait("the task that it is for is not ours any more", _ASK_AGAIN_S)
