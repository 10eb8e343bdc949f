"""What conversations hold of a person. Each function is one step of a transaction that its caller opened.

A conversation in a thread is theirs whole as soon as it names them once: answers in it may repeat what they said. Of
the owner's own talks, and of those in a room, only the turns that name them are.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator

from common.person import Held, Trace
from modules.services.agent.session_keys import ROOM_PREFIX, is_main

_NAMING = "names_person(session_key, metadata, distilled)"


def sessions_of(connection: sqlite3.Connection, archived: Collection[str]) -> frozenset[str]:
    """Return the keys of the conversations that go whole; `archived` are the archives whose lines name the person."""
    rows = connection.execute(
        "SELECT key FROM sessions WHERE names_person(key)"  # noqa: S608 - a constant
        " UNION SELECT key FROM sessions JOIN session_messages ON session_id = id WHERE names_person(content)"
        f" UNION SELECT session_key FROM archives WHERE {_NAMING} OR key IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(archived)),),
    )
    return frozenset(str(row[0]) for row in rows if goes_whole(str(row[0])))


def archives_of(connection: sqlite3.Connection, keys: Collection[str]) -> frozenset[str]:
    """Return the keys of the archives of these conversations."""
    rows = connection.execute(
        "SELECT key FROM archives WHERE session_key IN (SELECT value FROM json_each(?))", (json.dumps(sorted(keys)),)
    )
    return frozenset(str(row[0]) for row in rows)


def goes_whole(session_key: str) -> bool:
    """Return whether a conversation with somebody is forgotten as a whole."""
    return not is_main(session_key) and not session_key.startswith(ROOM_PREFIX)


class SessionPeople:
    """Conversations, their archives, and what the owner said that waits for an answer."""

    store = "conversations"
    tables = frozenset({"sessions", "session_messages", "archives", "owner_messages"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return the messages that name the person, with those of the conversations that go whole."""
        rows = connection.execute(
            "SELECT content FROM session_messages JOIN sessions ON session_id = id WHERE names_person(content)"
            " OR key IN (SELECT value FROM json_each(?)) ORDER BY session_id, seq",
            (json.dumps(sorted(trace.sessions)),),
        )
        said = [str(row[0]) for row in rows]
        said += [str(row[0]) for row in connection.execute("SELECT text FROM owner_messages WHERE names_person(text)")]
        archived = [f"archived: {key}" for key in sorted(archives_of(connection, trace.sessions))]
        return Held(self.store, len(said) + len(archived), (*said, *archived))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete them; return how many rows went."""
        keys = json.dumps(sorted(trace.sessions))
        gone = sum(
            connection.execute(
                "DELETE FROM session_messages WHERE session_id = ? AND seq = ?", (session_id, seq)
            ).rowcount
            for session_id, seq in list(_turns_naming(connection))
        )
        for statement in (
            "DELETE FROM sessions WHERE key IN (SELECT value FROM json_each(:keys))",  # with their messages
            "DELETE FROM archives WHERE session_key IN (SELECT value FROM json_each(:keys))",
            "DELETE FROM owner_messages WHERE names_person(text)",
        ):
            gone += connection.execute(statement, {"keys": keys}).rowcount
        return gone + _clear_distilled(connection)


def _turns_naming(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """Return the rows of each turn in which the person is named: what was said, what tools answered, and the answer."""
    turn: list[tuple[str, int]] = []
    named = False
    rows = connection.execute(
        "SELECT session_id, seq, role, names_person(content) AS named FROM session_messages ORDER BY session_id, seq"
    )
    for row in rows.fetchall():
        if turn and (row["role"] == "user" or turn[-1][0] != row["session_id"]):
            yield from turn if named else ()
            turn, named = [], False
        turn.append((row["session_id"], row["seq"]))
        named = named or bool(row["named"])
    yield from turn if named else ()


def drop_turns(connection: sqlite3.Connection) -> int:
    """Delete the turns that name the person from conversations in public; return how many messages went.

    The owner's own talks, and those in a room, stay.
    """
    rows = connection.execute("SELECT id, key FROM sessions").fetchall()
    public = {str(row["id"]) for row in rows if goes_whole(str(row["key"]))}
    theirs = [(session_id, seq) for session_id, seq in _turns_naming(connection) if session_id in public]
    query = "DELETE FROM session_messages WHERE session_id = ? AND seq = ?"
    return sum(connection.execute(query, one).rowcount for one in theirs)


def _clear_distilled(connection: sqlite3.Connection) -> int:
    """Empty what is noted beside archives that stay, where it names the person; return for how many."""
    rows = connection.execute("SELECT key, distilled FROM archives WHERE names_person(distilled)").fetchall()
    for row in rows:
        kept = json.loads(row["distilled"]) | {"summary": "", "message": "", "memories": []}
        connection.execute("UPDATE archives SET distilled = ? WHERE key = ?", (json.dumps(kept), row["key"]))
    return len(rows)
