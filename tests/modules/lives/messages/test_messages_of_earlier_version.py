"""Proves that what the owner wrote before an upgrade is still answered once, and not begun a second time."""

from __future__ import annotations

from pathlib import Path

from common.clock import FakeClock, iso
from modules.lives.messages.types import OWNER_MESSAGE
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS, OLDEST_SCHEMA
from modules.services.inbox import messages
from modules.services.work.table import WorkTable

OWNER, ADA, AT = "did:plc:owner", "did:plc:ada", iso(FakeClock().now())
TALKS = [("c1", OWNER, ""), ("c2", ADA, "ada.test")]
SAID = [
    ("c1", "m2", "2", OWNER, "Tin or slate?", "pending", ""),
    ("c1", "m1", "1", OWNER, "/publish the figures", "pending", AT),
    ("c1", "m0", "0", OWNER, "Hello.", "handled", ""),
    ("c2", "m3", "3", ADA, "Are you a bot?", "pending", ""),
]
ANSWERED = [("Tin or slate?", "s1", "chat:c1/m2"), ("Hello.", "s0", "chat:c1/m0"), ("In the terminal", "", "")]


async def test_messages_of_the_owner_that_wait_in_an_older_home_are_rows_of_work(tmp_path: Path) -> None:
    path, clock = tmp_path / "soul.db", FakeClock()
    before = await Database.open(path, {OLDEST_SCHEMA: MIGRATIONS[OLDEST_SCHEMA]})
    talk = "INSERT INTO direct_conversations (id, did, status, handle) VALUES (?, ?, 'accepted', ?)"
    said = "INSERT INTO direct_messages VALUES (?, ?, ?, ?, ?, '', '', ?, '', ?)"
    answer = "INSERT INTO owner_messages (text, received_at, session_id, via) VALUES (?, '', ?, ?)"
    await before.run(lambda rows: rows.executemany(talk, TALKS))
    await before.run(lambda rows: rows.executemany(said, SAID))
    await before.run(lambda rows: rows.executemany(answer, ANSWERED))
    await before.close()
    database = await Database.open(path, MIGRATIONS)
    due = await WorkTable(database, clock).due([OWNER_MESSAGE])
    assert [(one.key, one.cause_id, one.author, one.importance, one.payload) for one in due] == [
        ("chat:c1/m1", "chat:c1/m1", OWNER, "owner", {"begun": True}),
        ("chat:c1/m2", "chat:c1/m2", OWNER, "owner", {}),
    ]
    assert [one.text for one in await database.run(messages.waiting)] == [SAID[1][4], SAID[0][4], SAID[3][4]]
    kept = await database.run(lambda rows: [row[0] for row in rows.execute("SELECT text FROM owner_messages")])
    assert kept == ["Tin or slate?", "In the terminal"]
    await database.close()
