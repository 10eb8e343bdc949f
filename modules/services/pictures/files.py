"""The files of pictures under `.memory/images`: what was downloaded, and what waits to be uploaded.

A download has a sidecar that tells where it came from. What waits is named by its hash and outlives a crash; both are
deleted once they are too old to be used.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from datetime import timedelta
from pathlib import Path

from pydantic import ValidationError

from common.clock import Clock
from common.files import read_bounded, write_atomic
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.drawing.apart import PictureDrawer
from modules.runtime.drawing.draw import DrawnPicture
from modules.services.outbox.bodies import AttachedPicture, PictureSource

SOURCE_MAX_BYTES = 10 * 1024 * 1024
DOWNLOAD_AGE = timedelta(hours=24)
WAITING_AGE = timedelta(hours=48)
"""Longer than any intent may wait."""

_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp"}
_SIDECAR = ".source.json"
_SIDECAR_MAX_BYTES = 64 * 1024
_WAITING = "waiting"
_PRIVATE = 0o600


class PictureFiles:
    """All files of pictures that are shared; `folder` is `.memory/images`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._drawer = PictureDrawer()

    async def keep_download(self, data: bytes, mime_type: str, source: PictureSource) -> Path:
        """Keep a file with its source for a day; returns its path. Raises `StorageError`."""
        stamp = f"{self._clock.now():%Y%m%d%H%M%S}-{secrets.token_hex(3)}"
        path = self._folder / f"{stamp}{_EXTENSIONS.get(mime_type, '.bin')}"

        def write() -> None:
            self.tidy()
            self._write(path.with_name(path.name + _SIDECAR), json.dumps(source.stored()).encode())
            self._write(path, data)

        await asyncio.to_thread(write)
        return path

    async def read_download(self, path: str) -> ApiResult[tuple[bytes, PictureSource]]:
        """A downloaded file and its source. `Err` of kind `invalid` for any path that is not one of a download."""
        return await asyncio.to_thread(self._read_download, path)

    @answering
    async def keep_waiting(
        self, data: bytes, *, alt: str, why: str = "", source: PictureSource
    ) -> ApiResult[AttachedPicture]:
        """Draw a picture anew and keep it until its post has left."""
        drawn = (await self._drawer.draw(data, "upload")).or_raise()
        return Ok(await self._keep(drawn, alt, why, source))

    async def load(self, picture: AttachedPicture) -> ApiResult[bytes]:
        """The file of a picture that waits; `Err` of kind `invalid` if it is gone, or is not what was kept."""
        try:
            data = await asyncio.to_thread(read_bounded, self._waiting(picture.sha256), SOURCE_MAX_BYTES)
        except OSError as error:
            return Err(f"the file of a picture cannot be read: {error.strerror}", "invalid")
        if hashlib.sha256(data).hexdigest() != picture.sha256:
            return Err("the file of a picture is not what was kept", "invalid")
        return Ok(data)

    def tidy(self) -> int:
        """Delete what is too old to be used; how many files there were. Blocks."""
        now, deleted = self._clock.now().timestamp(), 0
        for folder, age in ((self._folder, DOWNLOAD_AGE), (self._folder / _WAITING, WAITING_AGE)):
            for path in folder.iterdir() if folder.is_dir() else ():
                if path.is_file() and now - path.stat().st_mtime > age.total_seconds():
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
        """Write a file that is as old as the clock says."""
        write_atomic(path, data, mode=_PRIVATE)
        moment = self._clock.now().timestamp()
        os.utime(path, (moment, moment))

    def _read_download(self, given: str) -> ApiResult[tuple[bytes, PictureSource]]:
        path = self._folder / Path(given).name
        same = Path(given) in {path, Path(path.name), Path("images") / path.name, Path(".memory/images") / path.name}
        if not same or path.suffix not in _EXTENSIONS.values() or path.is_symlink():
            return Err("it is no file that was downloaded", "invalid")
        try:
            data = read_bounded(path, SOURCE_MAX_BYTES)
            stored = json.loads(read_bounded(path.with_name(path.name + _SIDECAR), _SIDECAR_MAX_BYTES))
            return Ok((data, PictureSource.model_validate(stored)))
        except (OSError, ValueError, RecursionError, ValidationError):
            return Err("no such file was downloaded, or it is gone", "invalid")
