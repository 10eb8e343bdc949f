"""Which handle belongs to which DID, remembered for a day. Lives in memory only; a new process asks again."""

from __future__ import annotations

from common.clock import Clock
from common.constants import ATPROTO_HANDLE_CACHE_S


class HandleCache:
    """Both ways: handle to DID, and DID to handle. Handles are compared in lower case."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._dids: dict[str, tuple[str, float]] = {}
        self._handles: dict[str, tuple[str, float]] = {}

    def remember(self, handle: str, did: str) -> None:
        until = self._clock.monotonic() + ATPROTO_HANDLE_CACHE_S
        self._dids[handle.lower()] = (did, until)
        self._handles[did] = (handle.lower(), until)

    def did_of(self, handle: str) -> str | None:
        return self._fresh(self._dids, handle.lower())

    def handle_of(self, did: str) -> str | None:
        return self._fresh(self._handles, did)

    def _fresh(self, known: dict[str, tuple[str, float]], key: str) -> str | None:
        value, until = known.get(key, ("", 0.0))
        if value and self._clock.monotonic() < until:
            return value
        known.pop(key, None)
        return None
