"""Keeps in `soul.db` what goes wrong again and again, counted from the journal, and `friction.json` as a view of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from common.clock import Clock, iso, parse_iso
from common.state import save_state
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal import rows
from modules.services.craft.friction import (
    KEPT_INSTANCES,
    MENDED,
    Friction,
    FrictionState,
    day_of,
    is_ready,
    lasting,
    signs,
)

FRICTION_FILE = "friction.json"
_COUNTED_TO = "friction_counted_to"
"""The mark that holds the number of the last entry of the journal that was counted."""
_BATCH = 500
_MOST, _FORGOTTEN_DAYS = 300, 90
_KEY = "category, loop, code, words"
_COLUMNS = f"{_KEY}, occurrences, own, days, instances, first_at, last_at, state, reason, own_then, outcome"
_PUT = f"""
INSERT INTO friction ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT ({_KEY}) DO UPDATE SET occurrences = excluded.occurrences, own = excluded.own, days = excluded.days,
    instances = excluded.instances, last_at = excluded.last_at, state = excluded.state, reason = excluded.reason,
    own_then = excluded.own_then, outcome = excluded.outcome
"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class FrictionRecord:
    """The frictions of one SOUL. `owner_did` is the account of its owner; `folder` is where the view lies."""

    database: Database
    clock: Clock
    owner_did: str
    folder: Path

    @property
    def day(self) -> timedelta:
        """How long a lived day truly takes."""
        return self.clock.real(timedelta(days=1))

    async def count(self) -> list[Friction]:
        """Count what the journal holds since the last count, and return all of it.

        What was counted and how far is one transaction, so that a crash loses and doubles nothing.
        """
        is_changed = False
        while read := await self.database.run(self._count_batch):
            is_changed |= read > 0
        found = await self.all()
        path = self.folder / FRICTION_FILE
        if is_changed or not await asyncio.to_thread(path.exists):
            await asyncio.to_thread(save_state, path, view(found))
        return found

    async def all(self) -> list[Friction]:
        """Return all frictions, those noticed last first."""
        return await self.database.run(frictions)

    async def get(self, number: int) -> Friction | None:
        """Return one friction."""
        return next((one for one in await self.all() if one.id == number), None)

    async def put(self, friction: Friction) -> None:
        """Store a friction as it is here."""
        await self.database.run(lambda connection: put(connection, friction))

    def _count_batch(self, connection: sqlite3.Connection) -> int:
        now = self.clock.now()
        entries = rows.after(connection, int(marks.get(connection, _COUNTED_TO) or 0), _BATCH)
        if not entries:
            return 0
        stored = frictions(connection)
        known = {_key(one): one for one in stored}
        for entry in entries:
            for sign in signs(entry, self.owner_did):
                key = sign.category, sign.loop, sign.code, sign.words
                before = known.get(key) or Friction(0, *key, 0, 0, {}, (), entry["at"], entry["at"])
                known[key] = self._met(before, entry, now, is_own=sign.is_own)
        for one in known.values():
            after = replace(one, state="ready") if is_ready(one, now, self.day) else _unready(one)
            if after not in stored:
                put(connection, after)
        marks.put(connection, {_COUNTED_TO: str(entries[-1]["id"])})
        _trim(connection, now - _FORGOTTEN_DAYS * self.day)
        return len(entries)

    def _met(self, one: Friction, entry: rows.JournalRow, now: datetime, *, is_own: bool) -> Friction:
        """Return a friction with one more occurrence."""
        day = day_of(parse_iso(entry["at"]), self.day)
        met, own = one.days.get(day, (0, 0))
        instances = (*one.instances, (entry["at"], entry["id"], is_own))
        return replace(
            one,
            occurrences=one.occurrences + 1,
            own=one.own + is_own,
            days={**lasting(one.days, now, self.day), day: (met + 1, own + is_own)},
            instances=instances[-KEPT_INSTANCES:],
            last_at=entry["at"],
        )


def frictions(connection: sqlite3.Connection) -> list[Friction]:
    """Return all frictions, those noticed last first, as a step of a caller's transaction."""
    query = f"SELECT id, {_COLUMNS} FROM friction ORDER BY last_at DESC, id DESC"  # noqa: S608 - constants
    return [
        Friction(
            **{
                **dict(row),
                "days": {at: tuple(count) for at, count in json.loads(row["days"]).items()},
                "instances": tuple((at, number, bool(own)) for at, number, own in json.loads(row["instances"])),
            }
        )
        for row in connection.execute(query)
    ]


def put(connection: sqlite3.Connection, one: Friction) -> None:
    """Store a friction as it is here, as a step of a caller's transaction."""
    stored = {"days": json.dumps(one.days), "instances": json.dumps(one.instances)}
    values = [stored.get(name, getattr(one, name)) for name in _COLUMNS.split(", ")]
    connection.execute(_PUT, values)


def view(found: Sequence[Friction]) -> dict[str, Any]:
    """Return the frictions as `friction.json` holds them."""
    tried = [one for one in found if one.outcome]
    return {
        "frictions": [
            {
                "id": f"friction-{one.id}",
                "category": one.category,
                "description": one.description,
                "occurrences": one.occurrences,
                "firstNoticed": one.first_at,
                "lastNoticed": one.last_at,
                "instances": [
                    {"timestamp": at, "context": f"journal entry {number}{'' if own else ', with words of others'}"}
                    for at, number, own in one.instances
                ],
                "attempted": one.state in {"proposed", "mended", "left"},
                "resolved": one.state == "mended",
                **({"attemptResult": one.outcome} if one.outcome else {}),
            }
            for one in found
        ],
        "improvements": [{"friction": f"friction-{one.id}", "outcome": one.outcome} for one in tried],
    }


def _key(one: Friction) -> tuple[str, str, str, str]:
    return one.category, one.loop, one.code, one.words


def _unready(one: Friction) -> Friction:
    """Return a friction that was ready and, as time passed, is so no more."""
    before: FrictionState = "mended" if one.outcome == MENDED else "left" if one.own_then else "seen"
    return replace(one, state=before) if one.state == "ready" else one


def _trim(connection: sqlite3.Connection, before: datetime) -> None:
    """Forget what was noticed long ago, and of too many those without a decision that were noticed first."""
    connection.execute("DELETE FROM friction WHERE state = 'seen' AND last_at < ?", (iso(before),))
    connection.execute(
        "DELETE FROM friction WHERE id IN (SELECT id FROM friction"
        " ORDER BY state <> 'seen' DESC, last_at DESC LIMIT -1 OFFSET ?)",
        (_MOST,),
    )
