"""The archives of conversations and what is distilled from each; the cleanup after the end of a conversation.

The transaction that ends a conversation writes a mark in `soul.db` for each of the two, which is removed when that one
is cleared away. A crash or an unreachable store therefore only delays it. If another conversation then goes on under
the same key, the two cannot be told apart, and both are cleared away when that one ends.

An archive is `prepared` first: its row holds everything that is to be done, and nothing has been done. It becomes
`done` in the transaction that removes the messages, after its bytes are in the store. Only archives that are done are
listed. The model that says what to keep writes nothing; a call that fails leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import BaseModel

from adapters.storage.local import Storage
from adapters.storage.objects import archive_key
from common.clock import iso, local, parse_iso, spoken
from common.errors import BudgetExceeded, Fatal, PolicyBlocked, SoulError, Transient
from common.facts import MemoryFacts, TurnFacts
from common.person import tied
from common.provenance import Provenance
from common.redact import Redactor
from common.result import ApiResult, Err, Ok, answering
from common.session_keys import FORMER_PREFIX, is_main
from modules.runtime.database import marks
from modules.runtime.llm.dialect import Message, PromptBlock, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.services.memory.admission import NewMemory
from modules.services.memory.rows import remember
from modules.services.sessions import store
from modules.services.sessions.distil_policy import fields_for, memories_of, summary_of
from modules.services.sessions.types import (
    ArchivedLine,
    MessageRow,
    Session,
    dump,
    epoch_ms,
    said_lines,
    transcript,
    unpack,
)
from modules.services.skills.skills import SYSTEM_SECTION, Framer, Skills
from modules.services.skills.tool_schema import read_description, simple_schema

Remnant = Literal["media", "notes"]
REMNANTS: tuple[Remnant, ...] = get_args(Remnant)


def end(connection: sqlite3.Connection, session: Session, now: datetime) -> None:
    """End a conversation and mark what is to be cleared away after it."""
    store.end(connection, session.id, now)
    for remnant in REMNANTS:
        marks.put(connection, {_mark(remnant) + session.key: iso(now)})


def end_silent(connection: sqlite3.Connection, session: Session, now: datetime) -> bool:
    """End a conversation without messages; return False if it has some by now."""
    if store.rows(connection, session.id):
        return False
    end(connection, session, now)
    return True


def due(connection: sqlite3.Connection) -> list[tuple[Remnant, str]]:
    """Return each remnant that is to be cleared away, with its session key."""
    return [
        (remnant, key)
        for remnant in REMNANTS
        for key in marks.starting_with(connection, _mark(remnant))
        if not store.goes_on(connection, key)
    ]


def settled(connection: sqlite3.Connection, remnant: Remnant, session_key: str) -> None:
    """Record that one remnant of a conversation is cleared away."""
    marks.remove(connection, _mark(remnant) + session_key)


def _mark(remnant: Remnant) -> str:
    return f"ended:{remnant}:"


Status = Literal[
    "nothing",  # there was nothing to do
    "done",  # archived, distilled, and replaced or ended
    "waiting",  # prepared; what the store could not take yet is finished later
    "postponed",  # not begun: nothing changed
]


@dataclass(frozen=True, slots=True)
class Distilled:
    """The result of distilling a conversation.

    Attributes:
        summary: what happened, in a few sentences; "" if the conversation was not distilled.
        message: the summary as it stands in the conversation in place of the messages; "" without one.
        provenance: the least trusted words that it rests on.
        memories: what to remember.
        remembered_at: the time that the memories carry, ISO-8601 UTC.

    """

    summary: str
    message: str
    provenance: Provenance
    memories: tuple[NewMemory, ...]
    remembered_at: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "provenance": int(self.provenance)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Distilled:
        memories = tuple(
            NewMemory(**{**each, **{name: tuple(each.get(name, ())) for name in ("tags", "dids", "about")}})
            for each in data["memories"]
        )
        return cls(**{**data, "provenance": Provenance(data["provenance"]), "memories": memories})


@dataclass(frozen=True, slots=True)
class Archive:
    """Messages of a session that are in the store or prepared for it.

    Attributes:
        key: of the object in the store.
        session_id: the session of the messages.
        session_key: the key of that session.
        last_seq: the number of the last row in it.
        part: its number among the parts of a session that goes on; None for the rest that was left when it ended.
        message_count: the number of its lines.
        metadata: the metadata of the object.
        distilled: what was kept of the messages.
        prepared_at: when it was prepared, ISO-8601 UTC.
        dids: the accounts whose words are in it, separated by spaces.

    """

    key: str
    session_id: str
    session_key: str
    last_seq: int
    part: int | None
    message_count: int
    metadata: Mapping[str, str]
    distilled: Distilled
    prepared_at: str
    dids: str = ""


@dataclass(frozen=True, slots=True)
class ArchiveOutcome:
    """The result of compacting, resetting or finishing; `reason` says why, in words."""

    status: Status
    reason: str
    archive: Archive | None = field(default=None)


KEEP = "keep_memories"
TRANSCRIPT_TOKENS = 24_000

_SKILL, _SUMMARY = "memory-extraction", "summary"
_TRIES = 2
_SHORTER = (1, 4, 16)


class KeepInput(BaseModel):
    """The content that is kept of a conversation. Each list entry has the form "what it is about: what to remember"."""

    summary: str
    people: list[str] = []
    facts: list[str] = []
    events: list[str] = []
    preferences: list[str] = []
    decisions: list[str] = []
    lessons: list[str] = []
    rules: list[str] = []


@dataclass(slots=True, kw_only=True)
class Distiller:
    """Distils conversations with the skill `memory-extraction`.

    Attributes:
        gateway: the model.
        system: returns the system blocks for a session.
        skills: the texts of the prompt.
        redactor: removes secrets from the model's answers.
        rng: draws the boundary that frames untrusted text.
        estimate: returns the number of tokens of a text.
        timezone: the time zone of dates in the prompt; "" for the machine's.
        transcript_tokens: the most tokens of a conversation that are shown.

    """

    gateway: LLMGateway
    system: Callable[[Session], Awaitable[Sequence[PromptBlock]]]
    skills: Skills
    redactor: Redactor
    rng: random.Random
    estimate: Callable[[str], int]
    timezone: str = ""
    transcript_tokens: int = TRANSCRIPT_TOKENS

    async def distil(
        self,
        session: Session,
        rows: Sequence[MessageRow],
        provenance: Provenance,
        *,
        remembered_at: str,
        tags: tuple[str, ...] = (),
        sums_up: bool = True,
    ) -> Distilled:
        """Return what to keep of `rows`, whose least trusted words are of `provenance`; a summary only if `sums_up`.

        Raises as `LLMGateway.chat_with_tools`.
        """
        redact, told = self.redactor.text, self._instructions()
        answer = await self._answer(session, rows, provenance, sums_up=sums_up)
        summary = summary_of(answer, told, redact) if sums_up else ""
        memories = memories_of(answer, told, redact, session_key=session.key, provenance=provenance, tags=tags)
        message = self._message(session, summary, provenance) if summary else ""
        return Distilled(summary, message, provenance, memories, remembered_at)

    def _instructions(self) -> str:
        return "\n".join(self.skills.section(_SKILL, name) for name in (SYSTEM_SECTION, "Tool"))

    async def _answer(
        self, session: Session, rows: Sequence[MessageRow], provenance: Provenance, *, sums_up: bool
    ) -> Mapping[str, Any]:
        """Return the model's answer; for a conversation that is too long, ask again with less and less of its middle.

        Return {} if even the shortest is too long or the model refuses these words: a conversation that no model can
        read is still archived.
        """
        facts = TurnFacts(MemoryFacts(said_lines(rows)))
        for shorter in _SHORTER:
            page = transcript(rows, self.estimate, self.transcript_tokens // shorter)
            try:
                return await self._ask(session, page, provenance, facts, sums_up=sums_up)
            except PolicyBlocked:
                continue
            except (Fatal, Transient, BudgetExceeded):
                raise
            except SoulError:
                break
        return {}

    async def _ask(
        self, session: Session, page: str, provenance: Provenance, facts: TurnFacts, *, sums_up: bool
    ) -> Mapping[str, Any]:
        """Return the model's answer about `page`; if it lacks a summary that is needed, say so and ask again."""
        offered = fields_for(session.key, provenance)
        framed = Framer(self.skills, self.rng).frame("conversation", author="", uri=session.key, text=page)
        moment = local(parse_iso(session.last_active_at), self.timezone)
        asked = self.skills.render(_SKILL, "User Message Template", date=spoken(moment), transcript=framed)
        answer: Mapping[str, Any] | None = None
        again = ""
        for _ in range(_TRIES if sums_up else 1):
            result = await self.gateway.chat_with_tools(
                [Message("user", f"{asked}\n\n{again}".strip())],
                system=await self.system(session),
                tools=[_tool(self.skills, (*offered, _SUMMARY) if sums_up else offered)],
                tool_choice="required",
                purpose=_SKILL,
                importance="owner" if is_main(session.key) else "own",
                facts=facts,
            )
            answer = result.arguments(KEEP) or answer
            if answer is not None and summary_of(answer, self._instructions(), self.redactor.text):
                break
            again = self.skills.section(_SKILL, "Once More")
        return {"summary": result.text} if answer is None else answer

    def _message(self, session: Session, summary: str, provenance: Provenance) -> str:
        """Return the summary as the conversation holds it; a summary of others' words is framed as theirs."""
        if provenance < Provenance.SELF:
            framer = Framer(self.skills, self.rng)
            summary = framer.frame("conversation", author="", uri=session.key, text=summary)
        return self.skills.render(_SKILL, "Summary Message", summary=summary)


