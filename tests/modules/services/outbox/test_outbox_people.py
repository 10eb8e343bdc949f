"""Which acts are somebody's: those that reach them; an act that only speaks of them stays, without their name."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from common.person import SOMEBODY_DID, Person, Trace
from modules.runtime.database.functions import know_person
from modules.services.outbox.people import ACTS_OF_PEOPLE, intents_of
from tests.fresh_database import open_database

ADA = Person("did:plc:ada", ("ada.test",))
THEIRS = {"uri": "at://did:plc:ada/app.bsky.feed.post/1", "cid": "a"}
OTHER = {"uri": "at://did:plc:bob/app.bsky.feed.post/1", "cid": "b"}
ACTS = {
    "spoken-of": ("post", "", "owner:terminal", {"text": "did:plc:ada: hello, @ada.test"}),
    "quoted": ("post", "", "at://did:plc:bob/x/1", {"text": "See https://a.test/?actor=did%3aplc%3aada"}),
    "in-their-thread": ("reply", OTHER["uri"], "owner:terminal", {"text": "Hm.", "parent": OTHER, "root": THEIRS}),
    "reaches": ("follow", "did:plc:ada", "owner:terminal", {"did": "did:plc:ada"}),
    "message": ("direct_message", "", "owner:terminal", {"to": "did:plc:ada", "text": "Hm."}),
    "of-bob": ("direct_message", "", "owner:terminal", {"to": "did:plc:bob", "text": "Hm."}),
}


async def test_an_act_that_only_speaks_of_somebody_stays_without_their_name(tmp_path: Path) -> None:
    database = await open_database(tmp_path / "soul.db")

    def forget(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
        for number, (name, (kind, target, cause, body)) in enumerate(ACTS.items()):
            connection.execute(
                "INSERT INTO intents (id, kind, target, cause_id, body, body_hash, dedup_key, rkey, created_at,"
                " expires_at, state, by_owner) VALUES (?, ?, ?, ?, ?, '', ?, ?, ?, '2026-01-09', 'held', 1)",
                (name, kind, target, cause, json.dumps(body), f"once:{name}:did:plc:ada", name, f"2026-01-0{number}"),
            )
        know_person(connection, ADA)
        ACTS_OF_PEOPLE.forget(connection, Trace(ADA, intents=intents_of(connection, ADA, ())))
        rows = connection.execute("SELECT id, body, dedup_key FROM intents").fetchall()
        return {row["id"]: (json.loads(row["body"])["text"], row["dedup_key"]) for row in rows}

    try:
        left = await database.run(forget)
    finally:
        await database.close()
    assert left == {
        "spoken-of": (f"{SOMEBODY_DID}: hello, @forgotten.invalid", f"once:spoken-of:{SOMEBODY_DID}"),
        "quoted": (f"See https://a.test/?actor={SOMEBODY_DID}", f"once:quoted:{SOMEBODY_DID}"),
        "of-bob": ("Hm.", f"once:of-bob:{SOMEBODY_DID}"),
    }
