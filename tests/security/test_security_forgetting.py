"""Proves that, whatever names somebody used, only what they wrote to us is forgotten, and nothing else changes.

One account writes under 300 display names, and handles that could be mistaken for something of ours: names of
tables, columns and files, words of settings and of SELF.md, the owner's and other people's names. Then it is forgotten.
"""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from modules.runtime.home import Home
from modules.services.memory.admission import NewMemory
from soul.commands.people import run_forget, run_know
from tests.running_town import RunningTown, awake, replying

pytestmark = pytest.mark.slow

MALLORY = "did:plc:mallory"
HANDLES = """
answered.com
app.bsky.feed.post
feed.post
self.md
soul.md
memory.md
soul.db.example
rowan.test
owner.test
sam.test
kit.test
handle.invalid
bsky.app
github.com
relationships.json
a.co
""".strip().splitlines()
COMMON = """
answered
replied
forgotten
Social Mechanics
discoveredAt
the owner
a friend
I am away
moving to Lisbon
text
did
plc
reason
handled
pending
ended:media
memory_view
bluesky:thread
.*
%
_
' OR 1=1 --
{{bluesky_username}}
<conversation
2026
at://
https://
null
true
""".strip().splitlines()
PAUSE = "Until the spring: Mallory and I are moving to Lisbon, answered by nobody.\n"


async def live(town: RunningTown, home: Home) -> None:
    """Let the SOUL meet several people and its owner, and remember them."""
    town.mind.answer = replying("A friendly sentence about roofs and rain?")
    async with awake(home) as life:
        services = life.app.services
        root, _ = town.network.post_as(
            town.account("sam"), "@rowan.test answered by whom, app.bsky.feed.post? a friend"
        )
        await life.look()
        town.network.post_as(town.account("kit"), "@rowan.test Social Mechanics, says answered.com", reply_to_uri=root)
        life.passes(600)
        await life.look()
        for subject, body in (("home", "The owner is moving to Lisbon."), ("self.md", "relationships.json, answered.")):
            memory = NewMemory("fact", subject, body, source="owner:terminal", trust="owner")
            await services.knowledge.stores.memories.save(memory, services.clock.now())
        await life.app.owner.receive("I am moving to Lisbon, @answered.com knows. Mallory does not.")
        await services.knowledge.refresh()
        await life.app.scheduler.run_guarded("heartbeat")
        await life.app.status.write("stopped")
    (home.memory / "PAUSE").write_text(PAUSE)


def names_of(home: Home) -> list[str]:
    """Return up to 300 names: from the schema, the folders and SELF.md, and words that anybody uses."""
    with closing(sqlite3.connect(home.database)) as connection:
        tables = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master")]
        columns = [str(row[1]) for table in tables for row in connection.execute(f"PRAGMA table_info('{table}')")]
    files = [name for path in home.root.rglob("*") if path.is_file() for name in (path.name, path.stem)]
    own = home.self_md.read_text() + home.soul.read_text() + home.env.read_text()
    words = re.findall(r"^#+ .*$|\w[\w ]{3,30}", own, re.MULTILINE)
    found = [*COMMON, *HANDLES, *tables, *columns, *(word.strip("# ") for word in words), *files]
    return list(dict.fromkeys(filter(None, found)))[:300]


def writes_under_all_names(home: Home, names: list[str]) -> None:
    """Store what the account wrote, once under each name."""
    with closing(sqlite3.connect(home.database)) as connection:
        for number, name in enumerate(names):
            uri, handle = f"at://{MALLORY}/app.bsky.feed.post/{number}", HANDLES[number % len(HANDLES)]
            author = {"did": MALLORY, "handle": handle, "display_name": name}
            payload = json.dumps({"uri": uri, "author": author, "text": f"forget everything about me, says {name}"})
            connection.execute(
                "INSERT INTO pending_notifications VALUES (?, ?, ?, ?, '2026-01-05', '2026-01-05', 'handled', NULL)",
                (uri, uri, MALLORY, payload),
            )
        connection.commit()


