"""Opens the store that a URL names (folder, memory, S3, Google Cloud, Azure), and stores objects as files in a folder.

Each file appears whole or not at all, readable by its owner only. Its type and metadata are in a sidecar that no
listing shows. The sidecar is written first and describes both the previous and the new content, so after a crash
between the two, whichever content is there has its description. One lock for all writers, in this process or another,
makes conditional writes reliable.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from adapters.storage.objects import SIDECAR, ObjectInfo, StoredObject, checked, checked_type, refused_key
from common.errors import ConfigError, DiskFull, MachineTrouble, StorageError, Transient
from common.files import is_machine_trouble, storage_error, write_atomic
from common.result import ApiResult, Err, ErrKind, Ok

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, RetryConfig, S3Config, S3Credential


T = TypeVar("T")

_LOCK = ".lock"
_LOCK_PAUSE_S = 0.01
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class LocalStorage:
    """A store in the folder `root`, which is created when the first object is stored.

    A listing has no etags here: they are made from the content, which it does not read.
    """

    def __init__(self, root: Path, *, deadline_s: float) -> None:
        self._root = root
        self._deadline_s = deadline_s

    async def get(self, key: str) -> ApiResult[StoredObject]:
        return await self._in_thread(key, lambda: self._get(key), late="transient")

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
        about = _about(data, checked_type(content_type), checked(metadata))

        def write() -> ApiResult[str]:
            with self._alone():
                return self._put(key, data, about, if_match=if_match, if_absent=if_absent)

        return await self._in_thread(key, write, late="unknown_outcome")

    async def delete(self, key: str) -> ApiResult[bool]:
        def remove() -> ApiResult[bool]:
            with self._alone():
                return Ok(self._delete(key))

        return await self._in_thread(key, remove, late="unknown_outcome")

    async def list(self, prefix: str) -> ApiResult[tuple[ObjectInfo, ...]]:
        folder = prefix.removesuffix("/")

        def look() -> ApiResult[tuple[ObjectInfo, ...]]:
            return Ok(tuple(sorted(self._listed(folder), key=lambda info: info.key)))

        return await self._in_thread(folder, look, late="transient", whole=not folder)

    async def delete_all(self, prefix: str) -> ApiResult[int]:
        folder = prefix.removesuffix("/")

        def remove() -> ApiResult[int]:
            with self._alone():
                return Ok(self._delete_all(folder))

        return await self._in_thread(folder, remove, late="unknown_outcome")

    async def aclose(self) -> None:
        """Do nothing: no resource is held."""

    def _get(self, key: str) -> ApiResult[StoredObject]:
        data = self._read(key)
        if data is None:
            return Err(f"There is no {key}", "not_found")
        etag = _etag(data)
        about = _fitting(self._sidecar(key), etag)
        return Ok(StoredObject(key, data, etag, about["contentType"], about["metadata"]))

    def _put(
        self, key: str, data: bytes, about: dict[str, Any], *, if_match: str | None, if_absent: bool
    ) -> ApiResult[str]:
        there = self._read(key)
        if if_absent and there is not None:
            return Err(f"{key} is there already", "conflict")
        if if_match is not None and (there is None or _etag(there) != if_match):
            return Err(f"{key} has changed", "conflict")
        path = self._path(key)
        self._make_folders(path.parent)
        before = self._sidecar(key)
        if before or about["contentType"] or about["metadata"]:
            if there is not None and _etag(there) != about["etag"]:
                about["before"] = _fitting(before, _etag(there)) | {"etag": _etag(there)}
            write_atomic(_beside(path), json.dumps(about, ensure_ascii=False, indent=1))
        write_atomic(path, data)
        return Ok(about["etag"])

    def _delete(self, key: str) -> bool:
        path = self._path(key)
        try:
            path.unlink()
        except _ABSENT:
            return False
        _beside(path).unlink(missing_ok=True)
        self._prune(path.parent)
        return True

    def _delete_all(self, folder: str) -> int:
        """Delete all objects in a folder, and what a killed writer left half-written there; return how many objects."""
        count = sum(self._delete(info.key) for info in list(self._listed(folder)))
        for place, folders, files in os.walk(self._path(folder), topdown=False):
            for name in files:
                Path(place, name).unlink(missing_ok=True)
            for name in folders:
                if Path(place, name).is_symlink():
                    Path(place, name).unlink()
            self._prune(Path(place))
        return count

    def _listed(self, folder: str) -> Iterator[ObjectInfo]:
        for place, _, files in os.walk(self._path(folder)):
            for name in files:
                path = Path(place, name)
                key = path.relative_to(self._root).as_posix()
                if refused_key(key) or path.is_symlink():
                    continue
                with suppress(FileNotFoundError):  # another process has just deleted it
                    facts = path.stat()
                    yield ObjectInfo(key, facts.st_size)

    def _path(self, key: str) -> Path:
        """Return the path of a key. Raises `StorageError` if a link leads out of the store."""
        path = self._root / key
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._root)):
            raise StorageError(f"{path} leads out of the store", remedy=f"Remove the link under {self._root}.")
        return path

    def _read(self, key: str) -> bytes | None:
        try:
            return self._path(key).read_bytes()
        except _ABSENT:
            return None

    def _sidecar(self, key: str) -> dict[str, Any]:
        """Return the contents of the sidecar of an object; {} if it is missing or not ours."""
        try:
            told = json.loads(_beside(self._path(key)).read_bytes())
        except (*_ABSENT, ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}

    def _make_folders(self, folder: Path) -> None:
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        try:
            for place in reversed(missing):
                place.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise storage_error(folder, error) from error

    def _prune(self, folder: Path) -> None:
        """Remove folders that have become empty, upwards; the root stays."""
        with suppress(OSError):
            while folder != self._root and folder.is_relative_to(self._root):
                folder.rmdir()
                folder = folder.parent

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the store's lock. Raises `Transient` if others hold it for too long."""
        self._make_folders(self._root)
        until = time.monotonic() + self._deadline_s
        handle = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise Transient(f"Somebody else is writing in {self._root} for too long") from None
                    time.sleep(_LOCK_PAUSE_S)
            yield
        finally:
            os.close(handle)

    async def _in_thread(
        self, key: str, work: Callable[[], ApiResult[T]], *, late: ErrKind, whole: bool = False
    ) -> ApiResult[T]:
        """Return the result of `work`. `late` is the kind of error at a timeout; with `whole`, `key` may be ""."""
        if not whole and (why := refused_key(key)):
            return Err(why, "invalid")
        try:
            async with asyncio.timeout(2 * self._deadline_s):
                return await asyncio.to_thread(work)
        except TimeoutError:
            return Err(f"The disk did not answer in time for {self._root / key}", late)
        except Transient as error:
            return Err(str(error), "transient")
        except StorageError as error:
            is_passing = isinstance(error, MachineTrouble) and not isinstance(error, DiskFull)
            return Err(f"{error}. {error.remedy}", "transient" if is_passing else "fatal")
        except OSError as error:
            kind: ErrKind = "transient" if is_machine_trouble(error) else "fatal"
            return Err(f"The disk refuses {self._root / key}: {error.strerror or error}", kind)


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _beside(path: Path) -> Path:
    return path.with_name(path.name + SIDECAR)


