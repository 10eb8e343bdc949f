"""Keeps what is done for a task in, unless the task is ours: asked each time before such an act leaves.

What was proposed under a claim that is over, because the program was killed or paused for long, never leaves.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime

from common.clock import iso
from modules.services.outbox.github_bodies import OfTask
from modules.services.outbox.types import Intent, Wait

_ASK_AGAIN_S = 60.0
_HELD = "SELECT 1 FROM task_leases WHERE key = ? AND epoch = ? AND stage = 'held' AND until > ?"


def lease_gate(connection: sqlite3.Connection, intent: Intent, now: datetime, /) -> Wait | None:
    """Return why a branch, a file or a pull request for a task may not leave: its claim is over; else None.

    What has set out may have arrived, and is looked for.
    """
    body = intent.body
    if not isinstance(body, OfTask) or not body.task or intent.first_sent_at is not None:
        return None
    if connection.execute(_HELD, (body.task, body.epoch, iso(now))).fetchone():
        return None
    return Wait("the task that it is for is not ours any more", _ASK_AGAIN_S)
