"""`soul rituals` and `soul schedule`: what the SOUL does at set times, and its runs; the SOUL may be awake."""

import asyncio
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from adapters.atproto.records import web_url
from common.clock import SystemClock, iso, local
from common.errors import UsageError
from common.settings import Settings
from modules.lives.rituals.perceive import Started
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.home import Home, read_self
from modules.services.explanation.story import handle_of
from modules.services.identity.identity import extract_from_self
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.rituals.policy import RitualRun, next_opening, ritual_key, ritual_role
from modules.services.rituals.rituals import all_runs, is_opening_settled
from modules.services.schedules import Schedule, Schedules, schedule_number, schedules_in
from modules.services.work.table import WorkTable
from soul.commands.at_hand import at_hand
from soul.commands.options import Runs
from soul.terminal.output import printable, write_answer, write_lines

_NONE = "SELF.md names no ritual; docs/behaviour.md shows how to write one"


@dataclass(frozen=True, slots=True)
class _Kept:
    """What one read of the database found.

    Attributes:
        runs: all ritual runs, newest first.
        over_today: keys of the rituals that we opened today, or gave up opening.
        names: handles by DID.
        now: the local time.
        agent_name: our name.

    """

    runs: Sequence[RitualRun]
    over_today: Collection[str]
    names: Mapping[str, str]
    now: datetime
    agent_name: str


def run_rituals(root: Path, *, limit: Runs = 5, as_json: bool) -> None:
    """Print the rituals, each with its newest runs."""
    facts = ritual_facts(*at_hand(root), limit)
    write_answer(facts, [line for one in facts for line in _lines(one)] or [_NONE], as_json=as_json)


def ritual_facts(settings: Settings, home: Home, limit: int) -> list[dict[str, Any]]:
    """Return the rituals of SELF.md in its order, each with its `limit` newest runs, for programs."""
    listed = {ritual_key(one.name): one for one in reversed(extract_from_self(read_self(home)).daily_rituals)}
    now = local(SystemClock().now(), settings.soul_timezone)
    kept = asyncio.run(_kept(home, listed, now, settings.agent_name))
    return [_facts(one, kept, limit) for one in reversed(listed.values())]


def started_lines(started: Started) -> Sequence[str]:
    """Return what to tell the owner about a ritual that they started by hand."""
    name, about = started.name, started.about
    match started.code:
        case "unknown":
            return [f"SELF.md names no ritual {name}" + (f"; it names: {about}" if about else "")]
        case "runs-already":
            return [f"{name} was opened today already: {web_url(about) or about}"]
        case "opened":
            return [f"{name} is open: {web_url(about) or about}"]
        case "held":
            return [f"The opening of {name} waits for your approval: `soul drafts` (or /drafts)"]
        case "waits":
            return [f"{name} could not be opened just now; it is tried again at {about}"]
        case "not-opened":
            return [f"{name} was not opened ({about}); `soul why` and the journal tell more"]


async def _kept(home: Home, keys: Iterable[str], now: datetime, agent_name: str) -> _Kept:
    """Read what the database holds about the rituals with these keys."""

    def read(connection: sqlite3.Connection) -> _Kept:
        runs = all_runs(connection)
        people = {did for run in runs for did in (run.opener, *run.took_part)}
        names = {did: handle for did in people if (handle := handle_of(connection, did))}
        over_today = [key for key in keys if is_opening_settled(connection, key, now.date())]
        return _Kept(runs, over_today, names, now, agent_name)

    if not home.database.exists():
        return _Kept((), (), {}, now, agent_name)
    async with await Database.beside(home.database) as database:
        return await database.read(read)


def _facts(ritual: DailyRitual, kept: _Kept, limit: int) -> dict[str, Any]:
    key, names = ritual_key(ritual.name), kept.names
    own = [run for run in kept.runs if run.key == key]
    over = {run.day for run in own} | ({kept.now.date()} if key in kept.over_today else set())
    return {
        "name": ritual.name,
        "schedule": ritual.schedule,
        "workspace": ritual.workspace,
        "role": ritual.role,
        "participants": list(ritual.participants),
        "next": _next(ritual, over, kept.now),
        "runs": [
            {
                "date": run.day.isoformat(),
                "openedBy": "us" if run.role == "initiator" else f"@{names.get(run.opener, run.opener)}",
                "part": ritual_role(kept.agent_name, run.thread_uri),
                "tookPart": [f"@{names.get(did, did)}" for did in run.took_part],
                "thread": web_url(run.thread_uri),
                "artefact": run.artefact_url,
                "note": run.note,
            }
            for run in own[:limit]
        ],
    }


def _next(ritual: DailyRitual, over: Collection[date], now: datetime) -> str | None:
    moment = next_opening(ritual, over, now)
    return f"{moment:%a %Y-%m-%d %H:%M}" if moment else None


def _lines(one: dict[str, Any]) -> Iterator[str]:
    yield printable(f"{one['name']}  [{one['schedule']}]  {one['workspace']}  ({one['role']})")
    yield f"  next: {one['next'] or 'never, for its schedule is not understood'}"
    if one["participants"]:
        yield printable(f"  with: {', '.join(one['participants'])}")
    for run in one["runs"]:
        others = f", with {', '.join(run['tookPart'])}" if run["tookPart"] else ""
        yield printable(f"  {run['date']}  opened by {run['openedBy']}, as {run['part']}{others}")
        for link in filter(None, (run["thread"], run["artefact"])):
            yield f"              {link}"
        if run["note"]:
            yield printable(f"              {run['note']}")


_NO_SCHEDULE = "Nothing is scheduled. Say for example: remind me on Friday at nine to water the plants"


def run_schedule(
    root: Path,
    *,
    remove: Annotated[str, typer.Option("--remove", metavar="NUMBER", help="Remove this schedule.")] = "",
    as_json: bool,
) -> None:
    """Print the schedules, the one that is due next first, or remove one.

    Raises `UsageError` if there is none to remove, and `SoulError` before the first life.
    """
    settings, home = at_hand(root)
    if remove:
        write_lines(asyncio.run(_removed(home.database, settings.soul_timezone, remove)))
        return
    with reading(home.database) as connection:
        found = schedules_in(connection)
    write_answer([fields(one) for one in found], schedule_lines(found, settings.soul_timezone), as_json=as_json)


def schedule_lines(found: Sequence[Schedule], timezone: str) -> list[str]:
    """Return a line for each schedule."""
    return [printable(one.told_owner(timezone)) for one in found] or [_NO_SCHEDULE]


def fields(one: Schedule) -> dict[str, Any]:
    """Return a schedule for programs; `at` is local, `due` and `last` are ISO-8601 UTC."""
    last = iso(one.last) if one.last else None
    return {**asdict(one), "at": one.at.isoformat(timespec="minutes"), "due": iso(one.due), "last": last}


async def remove_schedule(schedules: Schedules, number: str) -> str:
    """Remove a schedule; return a line on it. Raises `UsageError` if there is none with this number."""
    removed = await schedules.remove(schedule_number(number))
    if removed is None:
        raise UsageError(f"There is no schedule {number}", remedy="`soul schedule` lists them.")
    return f"Removed: {printable(removed.told_owner(schedules.timezone))}"


async def _removed(database: Path, timezone: str, number: str) -> str:
    async with await Database.beside(database) as opened:
        clock = SystemClock()
        return await remove_schedule(Schedules(WorkTable(opened, clock), clock, timezone), number)