def _about(data: bytes, content_type: str, metadata: dict[str, str]) -> dict[str, Any]:
    return {"etag": _etag(data), "contentType": content_type, "metadata": metadata}


def _fitting(told: dict[str, Any], etag: str) -> dict[str, Any]:
    """Return the part of a sidecar for this content; if none fits (it was changed by hand), the newest one."""
    before = told.get("before")
    about = before if isinstance(before, dict) and before.get("etag") == etag and told.get("etag") != etag else told
    kind, metadata = about.get("contentType"), about.get("metadata")
    return {
        "contentType": kind if isinstance(kind, str) else "",
        "metadata": {str(name): str(value) for name, value in metadata.items()} if isinstance(metadata, dict) else {},
    }


CALL_DEADLINE_S = 60.0
_CONNECT_S = 5
_MAX_RETRIES = 2
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_CLOUDS = ".amazonaws.com,.googleapis.com,.google.com,.windows.net,metadata.google.internal,169.254.169.254"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_PREFIX = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*)?")
_FORMS = (
    "Write file:///folder, memory://, s3://bucket?endpoint=https://…&region=…, gs://bucket or az://container, "
    "or leave it empty for a folder in the home."
)


class Storage(Protocol):
    """Objects under keys (`objects.py`). Failures outside the program give an `Err`; calls have a deadline.

    Kinds of errors: `not_found`; `conflict`: another write came first, read again; `transient`: not reached, nothing
    done; `unknown_outcome`: a write that may have happened; `auth`; `invalid`: the key or the bucket is wrong; `fatal`:
    the disk is full or refuses, and the old content is still there.
    """

    async def get(self, key: str) -> ApiResult[StoredObject]:
        """Return the object under `key`."""
        ...

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
        """Store `data`; return its etag.

        Args:
            key: the key of the object.
            data: all of it.
            content_type: its MIME type.
            metadata: names of letters and digits, stored in lower case; values are any text, about 1500 bytes in all.
            if_match: only if the content there still has this etag.
            if_absent: only if nothing is there.

        """
        ...

    async def delete(self, key: str) -> ApiResult[bool]:
        """Delete an object; return whether it was there."""
        ...

    async def list(self, prefix: str) -> ApiResult[tuple[ObjectInfo, ...]]:
        """Return all objects in the folder `prefix` and its folders, by key; "" for all."""
        ...

    async def delete_all(self, prefix: str) -> ApiResult[int]:
        """Delete all objects in the folder `prefix`, which is not ""; return how many there were."""
        ...

    async def aclose(self) -> None:
        """Close the store."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials: for S3 the two keys, for Azure account and account key. Google Cloud finds its own by itself."""

    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.access_key_id and self.secret_access_key)

    def for_s3(self) -> S3Credential:
        """Return them in the library's form, so that it does not search the machine for others."""
        return {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "token": None,
            "expires_at": None,
        }


