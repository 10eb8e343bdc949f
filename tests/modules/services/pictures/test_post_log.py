"""The post log tells where every shared picture came from, and keeps what it cannot read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from common.clock import iso
from modules.services.outbox.bodies import AttachedPicture, PictureSource, PostBody
from modules.services.pictures.post_log import (
    PostLog,
    entry_of,
    format_source_attribution,
    generate_post_context,
    has_complete_attribution,
)

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
