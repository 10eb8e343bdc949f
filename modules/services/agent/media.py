"""Pictures, sounds and files that came in: kept in the store, so that a message carries only a reference.

Recently used media stay in memory, up to a limit. A picture is redrawn before a model sees it: small enough, and
without its metadata. A medium survives a crash once `keep` has returned its key; after a crash `forget` can be
repeated.
"""

import hashlib
import uuid

from cachetools import LRUCache

from adapters.storage.local import Storage
from adapters.storage.objects import MEDIA, StoredObject, media_key, media_prefix
from common.clock import Clock, iso
from common.result import ApiResult, Err, Ok
from modules.runtime.drawing.apart import PictureDrawer
from modules.runtime.drawing.draw import DrawnPicture

MEDIA_MAX_BYTES = 25 * 1024 * 1024
MEDIA_CACHE_BYTES = 50 * 1024 * 1024

_BY_CONTENT = uuid.UUID("6f1d9ad2-1c55-4a0e-9c6a-0d1f3a7c2b90")
_TOLD_BYTES = 300  # percent-encoded up to three times as long, for two fields: fits the metadata that S3 allows
_MEGABYTE = 1024 * 1024


def recent_objects(capacity: int) -> LRUCache[str, StoredObject]:
    """Return a cache by key that holds at most `capacity` bytes and evicts the least recently used objects first."""
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
        self._drawer = PictureDrawer()

    async def keep(self, data: bytes, *, mime: str, session_key: str, name: str = "") -> ApiResult[str]:
        """Store one medium and return its key, for the message. `name` is the file name that its sender gave it."""
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
        """Return the object that a message refers to; an `Err` if it is missing or `key` is no key of a medium."""
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
        """Delete all media of a session; return how many there were."""
        prefix = media_prefix(session_key)
        self._forgotten += 1
        for key in [key for key in self._recent if key.startswith(prefix)]:
            del self._recent[key]
        return await self._storage.delete_all(prefix)

    async def picture(self, data: bytes) -> ApiResult[DrawnPicture]:
        """Return the picture redrawn for a model, or why that failed."""
        return await self._drawer.draw(data, "model")


def _short(text: str) -> str:
    return text.encode(errors="ignore")[:_TOLD_BYTES].decode(errors="ignore")
