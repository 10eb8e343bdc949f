"""Proves that what an earlier version had accepted is still there, as it was, after the first start of this one."""

# ruff: noqa: S608 - the names put in are our own

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS

STATES = ("pending", "sending", "done", "failed", "expired", "blocked")
HEAD = "id, kind, target, body, body_hash, dedup_key, rkey, cause_id, created_at, expires_at"
TAIL = "attempts, deferrals, urgent, not_before, departed_at, sent_at, result_uri, result_cid, error"
COLUMNS = f"{HEAD}, state, {TAIL}"
ENTRIES = "id, at, kind, loop, summary, line, reason, trigger_uri, author, intent_id, data"
NOW = {
    name: text.replace("departed_at", "first_sent_at").replace("result_cid", "result_id")
    for name, text in (("columns", COLUMNS), ("tail", TAIL))
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a SOUL of the first version, with an act in every state."""
    path = tmp_path / "soul.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{MIGRATIONS[0]}; PRAGMA user_version = 1")
        for number, state in enumerate(STATES):
            head = [f"{name.strip()} {number}" for name in HEAD.split(",")]
            tail = [number, number + 1, 1, *(f"{name.strip()} {number}" for name in TAIL.split(",")[3:])]
            marks = ", ".join("?" * 20)
            connection.execute(f"INSERT INTO intents ({COLUMNS}) VALUES ({marks})", [*head, state, *tail])
        connection.execute("INSERT INTO feed_keys VALUES ('key', 'uri', 'at')")
        connection.execute(
            "INSERT INTO journal VALUES (NULL, 'at', 'act', 'outbox', 's', NULL, 'r', 't', 'a', 'id 0', '{}')"
        )
        connection.commit()
    return path


def _everything(path: Path, columns: str = COLUMNS) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            "intents": connection.execute(f"SELECT {columns} FROM intents ORDER BY id").fetchall(),
            "feed_keys": connection.execute("SELECT * FROM feed_keys").fetchall(),
            "journal": connection.execute(f"SELECT {ENTRIES} FROM journal").fetchall(),
        }


async def test_every_act_keeps_its_state_and_its_key(path: Path) -> None:
    before = _everything(path)
    await (await Database.open(path, MIGRATIONS)).close()
    assert _everything(path, NOW["columns"]) == before
    assert len(before["intents"]) == len(STATES)


@pytest.mark.parametrize("state", ["held", "pending", "sending", "done"])
async def test_an_act_that_was_done_or_on_its_way_cannot_be_accepted_a_second_time(path: Path, state: str) -> None:
    database = await Database.open(path, MIGRATIONS)
    for taken in ("id 0", "id 1", "id 2"):  # pending, sending, done
        again = f"""
            INSERT INTO intents ({NOW["columns"]})
            SELECT 'another', kind, target, body, body_hash, dedup_key, 'another', cause_id, 'another', expires_at,
                '{state}', {NOW["tail"]} FROM intents WHERE id = '{taken}'
        """

        def insert(connection: sqlite3.Connection, query: str = again) -> None:
            connection.execute(query)

        with pytest.raises(sqlite3.IntegrityError):
            await database.run(insert)
    await database.close()


async def test_a_start_that_was_cut_off_in_the_middle_of_the_step_is_done_again(path: Path) -> None:
    before = _everything(path)
    with closing(sqlite3.connect(path)) as dying:
        dying.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[1]}; PRAGMA user_version = 2")
    assert _everything(path) == before
    await (await Database.open(path, MIGRATIONS)).close()
    assert _everything(path, NOW["columns"]) == before


async def test_steps_of_which_one_fails_leave_the_file_to_the_earlier_version(path: Path) -> None:
    before = _everything(path)
    with pytest.raises(sqlite3.OperationalError):
        await Database.open(path, [*MIGRATIONS[:3], "ALTER TABLE nowhere ADD COLUMN lost TEXT"])
    assert _everything(path) == before
    await (await Database.open(path, MIGRATIONS[:1])).close()


async def test_a_follow_that_an_earlier_version_took_back_is_free_again(path: Path) -> None:
    with closing(sqlite3.connect(path)) as earlier:
        earlier.execute("UPDATE intents SET kind = 'follow' WHERE state IN ('done', 'failed')")
        earlier.execute(
            f"INSERT INTO intents ({COLUMNS}) SELECT 'back', 'delete', result_uri, body, body_hash, '', 'back',"
            f" cause_id, 'back', expires_at, state, {TAIL} FROM intents WHERE state = 'done'"
        )
        earlier.commit()
    await (await Database.open(path, MIGRATIONS)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT kind, state FROM intents WHERE undone").fetchall() == [("follow", "done")]


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("reply", "record"),
        ("direct_message", "message"),
        ("issue", "issue"),
        ("pull_request", "issue"),
        ("issue_comment", "comment"),
        ("merge", "commit"),
        ("contents", "file"),
        ("repository", "repository"),
    ],
)
async def test_what_an_earlier_version_made_is_known_by_what_its_id_is(path: Path, kind: str, result: str) -> None:
    with closing(sqlite3.connect(path)) as earlier:
        earlier.execute("UPDATE intents SET kind = ?, result_cid = '7'", (kind,))
        earlier.execute("UPDATE intents SET result_cid = NULL WHERE state <> 'done'")
        earlier.commit()
    await (await Database.open(path, MIGRATIONS)).close()
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT result_kind, result_id FROM intents WHERE state = 'done'").fetchall()
        unmade = connection.execute("SELECT DISTINCT result_kind FROM intents WHERE state <> 'done'").fetchall()
    assert (made, unmade) == ([(result, "7")], [(None,)])
