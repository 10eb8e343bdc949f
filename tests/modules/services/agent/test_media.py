"""Proves that media are limited in size, kept by session and found again, and that pictures are scaled down."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.storage.local import Storage, open_storage
from adapters.storage.objects import StoredObject
from common.clock import FakeClock
from common.result import Err, Ok
from modules.services.agent.media import MEDIA_MAX_BYTES, Media, recent_objects
from tests.adapters.storage.s3_server import KINDS, S3, open_kind, serving_s3
from tests.exploration import examples
from town.gallery.library import picture

SESSION = "bluesky:thread:at://did:plc:abc/app.bsky.feed.post/3k"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serving_s3() as running:
        yield running


@pytest.fixture(params=KINDS)
async def storage(request: pytest.FixtureRequest, tmp_path: Path, s3: S3) -> AsyncIterator[Storage]:
    opened = open_kind(request.param, tmp_path, s3)
    yield opened
    await opened.aclose()


@pytest.fixture
def media(storage: Storage) -> Media:
    return Media(storage, FakeClock(), cache_bytes=1000)


async def kept(media: Media, data: bytes = b"x", session: str = SESSION, name: str = "a.png") -> str:
    result = await media.keep(data, mime="image/png", session_key=session, name=name)
    assert isinstance(result, Ok)
    return result.data


async def test_what_is_kept_is_found_under_its_session_with_what_is_known_of_it(media: Media) -> None:
    key = await kept(media, b"\x89PNG", name="Grüße 👋.png")
    prefix = "media/bluesky~3Athread~3Aat~3A~2F~2Fdid~3Aplc~3Aabc~2Fapp.bsky.feed.post~2F3k/"
    assert re.fullmatch(rf"{re.escape(prefix)}[0-9a-f-]{{36}}\.png", key)
    found = await media.load(key)
    assert isinstance(found, Ok)
    assert (found.data.data, found.data.content_type) == (b"\x89PNG", "image/png")
    assert found.data.metadata == {
        "name": "Grüße 👋.png",
        "uploadedat": "2026-01-05T12:00:00.000Z",
        "sessionkey": SESSION,
    }


async def test_a_name_from_outside_decides_nothing_about_the_place(media: Media) -> None:
    result = await media.keep(b"x", mime="../../SOUL", session_key="../..", name="../../SOUL.md")
    assert isinstance(result, Ok)
    assert re.fullmatch(r"media/~2E\.~2F\.~2E/[0-9a-f-]{36}\.bin", result.data)


async def test_too_large_a_file_is_refused_with_its_size(media: Media) -> None:
    result = await media.keep(bytes(MEDIA_MAX_BYTES + 1024 * 1024), mime="video/mp4", session_key=SESSION)
    assert result == Err("The file has 26.0 MB; at most 25 MB are kept", "invalid")


async def test_the_same_bytes_are_kept_once_in_a_session_and_others_never_take_their_place(media: Media) -> None:
    first = await kept(media, b"first")
    assert await kept(media, b"first", name="again.png") == first
    assert await kept(media, b"second") != first
    assert await kept(media, b"first", session="owner:terminal") != first
    found = await media.load(first)
    assert isinstance(found, Ok)
    assert found.data.data == b"first"


@pytest.mark.parametrize("key", ["media/../agents/rowan/USER.md", "mediaevil/x.png"])
async def test_a_reference_reaches_nothing_but_media(media: Media, storage: Storage, key: str) -> None:
    await storage.put("agents/rowan/USER.md", b"private")
    await storage.put("mediaevil/x.png", b"private")
    result = await media.load(key)
    assert isinstance(result, Err)
    assert result.kind == "invalid"


async def test_a_forgotten_session_has_no_media_left_and_others_keep_theirs(media: Media) -> None:
    gone = [await kept(media, data) for data in (b"one", b"two", b"three")]
    other = await kept(media, session=f"{SESSION}x")
    for key in (*gone, other):
        await media.load(key)
    assert await media.forget(SESSION) == Ok(3)
    results = [await media.load(key) for key in gone]
    assert [result.kind for result in results if isinstance(result, Err)] == ["not_found"] * 3
    assert (await media.load(other)).success


SIZES = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60)), max_size=40)


@given(SIZES)
@settings(max_examples=examples(60))
def test_what_is_remembered_never_outgrows_its_room_and_the_newest_is_among_it(
    steps: Sequence[tuple[str, int]],
) -> None:
    recent = recent_objects(100)
    for name, size in steps:
        recent[name] = StoredObject(name, bytes(size), "")
        assert recent.currsize <= 100
        assert recent.get(name) is not None
    held = [found for name in "abcdef" if (found := recent.get(name))]
    assert recent.currsize == sum(len(found.data) for found in held)


async def test_a_picture_is_drawn_beside_the_loop(tmp_path: Path) -> None:
    media = Media(open_storage("", root=tmp_path), FakeClock())
    result = await media.picture(picture("lighthouse.jpg"))
    assert isinstance(result, Ok)
    assert max(result.data.width, result.data.height) <= 1024
