"""A forget reaches the memories on a server: all that are the person's, and nothing of another SOUL."""

from __future__ import annotations

from datetime import UTC, datetime

from common.person import Person, Trace
from modules.services.agent.memory.postgres_people import PostgresPeople
from modules.services.agent.memory.postgres_store import PostgresMemories
from modules.services.agent.memory.types import NewMemory

NOW = datetime(2026, 1, 5, tzinfo=UTC)
THREAD = "bluesky:thread:at://did:plc:sam/app.bsky.feed.post/1"
TRACE = Trace(Person("did:plc:quillon", ("quillon.test",)), frozenset({THREAD}))
THEIRS = (
    NewMemory("person", "quillon", "first words", source="bluesky:thread:at://did:plc:quillon/app.bsky.feed.post/1"),
    NewMemory("person", "quillon", "second words of @quillon.test"),
    NewMemory("fact", "weir", "The seventh weir hums.", source=THREAD),
)
OTHERS = NewMemory("fact", "quillon.tester", "Another handle that begins alike: quillon.tester")


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
