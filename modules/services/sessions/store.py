"""The rows of conversations in `.memory/soul.db`, and what of them belongs to a person; steps of a transaction.

Each message is tied to the account whose words it holds or answers, a summary to all accounts that it tells about.
Talks with the owner and in a room belong to nobody but the owner. The connection must know the person
(`modules/runtime/database/people.py`).
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from common.clock import iso
from common.json_lines import json_object
from common.person import Trace
from common.provenance import Provenance
from common.session_keys import MAIN_PREFIX, is_main
from modules.runtime.database import marks
from modules.runtime.database.people import PersonalRows, PersonalTable, change_owner
from modules.runtime.llm.dialect import Message, Usage
from modules.services.sessions.types import Fields, MessageRow, Role, Session, dump, from_fields

SUMMARY = "summary"
"""The field that marks a summary of ours."""

NOTE = "note"
"""The field that marks other words of the program."""

_UNKEPT = "unkept_until"
_SESSION = "id, key, created_at, last_active_at"


class NewMessageRow(NamedTuple):
    """A part of a message that is to be written."""

    role: Role
    fields: Fields
    tokens: int
    provenance: Provenance
    dids: str | None = None
    """The accounts whose words it rests on, separated by spaces; None for those of the message before it."""


def going_on(connection: sqlite3.Connection, key: str) -> Session | None:
    """Return the current conversation under `key`, or None."""
    return _session(connection, "key = ? AND ended_at IS NULL", key)


def find(connection: sqlite3.Connection, session_id: str) -> Session | None:
    """Return a conversation, current or ended, or None."""
    return _session(connection, "id = ?", session_id)


def begin(connection: sqlite3.Connection, key: str, now: datetime) -> Session:
    """Begin a conversation under `key`; its id is unique and holds the time of its beginning."""
    mark = hashlib.sha256(key.encode(errors="backslashreplace")).hexdigest()[:12]
    moment = now
    while find(connection, session_id := f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}-{mark}"):
        moment += timedelta(milliseconds=1)
    session = Session(session_id, key, iso(now), iso(now))
    connection.execute(
        "INSERT INTO sessions (id, key, created_at, last_active_at) VALUES (?, ?, ?, ?)",
        (session.id, session.key, session.created_at, session.last_active_at),
    )
    return session


def append(connection: sqlite3.Connection, session_id: str, rows: Iterable[NewMessageRow], now: datetime) -> None:
    """Append `rows`; a number that was used before is not used again."""
    last = connection.execute(
        "SELECT max(coalesce((SELECT max(seq) FROM session_messages WHERE session_id = :id), 0),"
        " coalesce((SELECT max(last_seq) FROM archives WHERE session_id = :id), 0))",
        {"id": session_id},
    ).fetchone()[0]
    before = connection.execute(
        "SELECT dids FROM session_messages WHERE session_id = ? ORDER BY seq DESC LIMIT 1", (session_id,)
    ).fetchone()
    dids = before["dids"] if before else ""
    for seq, row in enumerate(rows, last + 1):
        dids = dids if row.dids is None else row.dids
        insert(connection, session_id, seq, row._replace(dids=dids), iso(now))
    connection.execute("UPDATE sessions SET last_active_at = ? WHERE id = ?", (iso(now), session_id))


def insert(connection: sqlite3.Connection, session_id: str, seq: int, row: NewMessageRow, created_at: str) -> None:
    """Write one row with the number `seq`."""
    connection.execute(
        "INSERT INTO session_messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, seq, row.role, dump(row.fields), row.tokens, int(row.provenance), created_at, row.dids or ""),
    )


def rows(connection: sqlite3.Connection, session_id: str, *, until: int | None = None) -> list[MessageRow]:
    """Return the stored messages, oldest first, up to the row `until`."""
    query = "SELECT * FROM session_messages WHERE session_id = ? AND (? IS NULL OR seq <= ?) ORDER BY seq"
    return [
        MessageRow(
            session_id=row["session_id"],
            seq=row["seq"],
            role=row["role"],
            message=_message(row),
            tokens=row["tokens"],
            provenance=Provenance(row["provenance"]),
            created_at=row["created_at"],
            dids=row["dids"],
            is_note=_is_note(row),
        )
        for row in connection.execute(query, (session_id, until, until))
    ]


def remove(connection: sqlite3.Connection, session_id: str, until: int) -> None:
    """Delete the rows up to `until`."""
    connection.execute("DELETE FROM session_messages WHERE session_id = ? AND seq <= ?", (session_id, until))


def least_trusted(connection: sqlite3.Connection, session_id: str) -> Provenance:
    """Return the provenance of the least trusted stored words; the owner's if there are none."""
    query = "SELECT min(provenance) FROM session_messages WHERE session_id = ?"
    least = connection.execute(query, (session_id,)).fetchone()[0]
    return Provenance.OWNER if least is None else Provenance(least)


