"""The post log: one line for each shared picture, with its source, in `.memory/post_log.jsonl`.

Unreadable lines are skipped and kept. At 10 MB the file is rotated; three older ones stay readable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeAlias

from common.clock import iso, parse_iso_or_none
from common.errors import StorageError
from common.files import read_bounded, stamp_jsonl_version, write_atomic
from common.json_lines import json_line, json_object, split_lines
from modules.services.outbox.bodies import AttachedPicture, PostBody, ReplyBody

Json: TypeAlias = dict[str, Any]

POST_LOG_MAX_BYTES = 10 * 1024 * 1024
OLDER_LOGS = 3
_ENTRIES_MAX_BYTES = 1024 * 1024
_HOUR_S, _DAY_S = 3600, 86_400


class PostLog:
    """The log at `path`. All methods block: call them in a thread."""

    def __init__(self, path: Path, *, max_bytes: int = POST_LOG_MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes

    def log_post(self, *entries: Json) -> bool:
        """Append the entries of one post; return False if they could not be written. Never raises for disk errors."""
        try:
            stamp_jsonl_version(self._path)
            if self._path.exists() and self._path.stat().st_size >= self._max_bytes:
                self._rotate()
            with self._path.open("a+b") as file:
                file.write(_after_torn_line(file) + b"".join(map(json_line, entries)))
        except (OSError, StorageError):
            return False
        return True

    def lookup_post_by_uri(self, uri: str) -> Json | None:
        """Return the newest entry of the post at `uri`, from older files too; None if there is none."""
        return self._newest(lambda entry: _of(entry, "bluesky").get("post_uri") == uri)

    def lookup_post_by_bsky_url(self, url: str) -> Json | None:
        """Return the newest entry of the post at that address on bsky.app; None if there is none."""
        return self._newest(lambda entry: _of(entry, "bluesky").get("bsky_url") == url)

    def get_posts_needing_attribution_followup(self, limit: int = 20) -> list[Json]:
        """Return the entries whose source is still to be found, oldest first."""
        waiting = (entry for entry in self._entries() if _of(entry, "source").get("needs_attribution_followup"))
        return list(waiting)[:limit]

    def mark_post_needs_attribution_followup(self, uri: str, *, needs: bool, notes: str = "") -> bool:
        """Set whether the source of a post is still to be found; return False if there is no such post."""
        told = {"needs_attribution_followup": needs, **({"attribution_notes": notes} if notes else {})}
        return self._change(uri, told)

    def update_post_attribution(self, uri: str, original_url: str, notes: str = "") -> bool:
        """Set where the maker of a picture shows it; return False if there is no such post."""
        told: Json = {"original_url": original_url, "needs_attribution_followup": False}
        return self._change(uri, told | ({"attribution_notes": notes} if notes else {}))

    def _files(self) -> list[Path]:
        """Return the files that exist, newest first."""
        return [path for number in range(OLDER_LOGS + 1) if (path := self._numbered(number)).is_file()]

    def _numbered(self, number: int) -> Path:
        return self._path.with_stem(f"{self._path.stem}.{number}") if number else self._path

    def _lines(self, path: Path) -> list[bytes]:
        return split_lines(read_bounded(path, self._max_bytes + _ENTRIES_MAX_BYTES))

    def _entries(self) -> Iterator[Json]:
        """Yield all readable entries, oldest first."""
        for path in reversed(self._files()):
            yield from filter(None, map(json_object, self._lines(path)))

    def _newest(self, fits: Callable[[Json], bool]) -> Json | None:
        return next((entry for entry in reversed(list(self._entries())) if fits(entry)), None)

    def _change(self, uri: str, told: Json) -> bool:
        for path in self._files():
            lines, found = self._lines(path), False
            for number, line in enumerate(lines):
                entry = json_object(line)
                if entry is not None and _of(entry, "bluesky").get("post_uri") == uri:
                    entry["source"] = _of(entry, "source") | told
                    lines[number], found = json_line(entry), True
            if found:
                write_atomic(path, b"".join(lines))
                return True
        return False

    def _rotate(self) -> None:
        for number in range(OLDER_LOGS, 0, -1):
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(self._numbered(number))


def entry_of(body: PostBody | ReplyBody, picture: AttachedPicture, *, uri: str, cid: str, at: datetime) -> Json:
    """Return the entry of one picture of the post at `uri`."""
    did, _, rkey = uri.removeprefix("at://").partition("/app.bsky.feed.post/")
    source: Json = {name: value for name, value in picture.source.stored().items() if value}
    entry: Json = {
        "timestamp": iso(at),
        "bluesky": {"post_uri": uri, "post_cid": cid, "bsky_url": f"https://bsky.app/profile/{did}/post/{rkey}"},
        "source": source | {"type": picture.source.type},
        "content": {
            "post_text": body.text,
            "alt_text": picture.alt,
            "image_dimensions": {"width": picture.width, "height": picture.height},
        },
    }
    if not has_complete_attribution(entry):
        entry["source"]["needs_attribution_followup"] = True
    if picture.why:
        entry["why_picked"] = picture.why
    if isinstance(body, ReplyBody):
        entry["reply_context"] = {
            "parent_uri": body.parent.uri,
            "parent_cid": body.parent.cid,
            "root_uri": body.root.uri,
            "root_cid": body.root.cid,
        }
    return entry


def has_complete_attribution(entry: Json) -> bool:
    """Return whether it is known where the maker of the picture shows it."""
    return bool(_of(entry, "source").get("original_url"))


def format_source_attribution(entry: Json) -> str:
    """Return the source of a picture, in lines for a post; "" if nothing is known."""
    source = _of(entry, "source")
    original, block = source.get("original_url") or "", source.get("block_url") or ""
    if source.get("type") != "arena" or not block:
        return f"Source: {original}" if original else ""
    if original:
        return f"Source: {original}\nvia Are.na: {block}"
    return f"Source: {block}" + (f"\n({source['filename']})" if source.get("filename") else "")


def generate_post_context(entry: Json, now: datetime) -> str:
    """Return what is known of a shared picture, in sentences: its source, why it was chosen, its alt text, its age."""
    source, content = _of(entry, "source"), _of(entry, "content")
    told = {
        "Are.na channel": source.get("channel_url"),
        "Title": source.get("block_title") or source.get("page_title"),
        "Block": source.get("block_url"),
        "Page": source.get("page_url"),
        "File": source.get("filename"),
        "Original": source.get("original_url"),
        "Provider": source.get("source_provider"),
        "Picture": source.get("image_url"),
        "Why": entry.get("why_picked"),
        "Alt text": content.get("alt_text"),
    }
    parts = [f"{name}: {value}." for name, value in told.items() if value]
    return " ".join([*parts, _age(parse_iso_or_none(str(entry.get("timestamp"))), now)]).strip()


def _after_torn_line(file: IO[bytes]) -> bytes:
    """Return a line break if a crash left half a line at the end."""
    if file.seek(0, os.SEEK_END) == 0:
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


def _age(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    seconds = max(0.0, (now - at).total_seconds())
    if seconds < _HOUR_S:
        return "Posted just now."
    unit, count = ("hour", round(seconds / _HOUR_S)) if seconds < _DAY_S else ("day", round(seconds / _DAY_S))
    return f"Posted {count} {unit}{'s' if count != 1 else ''} ago."


def _of(entry: Json, name: str) -> Json:
    part = entry.get(name)
    return part if isinstance(part, dict) else {}
