"""Pictures, sounds and files that came in: kept in the store, so that a message carries only a reference.

What was asked for lately stays in memory, up to a limit. A picture is drawn anew before a model sees it: small enough,
and without whatever its maker had put beside what it shows. What `keep` has returned outlives a crash; `forget` can
simply be done again.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachetools import LRUCache

from adapters.storage.keys import MEDIA, media_key, media_prefix
from adapters.storage.store import Storage
from adapters.storage.types import StoredObject
from common.clock import Clock, iso
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from PIL import Image

MEDIA_MAX_BYTES = 25 * 1024 * 1024
MEDIA_CACHE_BYTES = 50 * 1024 * 1024
PICTURE_MAX_DIMENSION = 1024

_BY_CONTENT = uuid.UUID("6f1d9ad2-1c55-4a0e-9c6a-0d1f3a7c2b90")
_MAX_PIXELS = 40_000_000
_JPEG_QUALITY = 85
_TOLD_BYTES = 300  # percent-encoded three times as many, twice: just what S3 lets an object say of itself
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_MEGABYTE = 1024 * 1024
_TOO_MANY_PIXELS = Err(f"The picture has more than {_MAX_PIXELS // 1_000_000} million pixels", "invalid")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as a model may see it: JPEG, or PNG where it is transparent."""

    data: bytes
    mime: str
    width: int
    height: int


def recent_objects(capacity: int) -> LRUCache[str, StoredObject]:
    """Return a cache by key that holds at most `capacity` bytes; the objects used longest ago go first."""
    return LRUCache(capacity, getsizeof=lambda found: len(found.data))


class Media:
    """The media of all sessions. The same bytes in the same session are kept once."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        *,
        cache_bytes: int = MEDIA_CACHE_BYTES,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._recent = recent_objects(cache_bytes)
        self._forgotten = 0
        self._drawing = asyncio.Lock()

    async def keep(self, data: bytes, *, mime: str, session_key: str, name: str = "") -> ApiResult[str]:
        """Keep one medium; its key, for the message. `name` is what its sender calls it."""
        if len(data) > MEDIA_MAX_BYTES:
            size, most = len(data) / _MEGABYTE, MEDIA_MAX_BYTES // _MEGABYTE
            return Err(f"The file has {size:.1f} MB; at most {most} MB are kept", "invalid")
        key = media_key(session_key, str(uuid.uuid5(_BY_CONTENT, hashlib.sha256(data).hexdigest())), mime)
        told = {
            "name": _short(name),
            "uploadedat": iso(self._clock.now()),
            "sessionkey": _short(session_key),
        }
        kept = await self._storage.put(key, data, content_type=mime, metadata=told, if_absent=True)
        return Ok(key) if isinstance(kept, Ok) or kept.kind == "conflict" else kept

    async def load(self, key: str) -> ApiResult[StoredObject]:
        """What lies under a message's reference; nothing that is no medium."""
        if not key.startswith(MEDIA):
            return Err(f"{key!r} is no medium", "invalid")
        if recent := self._recent.get(key):
            return Ok(recent)
        forgotten = self._forgotten
        found = await self._storage.get(key)
        if isinstance(found, Ok) and forgotten == self._forgotten and len(found.data.data) <= self._recent.maxsize:
            self._recent[key] = found.data
        return found

    async def forget(self, session_key: str) -> ApiResult[int]:
        """Delete all media of a session; how many there were."""
        prefix = media_prefix(session_key)
        self._forgotten += 1
        for key in [key for key in self._recent if key.startswith(prefix)]:
            del self._recent[key]
        return await self._storage.delete_all(prefix)

    async def picture(self, data: bytes) -> ApiResult[Picture]:
        """A picture drawn anew for a model, or why it cannot be. One at a time: each may take much memory."""
        async with self._drawing:
            return await asyncio.to_thread(drawn_anew, data)


def _short(text: str) -> str:
    return text.encode(errors="ignore")[:_TOLD_BYTES].decode(errors="ignore")


def drawn_anew(data: bytes) -> ApiResult[Picture]:
    """The first frame of a picture, at most 1024 pixels on its longer side, upright, with nothing beside it."""
    if len(data) > MEDIA_MAX_BYTES:
        return Err("The picture has too many bytes", "invalid")
    from PIL import Image  # noqa: PLC0415 - most lives meet no picture for hours

    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            return _drawn(opened)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return _TOO_MANY_PIXELS
    except Exception as error:
        # NOTE(self): a file that was made to harm breaks a decoder in ways that nobody has listed.
        return Err(f"It is no picture that can be read: {' '.join(str(error).split())[:100]}", "invalid")


def _drawn(opened: Image.Image) -> ApiResult[Picture]:
    from PIL import Image, ImageOps  # noqa: PLC0415 - as above

    if opened.width * opened.height > _MAX_PIXELS:
        return _TOO_MANY_PIXELS
    opened.draft("RGB", (PICTURE_MAX_DIMENSION, PICTURE_MAX_DIMENSION))
    upright = ImageOps.exif_transpose(opened)
    transparent = upright.has_transparency_data
    plain = upright.convert("RGBA" if transparent else "RGB")
    plain.thumbnail((PICTURE_MAX_DIMENSION, PICTURE_MAX_DIMENSION), Image.Resampling.LANCZOS)
    bare = Image.frombytes(plain.mode, plain.size, plain.tobytes())
    out = io.BytesIO()
    if transparent:
        bare.save(out, "PNG")
    else:
        bare.save(out, "JPEG", quality=_JPEG_QUALITY)
    return Ok(Picture(out.getvalue(), "image/png" if transparent else "image/jpeg", *bare.size))
