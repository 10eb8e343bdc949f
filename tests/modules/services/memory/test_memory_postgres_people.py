"""A forget reaches the memories on a server: all that are the person's, and nothing of another SOUL."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from common.errors import Transient
from common.person import Person, Trace
from modules.services.memory.postgres_people import PostgresPeople
from modules.services.memory.postgres_store import PostgresMemories
from modules.services.memory.types import NewMemory

NOW = datetime(2026, 1, 5, tzinfo=UTC)
THREAD = "bluesky:thread:at://did:plc:sam/app.bsky.feed.post/1"
TRACE = Trace(Person("did:plc:quillon", ("quillon.test",)), frozenset({THREAD}))
THEIRS = (
    NewMemory("person", "quillon", "first words", dids=("did:plc:quillon",)),
    NewMemory("person", "weir two", "words of both", dids=("did:plc:quillon", "did:plc:sam")),
    NewMemory("fact", "weir", "The seventh weir hums.", source=THREAD),
)
OTHERS = NewMemory("fact", "quillon.test", "What another says of @quillon.test", dids=("did:plc:sam",), source=THREAD)


async def test_all_of_a_person_goes_and_nothing_else(postgres_url: str) -> None:
    stores = [PostgresMemories(postgres_url, name) for name in ("people one", "people two")]
    people = PostgresPeople(postgres_url, "people one")
    try:
        for store in stores:
            await store.save_all([*THEIRS, OTHERS], NOW)
        assert (await people.about(TRACE)).count == len(THEIRS)
        assert await people.forget(TRACE) == len(THEIRS)
        assert (await people.about(TRACE)).count == 0
        assert [memory.body for memory in await stores[0].listed()] == [OTHERS.body]
        assert len(await stores[1].listed()) > 1
        assert await people.forget(TRACE) == 0
    finally:
        for store in stores:
            await store.aclose()
        await people.aclose()


def files_that_hold(postgres_url: str, *needles: str) -> list[str]:
    """The server's table files that hold one of these; what it logs ahead of them is not among them."""
    folder = Path(parse_qs(urlsplit(postgres_url).query)["host"][0]) / "data"
    files = [path for name in ("base", "global", "pg_stat") for path in (folder / name).rglob("*") if path.is_file()]
    assert len(files) > 100
    return [f"{path.name}: {one}" for path in files for one in needles if one.encode() in path.read_bytes()]


@pytest.mark.slow
async def test_after_a_forget_the_tables_on_the_servers_disk_hold_no_byte_of_a_person(postgres_url: str) -> None:
    store, people = PostgresMemories(postgres_url, "bytes one"), PostgresPeople(postgres_url, "bytes one")
    words = ("Zymurgist lanterns hum beside the seventh weir", "zymurgist", "zephyrine.test")
    trace = Trace(Person("did:plc:zephyrine", ("zephyrine.test",)))
    trace_dids = (trace.person.did,)
    long = f"{words[0]}, says zephyrine.test. " + " ".join(f"{number * 7919:x}" for number in range(3_000))
    theirs = [
        NewMemory("fact", "zephyrine.test", f"{words[0]}, {number} times", dids=trace_dids) for number in range(60)
    ]
    kept = [NewMemory("fact", f"slate {number}", f"Slate is louder than tin, {number} times.") for number in range(300)]
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as keeper:
        try:
            await store.save_all(
                [*kept[:150], *theirs, NewMemory("fact", "zephyrine.test", long, dids=trace_dids), *kept[150:]], NOW
            )
            await keeper.execute("ANALYZE soul.memories")
            await keeper.execute("CHECKPOINT")
            assert {line.partition(": ")[2] for line in files_that_hold(postgres_url, *words)} == set(words)
            assert await people.forget(trace) == len(theirs) + 1
            await keeper.execute("CHECKPOINT")
            assert files_that_hold(postgres_url, *words)
            assert await people.rewrite()
            assert not await people.rewrite()
            await keeper.execute("CHECKPOINT")
            assert files_that_hold(postgres_url, *words) == []
            assert len(await store.listed()) == len(kept)
        finally:
            await store.aclose()
            await people.aclose()


async def test_a_rewrite_that_another_transaction_keeps_from_its_effect_is_told_and_stays_owed(
    postgres_url: str,
) -> None:
    store = PostgresMemories(postgres_url, "bytes two")
    people = PostgresPeople(postgres_url, "bytes two")
    hasty = PostgresPeople(postgres_url, "bytes two", rewrite_s=1.0)
    words, trace = "Yesteryear kettles sing at dusk", Trace(Person("did:plc:yolanda", ("yolanda.test",)))
    async with (
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as keeper,
        await psycopg.AsyncConnection.connect(postgres_url) as other,
    ):
        try:
            await store.save_all([NewMemory("fact", "yolanda.test", words, dids=(trace.person.did,))], NOW)
            await other.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            await other.execute("SELECT 1")
            assert await people.forget(trace) == 1
            with pytest.raises(Transient):
                await hasty.rewrite()
            await other.rollback()
            await other.execute("SELECT count(*) FROM soul.memories")
            with pytest.raises(Transient):
                await hasty.rewrite()
            await other.rollback()
            assert await people.forget(trace) == 0
            assert await people.rewrite()
            await keeper.execute("CHECKPOINT")
            assert files_that_hold(postgres_url, words, "yolanda") == []
        finally:
            await store.aclose()
            await people.aclose()
            await hasty.aclose()
