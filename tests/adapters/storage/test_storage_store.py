"""Proves that a folder, memory and S3 give the same guarantees."""

import asyncio
from typing import Any

from adapters.storage.local import Storage
from adapters.storage.objects import ObjectInfo, StoredObject
from common.result import Err, Ok

KEY = "agents/rowan/GOALS.md"
TOLD = {"name": "Grüße 100% 👋.png ", "sessionkey": "bluesky:thread:at://did:plc:abc/x", "partnumber": "3", "n": ""}


async def got(storage: Storage, key: str = KEY) -> StoredObject:
    result = await storage.get(key)
    assert isinstance(result, Ok)
    return result.data


async def listed(storage: Storage, prefix: str = "") -> tuple[ObjectInfo, ...]:
    result = await storage.list(prefix)
    assert isinstance(result, Ok)
    return result.data


def kind(result: Ok[Any] | Err) -> str:
    return result.kind if isinstance(result, Err) else "ok"


async def test_what_was_put_comes_back_with_its_kind_and_metadata(storage: Storage) -> None:
    put = await storage.put(KEY, b"\x00\xff", content_type="image/png", metadata=TOLD)
    there = await got(storage)
    assert (there.key, there.data, there.content_type, there.metadata) == (KEY, b"\x00\xff", "image/png", TOLD)
    assert put == Ok(there.etag)


async def test_a_later_put_takes_the_place_of_all_that_was_there(storage: Storage) -> None:
    await storage.put(KEY, b"one", content_type="text/plain", metadata={"n": "1"})
    await storage.put(KEY, b"two", metadata={"m": "2"})
    there = await got(storage)
    assert (there.data, there.metadata) == (b"two", {"m": "2"})


async def test_what_is_not_there_is_not_found(storage: Storage) -> None:
    assert kind(await storage.get(KEY)) == "not_found"
    assert await storage.delete(KEY) == Ok(data=False)
    assert await listed(storage) == ()
    assert await listed(storage, "agents/") == ()
    assert await storage.delete_all("agents/") == Ok(0)


async def test_what_is_deleted_is_gone_with_its_metadata(storage: Storage) -> None:
    await storage.put(KEY, b"x", metadata={"n": "1"})
    assert await storage.delete(KEY) == Ok(data=True)
    assert kind(await storage.get(KEY)) == "not_found"
    await storage.put(KEY, b"x")
    assert (await got(storage)).metadata == {}


async def test_a_listing_shows_the_objects_of_a_folder_in_order_and_nothing_else(storage: Storage) -> None:
    for key in ("agents/rowan/b.md", "agents/rowan/a.md", "agents/rowan/memory/2026-11-22.md", "agents/rowan2/a.md"):
        await storage.put(key, key.encode(), content_type="text/markdown", metadata={"n": "1"})
    infos = await listed(storage, "agents/rowan/")
    assert [info.key for info in infos] == [
        "agents/rowan/a.md",
        "agents/rowan/b.md",
        "agents/rowan/memory/2026-11-22.md",
    ]
    assert infos == await listed(storage, "agents/rowan")
    assert [info.size for info in infos] == [len(info.key) for info in infos]
    assert len(await listed(storage)) == 4


async def test_a_listing_of_more_than_one_page_is_whole(storage: Storage) -> None:
    await asyncio.gather(*(storage.put(f"media/s/{n:03}.bin", b"") for n in range(60)))
    assert [info.key for info in await listed(storage, "media/s/")] == [f"media/s/{n:03}.bin" for n in range(60)]


async def test_deleting_a_folder_leaves_the_one_beside_it(storage: Storage) -> None:
    for key in ("media/a/1.png", "media/a/b/2.png", "media/ab/3.png"):
        await storage.put(key, b"x", metadata={"n": "1"})
    assert await storage.delete_all("media/a/") == Ok(2)
    assert [info.key for info in await listed(storage)] == ["media/ab/3.png"]


async def test_nobody_deletes_everything_by_leaving_out_a_word(storage: Storage) -> None:
    await storage.put(KEY, b"x")
    assert kind(await storage.delete_all("")) == "invalid"
    assert len(await listed(storage)) == 1


async def test_only_the_first_may_write_where_nothing_is(storage: Storage) -> None:
    results = await asyncio.gather(*(storage.put(KEY, str(n).encode(), if_absent=True) for n in range(8)))
    assert sorted(kind(result) for result in results) == ["conflict"] * 7 + ["ok"]
    winner = next(n for n, result in enumerate(results) if result.success)
    assert (await got(storage)).data == str(winner).encode()


async def test_of_those_who_write_over_what_they_read_one_wins(storage: Storage) -> None:
    await storage.put(KEY, b"before")
    seen = (await got(storage)).etag
    results = await asyncio.gather(*(storage.put(KEY, str(n).encode(), if_match=seen) for n in range(8)))
    assert sorted(kind(result) for result in results) == ["conflict"] * 7 + ["ok"]
    after = (await got(storage)).etag
    assert Ok(after) in results
    assert kind(await storage.put(KEY, b"late", if_match=seen)) == "conflict"
    assert (await storage.put(KEY, b"next", if_match=after)).success


async def test_what_was_deleted_meanwhile_is_a_conflict_too(storage: Storage) -> None:
    await storage.put(KEY, b"x")
    seen = (await got(storage)).etag
    await storage.delete(KEY)
    assert kind(await storage.put(KEY, b"y", if_match=seen)) == "conflict"
    assert await listed(storage) == ()


async def test_what_is_no_key_is_refused_everywhere(storage: Storage) -> None:
    for key in ("", "../x", "a//b", "/etc/passwd", "a/.hidden", "a.meta.json", "a\x00b", "a b"):
        results = (
            await storage.get(key),
            await storage.put(key, b"x"),
            await storage.delete(key),
            await storage.delete_all(key),
        )
        assert [kind(result) for result in results] == ["invalid"] * 4


async def test_a_large_object_is_one_object(storage: Storage) -> None:
    data = bytes(range(256)) * 4096 * 8
    await storage.put(KEY, data, if_absent=True)
    assert (await got(storage)).data == data
