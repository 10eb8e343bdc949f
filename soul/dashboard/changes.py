"""Sends an event to an open page whenever its home has changed; the number of open pages is limited."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from modules.runtime.home import Home
from town.serving import STREAM_HEADERS

_TICK_S = 1.0
_STREAMS = 24
STREAMS_PER_ADDRESS = 12


@dataclass(slots=True)
class ChangeStreams:
    """The open streams, counted by client address."""

    _open: Counter[str] = field(default_factory=Counter)

    async def stream(self, request: Request, homes: Sequence[Home]) -> Response:
        """Answer with a stream of events, one for each change in a home, or with 503 if too many streams are open."""
        seen = await run_in_threadpool(_marks, homes)
        # NOTE(self): nothing is awaited between this check and the count, so parallel requests cannot pass the limits.
        address = request.client.host if request.client else ""
        if self._open.total() >= _STREAMS or self._open[address] >= STREAMS_PER_ADDRESS:
            return PlainTextResponse("Too many pages are open\n", 503)
        return _CountedStream(_changes(homes, seen), self._open, address)


class _CountedStream(StreamingResponse):
    def __init__(self, content: AsyncIterator[str], open_streams: Counter[str], address: str) -> None:
        super().__init__(content, media_type="text/event-stream", headers=STREAM_HEADERS)
        self._open_streams, self._address = open_streams, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open_streams[self._address] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open_streams[self._address] -= 1
            self._open_streams += Counter()  # drops addresses without a stream


async def _changes(homes: Sequence[Home], seen: list[int]) -> AsyncIterator[str]:
    """Yield an event for each change since `seen`, else a comment each second, to notice when the page is closed."""
    while True:
        await asyncio.sleep(_TICK_S)
        found = await run_in_threadpool(_marks, homes)
        yield "event: changed\ndata: {}\n\n" if found != seen else ": still here\n\n"
        seen = found


def _marks(homes: Sequence[Home]) -> list[int]:
    """Return the change times in ns of all files that a page shows; 0 for a missing file."""
    paths = [
        path
        for home in homes
        for path in (home.status, home.database, Path(f"{home.database}-wal"), home.memory, home.self_md)
    ]
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]
