"""Pictures that a SOUL shares, from the file in `.memory/images` to the record that they were shown.

A picture is recorded only once its post is on the network: in the post log, and in the lists that prevent showing it
twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections.abc import Collection
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from adapters.arena import Arena
from adapters.web.client import WebClient, http_transport_factory
from common.clock import Clock, iso
from common.errors import StorageError
from common.files import Json, load_state, read_bounded, save_state, write_atomic
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
from modules.services.pictures.post_log import PostLog, entry_of

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