def _tool(skills: Skills, offered: Sequence[str]) -> ToolSpec:
    description, fields = read_description(skills.section(_SKILL, "Tool"))
    schema = simple_schema(KeepInput, fields)
    schema["properties"] = {name: field for name, field in schema["properties"].items() if name in offered}
    if _SUMMARY not in offered:
        del schema["required"]
    return ToolSpec(KEEP, description, schema)


_COLUMNS = [field.name for field in fields(Archive)]


def prepare(
    connection: sqlite3.Connection,
    session: Session,
    rows: Sequence[MessageRow],
    distilled: Distilled,
    *,
    agent_id: str,
    whole: bool,
    now: datetime,
) -> Archive | None:
    """Prepare the archive of `rows`; with `whole` the session ends now. Return None if the stored rows have changed."""
    last_seq = rows[-1].seq
    kept = store.rows(connection, session.id, until=None if whole else last_seq)
    if store.is_over(connection, session.id) or [row.seq for row in kept] != [row.seq for row in rows]:
        return None
    if rows[-1].created_at <= store.kept_after(connection, session.key):
        distilled = replace(distilled, summary="", memories=())
    archive = Archive(
        key="",
        session_id=session.id,
        session_key=session.key,
        last_seq=last_seq,
        part=None if whole else _parts(connection, session.id) + 1,
        message_count=len(rows),
        metadata={},
        distilled=distilled,
        prepared_at=iso(now),
        dids=tied(did for row in rows for did in row.dids.split()),
    )
    archive = replace(
        archive,
        key=_free_key(connection, agent_id, archive),
        metadata=_metadata(archive, agent_id, store.tokens(connection, session.id)),
    )
    row = {**asdict(archive), "metadata": dump(archive.metadata), "distilled": dump(distilled.to_json())}
    values = ", ".join(f":{name}" for name in _COLUMNS)
    connection.execute(f"INSERT INTO archives (state, {', '.join(_COLUMNS)}) VALUES ('prepared', {values})", row)  # noqa: S608 - constants
    if whole:
        end(connection, session, now)
    return archive


