"""What a name stood for when it was first seen is kept, and a change waits for the owner."""

from __future__ import annotations

from pathlib import Path

from common.clock import FakeClock
from modules.runtime.journal.types import Entry
from modules.services.pinned_names.store import PinnedNames


async def test_a_name_that_passed_on_waits_for_the_owner_over_restarts(tmp_path: Path) -> None:
    told: list[Entry] = []

    async def record(entry: Entry) -> None:
        told.append(entry)

    def opened() -> PinnedNames:
        return PinnedNames(tmp_path / "names.json", FakeClock(), record)

    names = opened()
    assert await names.check("github", "Ada", "7")
    assert await names.check("bluesky", "ada", "did:plc:ada")
    names = opened()
    for _ in range(3):
        assert not await names.check("github", "ada", "8")
    assert names.has_passed_on("github", "ADA")
    assert names.get("github", "ada") == "7"
    assert len(told) == 1
    assert not opened().accept("eve")
    assert opened().accept("ada")
    names = opened()
    assert await names.check("github", "ada", "8")
    assert not await names.check("github", "ada", "7")
    assert await names.check("bluesky", "ada", "did:plc:ada")


async def test_a_name_that_is_again_what_it_was_waits_no_more(tmp_path: Path) -> None:
    async def record(_: Entry) -> None:
        """Tell nobody."""

    names = PinnedNames(tmp_path / "names.json", FakeClock(), record)
    await names.check("repository", "acme/site", "1")
    assert not await names.check("repository", "acme/site", "2")
    assert await names.check("repository", "acme/site", "1")
    assert names.waiting() == []
