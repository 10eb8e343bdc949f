"""Reads a page as a browser shows it: headless Chromium in the sandbox, if the machine has both.

It has no network; the gateway makes each of its connections, and only to addresses that were checked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from modules.runtime.sandbox.gateway import open_gateway
from modules.runtime.sandbox.policy import MIB, Limits
from modules.runtime.sandbox.runner import Sandbox

# NOTE(self): the binaries themselves; the scripts of the same name read settings that the sandbox does not have.
_PROGRAMS = (
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
)
_COMMAND = (
    '"$1" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking'
    " --disable-component-update --disable-sync --no-first-run --no-pings --user-data-dir=/tmp/profile"
    ' --proxy-server="$http_proxy" --proxy-bypass-list="<-loopback>" --virtual-time-budget=8000 --dump-dom "$2"'
)
_LIMITS = Limits(wall_s=30.0, cpu_s=60, memory_bytes=1024 * MIB, disk_bytes=MIB, output_bytes=4 * MIB)
_MOST_BYTES = 64 * MIB


def browser_program() -> str:
    """Return the path of Chromium, or "" if it is not installed."""
    return next((path for path in _PROGRAMS if Path(path).exists()), "")


@dataclass(frozen=True, slots=True)
class PageBrowser:
    """Opens pages. `address_of` returns the address of a host and port, and raises `OSError` if none is allowed."""

    sandbox: Sandbox
    address_of: Callable[[str, int], Awaitable[str]]

    async def html_of(self, url: str) -> str:
        """Return the HTML of a page after its scripts ran; "" if there is no browser or it failed."""
        program = browser_program()
        if not (program and self.sandbox.is_there):
            return ""
        with tempfile.TemporaryDirectory(prefix="soul-") as folder:
            async with open_gateway(None, most_bytes=_MOST_BYTES, address_of=self.address_of) as gateway:
                script = ["/bin/sh", "-c", _COMMAND, "sh", program, url]
                command, env = gateway.relayed(self.sandbox.seen_at, script)
                ran = await self.sandbox.run(command, Path(folder), limits=_LIMITS, env=env, shared=gateway.shared)
        return ran.stdout if ran.success else ""
