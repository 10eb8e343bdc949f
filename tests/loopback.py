"""The network access that tests give to clients, with this machine allowed."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from adapters.github.client import READ_TIMEOUT_S, GitHub
from adapters.web.client import WebTransport, system_resolver
from common.clock import Clock

NO_TLS = False  # everything is on loopback, and loading certificates takes longer than most tests


async def resolved(host: str, port: int) -> Sequence[str]:
    """Resolve names under `.example` to this machine, so that the product sees services of others there."""
    return ["127.0.0.1"] if host.endswith(".example") else await system_resolver(host, port)


@contextmanager
def held_port() -> Iterator[int]:
    """Hold a port without listening: no other program is given it, but a program told of it may listen there."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def to_loopback() -> WebTransport:
    return WebTransport(private_ok=True, resolve=resolved)


def github_at(
    url: str, login: str, clock: Clock, token: str | None = None, *, timeout_s: float = READ_TIMEOUT_S
) -> GitHub:
    """Return a client of an account at the GitHub of `url`; the token is `t-` and the login unless one is given."""
    token = f"t-{login}" if token is None else token
    return GitHub(
        api_url=url,
        login=login,
        token=token,
        clock=clock,
        min_spacing_s=0,
        timeout_s=timeout_s,
        transport=to_loopback,
    )
