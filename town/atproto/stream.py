"""The network's changes as they happen, as a Jetstream of version 2 tells them, by WebSocket on loopback.

It tells of records only, of those that change while it is open; a cursor brings back what it told before.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from common.clock import iso
from town.atproto.network import Network
from town.atproto.values import Address, Event, Json
from town.serving import LOOPBACK

_METHOD = "network.bsky.jetstream.subscribeEvents"
_PATH = f"/xrpc/{_METHOD}"
_OPERATIONS = {"created": "create", "updated": "update", "deleted": "delete"}
_KEPT = 10_000


class Stream:
    """What was told so far, and who listens. Bounded: the oldest goes first."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._told: list[Json] = []
        self._seq = 0
        self._news = asyncio.Event()

    def note(self, event: Event) -> None:
        """Take in a change of the network."""
        if event.kind not in _OPERATIONS:
            return
        self._seq += 1
        at = Address.parse(event.uri)
        record = self._network.record(at.did, at.collection, at.rkey)
        stands = {"cid": record.cid, "record": record.value} if record else {}
        self._told.append(
            {
                "$type": f"{_METHOD}#commit",
                "seq": self._seq,
                "time": iso(self._network.clock.now()),
                "did": at.did,
                "rev": self._network.next_tid(),
                "operation": _OPERATIONS[event.kind],
                "collection": at.collection,
                "rkey": at.rkey,
                **stands,
            }
        )
        del self._told[:-_KEPT]
        self._news.set()
        self._news = asyncio.Event()

    async def tell(self, connection: ServerConnection) -> None:
        """Tell one listener what they asked for, until they leave."""
        wanted = parse_qs(urlsplit(connection.request.path if connection.request else "").query)
        after = int(wanted["cursor"][0]) - 1 if "cursor" in wanted else self._seq
        try:
            while True:
                news = self._news
                for event in [one for one in self._told if one["seq"] > after]:
                    after = event["seq"]
                    if all(event[field] in wanted.get(name, [event[field]]) for field, name in _FILTERS):
                        await connection.send(json.dumps({"$type": "message", "payload": event}))
                leaving = asyncio.ensure_future(connection.wait_closed())
                waiting = asyncio.ensure_future(news.wait())
                await asyncio.wait([leaving, waiting], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if leaving.done():
                    return
                leaving.cancel()
        except ConnectionClosed:
            return


_FILTERS = (("did", "dids"), ("collection", "collections"))


@asynccontextmanager
async def serve_stream(network: Network) -> AsyncIterator[str]:
    """Serve the changes of `network` and yield the address, `ws://127.0.0.1:PORT`."""
    stream = Stream(network)
    end = network.subscribe(stream.note)
    server = serve(
        stream.tell,
        LOOPBACK,
        0,
        subprotocols=[Subprotocol("xrpc.v1.json")],
        compression=None,
        process_request=_refused,
    )
    try:
        async with server as listening:
            port = next(iter(listening.sockets)).getsockname()[1]
            yield f"ws://{LOOPBACK}:{port}"
    finally:
        end()


def _refused(connection: ServerConnection, request: Request) -> Response | None:
    """A refusal, as the service gives it before it upgrades; None where there is nothing to refuse."""
    parts = urlsplit(request.path)
    if parts.path != _PATH:
        return connection.respond(HTTPStatus.NOT_FOUND, "")
    cursor = parse_qs(parts.query).get("cursor", ["0"])[0]
    return None if cursor.isdecimal() else connection.respond(HTTPStatus.BAD_REQUEST, "InvalidRequest")
