"""The way out that tests give to clients: this machine is open to it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from adapters.web.client import WebTransport, system_resolver

NO_TLS = False  # all is on loopback; loading certificates takes longer than most tests


async def resolved(host: str, port: int) -> Sequence[str]:
    """Names under `.example` lead to this machine: services that somebody else runs, as the product sees them."""
    return ["127.0.0.1"] if host.endswith(".example") else await system_resolver(host, port)


@contextmanager
def held_port() -> Iterator[int]:
    """Hold a port on which nobody listens: no other program is given it, and who is told of it may listen there."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def to_loopback() -> WebTransport:
    return WebTransport(private_ok=True, resolve=resolved)
