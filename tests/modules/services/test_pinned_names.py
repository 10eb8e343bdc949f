"""What a name stood for when it was first seen is kept, and a change waits for the owner."""

from pathlib import Path

from common.clock import FakeClock
from modules.runtime.journal.types import Entry
from modules.services.pinned_names import PinnedNames


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
    assert await opened().accept("eve") == "none"
    assert await opened().accept("ada") == "accepted"
    names = opened()
    assert await names.check("github", "ada", "8")
    assert not await names.check("github", "ada", "7")
    assert await names.check("bluesky", "ada", "did:plc:ada")


async def test_only_whom_the_owner_was_told_of_is_accepted_and_one_kind_of_name_at_a_time(tmp_path: Path) -> None:
    told: list[Entry] = []

    async def record(entry: Entry) -> None:
        told.append(entry)

    names = PinnedNames(tmp_path / "names.json", FakeClock(), record)
    for nobody in ("", "0"):
        assert not await names.check("github", "bob", nobody)
    for answered in ("1", "6", "0", "1", "7"):
        await names.check("github", "bob", answered)
    assert await names.accept("bob") == "another"
    assert names.get("github", "bob") == "1"
    assert "7" in told[-1].summary
    await names.check("bluesky", "Bob", "did:plc:bob")
    await names.check("bluesky", "Bob", "did:plc:eve")
    assert await names.accept("bob") == "several"
    assert await names.accept("github:bob") == "accepted"
    assert (names.get("github", "bob"), names.get("bluesky", "bob")) == ("7", "did:plc:bob")
    assert await names.accept("BOB") == "accepted"


async def test_a_name_that_is_again_what_it_was_waits_no_more(tmp_path: Path) -> None:
    async def record(_: Entry) -> None:
        """Ignore the entry."""

    names = PinnedNames(tmp_path / "names.json", FakeClock(), record)
    await names.check("repository", "acme/site", "1")
    assert not await names.check("repository", "acme/site", "2")
    assert await names.check("repository", "acme/site", "1")
    assert names.waiting() == []
