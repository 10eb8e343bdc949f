"""Proves what the folder keeps when a write is torn, the disk is full, or somebody else writes there too."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.storage.keys import archive_key
from adapters.storage.local import Storage, open_storage
from adapters.storage.types import StoredObject
from common.result import Err, Ok

KEY = "media/owner~3Aterminal/u.png"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage("", root=tmp_path / "store")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store" / KEY


def by_hand(file: Path, data: bytes | None) -> None:
    """Put there what is not written through the store, or None to take it away."""
    if data is None:
        file.unlink()
    else:
        file.write_bytes(data)


def beside(file: Path) -> Path:
    return file.with_name(file.name + ".meta.json")


async def got(storage: Storage, key: str = KEY) -> StoredObject:
    result = await storage.get(key)
    assert isinstance(result, Ok)
    return result.data


async def test_only_the_owner_can_read_what_is_kept(storage: Storage, file: Path, tmp_path: Path) -> None:
    await storage.put(KEY, b"x", metadata={"n": "1"})
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, beside(file))} == {0o600}
    folders = [folder for folder in file.parents if folder.is_relative_to(tmp_path / "store")]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


async def test_killed_between_sidecar_and_content_the_old_content_has_its_own_metadata(
    storage: Storage, file: Path
) -> None:
    await storage.put(KEY, b"old", content_type="image/png", metadata={"name": "old.png"})
    old = await got(storage)
    await storage.put(KEY, b"new", content_type="image/gif", metadata={"name": "new.gif"})
    new = await got(storage)
    by_hand(file, b"old")
    assert await got(storage) == old
    by_hand(file, b"new")
    assert await got(storage) == new


async def test_killed_at_the_first_write_nothing_is_there_and_the_next_one_succeeds(
    storage: Storage, file: Path
) -> None:
    await storage.put(KEY, b"x", metadata={"name": "a.png"})
    by_hand(file, None)
    missing = await storage.get(KEY)
    assert isinstance(missing, Err)
    assert missing.kind == "not_found"
    assert await storage.list("") == Ok(())
    assert (await storage.put(KEY, b"y", if_absent=True)).success
    assert (await got(storage)).metadata == {}


async def test_without_a_sidecar_that_can_be_read_an_object_is_readable(storage: Storage, file: Path) -> None:
    for told in (None, b"", b"[]", b"\xff", b'{"metadata": 3, "contentType": []}', b"[" * 100_000):
        await storage.put(KEY, b"x", content_type="image/png", metadata={"n": "1"})
        by_hand(beside(file), told)
        there = await got(storage)
        assert (there.data, there.content_type, there.metadata) == (b"x", "", {}), told


async def test_a_file_that_was_changed_by_hand_keeps_what_is_told_of_it(storage: Storage, file: Path) -> None:
    await storage.put(KEY, b"old", metadata={"name": "old.png"})
    before = await got(storage)
    by_hand(file, b"by hand")
    there = await got(storage)
    assert (there.data, there.metadata) == (b"by hand", {"name": "old.png"})
    assert not (await storage.put(KEY, b"x", if_match=before.etag)).success


async def test_what_was_left_by_hand_or_by_a_killed_writer_is_not_listed(storage: Storage, file: Path) -> None:
    await storage.put(KEY, b"x", metadata={"n": "1"})
    for name in (".u.png.k3xq", "my picture.png", "other.png.meta.json"):
        (file.parent / name).write_bytes(b"half")
    listed = await storage.list("")
    assert isinstance(listed, Ok)
    assert [info.key for info in listed.data] == [KEY]
    assert await storage.delete_all("media/") == Ok(1)
    assert not (file.parents[1]).exists()


async def test_the_longest_key_still_fits_on_a_disk(storage: Storage) -> None:
    key = archive_key("👋" * 100, "x" * 180, epoch_ms=10**13)
    assert (await storage.put(key, b"x", metadata={"n": "1"})).success
    assert (await got(storage, key)).metadata == {"n": "1"}


async def test_empty_folders_go_with_their_last_object(storage: Storage, tmp_path: Path) -> None:
    await storage.put("a/b/c.md", b"x", metadata={"n": "1"})
    await storage.delete("a/b/c.md")
    assert [path.name for path in (tmp_path / "store").iterdir()] == [".lock"]


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond 4 KiB: the nearest thing to a full disk that a process can make for itself.

    It holds for every file of this process, what the tests print included: only for one write, then.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_when_the_disk_takes_no_more_the_old_content_stays(storage: Storage, file: Path) -> None:
    await storage.put(KEY, b"old", metadata={"n": "1"})
    old = await got(storage)
    with full_disk():
        result = await storage.put(KEY, b"x" * 8192, metadata={"n": "2"})
    assert isinstance(result, Err)
    assert (result.kind, "Cannot write" in result.error) == ("fatal", True)
    assert await got(storage) == old
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, beside(file).name]


@pytest.mark.parametrize("place", ["media", KEY])
async def test_a_link_does_not_lead_out_of_the_store(storage: Storage, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    (outside / "owner~3Aterminal").mkdir(parents=True)
    (outside / "owner~3Aterminal/u.png").write_bytes(b"private")
    link = tmp_path / "store" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / KEY.removeprefix("media/") if place == KEY else outside)
    for result in (await storage.get(KEY), await storage.put(KEY, b"x"), await storage.delete(KEY)):
        assert isinstance(result, Err)
        assert "leads out of the store" in result.error
    assert await storage.list("") == Ok(())
    await storage.delete_all("media/")
    assert (outside / "owner~3Aterminal/u.png").read_bytes() == b"private"


async def test_while_another_process_writes_for_too_long_nothing_is_done(storage: Storage, tmp_path: Path) -> None:
    await storage.put(KEY, b"old")
    handle = os.open(tmp_path / "store/.lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        hurried = open_storage("", root=tmp_path / "store", deadline_s=0.3)
        result = await hurried.put(KEY, b"new")
        assert isinstance(result, Err)
        assert result.kind == "transient"
        assert (await got(storage)).data == b"old"
    finally:
        os.close(handle)
    assert (await storage.put(KEY, b"new")).success


COUNTER = """
import asyncio, sys
from pathlib import Path
from adapters.storage.keys import archive_key
from adapters.storage.local import open_storage

async def count(storage, times):
    done = 0
    while done < times:
        there = (await storage.get("n.md")).data
        number = b"%d" % (int(there.data) + 1)
        done += (await storage.put("n.md", number, metadata={"n": number.decode()}, if_match=there.etag)).success

asyncio.run(count(open_storage("", root=Path(sys.argv[1])), 20))
"""


@pytest.mark.slow
async def test_two_processes_that_count_together_lose_no_number(tmp_path: Path) -> None:
    storage = open_storage("", root=tmp_path)
    await storage.put("n.md", b"0")
    command = (sys.executable, "-c", COUNTER, str(tmp_path))
    children = [await asyncio.create_subprocess_exec(*command, cwd=ROOT) for _ in range(2)]
    assert [await child.wait() for child in children] == [0, 0]
    there = await got(storage, "n.md")
    assert (there.data, there.metadata) == (b"40", {"n": "40"})
