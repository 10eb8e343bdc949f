"""The way out that tests give to clients: this machine is open to it."""

from __future__ import annotations

from adapters.web.transport import WebTransport


def to_loopback() -> WebTransport:
    return WebTransport(private_ok=True)