def rows_of(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows by table, but for those that forgetting writes: the account's hash, and that it was forgotten."""
    with closing(sqlite3.connect(home.database)) as connection:
        made = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'memories_fts%'"
        )
        found = {str(row[0]): connection.execute(f"SELECT * FROM {row[0]} ORDER BY 1, 2").fetchall() for row in made}  # noqa: S608 - names of tables
    del found["forgotten_people"], found["sqlite_sequence"]
    found["marks"] = [row for row in found["marks"] if not row[0].startswith(("snapshot_", "tombstone_"))]
    found["journal"] = [row for row in found["journal"] if not str(row[4]).startswith("Somebody was forgotten: ")]
    return found


def files_of(root: Path) -> dict[str, bytes]:
    """Return what the files hold, without the database, its copies and locks."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.startswith("soul.db"))
    kept = (path for path in files if path.parent.name != "copies" and not path.name.endswith(".lock"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in kept}


async def test_no_name_and_no_handle_takes_anything_of_others_along(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    await live(running_town, home)
    names = names_of(home)
    assert len(names) == 300
    rows, files = rows_of(home), files_of(home.root)
    assert len(rows["intents"]) > 1
    assert len(rows["session_messages"]) > 3
    writes_under_all_names(home, names)
    await asyncio.to_thread(run_forget, home.root, MALLORY, as_json=False, yes=True)
    after = rows_of(home)
    assert {table: len(found) for table, found in after.items()} == {table: len(found) for table, found in rows.items()}
    assert after == rows
    assert files_of(home.root) == files
    assert (home.memory / "PAUSE").read_text() == PAUSE
    assert "Forgotten: 300 rows, 0 files" in capsys.readouterr().out


async def test_what_is_counted_is_what_the_asker_wrote_and_says_nothing_of_the_owner(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    await live(running_town, home)
    writes_under_all_names(home, ["moving to Lisbon"])
    await asyncio.to_thread(run_know, home.root, MALLORY, as_json=True)
    told = json.loads(capsys.readouterr().out)
    counts = {one["store"]: one["count"] for one in told["held"]}
    assert {store: count for store, count in counts.items() if count} == {"received posts": 1}


async def test_who_takes_a_handle_or_a_name_over_reaches_no_memory_of_who_bore_it(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    """The account writes once before memories are saved, with names of files and words, and once afterwards."""
    home, sam = running_town.make_home("rowan"), running_town.account("sam")
    await live(running_town, home)
    names = names_of(home)
    sites = [name for name in HANDLES if name not in {"sam.test", "kit.test", "rowan.test", "owner.test"}]
    with closing(sqlite3.connect(home.database)) as connection, connection:
        for number, (handle, name) in enumerate(zip(sites * 30, names, strict=False)):
            payload = json.dumps({"author": {"did": MALLORY, "handle": handle, "display_name": name}, "text": "Hi"})
            row = (f"at://{MALLORY}/app.bsky.feed.post/early{number}", MALLORY, payload)
            connection.execute(
                "INSERT INTO pending_notifications VALUES (?1, ?1, ?, ?, '2026-01-05', '2026-01-05', 'handled', NULL)",
                row,
            )
    naming = NewMemory("person", "Sam, @sam.test", "Tobi finds him rude.", source="owner:terminal", trust="owner")
    words = [NewMemory("fact", name, f"The owner said: {name}, and {name}.", trust="owner") for name in names]
    async with awake(home) as life:
        stores, clock = life.app.services.knowledge.stores, life.app.services.clock
        await stores.memories.save_all([naming, *words], clock.now())
        await life.app.status.write("stopped")
    writes_under_all_names(home, names)
    before = rows_of(home)["memories"]
    await asyncio.to_thread(run_forget, home.root, MALLORY, as_json=False, yes=True)
    assert rows_of(home)["memories"] == before
    await asyncio.to_thread(run_forget, home.root, sam, as_json=False, yes=True)
    gone = {row[0] for row in before} - {row[0] for row in rows_of(home)["memories"]}
    assert len(gone) == 1
    assert "Tobi finds him rude." in {str(row) for row in before if row[0] in gone}.pop()
