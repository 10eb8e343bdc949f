"""What is done for a task leaves only under the claim that it was proposed under."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from modules.services.claims.lease_store import lease_gate
from modules.services.outbox import store
from modules.services.outbox.github_bodies import PushBody, ReviewRequestBody
from modules.services.outbox.types import Wait
from tests.fresh_database import lay_database, open_database

NOW = datetime(2026, 1, 5, tzinfo=UTC)
TASK = "owner/site#12/task-3"
PUSH = {"branch": "task-3", "folder": "x", "repo": "owner/site", "sha": "a" * 40}
REVIEW = '{"number":7,"repo":"owner/site","reviewers":["ada"]}'
INTENT = (
    "INSERT INTO intents (id, kind, target, body, body_hash, dedup_key, rkey, created_at, expires_at, state)"
    " VALUES (:id, :kind, :target, :body, '', '', :id, :id, 'e', 'pending')"
)
LEASE = (
    "INSERT INTO task_leases VALUES (:key, 'owner', 'site', 12, 3, 'soul', 'held', :epoch, 1, '', '',"
    " '2026-01-06T00:00:00.000Z', NULL)"
)


@pytest.mark.parametrize("epoch", [4, 5, None])
async def test_an_act_for_a_task_leaves_only_while_that_is_ours(tmp_path: Path, epoch: int | None) -> None:
    path = tmp_path / "soul.db"
    lay_database(path)
    of_task = json.dumps(PUSH | {"task": TASK, "epoch": 4})
    with closing(sqlite3.connect(path)) as rows:
        rows.execute(INTENT, {"id": "push", "kind": "push", "target": f"{TASK}@4:push", "body": of_task})
        rows.execute(INTENT, {"id": "free", "kind": "push", "target": "owner@site", "body": json.dumps(PUSH)})
        asked = {"id": "asked", "kind": "review_request", "target": f"{TASK}@4:reviewer:ada", "body": REVIEW}
        rows.execute(INTENT, asked)
        if epoch:
            rows.execute(LEASE, {"key": TASK, "epoch": epoch})
        rows.commit()

    def waits(connection: sqlite3.Connection) -> dict[str, Wait | None]:
        found = {one.id: one for one in store.in_state(connection, "pending")}
        assert isinstance(found["push"].body, PushBody)
        assert isinstance(found["asked"].body, ReviewRequestBody)
        return {name: lease_gate(connection, one, NOW) for name, one in found.items()}

    database = await open_database(path)
    try:
        said = await database.run(waits)
    finally:
        await database.close()
    assert (said["push"] is None) == (epoch == 4)
    assert (said["free"], said["asked"]) == (None, None)
