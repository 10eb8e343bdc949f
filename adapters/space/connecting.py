"""How a member reaches a room: a WebSocket without proxy, redirect or compression; failures in words without secrets.

A room stands in the local network, so neither a proxy nor a redirect has a place between; what discovery checked is
what is connected to. The address may carry a token, so the library's own log of requests is kept shut.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection as WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI

OPEN_WITHIN_S: Final = 10.0
CLOSE_WITHIN_S: Final = 1.0
MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
"""Larger than what a room takes from us: the record of a lively one outgrows 1 MiB, and it comes in one frame."""

_LIBRARY_LOG = logging.getLogger("adapters.space.websockets")
_LIBRARY_LOG.setLevel(logging.WARNING)
_TURNED_AWAY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Unreached:
    """No connection came about: why, and whether the room turned us away for good reason."""

    why: str
    refused: bool = False


class _Straight(connect):
    """Goes where it was sent and nowhere else."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def connect_to_room(url: str, *, keepalive_s: float) -> WebSocket | Unreached:
    """A connection to the room at `url`, within `OPEN_WITHIN_S`; it pings every `keepalive_s` and waits as long."""
    try:
        async with asyncio.timeout(OPEN_WITHIN_S):
            return await _Straight(
                url,
                compression=None,
                proxy=None,
                open_timeout=None,
                ping_interval=keepalive_s,
                ping_timeout=keepalive_s,
                close_timeout=CLOSE_WITHIN_S,
                max_size=MAX_FRAME_BYTES,
                logger=_LIBRARY_LOG,
            )
    except TimeoutError:
        return Unreached(f"no answer within {OPEN_WITHIN_S:.0f} s")
    except InvalidStatus as error:
        status = error.response.status_code
        return Unreached(f"HTTP {status} instead of a room", refused=status in _TURNED_AWAY)
    except (InvalidURI, ValueError):
        return Unreached("its address is no ws:// or wss:// URL")
    except InvalidHandshake as error:
        return Unreached(f"what answers is no room ({type(error).__name__})")
    except (OSError, EOFError) as error:
        return Unreached(str(error) or type(error).__name__)


def without_secrets(url: str) -> str:
    """An address as it may be shown: no token, no password; "" for what is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/") if parts.netloc else ""