def end(connection: sqlite3.Connection, session_id: str, now: datetime) -> None:
    """End a conversation; another may begin under the same key."""
    connection.execute("UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL", (iso(now), session_id))


def goes_on(connection: sqlite3.Connection, key: str) -> bool:
    """Return whether a conversation with this key is current."""
    query = "SELECT 1 FROM sessions WHERE key = ? AND ended_at IS NULL"
    return connection.execute(query, (key,)).fetchone() is not None


def leave_unkept(connection: sqlite3.Connection) -> None:
    """Keep nothing of what was said so far in the owner's talk, as it may contain what the owner had forgotten."""
    newest = connection.execute("SELECT max(created_at) FROM session_messages").fetchone()[0]
    marks.put(connection, {_UNKEPT: newest or ""})
    query = "UPDATE archives SET distilled = json_patch(distilled, ?) WHERE session_key GLOB ?"
    connection.execute(query, ('{"summary":"","memories":[]}', f"{MAIN_PREFIX}*"))


def kept_after(connection: sqlite3.Connection, session_key: str) -> str:
    """Return the time after which messages under `session_key` may be kept; "" if all may."""
    return marks.get(connection, _UNKEPT) if is_main(session_key) else ""


def is_cut(connection: sqlite3.Connection, session_id: str) -> bool:
    """Return whether nothing is kept of the beginning of a conversation."""
    session = find(connection, session_id)
    return session is not None and session.created_at <= kept_after(connection, session.key)


def is_over(connection: sqlite3.Connection, session_id: str) -> bool:
    """Return whether the conversation has ended or never existed."""
    query = "SELECT 1 FROM sessions WHERE id = ? AND ended_at IS NULL"
    return connection.execute(query, (session_id,)).fetchone() is None


def count(connection: sqlite3.Connection, session_id: str, usage: Usage) -> None:
    """Add the tokens of a model call."""
    connection.execute(
        "UPDATE sessions SET input_tokens = input_tokens + ?, output_tokens = output_tokens + ? WHERE id = ?",
        (usage.input_tokens, usage.output_tokens, session_id),
    )


