"""What conversations hold of a person. Each function is one step of a transaction that its caller opened.

Each message is tied to the account whose words it holds or answers, a summary to all of whom it tells. Of the owner's
own talks, and of those in a room, nothing is anybody's but the owner's. The connection must know the person
(`modules/runtime/database/functions.py`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from common.json_lines import json_object
from common.person import Held, Person, Trace

_THEIRS = "(instr(dids, :did) AND is_in(dids))"


def sessions_of(connection: sqlite3.Connection, did: str) -> frozenset[str]:
    """Return the keys of the conversations and archives in which an account took part, or whose thread it began."""
    rows = connection.execute(
        f"SELECT key FROM sessions WHERE id IN (SELECT session_id FROM session_messages WHERE {_THEIRS})"  # noqa: S608 - a constant
        f" OR holds_did(key) UNION SELECT session_key FROM archives WHERE {_THEIRS} OR holds_did(session_key)",
        {"did": did},
    )
    return frozenset(str(row[0]) for row in rows)


def archives_of(connection: sqlite3.Connection, did: str) -> dict[str, bool]:
    """Return the keys of the archives that hold an account's words, each with whether they hold nobody else's."""
    query = f"SELECT key, dids FROM archives WHERE {_THEIRS} OR holds_did(session_key)"  # noqa: S608 - a constant
    return {str(row["key"]): row["dids"] == did for row in connection.execute(query, {"did": did})}


def media_of(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the keys of the pictures in what an account wrote."""
    query = f"SELECT content FROM session_messages WHERE {_THEIRS}"  # noqa: S608 - a constant
    return [key for row in connection.execute(query, {"did": did}) for key in pictures_in(json_object(row["content"]))]


def pictures_in(fields: object) -> Iterator[str]:
    """Return the keys of the pictures in a message as it is kept."""
    blocks = fields.get("content") if isinstance(fields, dict) else None
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and isinstance(block.get("r2Key"), str):
            yield block["r2Key"]


def kept_lines(text: str, person: Person) -> tuple[str, list[str]]:
    """Return the lines of an archive that are not the person's, and the keys of the pictures in those that are.

    A line that cannot be read is theirs where it holds the DID.
    """
    kept: list[str] = []
    media: list[str] = []
    for line in filter(None, text.split("\n")):
        fields = json_object(line)
        if person.is_in(fields.get("dids", "")) if fields else person.holds_did(line):
            media += pictures_in(fields)
        else:
            kept.append(f"{person.without_did(line)}\n")
    return "".join(kept), media


def naming(connection: sqlite3.Connection) -> list[str]:
    """Return where the owner's own talks, and those in a room, name the person."""
    rows = connection.execute(
        "SELECT DISTINCT key FROM sessions JOIN session_messages ON session_id = id WHERE dids = '' AND named(content)"
        " ORDER BY key"
    ).fetchall()
    waits = connection.execute("SELECT id FROM owner_messages WHERE named(text) ORDER BY id")
    return [*(f"talk {row['key']}" for row in rows), *(f"message {row['id']} of yours" for row in waits)]


class SessionPeople:
    """The messages of conversations that are a person's, and the archives that hold such."""

    store = "conversations"
    tables = frozenset({"sessions", "session_messages", "archives", "owner_messages"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return what they said and were answered."""
        did = trace.person.did
        query = f"SELECT content FROM session_messages WHERE {_THEIRS} ORDER BY session_id, seq"  # noqa: S608 - a constant
        said = [str(row[0]) for row in connection.execute(query, {"did": did})]
        archived = [f"archived: {key}" for key in sorted(archives_of(connection, did))]
        return Held(self.store, len(said) + len(archived), (*said, *archived))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete it, and conversations of which nothing is left; return how many rows went."""
        did = {"did": trace.person.did}
        keys = json.dumps(sorted(sessions_of(connection, trace.person.did)))
        gone = drop_turns(connection, trace.person.did)
        gone += connection.execute(
            "DELETE FROM sessions WHERE key IN (SELECT value FROM json_each(?))"
            " AND id NOT IN (SELECT session_id FROM session_messages)",
            (keys,),
        ).rowcount
        gone += connection.execute("DELETE FROM archives WHERE dids = :did AND dids <> ''", did).rowcount
        rows = connection.execute(
            f"SELECT key, dids, session_key, metadata, distilled FROM archives WHERE {_THEIRS}"  # noqa: S608 - a constant
            " OR holds_did(session_key)",
            did,
        ).fetchall()
        for row in rows:
            self._untie(connection, row, trace.person)
        connection.execute("UPDATE sessions SET key = without_did(key) WHERE holds_did(key)")
        connection.execute(
            "UPDATE session_messages SET content = without_did(content) WHERE dids <> '' AND holds_did(content)"
        )
        return gone + len(rows)

    def _untie(self, connection: sqlite3.Connection, row: sqlite3.Row, person: Person) -> None:
        """Leave of an archive what is of others; what was noted beside it told of all who were in it."""
        distilled = json_object(row["distilled"]) or {}
        if person.is_in(row["dids"]):
            distilled |= {"summary": "", "message": "", "memories": []}
        connection.execute(
            "UPDATE archives SET dids = ?, session_key = ?, metadata = ?, distilled = ? WHERE key = ?",
            (
                " ".join(did for did in row["dids"].split() if did != person.did),
                person.without_did(row["session_key"]),
                person.without_did(row["metadata"]),
                person.without_did(json.dumps(distilled)),
                row["key"],
            ),
        )


def drop_turns(connection: sqlite3.Connection, did: str) -> int:
    """Delete what an account said and was answered from the conversations that go on; return how many messages went."""
    query = f"DELETE FROM session_messages WHERE {_THEIRS}"  # noqa: S608 - a constant
    return connection.execute(query, {"did": did}).rowcount
