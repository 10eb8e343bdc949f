"""Stores the tasks that this SOUL claims or holds in `soul.db`; `.memory/claimed_tasks.json` is a view of them.

A lease is written before its first request is sent and deleted after all of it is undone, so that `kill -9` between two
requests leaves nothing unknown behind. The view is written after the database, and never read.

The gate stops acts for a task unless the task is ours, and those for one that was offered while it is to be left alone.
It is asked each time before such an act leaves, so that an act that was proposed under a claim that is over never
leaves.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from common.clock import Clock, iso, parse_iso
from common.files import save_state
from modules.runtime.database.database import Database
from modules.services.claims.offers import is_left_alone
from modules.services.claims.policy import Lease, after_start
from modules.services.outbox.github_bodies import OfTask
from modules.services.outbox.types import Intent, Wait

FILE = "claimed_tasks.json"

_KEPT = timedelta(days=7)
_COLUMNS = "owner, repo, issue, number, soul, stage, epoch, has_lock, since, renewed_at, until, comment_id"
_PUT = f"INSERT OR REPLACE INTO task_leases (key, {_COLUMNS}) VALUES ({', '.join('?' * 13)})"  # noqa: S608 - our names
_FORGET = "DELETE FROM seen_locks WHERE first_seen < ? AND branch NOT IN (SELECT value FROM json_each(?))"
_ADD = _PUT.replace("OR REPLACE", "OR IGNORE")


class TaskLeases:
    """The store of leases. Each method is one transaction, and raises `StorageError` if it fails."""

    def __init__(self, database: Database, folder: Path, clock: Clock) -> None:
        self._database = database
        self._path = folder / FILE
        self._clock = clock

    async def load(self) -> list[Lease]:
        """Return the leases of the previous process: those that continue, and those to be undone (`ending`)."""
        now = self._clock.now()

        def step(connection: sqlite3.Connection) -> list[Lease]:
            leases = [after_start(lease, now) for lease in _all(connection)]
            connection.executemany(_PUT, [_row(lease) for lease in leases])
            return leases

        leases = await self._database.run(step)
        self._write_view(leases)
        return leases

    async def all(self) -> list[Lease]:
        """Return the leases, oldest first."""
        return await self._database.read(_all)

    async def begin(self, lease: Lease) -> bool:
        """Store a lease that is to be claimed. Return False, and change nothing, if the task is ours already."""

        def step(connection: sqlite3.Connection) -> tuple[bool, list[Lease]]:
            return connection.execute(_ADD, _row(lease)).rowcount > 0, _all(connection)

        is_new, leases = await self._database.run(step)
        self._write_view(leases)
        return is_new

    async def put(self, lease: Lease) -> None:
        """Store the current state of a lease."""

        def step(connection: sqlite3.Connection) -> list[Lease]:
            connection.execute(_PUT, _row(lease))
            return _all(connection)

        self._write_view(await self._database.run(step))

    async def end(self, lease: Lease) -> None:
        """Delete a lease that is done or fully undone; the task can be claimed again."""

        def step(connection: sqlite3.Connection) -> list[Lease]:
            connection.execute("DELETE FROM task_leases WHERE key = ?", (lease.key,))
            return _all(connection)

        self._write_view(await self._database.run(step))

    async def first_seen(self, branches: Iterable[str]) -> dict[str, datetime]:
        """Return when each lock branch, `owner/repo:branch`, was first seen; for a new one that is now.

        A branch that is no longer asked for is forgotten after seven days.
        """
        now, asked = self._clock.now(), list(branches)

        def step(connection: sqlite3.Connection) -> dict[str, datetime]:
            connection.execute(_FORGET, (iso(now - _KEPT), json.dumps(asked)))
            connection.executemany("INSERT OR IGNORE INTO seen_locks VALUES (?, ?)", [(one, iso(now)) for one in asked])
            known = dict(connection.execute("SELECT branch, first_seen FROM seen_locks"))
            return {one: parse_iso(known[one]) for one in asked}

        return await self._database.run(step)

    def _write_view(self, leases: Iterable[Lease]) -> None:
        save_state(self._path, {lease.key: int(lease.since.timestamp() * 1000) for lease in leases})


def held_tasks(connection: sqlite3.Connection) -> list[str]:
    """Return the tasks that are claimed or held, `owner/repo#12/task-3`, oldest claim first."""
    return [lease.key for lease in _all(connection) if lease.stage != "ending"]


def _row(lease: Lease) -> tuple[object, ...]:
    moments = (iso(lease.since), iso(lease.renewed_at), iso(lease.until))
    place = (lease.owner, lease.repo, lease.issue, lease.number)
    return (lease.key, *place, lease.soul, lease.stage, lease.epoch, lease.has_lock, *moments, lease.comment_id)


def _all(connection: sqlite3.Connection) -> list[Lease]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM task_leases ORDER BY since, key")  # noqa: S608 - our names
    return [_lease(row) for row in rows]


def _lease(row: tuple[Any, ...]) -> Lease:
    owner, repo, issue, number, soul, stage, epoch, has_lock, since, renewed_at, until, comment_id = row
    return Lease(
        owner=owner,
        repo=repo,
        issue=issue,
        number=number,
        soul=soul,
        stage=stage,
        epoch=epoch,
        has_lock=bool(has_lock),
        since=parse_iso(since),
        renewed_at=parse_iso(renewed_at),
        until=parse_iso(until),
        comment_id=comment_id,
    )


_ASK_AGAIN_S = 60.0
_HELD = "SELECT 1 FROM task_leases WHERE key = ? AND epoch = ? AND stage = 'held' AND until > ?"


def lease_gate(connection: sqlite3.Connection, intent: Intent, now: datetime, /) -> Wait | None:
    """Return why an act for a task may not leave: its claim is over, or the owner wants the task left alone; else None.

    An act that was sent once may have arrived already, and is not stopped.
    """
    body = intent.body
    if not isinstance(body, OfTask) or not body.task or intent.first_sent_at is not None:
        return None
    if not body.epoch:
        is_left = is_left_alone(connection, body.task)
        return Wait("you said to leave its task alone", _ASK_AGAIN_S, ends=False) if is_left else None
    if connection.execute(_HELD, (body.task, body.epoch, iso(now))).fetchone():
        return None
    return Wait("the task that it is for is not ours any more", _ASK_AGAIN_S)