def tokens(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Return the counted input and output tokens."""
    query = "SELECT input_tokens, output_tokens FROM sessions WHERE id = ?"
    counted = connection.execute(query, (session_id,)).fetchone()
    return counted["input_tokens"], counted["output_tokens"]


def idle(connection: sqlite3.Connection, before: datetime) -> list[Session]:
    """Return current conversations in which nothing was said since `before`, the longest idle first."""
    return _sessions(connection, "ended_at IS NULL AND last_active_at < ? ORDER BY last_active_at", iso(before))


def summary(connection: sqlite3.Connection, session_id: str) -> str:
    """Return the summary at the beginning of a conversation; "" if there is none."""
    query = "SELECT content FROM session_messages WHERE session_id = ? ORDER BY seq LIMIT 1"
    first = connection.execute(query, (session_id,)).fetchone()
    fields = json.loads(first["content"]) if first else {}
    return str(fields["content"]) if SUMMARY in fields else ""


def words_of_owner(connection: sqlite3.Connection, session_key: str) -> list[Message]:
    """Return the owner's own messages in the current conversation, without tool answers and words of the program."""
    query = """
        SELECT * FROM session_messages WHERE role = 'user' AND provenance = ? AND session_id =
            (SELECT id FROM sessions WHERE key = ? AND ended_at IS NULL) ORDER BY seq
    """
    found = connection.execute(query, (int(Provenance.OWNER), session_key))
    return [_message(row) for row in found if not _is_note(row)]


def _is_note(row: sqlite3.Row) -> bool:
    return not {SUMMARY, NOTE}.isdisjoint(json.loads(row["content"]))


def _message(row: sqlite3.Row) -> Message:
    return from_fields(row["role"], json.loads(row["content"]))


def _session(connection: sqlite3.Connection, where: str, value: str) -> Session | None:
    return next(iter(_sessions(connection, where, value)), None)


def _sessions(connection: sqlite3.Connection, where: str, value: object) -> list[Session]:
    query = f"SELECT {_SESSION} FROM sessions WHERE {where}"  # noqa: S608 - our own words
    return [Session(*row) for row in connection.execute(query, (value,))]


_THEIRS = "(instr(dids, :did) AND is_in(dids))"


def sessions_of(connection: sqlite3.Connection, did: str) -> frozenset[str]:
    """Return the keys of the conversations and archives in which an account took part, or whose thread it started."""
    rows = connection.execute(
        f"SELECT key FROM sessions WHERE id IN (SELECT session_id FROM session_messages WHERE {_THEIRS})"  # noqa: S608 - a constant
        f" OR holds_did(key) UNION SELECT session_key FROM archives WHERE {_THEIRS} OR holds_did(session_key)",
        {"did": did},
    )
    return frozenset(str(row[0]) for row in rows)


def archives_of(connection: sqlite3.Connection, did: str, owner: str) -> dict[str, bool]:
    """Return the keys of the archives with an account's words, and of those of `owner` sessions, marked True."""
    query = f"""SELECT key, substr(replace(session_key, 'former-', ''), 1, length(:owner)) = :owner AS is_owners
        FROM archives WHERE {_THEIRS} OR holds_did(session_key) OR is_owners ORDER BY key"""  # noqa: S608 - a constant
    return {str(row["key"]): bool(row["is_owners"]) for row in connection.execute(query, {"did": did, "owner": owner})}


def media_of(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the keys of the pictures in what an account wrote."""
    query = f"SELECT content FROM session_messages WHERE {_THEIRS}"  # noqa: S608 - a constant
    return [key for row in connection.execute(query, {"did": did}) for key in pictures_in(json_object(row["content"]))]


def pictures_in(fields: object) -> Iterator[str]:
    """Return the keys of the pictures in a message as it is stored."""
    blocks = fields.get("content") if isinstance(fields, dict) else None
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and isinstance(block.get("r2Key"), str):
            yield block["r2Key"]


def kept_lines(text: str, trace: Trace, *, is_owner: bool = False) -> tuple[str, list[str]]:
    """Return the lines of an archive that are not the person's, and the keys of the pictures in those that are.

    An unreadable line is theirs if it holds the DID. In an archive of the owner, the owner's words stay.
    """
    kept: list[str] = []
    media: list[str] = []
    for line in filter(None, text.split("\n")):
        fields = json_object(line)
        is_said = is_owner and fields is not None and fields.get("role") == "user"
        if trace.person.is_in(fields.get("dids", "")) if fields else trace.person.holds_did(line):
            media += pictures_in(fields)
        else:
            kept.append(f"{line if is_said else trace.person.without_did(trace.without_copies(line))}\n")
    return "".join(kept), media


def change_owner_of_talks(connection: sqlite3.Connection, now: str, before: str) -> None:
    """Set aside the talks of the owner `before`, and restore those of `now`."""
    for table, column in (("sessions", "key"), ("archives", "session_key")):
        change_owner(connection, table, column, before, now)


def drop_turns(connection: sqlite3.Connection, did: str) -> int:
    """Delete what an account said and the answers to it from current conversations; return the number of messages."""
    query = f"DELETE FROM session_messages WHERE {_THEIRS}"  # noqa: S608 - a constant
    return connection.execute(query, {"did": did}).rowcount


SESSIONS_OF_PEOPLE = PersonalRows(
    "conversations",
    (
        PersonalTable(
            name="session_messages",
            theirs=_THEIRS,
            shown="coalesce(json_field(content, 'content'), content)",
            at="created_at",
            order="session_id, seq",
            redacts={"content": "without_did(content)"},
            only="dids <> ''",
            named="""SELECT DISTINCT 'talk ' || key FROM sessions JOIN session_messages ON session_id = id
                WHERE dids = '' AND named(content) ORDER BY key""",
        ),
        PersonalTable(
            name="sessions",
            theirs="""key IN (SELECT value FROM json_each(:sessions))
                AND id NOT IN (SELECT session_id FROM session_messages)""",
            redacts={"key": "without_did(key)"},
        ),
        # NOTE(self): the notes beside an archive tell about all who were in it.
        PersonalTable(
            name="archives",
            theirs="dids = :did",
            shown="'archived: ' || key",
            at="prepared_at",
            order="key",
            redacts={
                "dids": "trim(replace(' ' || dids || ' ', ' ' || :did || ' ', ' '))",
                "session_key": "without_did(session_key)",
                "metadata": "without_did(metadata)",
                "distilled": """without_did(CASE WHEN is_in(dids) THEN json_patch(
                    iif(json_valid(distilled), distilled, '{}'), '{"summary":"","message":"","memories":[]}')
                    ELSE distilled END)""",
            },
            shown_of_others="'archived: ' || key",
        ),
    ),
    # NOTE(self): what was kept of a talk with the owner is tied to nobody, and is deleted if it holds the person's DID.
    before=(
        """UPDATE archives SET distilled = json_patch(distilled, '{"summary":"","message":"","memories":[]}')
            WHERE json_valid(distilled) AND holds_did(distilled)""",
    ),
    copies=(
        "UPDATE session_messages SET content = without_copies(content) WHERE dids = '' AND role <> 'user'",
        "UPDATE archives SET distilled = without_copies(distilled)",
    ),
)
"""The messages of conversations that belong to a person, and the archives that hold them."""
