"""The store of a home, and a wrapper of it that reports whether each call went well."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from adapters.storage.local import CALL_DEADLINE_S, Credentials, Storage, open_storage
from adapters.storage.objects import ObjectInfo, StoredObject
from common.result import ApiResult, Err, ErrKind
from common.settings import Settings

T = TypeVar("T")

_ILL: frozenset[ErrKind] = frozenset({"transient", "unknown_outcome", "auth", "fatal"})


def storage_of(settings: Settings, root: Path, *, deadline_s: float = CALL_DEADLINE_S) -> Storage:
    """Return the store that the settings name, by default the folder `root`. Raises `ConfigError` as `open_storage`."""
    who = Credentials(settings.storage_access_key_id, settings.storage_secret_access_key.get_secret_value())
    return open_storage(settings.storage_url, root=root, credentials=who, deadline_s=deadline_s)


class WatchedStorage:
    """Passes each call to the `Storage` inside. `on_response` is told whether it went well, and if not, why."""

    def __init__(self, inside: Storage, on_response: Callable[[bool, str], None]) -> None:
        self._inside = inside
        self._on_response = on_response

    async def get(self, key: str) -> ApiResult[StoredObject]:
        return self._told(await self._inside.get(key))

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
        return self._told(
            await self._inside.put(
                key, data, content_type=content_type, metadata=metadata, if_match=if_match, if_absent=if_absent
            )
        )

    async def delete(self, key: str) -> ApiResult[bool]:
        return self._told(await self._inside.delete(key))

    async def list(self, prefix: str) -> ApiResult[tuple[ObjectInfo, ...]]:
        return self._told(await self._inside.list(prefix))

    async def delete_all(self, prefix: str) -> ApiResult[int]:
        return self._told(await self._inside.delete_all(prefix))

    async def aclose(self) -> None:
        await self._inside.aclose()

    def _told(self, result: ApiResult[T]) -> ApiResult[T]:
        if isinstance(result, Err):
            self._on_response(result.kind not in _ILL, result.error)
        else:
            self._on_response(True, "")  # noqa: FBT003 - it went well
        return result
