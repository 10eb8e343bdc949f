"""Tells the supervisor that started this process, by systemd's protocol, that its event loop still turns."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from common.clock import Clock

_ALIVE = b"WATCHDOG=1"
_PER_TERM = 3
"""So many times within the term that the supervisor gives."""


async def keep_watched(clock: Clock) -> None:
    """Tell it until cancelled; return at once where no supervisor asks for it."""
    address, term_us = os.environ.get("NOTIFY_SOCKET", ""), os.environ.get("WATCHDOG_USEC", "")
    if not address or not term_us.isdecimal():
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"  # a name of its own, without a file
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.settimeout(0)
        while True:
            with suppress(OSError):  # it hears nothing, and that is the message
                supervisor.sendto(_ALIVE, address)
            await clock.sleep(int(term_us) / 1_000_000 / _PER_TERM)
