"""Experiences: their types, and how they are stored in `soul.db` until a reflection has used them."""

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from typing import Literal, Protocol

from common.clock import Clock, iso
from common.provenance import Trust
from common.redact import Redactor
from common.schemas import Impressed
from common.text.markdown import without_html_comments
from common.text.untrusted import clean
from modules.runtime.database.database import Database
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.services.outbox.outbox import Outbox
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem

ExperienceType = Literal[
    "owner_guidance",
    "learned_something",
    "helped_someone",
    "was_challenged",
    "idea_resonated",
    "question_emerged",
    "connection_formed",
    "saw_perspective",
    "chose_silence",
]
IMPRESSED: Mapping[Impressed, ExperienceType] = {"challenge": "was_challenged", "question": "question_emerged"}
"""The experience type of an answer whose author was left with this impression."""
Source = Literal["bluesky", "github", "space", "terminal", "message", "commitment", "ritual"]


@dataclass(frozen=True, slots=True)
class NewExperience:
    """An experience to be stored.

    Attributes:
        type: its kind.
        source: where it happened.
        key: identifies it; the same key is stored once.
        about: what it was about: the whole text of the SOUL or the program; the owner's in `owner_guidance`. The SOUL's
            text may repeat words of the people it wrote to.
        did: the other person: a DID, or `github:<numeric id>`; "" if there is none, or it is unknown.
        person: how they are shown.
        uri: where it happened.
        trust: of the least trusted participant.

    """

    type: ExperienceType
    source: Source
    key: str
    about: str = ""
    did: str = ""
    person: str = ""
    uri: str = ""
    trust: Trust = "self"


@dataclass(frozen=True, slots=True)
class Experience(NewExperience):
    """A stored experience, with its number and time (ISO-8601 UTC)."""

    id: int = 0
    at: str = ""

    @property
    def name(self) -> str:
        """The name by which a change of SELF.md cites it."""
        return f"e{self.id}"


MOST_OPEN = 50
KEPT = timedelta(days=30)

_SAME = timedelta(hours=24)
_MOST_CHARS = 2_000
_ROW = "id, at, type, source, key, about, did, person, uri, trust"
_PEOPLE_PREFIX = "did:"
_SAID_IN_PRIVATE = "type = 'owner_guidance' AND source IN ('terminal', 'message')"


class Choices(Protocol):
    """The choices of a person."""

    @property
    def inference(self) -> str: ...


class Consents(Protocol):
    """Knows what people allow to be done with their words, and who is forgotten."""

    async def of(self, dids: Iterable[str], /) -> Mapping[str, Choices]: ...

    async def forgotten(self, dids: Iterable[str], /) -> frozenset[str]: ...


@dataclass(slots=True)
class ExperienceLog:
    """The experiences of one SOUL."""

    database: Database
    consents: Consents
    redactor: Redactor
    clock: Clock

    async def record(self, new: NewExperience) -> bool:
        """Store an experience; return whether it is new.

        Nothing is stored about people who deny inference, whose choice could not be read, or who are forgotten. A
        repetition within 24 hours is left out, unless it is the owner's guidance.
        """
        if not await self._may_keep(new):
            return False
        now = self.clock.now()
        about = self.redactor.text(" ".join(clean(without_html_comments(new.about)).split()))[:_MOST_CHARS]

        def write(connection: sqlite3.Connection) -> bool:
            if new.type != "owner_guidance" and _is_repeated(connection, new, about, iso(now - _SAME)):
                return False
            cursor = connection.execute(
                f"INSERT OR IGNORE INTO experiences ({_ROW}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
                (iso(now), new.type, new.source, new.key, about, new.did, new.person, new.uri, new.trust),
            )
            _trim(connection)
            connection.execute("DELETE FROM experiences WHERE version <> '' AND at < ?", (iso(now - KEPT),))
            return cursor.rowcount > 0

        return await self.database.run(write)

    async def open(self) -> list[Experience]:
        """Return the experiences that no reflection has used yet, oldest first."""
        query = f"SELECT {_ROW} FROM experiences WHERE version = '' ORDER BY id"  # noqa: S608 - a constant
        return await self.database.run(lambda connection: _read(connection, query))

    async def named(self, names: Collection[str]) -> list[Experience]:
        """Return the stored experiences that changes of SELF.md cite by these names."""
        return await self.database.run(lambda connection: named(connection, names))

    async def integrate(self, ids: Collection[int], version: str) -> None:
        """Mark these as used by the change `version` of SELF.md."""
        marks = ", ".join("?" for _ in ids)
        statement = f"UPDATE experiences SET version = ? WHERE version = '' AND id IN ({marks})"  # noqa: S608 - a constant
        await self.database.run(lambda connection: connection.execute(statement, (version, *ids)))

    async def count(self) -> int:
        """Return how many experiences are stored."""
        query = "SELECT count(*) FROM experiences"
        return int(await self.database.run(lambda connection: connection.execute(query).fetchone()[0]))

    async def _may_keep(self, new: NewExperience) -> bool:
        if new.trust in {"self", "owner"} or not new.did.startswith(_PEOPLE_PREFIX):
            return True
        if await self.consents.forgotten([new.did]):
            return False
        preference = (await self.consents.of([new.did])).get(new.did)
        return preference is not None and preference.inference != "deny"


