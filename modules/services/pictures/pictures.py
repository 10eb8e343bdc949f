"""Pictures that a SOUL shares, from the file in `.memory/images` to the log of the posts that showed them.

Unreadable lines of the log are skipped and kept. At 10 MB it is rotated; three older ones stay readable.

A picture is recorded only once its post is on the network: in the post log, and in the lists that prevent showing it
twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from adapters.arena import Arena
from adapters.web.client import WebClient, http_transport_factory
from common.clock import Clock, iso, parse_iso_or_none
from common.errors import StorageError
from common.files import Json, load_state, read_bounded, save_state, stamp_jsonl_version, write_atomic
from common.json_lines import json_line, json_object, split_lines
from common.result import ApiResult, Err, Ok, answering
from common.settings import Settings
from modules.runtime.database.database import Database
from modules.runtime.drawing.apart import PictureDrawer
from modules.runtime.drawing.draw import DrawnPicture
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox import store
from modules.services.outbox.bodies import AttachedPicture, PictureSource, PostBody, ReplyBody
from modules.services.outbox.types import Intent, Sent

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


SOURCE_MAX_BYTES = 10 * 1024 * 1024
DOWNLOAD_AGE = timedelta(hours=24)
WAITING_AGE = timedelta(hours=48)
"""How long a picture is kept that no waiting act shows."""

EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp"}
_SIDECAR = ".source.json"
_SIDECAR_MAX_BYTES = 64 * 1024
_WAITING = "waiting"
_PRIVATE = 0o600


class PictureFiles:
    """Stores all files of shared pictures; `folder` is `.memory/images`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._drawer = PictureDrawer()

    async def keep_download(self, data: bytes, mime_type: str, source: PictureSource) -> Path:
        """Store a file with its source for a day; return its path. Raises `StorageError`."""
        stamp = f"{self._clock.now():%Y%m%d%H%M%S}-{secrets.token_hex(3)}"
        path = self._folder / f"{stamp}{EXTENSIONS.get(mime_type, '.bin')}"

        def write() -> None:
            self.tidy()
            self._write(path.with_name(path.name + _SIDECAR), json.dumps(source.stored()).encode())
            self._write(path, data)

        await asyncio.to_thread(write)
        return path

    async def read_download(self, path: str) -> ApiResult[tuple[bytes, PictureSource]]:
        """Return a downloaded file and its source; an `Err` of kind `invalid` for any other path."""
        return await asyncio.to_thread(self._read_download, path)

    @answering
    async def keep_waiting(
        self, data: bytes, *, alt: str, why: str = "", source: PictureSource
    ) -> ApiResult[AttachedPicture]:
        """Redraw a picture and store it until its post has left."""
        drawn = (await self._drawer.draw(data, "upload")).or_raise()
        return Ok(await self._keep(drawn, alt, why, source))

    async def load(self, picture: AttachedPicture) -> ApiResult[bytes]:
        """Return the file of a waiting picture; an `Err` of kind `invalid` if it is missing or was changed."""
        try:
            data = await asyncio.to_thread(read_bounded, self._waiting(picture.sha256), SOURCE_MAX_BYTES)
        except OSError as error:
            return Err(f"the file of a picture cannot be read: {error.strerror}", "invalid")
        if hashlib.sha256(data).hexdigest() != picture.sha256:
            return Err("the file of a picture is not what was kept", "invalid")
        return Ok(data)

    def tidy(self, needed: Collection[str] | None = None) -> int:
        """Delete files that are too old to be used, and return their number; blocks.

        Waiting pictures stay if their hash is in `needed`, or if that is None.
        """
        now, deleted = self._clock.now().timestamp(), 0
        waiting = [] if needed is None else [(self._folder / _WAITING, WAITING_AGE)]
        for folder, age in ((self._folder, DOWNLOAD_AGE), *waiting):
            for path in folder.iterdir() if folder.is_dir() else ():
                is_old = path.is_file() and now - path.stat().st_mtime > age.total_seconds()
                if is_old and path.name not in (needed or ()):
                    path.unlink(missing_ok=True)
                    deleted += 1
        return deleted

    async def _keep(self, drawn: DrawnPicture, alt: str, why: str, source: PictureSource) -> AttachedPicture:
        name = hashlib.sha256(drawn.data).hexdigest()
        await asyncio.to_thread(self._write, self._waiting(name), drawn.data)
        return AttachedPicture(
            sha256=name,
            mime_type=drawn.mime,
            size=len(drawn.data),
            width=drawn.width,
            height=drawn.height,
            alt=alt,
            why=why,
            source=source,
        )

    def _waiting(self, name: str) -> Path:
        return self._folder / _WAITING / name

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file with the time of the clock as its modification time."""
        write_atomic(path, data, mode=_PRIVATE)
        moment = self._clock.now().timestamp()
        os.utime(path, (moment, moment))

    def _read_download(self, given: str) -> ApiResult[tuple[bytes, PictureSource]]:
        path = self._folder / Path(given).name
        same = Path(given) in {path, Path(path.name), Path("images") / path.name, Path(".memory/images") / path.name}
        if not same or path.suffix not in EXTENSIONS.values() or path.is_symlink():
            return Err("it is no file that was downloaded", "invalid")
        try:
            data = read_bounded(path, SOURCE_MAX_BYTES)
            stored = json.loads(read_bounded(path.with_name(path.name + _SIDECAR), _SIDECAR_MAX_BYTES))
            return Ok((data, PictureSource.model_validate(stored)))
        except (OSError, ValueError, RecursionError, ValidationError):
            return Err("no such file was downloaded, or it is gone", "invalid")


POSTED_REMEMBERED = 5000


def open_pictures(
    settings: Settings, memory: Path, database: Database, stack: AsyncExitStack, *, clock: Clock, journal: Journal
) -> Pictures:
    """Return the pictures with their web clients, which `stack` closes, after deleting downloads that are too old."""
    way = http_transport_factory(settings.arena_api_url, private_ok=settings.soul_allow_private_net)
    web = WebClient(way())
    stack.push_async_callback(web.aclose)
    arena = Arena(web, settings.arena_api_url)
    pictures = Pictures(memory, clock=clock, database=database, journal=journal, web=web, arena=arena)
    pictures.files.tidy()
    return pictures


class Pictures:
    """The pictures of one SOUL; `memory` is the folder `.memory`.

    `web` fetches pictures anywhere, `arena` those that are collected there.
    """

    def __init__(
        self, memory: Path, *, clock: Clock, database: Database, journal: Journal, web: WebClient, arena: Arena
    ) -> None:
        self.web = web
        self.arena = arena
        self.files = PictureFiles(memory / "images", clock)
        self.log = PostLog(memory / "post_log.jsonl")
        self._arena_path = memory / "arena_posted.json"
        self._web_path = memory / "web_images_posted.json"
        self._clock = clock
        self._database = database
        self._journal = journal
        self._recording = asyncio.Lock()
        self._block_ids: list[int] = []
        self._web: list[Json] = []
        self._untold = self._load()

    async def attach(
        self, data: bytes, *, alt: str, why: str = "", source: PictureSource
    ) -> ApiResult[AttachedPicture]:
        """Prepare a picture for a post, after deleting files that are too old and that no waiting act shows.

        An `Err` is of kind `conflict` if the picture was shown before, else `invalid`.
        """
        await self._tell()
        await asyncio.to_thread(self.files.tidy, await self._database.run(store.unsent_pictures))
        if not alt.strip():
            return Err("it needs words for those who cannot see it", "invalid")
        if self.was_posted(source):
            return Err("this picture was posted before", "conflict")
        return await self.files.keep_waiting(data, alt=alt, why=why, source=source)

    def was_posted(self, source: PictureSource) -> bool:
        """Return whether a picture of that source is on the network already."""
        known = {entry["url"] for entry in self._web}
        return source.block_id in self._block_ids if source.block_id else source.image_url in known

    def now(self) -> datetime:
        """Return the time by which ages are computed."""
        return self._clock.now()

    async def load(self, picture: AttachedPicture) -> ApiResult[bytes]:
        """Return the file of a waiting picture; an `Err` of kind `invalid` if it is missing or was changed."""
        return await self.files.load(picture)

    async def posted(self, intent: Intent, sent: Sent) -> None:
        """Record that the pictures of an intent are on the network. The same intent again changes nothing."""
        body = intent.body
        if not isinstance(body, PostBody | ReplyBody):
            return
        async with self._recording:
            if await asyncio.to_thread(self.log.lookup_post_by_uri, sent.uri) is not None:
                return
            self._untold += await asyncio.to_thread(self._load)
            for picture in body.pictures:
                self._remember(picture.source)
            now = self._clock.now()
            entries = [entry_of(body, picture, uri=sent.uri, cid=sent.id, at=now) for picture in body.pictures]
            written = await asyncio.to_thread(self._write, entries)
        if not written:
            await self._journal.record(
                Entry("error", "pictures", "A shared picture could not be logged", line="warn", reason=sent.uri)
            )

    async def _tell(self) -> None:
        """Record which lists could not be read."""
        while self._untold:
            await self._journal.record(Entry("error", "pictures", self._untold.pop(0), line="warn"))

    def _load(self) -> list[str]:
        """Read the lists, which others may have changed; return lines for the owner about problems."""
        blocks = load_state(self._arena_path, {"ids": []}, fits=_fits_ids)
        others = load_state(self._web_path, {"entries": []}, fits=_fits_web)
        self._block_ids, self._web = blocks.data["ids"], others.data["entries"]
        return [loaded.notice for loaded in (blocks, others) if loaded.notice]

    def _remember(self, source: PictureSource) -> None:
        if self.was_posted(source):
            return
        if source.block_id:
            self._block_ids = [*self._block_ids, source.block_id][-POSTED_REMEMBERED:]
        elif source.image_url:
            told = {"pageUrl": source.page_url, "pageTitle": source.page_title}
            known = {name: value for name, value in told.items() if value}
            entry = {"url": source.image_url, "postedAt": iso(self._clock.now()), **known}
            self._web = [*self._web, entry][-POSTED_REMEMBERED:]

    def _write(self, entries: list[Json]) -> bool:
        """Write the lists, then the log, which shows that all was done; return False if the disk refuses."""
        try:
            save_state(self._arena_path, {"ids": self._block_ids})
            save_state(self._web_path, {"entries": self._web})
        except StorageError:
            return False
        return self.log.log_post(*entries)


def _fits_ids(state: Json) -> bool:
    ids = state.get("ids")
    return isinstance(ids, list) and all(isinstance(one, int) for one in ids)


def _fits_web(state: Json) -> bool:
    entries = state.get("entries")
    return isinstance(entries, list) and all(
        isinstance(one, dict) and isinstance(one.get("url"), str) for one in entries
    )
