"""One store for whatever is kept as whole objects, addressed by a URL: a folder, memory, S3, Google Cloud, Azure.

What `put` has returned is kept; what was being put when the program died is there whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from adapters.storage.local import LocalStorage
from adapters.storage.types import ObjectInfo, StoredObject
from common.errors import ConfigError
from common.result import ApiResult

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, RetryConfig, S3Config, S3Credential

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
    """Objects under keys (`adapters.storage.keys`). The world's faults come back as `Err`; each call has a deadline.

    Kinds of errors: `not_found`; `conflict`: a lost race, read again; `transient`: not reached, nothing done;
    `unknown_outcome`: a write that may have happened; `auth`; `invalid`: the key or the bucket is wrong; `fatal`: the
    disk is full or refuses, and what was there is still there.
    """

    async def get(self, key: str) -> ApiResult[StoredObject]:
        """What lies under `key`."""
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
        """Keep `data`; its etag.

        Args:
            key: where.
            data: all of it.
            content_type: its MIME type.
            metadata: names of letters and digits, kept in lower case; values are any text, about 1500 bytes in all.
            if_match: only if the content there still has this etag.
            if_absent: only if nothing is there.

        """
        ...

    async def delete(self, key: str) -> ApiResult[bool]:
        """Remove an object; whether it was there."""
        ...

    async def list(self, prefix: str) -> ApiResult[tuple[ObjectInfo, ...]]:
        """All objects in the folder `prefix` and its folders, by key; "" for all."""
        ...

    async def delete_all(self, prefix: str) -> ApiResult[int]:
        """Remove all objects in the folder `prefix`, which is not ""; how many there were."""
        ...

    async def aclose(self) -> None:
        """Let go of it."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks: for S3 the two keys, for Azure account and account key. Google Cloud finds its own on the machine."""

    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.access_key_id and self.secret_access_key)

    def for_s3(self) -> S3Credential:
        """As the library asks for it, instead of looking around the machine for others."""
        return {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "token": None,
            "expires_at": None,
        }


def open_storage(
    url: str, *, root: Path, credentials: Credentials | None = None, deadline_s: float = CALL_DEADLINE_S
) -> Storage:
    """The store at `url`, or in the folder `root` if that is "". Nothing is asked of it yet.

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
    # NOTE(self): most homes keep to their folder, and need not wait for the library.
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
        # NOTE(self): like our own transport it knows no proxy; to name one and except all hosts from it says so.
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
    """The service's address, or "" for the usual one. Raises `ConfigError` where others on the way could read along."""
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
