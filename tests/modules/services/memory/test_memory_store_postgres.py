"""Proves what only a shared server brings: SOULs that never see each other, several at once, a server that goes."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from common.clock import FakeClock
from common.errors import ConfigError, Transient
from modules.services.memory.postgres_store import PostgresMemories
from modules.services.memory.recall import MemoryRecall, MemoryRenderer
from modules.services.memory.types import NewMemory, Query
from modules.services.skills.framing import Framer
from tests.modules.services.memory.memory_home import SKILLS
from tests.modules.services.memory.memory_places import postgres_place

NOW = datetime(2026, 1, 5, tzinfo=UTC)
TEA = NewMemory("fact", "tea", "tea is green")


async def _execute(url: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for statement in statements:
            await connection.execute(statement)


async def _own_database(url: str, name: str) -> str:
    await _execute(url, f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")


async def test_one_soul_never_sees_what_another_remembers(postgres_url: str) -> None:
    async with postgres_place(postgres_url) as one, postgres_place(postgres_url) as other:
        theirs = await one.save(TEA, NOW)
        ours = await other.save(TEA, NOW)
        assert ours != theirs
        await other.save(NewMemory("fact", "tea", "tea is black"), NOW)
        assert [memory.body for memory in await one.search(Query("tea"), NOW)] == ["tea is green"]
        assert await other.get(theirs) is None
        assert await other.history(theirs) == []
        assert not await other.retire(theirs, NOW)
        await other.recalled([theirs], NOW)
        kept = await one.get(theirs)
        assert kept is not None
        assert (kept.recall_count, kept.superseded_by) == (0, None)
        assert await one.count() == 1
        assert len(await one.listed()) == 1


async def test_two_souls_that_come_first_at_the_same_moment_make_one_house(postgres_url: str) -> None:
    url = await _own_database(postgres_url, "first_come")
    stores = [PostgresMemories(url, f"agent {number}") for number in range(4)]
    try:
        ids = await asyncio.gather(*(store.save(TEA, NOW) for store in stores))
        assert len(set(ids)) == len(stores)
    finally:
        for store in stores:
            await store.aclose()


async def test_two_hands_of_one_soul_do_not_save_the_same_twice(postgres_url: str) -> None:
    async with postgres_place(postgres_url, "ambidextrous") as one, postgres_place(postgres_url, "ambidextrous") as two:
        await one.count()
        await two.count()
        ids = await asyncio.gather(*(store.save(TEA, NOW) for store in [one, two] * 5))
        assert len(set(ids)) == 1


async def test_a_connection_that_broke_is_made_anew(postgres_url: str) -> None:
    async with postgres_place(postgres_url) as store:
        await store.save(TEA, NOW)
        await _execute(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'",
        )
        with pytest.raises(Transient):
            await store.count()
        assert await store.count() == 1


async def test_a_server_that_is_not_there_is_a_passing_trouble(tmp_path: Path) -> None:
    async with postgres_place(f"postgresql://me:made-up@/postgres?host={tmp_path}") as store:
        with pytest.raises(Transient, match="PostgreSQL") as caught:
            await store.count()
        assert "made-up" not in str(caught.value)


async def test_a_server_that_does_not_know_us_is_told_with_its_remedy(postgres_url: str) -> None:
    async with postgres_place(f"postgresql://nobody@/postgres?{postgres_url.partition('?')[2]}") as store:
        with pytest.raises(Transient, match="nobody") as caught:
            await store.count()
        assert "DATABASE_URL" in caught.value.remedy


def _as(role: str, url: str) -> str:
    return url.replace(f"://{url.split('://')[1].split('@', maxsplit=1)[0]}@", f"://{role}@")


async def _database_of(url: str, name: str, role: str) -> str:
    """A database with tables, in which `role` may read and write; the address for that role."""
    own = await _own_database(url, name)
    async with postgres_place(own) as store:
        await store.count()
    await _execute(
        own,
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA soul TO {role}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA soul TO {role}",
    )
    return _as(role, own)


@pytest.mark.parametrize(
    ("name", "breaks", "mends", "said"),
    [
        (
            "standby",
            "ALTER ROLE standby SET default_transaction_read_only = on",
            "ALTER ROLE standby SET default_transaction_read_only = off",
            "read-only transaction",
        ),
        (
            "revoked",
            "REVOKE INSERT ON soul.memories FROM revoked",
            "GRANT INSERT ON soul.memories TO revoked",
            "permission denied",
        ),
        ("renamed", "ALTER SCHEMA soul RENAME TO gone", "ALTER SCHEMA gone RENAME TO soul", "permission denied"),
    ],
)
async def test_a_fault_of_the_server_passes_when_it_is_mended(
    postgres_url: str, name: str, breaks: str, mends: str, said: str
) -> None:
    url = await _database_of(postgres_url, name, name)
    admin = postgres_url.replace("/postgres?", f"/{name}?")
    await _execute(admin, breaks)
    async with postgres_place(url) as store:
        for _ in range(2):
            with pytest.raises(Transient, match=said) as caught:
                await store.save(TEA, NOW)
            assert "DATABASE_URL" in caught.value.remedy
        await _execute(admin, mends)
        await store.save(TEA, NOW)
        assert await store.count() == 1


async def test_a_recall_is_not_lost_where_it_cannot_be_counted(postgres_url: str) -> None:
    url = await _database_of(postgres_url, "reading_room", "reader")
    async with postgres_place(url, "recalls") as store:
        await store.save(TEA, NOW)
        await _execute(
            postgres_url.replace("/postgres?", "/reading_room?"), "REVOKE UPDATE ON soul.memories FROM reader"
        )
        memory_renderer = MemoryRenderer(SKILLS, Framer(SKILLS, random.Random(7)), "UTC")
        recalled = await MemoryRecall(store, FakeClock(NOW), len).recall("tea", memory_renderer, public_only=False)
        assert "tea is green" in recalled.text
        assert "permission denied" in recalled.uncounted


async def test_tables_of_a_newer_version_are_left_alone(postgres_url: str) -> None:
    url = await _own_database(postgres_url, "newer")
    async with postgres_place(url) as store:
        await store.save(TEA, NOW)
    await _execute(url, "UPDATE soul.version SET version = 99")
    async with postgres_place(url) as store:
        with pytest.raises(Transient, match="newer version") as caught:
            await store.count()
        assert caught.value.remedy == "Install the newer version again."


@pytest.mark.parametrize("url", ["mysql://me:made-up@host/x", "postgresql://me:made-up@host/x?no=1", "made-up"])
def test_what_is_no_address_of_a_server_is_a_wrong_setting_and_its_password_is_not_told(url: str) -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL") as caught:
        PostgresMemories(url, "agent")
    assert "made-up" not in f"{caught.value} {caught.value.remedy} {caught.value.__cause__}"


async def test_what_takes_too_long_is_given_up_and_leaves_the_way_free(postgres_url: str) -> None:
    store = PostgresMemories(postgres_url, "in a hurry", deadline_s=0.3)
    try:
        await store.save(TEA, NOW)
        async with await psycopg.AsyncConnection.connect(postgres_url) as other:
            await other.execute("LOCK TABLE soul.memories")
            with pytest.raises(Transient, match=r"within 0\.3 s"):
                await store.save(NewMemory("fact", "tea", "tea is black"), NOW)
        assert [memory.body for memory in await store.listed()] == ["tea is green"]
    finally:
        await store.aclose()


@pytest.fixture
def without_psycopg() -> Iterator[None]:
    """A program in which the extra is not installed."""
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "psycopg"}
    absent: dict[str, Any] = dict.fromkeys(kept)  # None is how Python notes that a module is not there
    sys.modules.update(absent)
    yield
    sys.modules.update(kept)


@pytest.mark.usefixtures("without_psycopg")
def test_a_missing_library_is_told_in_one_line() -> None:
    with pytest.raises(ConfigError, match="psycopg is not installed") as caught:
        PostgresMemories("postgresql://somewhere/", "agent")
    assert caught.value.remedy == "Install it: pip install 'psycopg[binary]'"