def newest_open(connection: sqlite3.Connection) -> int:
    """Return the number of the newest open experience; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM experiences WHERE version = ''").fetchone()[0])


def named(connection: sqlite3.Connection, names: Collection[str]) -> list[Experience]:
    """Return the experiences with these names, as a step of a caller's transaction."""
    ids = [int(name[1:]) for name in names if name[:1] == "e" and name[1:].isdecimal()]
    marks = ", ".join("?" for _ in ids)
    query = f"SELECT {_ROW} FROM experiences WHERE id IN ({marks}) ORDER BY id"  # noqa: S608 - a constant
    return _read(connection, query, *ids)


def owner_lines(connection: sqlite3.Connection, since: str, until: str, most: int) -> list[Experience]:
    """Return what the owner wrote last in private between two times (ISO-8601), oldest first."""
    query = f"SELECT {_ROW} FROM experiences WHERE {_SAID_IN_PRIVATE} AND at >= ? AND at < ? ORDER BY id DESC LIMIT ?"  # noqa: S608 - constants
    return _read(connection, query, since, until, most)[::-1]


def delete_owner_lines(connection: sqlite3.Connection) -> None:
    """Delete what the owner wrote in private, as it may tell what they had forgotten."""
    connection.execute(f"DELETE FROM experiences WHERE {_SAID_IN_PRIVATE}")  # noqa: S608 - a constant


def _is_repeated(connection: sqlite3.Connection, new: NewExperience, about: str, since: str) -> bool:
    query = "SELECT 1 FROM experiences WHERE type = ? AND lower(about) = lower(?) AND did = ? AND at > ? LIMIT 1"
    return connection.execute(query, (new.type, about, new.did, since)).fetchone() is not None


def _trim(connection: sqlite3.Connection) -> None:
    """Delete open experiences beyond the limit: those with strangers first, the owner's guidance last, oldest first."""
    connection.execute(
        "DELETE FROM experiences WHERE id IN (SELECT id FROM experiences WHERE version = ''"
        " ORDER BY type = 'owner_guidance' DESC, trust = 'stranger', id DESC LIMIT -1 OFFSET ?)",
        (MOST_OPEN,),
    )


def _read(connection: sqlite3.Connection, query: str, *values: object) -> list[Experience]:
    names = [one.name for one in fields(Experience)]
    return [Experience(**{name: row[name] for name in names}) for row in connection.execute(query, values)]


EXPERIENCES_OF_PEOPLE = PersonalRows(
    "experiences",
    (
        PersonalTable(
            name="experiences",
            theirs="(did = :did OR ((instr(key, :part) OR instr(uri, :part)) AND holds_did(key, uri)))",
            shown="type || ': ' || about",
            at="at",
            order="id",
            redacts={"about": "redacted(about)", "person": "redacted(person)"},
        ),
    ),
)
"""The experiences with a person and in their threads; others that name them stay, with a placeholder for them."""


KIND = "draft-experience"
_PAUSE_S = 60.0
_UNDER_WAY = frozenset({"held", "pending", "sending"})


@dataclass(kw_only=True)
class DraftExperiences(Handler):
    """Keeps a row of work for each draft that is to become an experience."""

    kind = KIND
    is_public = False
    pause_s = _PAUSE_S
    tells = True

    log: ExperienceLog
    outbox: Outbox
    work: WorkTable

    async def record(self, new: NewExperience, draft_id: str | None = None) -> None:
        """Store an experience; with the id of a draft's intent, wait until that has left."""
        if draft_id:
            await self.work.add(NewWork(KIND, draft_id, asdict(new), author=new.did))
        else:
            await self.log.record(new)

    async def handle(self, item: WorkItem) -> Disposition:
        draft = await self.outbox.get(item.key)
        if draft and draft.state in _UNDER_WAY:
            return Disposition("later", "under-way", "the draft has not left yet")
        if draft is None or draft.state != "done":
            return Disposition("silent", "not-sent", "the draft never left")
        new = NewExperience(**item.payload)
        await self.log.record(replace(new, about=draft.body.public_text or new.about))
        return Disposition("done", "noted", "the draft left")
