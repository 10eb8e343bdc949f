"""Serves the owner's page on one home, by `soul dashboard` or beside a life."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from common.clock import Clock, SystemClock
from common.settings import Settings, load_settings
from modules.runtime.home import Home
from soul.dashboard.access import door_of
from soul.dashboard.app import dashboard_app
from soul.terminal.output import write_lines
from town.serving import ConnectionLimits, serve

LIMITS = ConnectionLimits(connections=64, head_s=10.0)


def run_dashboard(root: Path) -> None:
    """Serve it until Ctrl-C. Raises `ConfigError` where it may not be served, or its port is taken."""
    settings = load_settings(root)
    asyncio.run(_until_ended(settings, Home.at(root, settings.memory_dir)))


async def _until_ended(settings: Settings, home: Home) -> None:
    ended = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    async with serving_dashboard(settings, home, SystemClock()) as address:
        write_lines(f"The page of {settings.agent_name}: {address}", "Ctrl-C ends the page; the SOUL goes on.")
        await ended.wait()


@asynccontextmanager
async def serving_dashboard(settings: Settings, home: Home, clock: Clock) -> AsyncIterator[str]:
    """Serve the page, and yield the address that opens it, with its token. Raises `ConfigError`."""
    door = door_of(settings, home)
    app = dashboard_app(home, settings, clock, door)
    async with serve(app, port=settings.dashboard_port, host=settings.dashboard_host, limits=LIMITS) as address:
        yield f"{settings.dashboard_origin or address}/?token={door.token}"
