"""Objects in a bucket: S3 and compatible services, Google Cloud, Azure, or the memory of this process.

The service stores each object whole or not at all. Metadata is sent in headers, which allow only plain letters: values
are percent-encoded. A request without an answer is tried again within the deadline; a write that still has none is of
unknown outcome.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore

from adapters.storage.objects import (
    ObjectInfo,
    StoredObject,
    checked,
    checked_type,
    from_headers,
    refused_key,
    to_headers,
)
from common.result import ApiResult, Err, ErrKind, Ok

if TYPE_CHECKING:
    from obstore import Attributes, ObjectMeta, PutMode, PutResult

T = TypeVar("T")

_CONTENT_TYPE = "Content-Type"
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|specified (?:bucket|container) does not exist")
_NEVER_SENT = re.compile(r"kind: (?:Connect|Builder)\b")
_CONFLICT = frozenset({409, 412})
_REFUSED = frozenset({401, 403})
_LATER = frozenset({408, 425, 429})
_SERVER_ERROR = 500


class BucketStorage:
    """A store in a bucket.

    Args:
        store: the client of the bucket.
        deadline_s: the longest that one call may take, retries included.
        by_version: whether the service identifies contents by a version instead of an etag, as Google Cloud does.

    """

    def __init__(self, store: ObjectStore, *, deadline_s: float, by_version: bool = False) -> None:
        self._store = store
        self._deadline_s = deadline_s
        self._by_version = by_version

    async def get(self, key: str) -> ApiResult[StoredObject]:
        async def read() -> StoredObject:
            answer = await obstore.get_async(self._store, key)
            told = dict(answer.attributes)
            kind = told.pop(_CONTENT_TYPE, "")
            data = bytes(await answer.bytes_async())
            return StoredObject(key, data, self._tag(answer.meta), kind, from_headers(told))

        return await self._asked(key, read)

    async def put(
        self,
        key: str,
        data: bytes,
        *,
        content_type: str = "",
        metadata: Mapping[str, str] | None = None,
        if_match: str | None = None,
        if_absent: bool = False,
    ) -> ApiResult[str]:
        attributes: Attributes = {**to_headers(checked(metadata))}
        if kind := checked_type(content_type):
            attributes[_CONTENT_TYPE] = kind
        mode: PutMode = "create" if if_absent else "overwrite"
        if if_match is not None:
            mode = {"version": if_match} if self._by_version else {"e_tag": if_match}

        async def write() -> str:
            return self._tag(
                await obstore.put_async(self._store, key, data, attributes=attributes, mode=mode, use_multipart=False)
            )

        return await self._asked(key, write, writes=True)

    async def delete(self, key: str) -> ApiResult[bool]:
        async def remove() -> bool:
            there = await self._is_there(key)
            await obstore.delete_async(self._store, key)
            return there

        return await self._asked(key, remove, writes=True)

    async def list(self, prefix: str) -> ApiResult[tuple[ObjectInfo, ...]]:
        folder = prefix.removesuffix("/")

        async def look() -> tuple[ObjectInfo, ...]:
            found = await obstore.list(self._store, folder or None).collect_async()
            infos = (ObjectInfo(meta["path"], meta["size"], self._tag(meta)) for meta in found)
            return tuple(sorted((info for info in infos if not refused_key(info.key)), key=lambda info: info.key))

        return await self._asked(folder, look, whole=not folder)

    async def delete_all(self, prefix: str) -> ApiResult[int]:
        folder = prefix.removesuffix("/")

        async def remove() -> int:
            found = await obstore.list(self._store, folder).collect_async()
            await obstore.delete_async(self._store, [meta["path"] for meta in found])
            return len(found)

        return await self._asked(folder, remove, writes=True)

    async def aclose(self) -> None:
        """Do nothing: the library closes its connections itself."""

    async def _is_there(self, key: str) -> bool:
        try:
            await obstore.head_async(self._store, key)
        except FileNotFoundError:
            return False
        return True

    def _tag(self, told: ObjectMeta | PutResult) -> str:
        return (told["version"] if self._by_version else told["e_tag"]) or ""

    async def _asked(
        self, key: str, ask: Callable[[], Awaitable[T]], *, writes: bool = False, whole: bool = False
    ) -> ApiResult[T]:
        if not whole and (why := refused_key(key)):
            return Err(why, "invalid")
        try:
            async with asyncio.timeout(self._deadline_s):
                return Ok(await ask())
        except TimeoutError:
            return Err(f"The store did not answer in time for {key}", "unknown_outcome" if writes else "transient")
        except (BaseError, FileNotFoundError, ValueError) as error:
            return _translated(error, key, writes=writes)


def _translated(error: Exception, key: str, *, writes: bool) -> Err:
    said = str(error)
    status = int(found[1]) if (found := _STATUS.search(said)) else None
    code = f" {found[1]}" if (found := _CODE.search(said)) else ""
    lost: ErrKind = "unknown_outcome" if writes else "transient"
    kind: ErrKind
    if _NO_BUCKET.search(said):
        line, kind = "The store has no such bucket: check STORAGE_URL", "invalid"
    elif isinstance(error, FileNotFoundError):
        line, kind = f"There is no {key}", "not_found"
    elif isinstance(error, AlreadyExistsError | PreconditionError):
        line, kind = f"Somebody else has written {key}", "conflict"
    elif isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in _REFUSED:
        line, kind = f"The store refuses {key}:{code or ' wrong credentials, or no right to it'}", "auth"
    elif status is not None:
        line, kind = f"The store answers {status}{code} for {key}", _kind_of(status)
    elif isinstance(error, ValueError):
        line, kind = f"{key}: {said.splitlines()[0]}", "invalid"
    elif _NEVER_SENT.search(said):
        line, kind = "The store cannot be reached", "transient"
    else:
        line, kind = f"The store was lost in the middle of {key}", lost
    return Err(line, kind, status)


def _kind_of(status: int) -> ErrKind:
    if status in _CONFLICT:
        return "conflict"
    return "transient" if status in _LATER or status >= _SERVER_ERROR else "invalid"
