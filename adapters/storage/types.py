"""Values of the storage adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object. `etag` identifies this very content; `metadata` has lower-case names."""

    key: str
    data: bytes
    etag: str
    content_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One entry of a listing: `size` in bytes."""

    key: str
    size: int
    etag: str = ""