def finish(connection: sqlite3.Connection, archive: Archive, summary: store.NewMessageRow | None) -> bool:
    """Remove what is archived, insert `summary` in its place and save the memories; return False if already done."""
    query = "UPDATE archives SET state = 'done' WHERE key = ? AND state = 'prepared'"
    if not connection.execute(query, (archive.key,)).rowcount:
        return False
    said_at = connection.execute(
        "SELECT max(created_at) FROM session_messages WHERE session_id = ? AND seq <= ?",
        (archive.session_id, archive.last_seq),
    ).fetchone()[0]
    store.remove(connection, archive.session_id, archive.last_seq)
    if summary is not None:
        store.insert(connection, archive.session_id, archive.last_seq, summary, said_at)
    for memory in archive.distilled.memories:
        remember(connection, memory, parse_iso(archive.distilled.remembered_at))
    return True


def prepared(connection: sqlite3.Connection) -> list[Archive]:
    """Return the archives that are prepared and not done, oldest first."""
    return _archives(connection, "state = 'prepared' ORDER BY prepared_at, key")


def done(connection: sqlite3.Connection, session_key: str | None, limit: int) -> list[Archive]:
    """Return the archives that are done, newest first; None as the key means all."""
    return _archives(
        connection,
        "state = 'done' AND (:key IS NULL OR session_key = :key) AND substr(session_key, 1, length(:former)) <> :former"
        " ORDER BY prepared_at DESC, key DESC LIMIT :limit",
        {"key": session_key, "limit": limit, "former": FORMER_PREFIX},
    )


