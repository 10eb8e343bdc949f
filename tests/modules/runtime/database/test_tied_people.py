"""Rows of earlier versions are tied to the accounts that wrote them, by their thread and the handle before a post."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.database.schema_steps import TIED_PEOPLE

ADA, BOB, CLEO = "did:plc:ada", "did:plc:bob", "did:plc:cleo"
THREAD = f"at://{CLEO}/app.bsky.feed.post/1"
KEY = f"bluesky:thread:{THREAD}"
SAID = [
    ("user", {"content": "@a.test (Ada): Rain?"}, ADA),
    ("assistant", {"content": [{"type": "text", "text": "Rain."}]}, ADA),
    ("user", {"content": [{"type": "text", "text": "@a.tested: Snow?"}]}, BOB),
    ("toolResult", {"content": "queued"}, BOB),
    ("user", {"content": "@c.test: My own thread."}, CLEO),
]

MEMORY = """
INSERT INTO memories (created_at, updated_at, kind, subject, body, tags, source, trust, private, importance,
    subject_key, body_hash, shelf) VALUES ('', '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


async def test_each_message_is_its_authors_and_what_was_made_of_a_thread_is_of_all_in_it(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    with closing(sqlite3.connect(path)) as old:
        before = MIGRATIONS.index(TIED_PEOPLE)
        for number in range(1, before + 1):
            old.create_function("unspaced_tokens", 1, lambda _: "")
            old.executescript(MIGRATIONS[number - 1])
        old.execute(f"PRAGMA user_version = {before}")
        for did, handle in ((ADA, "a.test"), (BOB, "a.tested")):
            post = (f"at://{did}/x/1", THREAD, did, json.dumps({"author": {"handle": handle}}))
            old.execute("INSERT INTO pending_notifications VALUES (?, ?, ?, ?, '', '', 0, 'handled', NULL)", post)
        for session, key in (("one", KEY), ("two", "owner:terminal")):
            old.execute(
                "INSERT INTO sessions (id, key, created_at, last_active_at) VALUES (?, ?, '', '')", (session, key)
            )
            for seq, (role, fields, _) in enumerate(SAID):
                said = json.dumps(fields, separators=(",", ":"))
                old.execute("INSERT INTO session_messages VALUES (?, ?, ?, ?, 1, 0, '')", (session, seq, role, said))
        for source in (KEY, "owner:terminal"):
            values = ("fact", source, "body", "", source, "stranger", 0, 3, "", source, "")
            old.execute(MEMORY, values)
        old.commit()
    await (await Database.open(path, MIGRATIONS)).close()
    with closing(sqlite3.connect(path)) as new:
        tied = new.execute("SELECT dids FROM session_messages WHERE session_id = ? ORDER BY seq", ("one",)).fetchall()
        assert [row[0] for row in tied] == [did for *_, did in SAID]
        assert new.execute("SELECT DISTINCT dids FROM session_messages WHERE session_id = 'two'").fetchall() == [("",)]
        assert new.execute("SELECT dids FROM memories ORDER BY id").fetchall() == [(f"{ADA} {BOB} {CLEO}",), ("",)]
