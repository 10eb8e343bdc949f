"""Listens to a Jetstream for changes in the repositories of some accounts.

An extra that may fail: whatever goes wrong, the connection is opened again after an ever longer pause, and only the
program's log tells. What was missed meanwhile is sent again by the service, as far as it still has it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from common.clock import Clock

METHOD: Final = "network.bsky.jetstream.subscribeEvents"
SUBPROTOCOL: Final = Subprotocol("xrpc.v1.json")

OPEN_WITHIN_S: Final = 10.0
RENEW_AFTER_S: Final = 600.0
"""So long one connection is kept; the next one asks for the accounts that matter by then."""
FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 900.0
MAX_ACCOUNTS: Final = 100
"""They stand in the address of the subscription, which has some 4,500 characters then; 8,192 are a usual limit."""
MAX_EVENT_BYTES: Final = 64 * 1024
MAX_EVENTS: Final = 20_000
"""More than this many within one connection is no stream of a few accounts."""

_DOUBLINGS = 8
_KEEPALIVE_S = 30.0
_CLOSE_WITHIN_S = 1.0
_log = logging.getLogger("soul.jetstream")
_LIBRARY_LOG = logging.getLogger("adapters.jetstream.websockets")
_LIBRARY_LOG.setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class RecordChanged:
    """A record in the repository of `did` was written (`create`, `update`) or deleted (`delete`)."""

    did: str
    collection: str
    rkey: str
    operation: str

    @property
    def uri(self) -> str:
        return f"at://{self.did}/{self.collection}/{self.rkey}"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: its number in the stream, and the change that it tells of, None where it tells of something else."""

    seq: int
    change: RecordChanged | None


class _Straight(connect):
    """A connection that follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class Jetstream:
    """The subscription.

    Args:
        url: the service, `wss://…`.
        collections: the kinds of records that matter.
        accounts: tells whose repositories matter, by did, the first ones most; asked before each connection.
        clock: the time.

    """

    def __init__(
        self,
        url: str,
        *,
        collections: Collection[str],
        accounts: Callable[[], Awaitable[Sequence[str]]],
        clock: Clock,
    ) -> None:
        self._url = url.rstrip("/")
        self._collections = tuple(collections)
        self._accounts = accounts
        self._clock = clock
        self._seq = -1

    async def listen(self, on_change: Callable[[RecordChanged], Awaitable[object]]) -> None:
        """Call `on_change` with each change, until cancelled. Never raises for what happens."""
        in_vain = 0
        while True:
            try:
                in_vain = 0 if await self._listen_once(on_change) else in_vain + 1
            except Exception as error:
                in_vain += 1
                _log.info("the stream ended: %s: %s", type(error).__name__, error)
            await self._clock.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(in_vain, _DOUBLINGS)))

    async def _listen_once(self, on_change: Callable[[RecordChanged], Awaitable[object]]) -> bool:
        """Listen on one connection until it is to be renewed, or ends; return whether anything came."""
        accounts = list(dict.fromkeys(did for did in await self._accounts() if did.startswith("did:")))[:MAX_ACCOUNTS]
        if not accounts:
            return False
        came = 0
        connection = await self._connect(accounts)
        try:
            async with self._clock.timeout(RENEW_AFTER_S):
                while came < MAX_EVENTS:
                    frame = await connection.recv()
                    came += 1
                    event = read_frame(frame)
                    if event is None or event.seq <= self._seq:
                        continue
                    self._seq = event.seq
                    if event.change is not None:
                        await on_change(event.change)
        except (TimeoutError, WebSocketException) as error:
            _log.debug("the stream is opened again: %s", type(error).__name__)
        finally:
            await connection.close()
        return 0 < came < MAX_EVENTS

    async def _connect(self, accounts: list[str]) -> ClientConnection:
        """Raises `TimeoutError`, `OSError`, `ValueError` or `WebSocketException`."""
        params = [("kinds", "commit"), ("maxMessageSizeBytes", str(MAX_EVENT_BYTES))]
        params += [("collections", name) for name in self._collections] + [("dids", did) for did in accounts]
        params += [("cursor", str(self._seq))] if self._seq >= 0 else []
        async with asyncio.timeout(OPEN_WITHIN_S):
            return await _Straight(
                f"{self._url}/xrpc/{METHOD}?{urlencode(params)}",
                subprotocols=[SUBPROTOCOL],
                compression=None,
                proxy=None,
                open_timeout=None,
                ping_interval=_KEEPALIVE_S,
                ping_timeout=_KEEPALIVE_S,
                close_timeout=_CLOSE_WITHIN_S,
                max_size=2 * MAX_EVENT_BYTES,
                logger=_LIBRARY_LOG,
            )


def read_frame(frame: str | bytes) -> StreamEvent | None:
    """Return the event in a frame; None for a notice without a number, and for what cannot be read."""
    try:
        envelope: Any = json.loads(frame)
    except (ValueError, RecursionError):
        return None
    payload = envelope.get("payload") if isinstance(envelope, dict) and envelope.get("$type") == "message" else None
    seq = payload.get("seq") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(seq, int) or isinstance(seq, bool):
        return None
    names = ("did", "collection", "rkey", "operation")
    values = [payload.get(name) for name in names]
    is_commit = payload.get("$type") == f"{METHOD}#commit" and all(isinstance(value, str) for value in values)
    return StreamEvent(seq, RecordChanged(*map(str, values)) if is_commit else None)
