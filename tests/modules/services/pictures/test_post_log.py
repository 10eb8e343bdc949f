"""The post log records where every shared picture came from, and keeps the lines that it cannot read.

A post shows its pictures once, whatever happens on the way; they are recorded after the post exists.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from common.clock import iso
from common.result import Err
from modules.services.outbox.bodies import AttachedPicture, PictureSource, PostBody, RecordRef, ReplyBody
from modules.services.outbox.types import ProposedAction
from modules.services.pictures.pictures import (
    DOWNLOAD_AGE,
    WAITING_AGE,
    PostLog,
    entry_of,
    format_source_attribution,
    generate_post_context,
    has_complete_attribution,
)
from tests.adapters.results import ok
from tests.modules.services.pictures.sharing import SOURCE, Sharing
from town.atproto.service import Fault, FaultKind
from town.gallery.library import picture

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BLOCK = {"type": "arena", "block_id": 7, "block_url": "https://www.are.na/block/7", "filename": "a.png"}


def entry(number: int, **source: Any) -> dict[str, Any]:
    picture = AttachedPicture(
        sha256="0" * 64,
        mime_type="image/png",
        size=1,
        width=3,
        height=2,
        alt="Bars",
        source=PictureSource(**(BLOCK | source)),
    )
    body = PostBody(text="Bars.", pictures=(picture,))
    return entry_of(body, picture, uri=f"at://did:plc:me/app.bsky.feed.post/{number}", cid="cid", at=NOW)


@pytest.fixture
def log(tmp_path: Path) -> PostLog:
    return PostLog(tmp_path / "memory" / "post_log.jsonl")


def uri(number: int) -> str:
    return f"at://did:plc:me/app.bsky.feed.post/{number}"


def test_an_entry_is_found_by_either_address_the_newest_first(log: PostLog) -> None:
    assert log.lookup_post_by_uri(uri(1)) is None
    assert log.log_post(entry(1))
    assert log.log_post(entry(1) | {"why_picked": "again"}, entry(2))
    found = log.lookup_post_by_uri(uri(1))
    assert found is not None
    assert found["why_picked"] == "again"
    assert log.lookup_post_by_bsky_url("https://bsky.app/profile/did:plc:me/post/2") == entry(2)


def test_lines_that_cannot_be_read_are_passed_over_and_kept(log: PostLog, tmp_path: Path) -> None:
    path = tmp_path / "memory" / "post_log.jsonl"
    log.log_post(entry(1))
    with path.open("a") as file:
        file.write('[]\n{"bluesky": 7}\n{"torn')
    log.log_post(entry(2))
    assert log.update_post_attribution(uri(1), "https://maker.example/1", "told by its maker")
    lines = path.read_text().splitlines()
    assert lines[1:4] == ["[]", '{"bluesky": 7}', '{"torn']
    changed = log.lookup_post_by_uri(uri(1))
    assert changed is not None
    assert has_complete_attribution(changed)
    assert changed["source"]["attribution_notes"] == "told by its maker"
    assert log.lookup_post_by_uri(uri(2)) == entry(2)


def test_posts_without_a_source_wait_for_one_the_oldest_first(log: PostLog) -> None:
    for number in (1, 2, 3):
        log.log_post(entry(number))
    log.log_post(entry(4, original_url="https://maker.example/4"))
    waiting = log.get_posts_needing_attribution_followup(2)
    assert [one["bluesky"]["post_uri"] for one in waiting] == [uri(1), uri(2)]
    assert log.mark_post_needs_attribution_followup(uri(1), needs=False, notes="nobody knows")
    assert log.mark_post_needs_attribution_followup(uri(4), needs=True)
    waiting = log.get_posts_needing_attribution_followup()
    assert [one["bluesky"]["post_uri"] for one in waiting] == [uri(2), uri(3), uri(4)]
    assert not log.mark_post_needs_attribution_followup(uri(9), needs=True)


def test_a_full_file_is_set_aside_and_still_read(tmp_path: Path) -> None:
    log = PostLog(tmp_path / "memory" / "post_log.jsonl", max_bytes=100)
    for number in range(6):
        log.log_post(entry(number))
    names = sorted(path.name for path in (tmp_path / "memory").iterdir())
    assert names == [f"post_log.{end}" for end in ("1.jsonl", "2.jsonl", "3.jsonl", "jsonl", "jsonl.version")]
    assert [log.lookup_post_by_uri(uri(number)) is not None for number in range(6)] == [False] * 2 + [True] * 4
    assert log.update_post_attribution(uri(3), "https://maker.example/3")
    found = log.lookup_post_by_uri(uri(3))
    assert found is not None
    assert has_complete_attribution(found)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"original_url": "https://m.example"}, "Source: https://m.example\nvia Are.na: https://www.are.na/block/7"),
        ({}, "Source: https://www.are.na/block/7\n(a.png)"),
        ({"type": "web", "original_url": "https://m.example"}, "Source: https://m.example"),
        ({"type": "web"}, ""),
    ],
)
def test_the_source_is_told_as_far_as_it_is_known(source: dict[str, str], told: str) -> None:
    assert format_source_attribution(entry(1, **source)) == told


@pytest.mark.parametrize(
    ("age", "told"),
    [
        (timedelta(minutes=59), "Posted just now."),
        (timedelta(hours=1), "Posted 1 hour ago."),
        (timedelta(days=1, hours=3), "Posted 1 day ago."),
    ],
)
def test_the_context_tells_source_words_and_age(age: timedelta, told: str) -> None:
    context = generate_post_context(entry(1), NOW + age)
    assert context == f"Block: https://www.are.na/block/7. File: a.png. Alt text: Bars. {told}"
    assert generate_post_context({}, NOW) == ""
    assert generate_post_context(json.loads('{"source": 7, "timestamp": "x"}'), NOW) == ""
    assert iso(NOW) == entry(1)["timestamp"]


TEXT = "Stripes make a tower taller than it is. Which would you repaint first?\n\nhttps://harbour.example/lights/old"
POST = "app.bsky.feed.post"


async def test_a_post_shows_its_picture_with_words_for_those_who_cannot_see_it(sharing: Sharing) -> None:
    shown = await sharing.attached()
    assert sharing.town.network.blob(sharing.town.did("alice"), shown.sha256) is None
    submitted = await sharing.outbox.submit(ProposedAction(PostBody(text=TEXT, pictures=(shown,)), media_id="a"))
    assert not sharing.pictures.was_posted(SOURCE)
    await sharing.outbox.deliver_due()
    (record,) = sharing.town.network.records(sharing.town.did("alice"), POST)
    (image,) = record.value["embed"]["images"]
    assert (image["alt"], image["aspectRatio"]) == ("A lighthouse, painted", {"width": 700, "height": 1000})
    blob = sharing.town.network.blob(sharing.town.did("alice"), image["image"]["ref"]["$link"])
    assert blob is not None
    assert blob.content == ok(await sharing.pictures.load(shown))
    assert sharing.pictures.was_posted(SOURCE)
    assert sharing.reopened().was_posted(SOURCE)
    entry = sharing.pictures.log.lookup_post_by_uri(record.uri)
    assert entry is not None
    assert entry["source"]["block_url"] == SOURCE.block_url
    assert entry["content"] == {
        "post_text": TEXT,
        "alt_text": "A lighthouse, painted",
        "image_dimensions": {"width": 700, "height": 1000},
    }
    assert (entry["why_picked"], "needs_attribution_followup" in entry["source"]) == ("stripes", False)
    assert (await sharing.now(submitted.intent)).state == "done"


async def test_a_reply_shows_pictures_too(sharing: Sharing) -> None:
    uri, cid = sharing.town.network.post_as(sharing.town.did("bob"), "Show me a tower.")
    ref = RecordRef(uri=uri, cid=cid)
    body = ReplyBody(text="This one.", parent=ref, root=ref, pictures=(await sharing.attached(),))
    await sharing.outbox.submit(ProposedAction(body))
    await sharing.outbox.deliver_due()
    (record,) = sharing.town.network.records(sharing.town.did("alice"), POST)
    assert record.value["reply"]["parent"]["uri"] == uri
    assert len(record.value["embed"]["images"]) == 1
    entry = sharing.pictures.log.lookup_post_by_uri(record.uri)
    assert entry is not None
    assert entry["reply_context"]["parent_uri"] == uri


@pytest.mark.parametrize(
    ("kind", "request_name"),
    [
        ("lost_answer", "com.atproto.repo.uploadBlob"),
        ("lost_answer", "com.atproto.repo.putRecord"),
        ("expired_token", "com.atproto.repo.putRecord"),
    ],
)
async def test_whatever_is_lost_on_the_way_one_post_stands_there_and_is_logged_once(
    sharing: Sharing, kind: FaultKind, request_name: str
) -> None:
    pictures = (await sharing.attached(), await sharing.attached("threads.png"))
    intent = (await sharing.outbox.submit(ProposedAction(PostBody(text=TEXT, pictures=pictures)))).intent
    sharing.town.faults.arm(Fault(kind, request_name, times=2))
    for _ in range(6):
        await sharing.outbox.deliver_due()
        await sharing.town.clock.advance(120)
    assert (await sharing.now(intent)).state == "done"
    (record,) = sharing.town.network.records(sharing.town.did("alice"), POST)
    assert len(record.value["embed"]["images"]) == 2
    lines = (sharing.memory / "post_log.jsonl").read_text().splitlines()
    assert [json.loads(line)["bluesky"]["post_uri"] for line in lines] == [record.uri] * 2
    assert json.loads((sharing.memory / "arena_posted.json").read_text())["ids"] == [SOURCE.block_id]


async def test_a_picture_that_was_shown_is_not_shown_again(sharing: Sharing) -> None:
    shown = await sharing.attached()
    await sharing.outbox.submit(ProposedAction(PostBody(text=TEXT, pictures=(shown,))))
    await sharing.outbox.deliver_due()
    again = await sharing.pictures.attach(picture("lighthouse.jpg"), alt="The same", source=SOURCE)
    assert isinstance(again, Err)
    assert again.kind == "conflict"


async def test_one_picture_is_in_one_post_even_while_that_waits(sharing: Sharing) -> None:
    shown, other = await sharing.attached(), await sharing.attached("threads.png")
    first = await sharing.outbox.submit(ProposedAction(PostBody(text=TEXT, pictures=(shown,)), hold="ask"))
    again = await sharing.outbox.submit(ProposedAction(PostBody(text="Other words.", pictures=(other, shown))))
    assert not again.accepted
    assert again.reason == "The same picture as in a post that waits for the owner's approval"
    await sharing.outbox.reject(first.intent.id)
    assert (
        await sharing.outbox.submit(ProposedAction(PostBody(text="Other words.", pictures=(other, shown))))
    ).accepted


async def test_a_picture_whose_file_was_changed_or_lost_is_never_sent(sharing: Sharing) -> None:
    changed, lost = await sharing.attached(), await sharing.attached("threads.png")
    (sharing.memory / "images/waiting" / changed.sha256).write_bytes(picture("painted-signs.png"))
    (sharing.memory / "images/waiting" / lost.sha256).unlink()
    for number, shown in enumerate((changed, lost)):
        body = PostBody(text=f"Tower number {number}.", pictures=(shown,))
        intent = (await sharing.outbox.submit(ProposedAction(body))).intent
        await sharing.outbox.deliver_due()
        assert (await sharing.now(intent)).state == "failed"
    assert sharing.town.network.records(sharing.town.did("alice"), POST) == []
    assert not (sharing.memory / "post_log.jsonl").exists()


async def test_without_words_for_those_who_cannot_see_it_no_picture_is_taken(sharing: Sharing) -> None:
    refused = await sharing.pictures.attach(picture("threads.png"), alt=" \n", source=SOURCE)
    assert isinstance(refused, Err)
    assert refused.kind == "invalid"


async def test_only_what_was_downloaded_is_read_and_only_from_its_folder(sharing: Sharing) -> None:
    files = sharing.pictures.files
    path = await files.keep_download(picture("threads.png"), "image/png", SOURCE)
    for given in (str(path), path.name, f".memory/images/{path.name}"):
        assert ok(await files.read_download(given)) == (picture("threads.png"), SOURCE)
    secret = sharing.memory / "soul.png"
    secret.write_bytes(b"secret")
    (path.parent / "link.png").symlink_to(secret)
    (path.parent / "link.png.source.json").write_text("{}")
    for given in (
        str(secret),
        "../soul.png",
        "link.png",
        f"{path.name}.source.json",
        "/etc/passwd",
        "",
        "waiting",
        "\0",
    ):
        assert isinstance(await files.read_download(given), Err), given


async def test_files_go_when_they_are_too_old_to_be_used_but_not_while_an_act_that_shows_them_waits(
    sharing: Sharing,
) -> None:
    files, clock = sharing.pictures.files, sharing.town.clock
    await files.keep_download(picture("threads.png"), "image/png", SOURCE)
    unused, other = await sharing.attached(), SOURCE.model_copy(update={"block_id": 7})
    shown = await sharing.attached("threads.png", other)
    moment = clock.now() + 2 * WAITING_AGE
    await sharing.outbox.submit(ProposedAction(PostBody(text="Threads.", pictures=(shown,)), scheduled_for=moment))
    assert files.tidy() == 0
    await clock.advance(DOWNLOAD_AGE.total_seconds() + 1)
    assert files.tidy() == 2
    ok(await files.load(unused))
    await clock.advance((WAITING_AGE - DOWNLOAD_AGE).total_seconds())
    await sharing.attached("wet-slates.png", other)
    assert isinstance(await files.load(unused), Err)
    ok(await files.load(shown))


async def test_a_list_that_cannot_be_read_is_set_aside_and_told(sharing: Sharing) -> None:
    sharing.memory.mkdir()
    (sharing.memory / "arena_posted.json").write_text('{"ids": "all"}')
    pictures = sharing.reopened()
    assert not pictures.was_posted(SOURCE)
    await pictures.attach(b"", alt="", source=SOURCE)
    assert any("arena_posted.json" in message for kind, message, _ in sharing.console.lines if kind == "warn")
