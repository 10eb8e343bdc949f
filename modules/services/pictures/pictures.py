"""Pictures that a SOUL shares, from the file to the record that they were shown.

What was shown is recorded once its post stands on the network, never before: in the post log, and in the lists by
which nothing is shown twice.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

from adapters.arena.client import Arena
from adapters.web.client import WebClient
from adapters.web.transport import http_transport_factory
from common.clock import Clock, iso
from common.errors import StorageError
from common.result import ApiResult, Err
from common.settings import Settings
from common.state import Json, load_state, save_state
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import AttachedPicture, PictureSource, PostBody, ReplyBody
from modules.services.outbox.types import Intent, Sent
from modules.services.pictures.files import PictureFiles
from modules.services.pictures.post_log import PostLog, entry_of

POSTED_REMEMBERED = 5000


def open_pictures(
    settings: Settings, memory: Path, *, clock: Clock, journal: Journal, stack: AsyncExitStack
) -> Pictures:
    """Return them with their ways to the web, which `stack` closes, and without files that are too old to be used."""
    way = http_transport_factory(settings.arena_api_url, private_ok=settings.soul_allow_private_net)
    web = WebClient(way())
    stack.push_async_callback(web.aclose)
    arena = Arena(web, settings.arena_api_url)
    pictures = Pictures(memory, clock=clock, journal=journal, web=web, arena=arena)
    pictures.files.tidy()
    return pictures


class Pictures:
    """The pictures of one SOUL; `memory` is the folder `.memory`.

    `web` is the way to pictures anywhere, `arena` to those that are collected there.
    """

    def __init__(self, memory: Path, *, clock: Clock, journal: Journal, web: WebClient, arena: Arena) -> None:
        self.web = web
        self.arena = arena
        self.files = PictureFiles(memory / "images", clock)
        self.log = PostLog(memory / "post_log.jsonl")
        self._arena_path = memory / "arena_posted.json"
        self._web_path = memory / "web_images_posted.json"
        self._clock = clock
        self._journal = journal
        self._recording = asyncio.Lock()
        self._block_ids: list[int] = []
        self._web: list[Json] = []
        self._untold = self._load()

    async def attach(
        self, data: bytes, *, alt: str, why: str = "", source: PictureSource
    ) -> ApiResult[AttachedPicture]:
        """Make a picture ready to be posted. `Err` of kind `invalid` if it cannot be, `conflict` if it was shown."""
        await self._tell()
        if not alt.strip():
            return Err("it needs words for those who cannot see it", "invalid")
        if self.was_posted(source):
            return Err("this picture was posted before", "conflict")
        return await self.files.keep_waiting(data, alt=alt, why=why, source=source)

    def was_posted(self, source: PictureSource) -> bool:
        """Whether a picture of that source stands on the network already."""
        known = {entry["url"] for entry in self._web}
        return source.block_id in self._block_ids if source.block_id else source.image_url in known

    def now(self) -> datetime:
        """The time by which ages are told."""
        return self._clock.now()

    async def load(self, picture: AttachedPicture) -> ApiResult[bytes]:
        """The file of a picture that waits; `Err` of kind `invalid` if it is gone, or is not what was kept."""
        return await self.files.load(picture)

    async def posted(self, intent: Intent, sent: Sent) -> None:
        """Record that the pictures of an intent stand on the network. The same intent again changes nothing."""
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
        """Tell of lists that could not be read."""
        while self._untold:
            await self._journal.record(Entry("error", "pictures", self._untold.pop(0), line="warn"))

    def _load(self) -> list[str]:
        """Read the lists, which others may have changed; returns what the owner should know of them."""
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
        """Write the lists, then the log, by which it is known that all of it was done; False where the disk refuses."""
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
