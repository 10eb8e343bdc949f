"""The rituals in SELF.md, their threads, and the people who may be invited.

A thread belongs to a ritual only through the post that opens it: from the owner or an account listed in SELF.md,
addressed to us, and naming the ritual or its workspace. Each ritual has one thread per local date, the date on which
the network saw that post, however late we read it; any further thread is ordinary talk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor, Notification, Post
from common.clock import Clock, local, parse_iso
from common.result import LASTING
from modules.runtime.database.database import Database
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.services.agent.attention_list import AttentionNeeds, Item
from modules.services.identity.identity import Identity, Me
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.pinned_names import PinnedNames
from modules.services.rituals.policy import (
    MOST_PARTICIPANTS,
    OPENING_KIND,
    RITUAL_HISTORY_MAX,
    RITUAL_PROMPT_RUNS,
    RITUAL_RECOGNITION_RUNS,
    RitualRun,
    RitualThread,
    RunRole,
    gives_view,
    handles_of,
    meant_first,
    next_opening,
    opens_ritual,
    ritual_key,
    ritual_role,
)
from modules.services.skills.skills import Skills
from modules.services.work.table import newest

CONTEXT_SKILL = "ritual-context"


class LeftAlone(Protocol):
    """Says who is to be left alone."""

    async def left_alone(self, dids: Iterable[str], /) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Invitations:
    """The handles that an opening may name, and those that SELF.md lists without their consent."""

    invited: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rituals:
    """Reads SELF.md again for each call; `runs` are the stored runs."""

    runs: RitualRuns
    me: Me
    identity: Identity
    etiquette: Etiquette
    preferences: LeftAlone
    pinned_names: PinnedNames
    atproto: Atproto
    skills: Skills
    clock: Clock

    def now(self) -> datetime:
        """Return the local time, the one calendar of all rituals."""
        return local(self.clock.now(), self.me.timezone)

    def listed(self) -> dict[str, DailyRitual]:
        """Return the rituals of SELF.md by key; the first of a name counts."""
        found: dict[str, DailyRitual] = {}
        for ritual in self.identity.extract().daily_rituals:
            found.setdefault(ritual_key(ritual.name), ritual)
        return found

    async def thread_of(self, notification: Notification) -> RitualThread | None:
        """Return the ritual thread of a post, or None for other talk; the first look registers a thread."""
        run = await self.runs.of_thread(notification.root.uri) or await self._opened_by(notification)
        ritual = self.listed().get(run.key) if run else None
        if run is None or ritual is None:
            return None
        recent = await self.runs.latest(run.key, RITUAL_RECOGNITION_RUNS)
        if all(one.day != run.day for one in recent):
            return None
        part = ritual_role(self.me.agent_name, run.thread_uri)
        return RitualThread(ritual, run, part, self._context(ritual, run, part, recent))

    async def invitations(self, ritual: DailyRitual) -> Invitations:
        """Return whom an opening may name: the owner, peers, and those who took part in an earlier run.

        People whom the owner muted, who asked for no reply, or who are forgotten are left out, as are peers whose
        account is not found. Raises `Unable` while handles cannot be looked up.
        """
        key = ritual_key(ritual.name)
        agreed = {did for run in await self.runs.latest(key, RITUAL_HISTORY_MAX) for did in run.took_part}
        invited, left_out = list[str](), list[str]()
        handles = handles_of(ritual, without=self.me.bluesky_username)
        accounts = {one: (await self.atproto.resolve_handle(one)).or_else("", *LASTING) for one in handles}
        left_alone = await self.preferences.left_alone(filter(None, accounts.values()))
        for handle, did in accounts.items():
            is_owner = self.me.is_owner(did)
            known = is_owner or did in agreed or (did and self.etiquette.is_peer(Actor(did, handle)))
            may = known and did not in left_alone
            (invited if may and len(invited) < MOST_PARTICIPANTS else left_out).append(handle)
        return Invitations(tuple(invited), tuple(left_out))

    async def took_part(self, thread: RitualThread, posts: Iterable[Post]) -> list[str]:
        """Return the DIDs of others who took part in a run: accounts listed in SELF.md that answered with a view."""
        found = dict[str, Actor]()
        for post in posts:
            if gives_view(post, thread.run.thread_uri) and post.author.did != self.atproto.did:
                found[post.author.did] = post.author
        return [did for did, who in found.items() if await self._is_listed(who, thread.ritual)]

    def history(self, runs: Sequence[RitualRun], *, before: date) -> str:
        """Return the newest runs before a date for the model, one line each; "" for none."""
        lines = list[str]()
        for run in [one for one in runs if one.day < before][:RITUAL_PROMPT_RUNS]:
            told = {"date": f"{run.day:%A} {run.day.isoformat()}", "note": run.note, "url": run.artefact_url}
            lines.append(self.skills.render(CONTEXT_SKILL, "Earlier Run", **told).strip())
        return "\n".join(lines)

    async def attention(self) -> AttentionNeeds:
        """Return the rituals that we still open today, for the list of what needs attention."""
        now, due = self.now(), list[Item]()
        for key, ritual in self.listed().items():
            if ritual.role != "initiator":
                continue
            opens = next_opening(ritual, await self.runs.over_on(key, now.date()), now)
            if opens and opens.date() == now.date():
                due.append(Item(ritual.name, at=opens.replace(tzinfo=now.tzinfo)))
        return AttentionNeeds(rituals=tuple(due))

    async def told(self) -> list[dict[str, Any]]:
        """Return each ritual with its newest run, for the status."""
        now, listed = self.now(), list[dict[str, Any]]()
        for key, ritual in self.listed().items():
            opens = next_opening(ritual, await self.runs.over_on(key, now.date()), now)
            run = next(iter(await self.runs.latest(key, 1)), None)
            listed.append(
                {
                    "name": ritual.name,
                    "workspace": ritual.workspace,
                    "role": ritual.role,
                    "nextAt": f"{opens:%Y-%m-%dT%H:%M}" if opens else None,
                    "day": run.day.isoformat() if run else None,
                    "thread": run.thread_uri if run else "",
                    "part": ritual_role(self.me.agent_name, run.thread_uri) if run else "",
                    "note": run.note if run else "",
                    "artefact": run.artefact_url if run else "",
                }
            )
        return listed

    async def _opened_by(self, notification: Notification) -> RitualRun | None:
        """Register the thread that a post opens for a ritual of SELF.md; return its run, or None."""
        author = notification.author
        for key, ritual in meant_first(notification.text, self.listed().items()):
            if opens_ritual(notification, ritual, self.atproto.did) and await self._may_open(author, ritual):
                opened_at = parse_iso(notification.indexed_at)
                day = local(min(opened_at, self.clock.now()), self.me.timezone).date()
                run = RitualRun(key, day, ritual.name, "participant", notification.uri, author.did)
                stands = await self.runs.add(run)
                return stands if stands.thread_uri == run.thread_uri else None
        return None

    async def _may_open(self, author: Actor, ritual: DailyRitual) -> bool:
        """Return whether the author is the owner, or has the account of a listed handle when it was first seen."""
        return self.me.is_owner(author.did) or await self._is_listed(author, ritual)

    async def _is_listed(self, author: Actor, ritual: DailyRitual) -> bool:
        handle = author.handle.lower()
        if handle not in handles_of(ritual):
            return False
        return await self.pinned_names.check("bluesky", handle, author.did)

    def _context(self, ritual: DailyRitual, run: RitualRun, part: str, runs: Sequence[RitualRun]) -> str:
        skills = self.skills
        return skills.render(
            CONTEXT_SKILL,
            "Ritual Thread Context",
            ritual_name=ritual.name,
            ritual_description=ritual.description,
            participants=", ".join(ritual.participants),
            workspace=ritual.workspace,
            today=run.day.isoformat(),
            day_of_week=f"{run.day:%A}",
            recent_history=self.history(runs, before=run.day),
            part=part,
            guidance=skills.subsection(CONTEXT_SKILL, "Parts", part).strip(),
        ).strip()


_COLUMNS = "key, day, name, role, thread_uri, opener, artefact_url, note, took_part"


@dataclass(slots=True)
class RitualRuns:
    """Adds, reads and completes runs; each call is one transaction."""

    database: Database

    async def add(self, run: RitualRun) -> RitualRun:
        """Add a run; return the run stored for that ritual and date, which may be an earlier one."""

        def write(connection: sqlite3.Connection) -> RitualRun:
            connection.execute(
                f"INSERT OR IGNORE INTO ritual_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (*_values(run), run.artefact_url, run.note, json.dumps(run.took_part)),
            )
            connection.execute(
                "DELETE FROM ritual_runs WHERE key = ? AND day NOT IN"
                " (SELECT day FROM ritual_runs WHERE key = ? ORDER BY day DESC LIMIT ?)",
                (run.key, run.key, RITUAL_HISTORY_MAX),
            )
            return _runs(connection, "WHERE key = ? AND day = ?", run.key, run.day.isoformat())[0]

        return await self.database.run(write)

    async def remove(self, run: RitualRun) -> None:
        """Remove a run that nobody ever saw."""
        await self.database.run(
            lambda rows: rows.execute(
                "DELETE FROM ritual_runs WHERE key = ? AND day = ?", (run.key, run.day.isoformat())
            )
        )

    async def rename(self, key: str, new: str) -> None:
        """Give the runs of a ritual another key."""
        statement = "UPDATE OR IGNORE ritual_runs SET key = ? WHERE key = ?"
        await self.database.run(lambda connection: connection.execute(statement, (new, key)))

    async def of_day(self, key: str, day: date) -> RitualRun | None:
        """Return the run of a ritual on a local date, or None."""
        found = await self._read("WHERE key = ? AND day = ?", key, day.isoformat())
        return found[0] if found else None

    async def of_thread(self, thread_uri: str) -> RitualRun | None:
        """Return the run whose thread begins with a post, or None."""
        found = await self._read("WHERE thread_uri = ?", thread_uri)
        return found[0] if found else None

    async def latest(self, key: str, limit: int) -> list[RitualRun]:
        """Return the newest runs of a ritual, newest first."""
        return await self._read("WHERE key = ? ORDER BY day DESC LIMIT ?", key, limit)

    async def since(self, day: date) -> list[RitualRun]:
        """Return the runs of all rituals since a date, oldest first."""
        return await self._read("WHERE day >= ? ORDER BY day, key", day.isoformat())

    async def over_on(self, key: str, day: date) -> frozenset[date]:
        """Return the newest dates on which a ritual was opened, and `day` if its opening was given up then."""

        def read(connection: sqlite3.Connection) -> frozenset[date]:
            runs = _runs(connection, "WHERE key = ? ORDER BY day DESC LIMIT ?", key, RITUAL_HISTORY_MAX)
            given_up = [day] if is_opening_settled(connection, key, day) else []
            return frozenset([*(run.day for run in runs), *given_up])

        return await self.database.run(read)

    async def note_words(self, run: RitualRun, note: str) -> None:
        """Store the beginning of what we said in a run, if it has no note yet."""
        await self._write("UPDATE ritual_runs SET note = ? WHERE key = ? AND day = ? AND note = ''", note, run)

    async def note_artefact(self, run: RitualRun, url: str, note: str) -> None:
        """Store the address and the beginning of our artefact."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE ritual_runs SET artefact_url = ?, note = ? WHERE key = ? AND day = ?",
                (url, note, run.key, run.day.isoformat()),
            )

        await self.database.run(write)

    async def note_took_part(self, run: RitualRun, dids: Sequence[str]) -> None:
        """Store who else answered in the thread of a run."""
        told = json.dumps(sorted({*run.took_part, *dids}))
        await self._write("UPDATE ritual_runs SET took_part = ? WHERE key = ? AND day = ?", told, run)

    async def _write(self, statement: str, value: str, run: RitualRun) -> None:
        values = (value, run.key, run.day.isoformat())
        await self.database.run(lambda connection: connection.execute(statement, values))

    async def _read(self, where: str, *values: object) -> list[RitualRun]:
        return await self.database.run(lambda connection: _runs(connection, where, *values))


