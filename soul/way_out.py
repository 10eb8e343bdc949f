"""The way out of one client: to the service that the owner named for it, and to public addresses; nowhere else."""

from __future__ import annotations

from collections.abc import Callable

from adapters.atproto.public import PublicRepos
from adapters.web.client import WebClient
from adapters.web.transport import MAX_BYTES, WebTransport
from common.clock import Clock
from common.constants import ATPROTO_READ_TIMEOUT_S
from common.result import ApiResult, Err, Ok
from common.settings import Settings

_JSON = ("application/json", "application/did+ld+json", "application/did+json")
_MAX_DOCUMENT_BYTES = 1_000_000


def http_transport_factory(
    service_url: str, settings: Settings, *, max_bytes: int = MAX_BYTES
) -> Callable[[], WebTransport]:
    """Makes what the requests of one client travel by; the client closes what it made. An answer has `max_bytes`."""
    return lambda: WebTransport(allow=(service_url,), private_ok=settings.soul_allow_private_net, max_bytes=max_bytes)


def public_repos(web: WebClient, settings: Settings, clock: Clock) -> PublicRepos:
    """Reads what others published, wherever it lies; on a network of this machine, from its one server."""
    home_url = settings.atproto_service_url if settings.on_loopback() else ""

    async def fetch(url: str) -> ApiResult[bytes]:
        got = await web.fetch(
            url,
            kinds=_JSON,
            max_bytes=_MAX_DOCUMENT_BYTES,
            deadline_s=ATPROTO_READ_TIMEOUT_S,
            named=bool(home_url) and url.startswith(f"{home_url}/"),
        )
        return got if isinstance(got, Err) else Ok(got.data.body)

    return PublicRepos(fetch, clock=clock, home_url=home_url)
