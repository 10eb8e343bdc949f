"""Counts frictions from the journal, keeps them in `soul.db`, and writes `friction.json` as a view of them."""

import asyncio
import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Protocol, TypeVar

from common.clock import Clock, iso
from common.files import save_state
from common.text.untrusted import one_line
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal import rows
from modules.services.craft.friction import Friction, call_code, is_own, is_ready, met, signs, within_a_week

FRICTION_FILE = "friction.json"
_COUNTED_TO = "friction_counted_to"
"""The mark that holds the number of the last counted journal entry."""
_BATCH, _MOST, _FORGOTTEN_DAYS = 500, 300, 90
_TEXT_CHARS, _GIVEN_CHARS, _LINE_CHARS = 200, 80, 500
_AS_JSON = frozenset({"days", "instances", "evidence"})


class _Stored(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def id(self) -> int: ...


T = TypeVar("T", bound=_Stored)


def read_all(connection: sqlite3.Connection, table: str, kind: type[T]) -> list[T]:
    """Return the rows of a table of this package, newest first, as a step of a caller's transaction."""
    found = map(dict, connection.execute(f"SELECT * FROM {table} ORDER BY id DESC"))  # noqa: S608 - our own tables
    return [kind(**{name: json.loads(one) if name in _AS_JSON else one for name, one in row.items()}) for row in found]


def put_row(connection: sqlite3.Connection, table: str, one: _Stored) -> None:
    """Insert a row if its id is 0, else replace the row with that id, as a step of a caller's transaction."""
    values = {name: json.dumps(value) if name in _AS_JSON else value for name, value in asdict(one).items()}
    into, given = ", ".join(values), ", ".join(f":{name}" for name in values)
    values["id"] = one.id or None
    connection.execute(f"INSERT OR REPLACE INTO {table} ({into}) VALUES ({given})", values)  # noqa: S608 - the same


@dataclass(frozen=True, slots=True)
class FrictionRecord:
    """The frictions of one SOUL. `folder` holds the view."""

    database: Database
    clock: Clock
    folder: Path

    @property
    def day(self) -> timedelta:
        """The real length of a lived day."""
        return self.clock.real(timedelta(days=1))

    async def count(self) -> list[Friction]:
        """Count the frictions in the journal since the last count, and return all frictions.

        Each batch stores its counts and its last entry in one transaction, so that a crash loses and doubles nothing.
        """
        before = await self.all()
        while await self.database.run(self._count_batch):
            pass
        found, path = await self.all(), self.folder / FRICTION_FILE
        if found != before or not await asyncio.to_thread(path.exists):
            await asyncio.to_thread(save_state, path, view(found))
        return found

    async def all(self) -> list[Friction]:
        """Return all frictions, newest first."""
        return await self.database.run(frictions)

    async def get(self, number: int | None) -> Friction | None:
        """Return the friction with this number, or None."""
        return next((one for one in await self.all() if one.id == number), None)

    async def of_the_week(self) -> list[tuple[Friction, int]]:
        """Return the frictions of the last seven days with their number of occurrences, most frequent first."""
        now = self.clock.now()
        counted = [(one, within_a_week(one, now, self.day)[0]) for one in await self.all()]
        return sorted((pair for pair in counted if pair[1]), key=lambda pair: -pair[1])

    async def own_of_the_week(self) -> int:
        """Return the number of own occurrences of all frictions in the last seven days."""
        now = self.clock.now()
        return sum(within_a_week(one, now, self.day)[1] for one in await self.all())

    async def evidence(self, friction: Friction | None, numbers: Collection[int], *, in_public: bool = False) -> str:
        """Return a line for each occurrence of a friction in these own journal entries; "" if `friction` is None.

        It shows the input and answer of a tool only if the entry rests on the SOUL's own words and is no talk with the
        owner. With `in_public` it shows only the names and JSON types of the input fields.
        """
        if friction is None:
            return ""
        lines = partial(evidence_lines, friction=friction, numbers=numbers, in_public=in_public)
        return "\n".join(await self.database.run(lines))

    async def decide(self, friction: Friction) -> None:
        """Store the state, reason and `own_then` of a friction; the counts in the database stay."""

        def put(connection: sqlite3.Connection) -> None:
            for one in frictions(connection):
                if one.id == friction.id:
                    decided = {name: getattr(friction, name) for name in ("state", "reason", "own_then")}
                    put_row(connection, "friction", replace(one, **decided))

        await self.database.run(put)

    def _count_batch(self, connection: sqlite3.Connection) -> int:
        now = self.clock.now()
        entries = rows.after(connection, int(marks.get(connection, _COUNTED_TO) or 0), _BATCH)
        stored = {one.id: one for one in frictions(connection)}
        known = {one.key: one for one in stored.values()}
        for entry in entries:
            for sign in signs(entry):
                key, at = (*sign, ""), entry["at"]
                before = known.get(key) or Friction(0, *key, 0, 0, {}, [], at, at)
                known[key] = met(before, at, entry["id"], now, self.day, is_own=is_own(entry))
        for one in known.values():
            after = replace(one, state="seen") if one.state == "ready" else one
            after = replace(one, state="ready") if is_ready(one, now, self.day) else after
            if after != stored.get(one.id):
                put_row(connection, "friction", after)
        if entries:
            marks.put(connection, {_COUNTED_TO: str(entries[-1]["id"])})
        _trim(connection, now - _FORGOTTEN_DAYS * self.day)
        return len(entries)


def frictions(connection: sqlite3.Connection) -> list[Friction]:
    """Return all frictions, newest first, as a step of a caller's transaction."""
    return read_all(connection, "friction", Friction)


def view(found: Sequence[Friction]) -> dict[str, Any]:
    """Return the frictions as `friction.json` holds them."""
    return {
        "frictions": [
            {
                "id": f"friction-{one.id}",
                "category": one.category,
                "description": one.description,
                "occurrences": one.occurrences,
                "firstNoticed": one.first_at,
                "lastNoticed": one.last_at,
                "instances": [{"timestamp": at, "context": f"entry {entry}"} for at, entry, _ in one.instances],
                "attempted": one.state in {"proposed", "mended", "left"},
                "resolved": one.state == "mended",
                **({"attemptResult": _result(one)} if one.reason else {}),
            }
            for one in found
        ],
        "improvements": [{"frictionId": f"friction-{one.id}", "result": _result(one)} for one in found if one.reason],
    }


def _result(one: Friction) -> str:
    """Return the state of its last proposal, without the SOUL's words."""
    return one.came_of_it[0]


def evidence_lines(
    connection: sqlite3.Connection, friction: Friction, numbers: Collection[int], *, in_public: bool = False
) -> list[str]:
    """Return the lines of `FrictionRecord.evidence`, as a step of a caller's transaction."""
    lines: list[str] = []
    for entry in rows.entries(connection, numbers):
        calls = [call for call in entry["data"].get("calls", ()) if call_code(call) == friction.code]
        is_shown = entry["loop"] != "owner" and entry["data"].get("rests_on") == "self"
        for call in calls:
            given = call["input"].items() if isinstance(call["input"], dict) and is_shown else ()
            shown = ((name, _kind(one) if in_public else json.dumps(one, ensure_ascii=False)) for name, one in given)
            text = "".join(f", {name}={one_line(one, _GIVEN_CHARS)}" for name, one in shown)
            is_told = is_shown and not in_public and not call.get("went_wrong")
            told = call["error"].removeprefix("Error: ") if is_told else ""
            why = one_line(told or call.get("answer", ""), _TEXT_CHARS)
            lines.append(f"- {entry['at'][:16]} {call['tool']}{text[:_LINE_CHARS]}: {why}")
        if not calls:
            what = one_line(entry["summary"], _TEXT_CHARS) if is_shown and not in_public else entry["kind"]
            lines.append(f"- {entry['at'][:16]} {entry['loop']}: {what}")
    return lines


def _kind(value: object) -> str:
    """Return the name of the JSON type of a value."""
    return {str: "text", bool: "true or false", list: "list", dict: "object", NoneType: "null"}.get(
        type(value), "number"
    )


def _trim(connection: sqlite3.Connection, before: datetime) -> None:
    """Delete frictions in state `seen` that last occurred before `before`, and the oldest beyond `_MOST`."""
    kept = "SELECT id FROM friction WHERE state <> 'seen' OR last_at >= ? ORDER BY state = 'seen', last_at DESC LIMIT ?"
    connection.execute(f"DELETE FROM friction WHERE id NOT IN ({kept})", (iso(before), _MOST))  # noqa: S608 - constant