def is_opening_settled(connection: sqlite3.Connection, key: str, day: date) -> bool:
    """Return whether we opened a ritual on a date or gave it up; then we do not open it by ourselves that day."""
    latest = newest(connection, OPENING_KIND, 1, key_prefix=f"{key}/{day.isoformat()}")
    return any(row.state != "pending" for row in latest)


def all_runs(connection: sqlite3.Connection) -> list[RitualRun]:
    """Return all runs, newest first."""
    return _runs(connection, "ORDER BY day DESC, key")


def _values(run: RitualRun) -> tuple[Any, ...]:
    return run.key, run.day.isoformat(), run.name, run.role, run.thread_uri, run.opener


def _runs(connection: sqlite3.Connection, where: str, *values: object) -> list[RitualRun]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM ritual_runs {where}", values)  # noqa: S608 - constants
    return [_run(*row) for row in rows]


def _run(key: str, day: str, name: str, role: RunRole, *texts: str) -> RitualRun:
    thread_uri, opener, artefact_url, note, dids = texts
    took_part = tuple(json.loads(dids))
    return RitualRun(key, date.fromisoformat(day), name, role, thread_uri, opener, artefact_url, note, took_part)


RITUALS_OF_PEOPLE = PersonalRows(
    "rituals",
    (
        PersonalTable(
            name="ritual_runs",
            theirs="opener = :did AND role = 'participant'",
            shown="'opened ' || name || ' on ' || day",
            order="day",
            redacts={"took_part": "(SELECT json_group_array(value) FROM json_each(took_part) WHERE value <> :did)"},
            shown_of_others="'took part in ' || key || ' on ' || day",
        ),
    ),
)
"""The runs that a person opened, and their part in runs of others."""
