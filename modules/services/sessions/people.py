"""The parts of conversations that belong to a person. Each function is one step of a caller's transaction.

Each message is tied to the account whose words it holds or answers, a summary to all accounts that it tells about.
Talks with the owner and in a room belong to nobody but the owner. The connection must know the person
(`modules/runtime/database/people.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from common.json_lines import json_object
from common.person import Trace
from common.session_keys import FORMER_PREFIX
from modules.runtime.database.people import PersonalRows, PersonalTable, change_owner

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
    """Set aside the talks and unanswered messages of the owner `before`, and restore those of `now`."""
    for table, column in (("sessions", "key"), ("archives", "session_key")):
        change_owner(connection, table, column, before, now)
    connection.execute("UPDATE owner_messages SET via = ? || id WHERE via = ''", (f"{FORMER_PREFIX}{before}:",))
    of = {"of": f"{FORMER_PREFIX}{now}:"}
    connection.execute("UPDATE owner_messages SET via = '' WHERE substr(via, 1, length(:of)) = :of", of)


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
        PersonalTable(
            name="owner_messages",
            named="SELECT 'message ' || id || ' of yours' FROM owner_messages WHERE named(text) ORDER BY id",
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
