"""Reports to the supervisor that started this process, by systemd's protocol, that the event loop still runs."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from common.clock import Clock

_ALIVE = b"WATCHDOG=1"
_PER_TERM = 3
"""How many reports are sent within the time that the supervisor allows."""


async def keep_watched(clock: Clock) -> None:
    """Report until cancelled; return at once if no supervisor asks for it."""
    address, term_us = os.environ.get("NOTIFY_SOCKET", ""), os.environ.get("WATCHDOG_USEC", "")
    if not address or not term_us.isdecimal():
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"  # an abstract socket, which has no file
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.settimeout(0)
        while True:
            with suppress(OSError):  # the supervisor notices that no report comes
                supervisor.sendto(_ALIVE, address)
            await clock.sleep(int(term_us) / 1_000_000 / _PER_TERM)
