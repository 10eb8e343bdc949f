"""The way out of one client: to the service that the owner named for it, and to public addresses; nowhere else."""

from __future__ import annotations

from collections.abc import Callable

from adapters.web.transport import WebTransport
from common.settings import Settings


def way_to(service_url: str, settings: Settings) -> Callable[[], WebTransport]:
    """Makes what the requests of one client travel by; the client closes what it made."""
    return lambda: WebTransport(allow=(service_url,), private_ok=settings.soul_allow_private_net)