def of_session(connection: sqlite3.Connection, session_id: str) -> list[Archive]:
    """Return all archives of one conversation, in the order of its messages."""
    where = "session_id = :id ORDER BY part IS NULL, part"
    return _archives(connection, where, {"id": session_id})


def _parts(connection: sqlite3.Connection, session_id: str) -> int:
    query = "SELECT count(*) FROM archives WHERE session_id = ? AND part IS NOT NULL"
    return int(connection.execute(query, (session_id,)).fetchone()[0])


def _free_key(connection: sqlite3.Connection, agent_id: str, archive: Archive) -> str:
    if archive.part is None:
        return archive_key(agent_id, archive.session_id)
    moment = epoch_ms(archive.prepared_at)
    while True:
        key = archive_key(agent_id, archive.session_id, epoch_ms=moment)
        if connection.execute("SELECT 1 FROM archives WHERE key = ?", (key,)).fetchone() is None:
            return key
        moment += 1


def _metadata(archive: Archive, agent_id: str, tokens: tuple[int, int]) -> dict[str, str]:
    common = {
        "sessionKey": archive.session_key,
        "sessionId": archive.session_id,
        "agentId": agent_id,
        "messageCount": str(archive.message_count),
        "archivedAt": archive.prepared_at,
    }
    if archive.part is not None:
        return {**common, "partNumber": str(archive.part)}
    spent, said = tokens
    return {**common, "inputTokens": str(spent), "outputTokens": str(said), "totalTokens": str(spent + said)}


def _archives(connection: sqlite3.Connection, where: str, values: dict[str, object] | None = None) -> list[Archive]:
    query = f"SELECT {', '.join(_COLUMNS)} FROM archives WHERE {where}"  # noqa: S608 - our own words
    rows = (dict(row) for row in connection.execute(query, values or {}))
    return [
        Archive(
            **{
                **row,
                "metadata": json.loads(row["metadata"]),
                "distilled": Distilled.from_json(json.loads(row["distilled"])),
            }
        )
        for row in rows
    ]


@answering
async def read_archive(storage: Storage, archive: Archive) -> ApiResult[list[ArchivedLine]]:
    """Return the lines of an archive, oldest first; the error is of kind `invalid` if its bytes are damaged."""
    found = (await storage.get(archive.key)).or_raise()
    try:
        return Ok(await asyncio.to_thread(unpack, found.data))
    except ValueError as error:
        return Err(f"{archive.key}: {error}", "invalid")


def unshown_since(connection: sqlite3.Connection, session_key: str) -> str:
    """Return when the last archived conversation began (ISO-8601 UTC) if it held words of others; otherwise ""."""
    query = """
        SELECT iif(distilled ->> 'provenance' < ?, sessions.created_at, '') FROM archives
        JOIN sessions ON sessions.id = session_id
        WHERE session_key = ? AND ended_at IS NOT NULL ORDER BY prepared_at DESC LIMIT 1
    """
    found = connection.execute(query, (int(Provenance.OWNER), session_key)).fetchone()
    return str(found[0]) if found else ""
