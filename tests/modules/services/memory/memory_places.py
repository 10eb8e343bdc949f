"""Stores of memories on real ground: a SQLite file, and a PostgreSQL server of our own that ends with the tests."""

from __future__ import annotations

import getpass
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from modules.services.memory.postgres_store import PostgresMemories
from modules.services.memory.sqlite_store import SqliteMemories
from modules.services.memory.types import MemoryStore
from tests.fresh_database import open_database

PROGRAMS = "/usr/lib/postgresql"
_HASTE = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
_agents = itertools.count()


def programs() -> Path | None:
    """Where PostgreSQL's own programs are, the newest version first."""
    found = sorted(Path(PROGRAMS).glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    return next((path for path in found if (path / "initdb").exists()), None)


@contextmanager
def server(haste: tuple[str, ...] = _HASTE) -> Iterator[str]:
    """The address of a fresh server on a unix socket, stopped and deleted at the end."""
    at = programs()
    assert at is not None
    # NOTE(self): a socket's path must be short, and the user `postgres` must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="soul-pg-", dir="/tmp"))
    data = folder / "data"
    user = getpass.getuser()
    as_postgres: tuple[str, ...] = ()
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        as_postgres = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--")
        user = "postgres"
    flags = ("-k", str(folder), "-c", "listen_addresses=", "-c", "shared_buffers=64MB", *haste)
    try:
        _run(*as_postgres, at / "initdb", "-D", data, "-U", user, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        _run(
            *as_postgres,
            at / "pg_ctl",
            "-D",
            data,
            "-w",
            "-t",
            "30",
            "-l",
            folder / "log",
            "-o",
            " ".join(flags),
            "start",
        )
        try:
            yield f"postgresql://{user}@/postgres?host={folder}"
        finally:
            _run(*as_postgres, at / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    if done.returncode:
        sys.stderr.write(done.stdout.decode() + done.stderr.decode())
        done.check_returncode()


@asynccontextmanager
async def sqlite_place(path: Path) -> AsyncIterator[SqliteMemories]:
    database = await open_database(path)
    try:
        yield SqliteMemories(database)
    finally:
        await database.close()


@asynccontextmanager
async def postgres_place(url: str, agent: str = "") -> AsyncIterator[MemoryStore]:
    """The memories of an agent that nobody else is."""
    store = PostgresMemories(url, agent or f"agent-{next(_agents)}")
    try:
        yield store
    finally:
        await store.aclose()
