"""Opens a WebSocket to a room, without proxy, redirect or compression; describes failures without secrets.

A room is in the local network, so proxies and redirects are not followed: the connection goes to the address that
discovery checked. The URL may contain a token, so the library's own request log is off.
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
"""More than a room accepts from a member: the record of a busy room exceeds 1 MiB, and comes in one frame."""

_LIBRARY_LOG = logging.getLogger("adapters.space.websockets")
_LIBRARY_LOG.setLevel(logging.WARNING)
_TURNED_AWAY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Unreached:
    """No connection could be opened: the reason, and whether the room refused it (401 or 403)."""

    why: str
    refused: bool = False


class _Straight(connect):
    """A connection that follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def connect_to_room(url: str, *, keepalive_s: float) -> WebSocket | Unreached:
    """Connect to `url` within `OPEN_WITHIN_S`. It pings every `keepalive_s`, and waits as long for a pong."""
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
    """Return a URL without token and password, for display; "" if it is not a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/") if parts.netloc else ""