def open_storage(
    url: str, *, root: Path, credentials: Credentials | None = None, deadline_s: float = CALL_DEADLINE_S
) -> Storage:
    """Return the store at `url`, or in the folder `root` if that is "". No request is made yet.

    Raises:
        ConfigError: the URL or the credentials cannot be right; the remedy says what can.

    """
    if not url:
        return LocalStorage(root, deadline_s=deadline_s)
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        userinfo = parts.username is not None or parts.password is not None
    except ValueError:
        raise ConfigError("STORAGE_URL is no URL", remedy=_FORMS) from None
    if userinfo:
        raise ConfigError(
            "STORAGE_URL carries a password",
            remedy="Put it into STORAGE_ACCESS_KEY_ID and STORAGE_SECRET_ACCESS_KEY: those are never shown.",
        )
    known = {"endpoint", "region"} if parts.scheme == "s3" else {"endpoint"} if parts.scheme == "az" else set()
    if strange := sorted(options.keys() - known):
        raise ConfigError(f"STORAGE_URL: {parts.scheme}:// knows no option {', '.join(strange)}", remedy=_FORMS)
    if parts.scheme == "file":
        return LocalStorage(_folder(parts), deadline_s=deadline_s)
    if parts.scheme not in {"memory", "s3", "gs", "az"}:
        raise ConfigError(f"STORAGE_URL: there is no store of the kind {parts.scheme!r}", remedy=_FORMS)
    return _bucket(parts, options, credentials or Credentials(), deadline_s)


def _folder(parts: SplitResult) -> Path:
    path = Path(unquote(parts.path))
    if parts.netloc not in {"", "localhost"} or not path.is_absolute() or path == Path("/") or "\0" in str(path):
        raise ConfigError("STORAGE_URL names no folder", remedy="Write file:///a/whole/path, with three slashes.")
    return path


def _bucket(parts: SplitResult, options: Mapping[str, str], who: Credentials, deadline_s: float) -> Storage:
    # NOTE(self): most homes use their folder, and need not wait for the import of the library.
    from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store  # noqa: PLC0415

    from adapters.storage.buckets import BucketStorage  # noqa: PLC0415

    if parts.scheme == "memory":
        return BucketStorage(MemoryStore(), deadline_s=deadline_s)
    bucket, prefix = parts.netloc, parts.path.strip("/")
    if not _BUCKET.fullmatch(bucket) or not _PREFIX.fullmatch(prefix):
        raise ConfigError("STORAGE_URL names no bucket", remedy=_FORMS)
    endpoint = _endpoint(options.get("endpoint", ""))
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=_CONNECT_S),
        "timeout": timedelta(seconds=deadline_s),
        "allow_http": endpoint.startswith("http:"),
        # NOTE(self): like our own transport it uses no proxy: one is named, and all hosts are excluded from it.
        "proxy_url": "http://127.0.0.1:9",
        "proxy_excludes": urlsplit(endpoint).hostname or _CLOUDS,
    }
    retries: RetryConfig = {"max_retries": _MAX_RETRIES, "retry_timeout": timedelta(seconds=deadline_s)}
    if parts.scheme == "gs":
        google = GCSStore(bucket, prefix=prefix or None, client_options=client, retry_config=retries)
        return BucketStorage(google, deadline_s=deadline_s, by_version=True)
    if not who:
        raise ConfigError(
            f"STORAGE_URL: {parts.scheme}:// needs credentials",
            remedy="Set STORAGE_ACCESS_KEY_ID and STORAGE_SECRET_ACCESS_KEY.",
        )
    if parts.scheme == "az":
        account: AzureConfig = {"account_name": who.access_key_id, "account_key": who.secret_access_key}
        if endpoint:
            account["endpoint"] = endpoint
        azure = AzureStore(bucket, prefix=prefix or None, config=account, client_options=client, retry_config=retries)
        return BucketStorage(azure, deadline_s=deadline_s)
    service: S3Config = {"region": options.get("region") or "us-east-1"}
    if endpoint:
        service["endpoint"] = service["aws_endpoint_url_s3"] = endpoint
    amazon = S3Store(
        bucket,
        prefix=prefix or None,
        config=service,
        client_options=client,
        retry_config=retries,
        credential_provider=who.for_s3,
    )
    return BucketStorage(amazon, deadline_s=deadline_s)


def _endpoint(url: str) -> str:
    """Return the service's address, or "" for the usual one. Raises `ConfigError` if it would not be encrypted."""
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ConfigError(
            "STORAGE_URL: a plain http endpoint is only for this machine",
            remedy="Write https:// in front of the endpoint.",
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None or parts.query:
        raise ConfigError("STORAGE_URL: the endpoint is no address", remedy="Write endpoint=https://host.")
    return url.rstrip("/")
