"""A journal on a real database, and rows as the outbox and the perceiver would write them."""

import json
import sqlite3
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from adapters.atproto.types import Actor, Notification
from common.clock import FakeClock, iso
from common.errors import SoulError
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.explanation.rendering import story_of
from modules.services.explanation.story import Story, Unknown
from modules.services.outbox import store
from modules.services.outbox.bodies import OpaqueBody
from modules.services.outbox.types import Intent

SECRET = "correct-horse-battery"


@dataclass
class ExplainedHome:
    database: Database
    clock: FakeClock
    console: SilentConsole
    journal: Journal

    async def why(self, what: str) -> Story | Unknown:
        try:
            return await self.database.run(lambda connection: story_of(connection, what))
        except SoulError as error:
            return Unknown(str(error))

    async def story(self, what: str) -> Story:
        found = await self.why(what)
        assert isinstance(found, Story), found
        return found


@pytest.fixture
def explained_home(database: Database) -> ExplainedHome:
    clock, console = FakeClock(), SilentConsole()
    return ExplainedHome(database, clock, console, Journal(database, console, clock, Redactor([SECRET])))


async def an_intent(
    explained_home: ExplainedHome, name: str, target: str, *, cause: str, result: str = "", **more: Any
) -> None:
    values: dict[str, Any] = {
        "id": name,
        "kind": "reply",
        "target": target,
        "body_hash": "",
        "dedup_key": "",
        "rkey": name,
        "cause_id": cause,
        "created_at": "",
        "expires_at": iso(explained_home.clock.now()),
        "state": "done",
        "result_uri": result or None,
    }
    stored = more.pop("body", {})
    row = Intent(**{**values, **more, "body": OpaqueBody(stored)})

    def insert(connection: sqlite3.Connection) -> None:
        born = iso(store.unique_created_at(connection, explained_home.clock.now()))
        store.insert(connection, replace(row, created_at=born))

    await explained_home.database.run(insert)


async def a_notification(
    explained_home: ExplainedHome,
    uri: str,
    *,
    handle: str = "ada.example",
    text: str = "Tin or slate?",
    state: str = "pending",
) -> None:
    now = iso(explained_home.clock.now())
    did = uri.split("/")[2]
    told = Notification(uri, "cid", Actor(did, handle, handle), "mention", text, now, now)
    payload = asdict(told)
    payload["reason"] = payload.pop("kind")
    row = (uri, uri, did, json.dumps(payload), now, now, state, None)
    await explained_home.database.run(
        lambda connection: connection.execute("INSERT INTO pending_notifications VALUES (?,?,?,?,?,?,?,?)", row)
    )
