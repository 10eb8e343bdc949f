"""Serves the owner's page on loopback: of one home, or of several with a link to each.

It stores nothing and no SOUL needs it: it reads the homes at each request, also if their SOULs are not awake.
"""

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from common.clock import Clock, SystemClock
from common.errors import ConfigError, SoulError
from common.redact import Redactor
from common.settings import Settings, load_settings
from modules.runtime.home import Home
from modules.runtime.sleep_note import request_wake
from soul.commands.status import end_lines, load_home_settings, look, status_lines
from soul.dashboard.access import Door, Guard, door_of
from soul.dashboard.app import ChangeStreams, dashboard_app, static, templates
from soul.dashboard.facts import UNANSWERED
from soul.terminal.output import write_lines
from town.serving import ConnectionLimits, serve

LIMITS = ConnectionLimits(connections=64, head_s=10.0)


def run_dashboard(root: Path) -> None:
    """Serve the page until Ctrl-C. Raises `ConfigError` if it may not be served, or its port is taken."""
    settings = load_settings(root)
    asyncio.run(_until_ended(settings, Home.at(root, settings.memory_dir)))


async def _until_ended(settings: Settings, home: Home) -> None:
    ended = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    async with serving_dashboard(settings, home, SystemClock()) as address:
        write_lines(f"The page of {settings.agent_name}: {address}", "Ctrl-C ends only this page.")
        await ended.wait()


@asynccontextmanager
async def serving_dashboard(settings: Settings, home: Home, clock: Clock) -> AsyncIterator[str]:
    """Serve the page, and yield the address that opens it, with its token. Raises `ConfigError`."""
    door = door_of(settings, home)
    app = dashboard_app(home, settings, clock, door)
    async with serve(app, port=settings.dashboard_port, host=settings.dashboard_host, limits=LIMITS) as address:
        yield f"{settings.dashboard_origin or address}/?token={door.token}"


_TOKEN_BYTES = 32


async def serve_many(roots: Mapping[str, Path], clock: Clock, port: int) -> None:
    """Serve one page for homes, given by name, until SIGTERM. Raises `ConfigError` if its port is taken."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    door = Door(secrets.token_urlsafe(_TOKEN_BYTES))
    async with AsyncExitStack() as stack:
        page = _Many(roots, clock, stack)
        app = Starlette(
            routes=[
                Route("/", page.all),
                Route("/wake", page.wake, methods=["POST"]),
                Route("/events", page.events),
                Route("/static/{name}", static),
            ],
            middleware=[Middleware(Guard, door=door)],
        )
        address = await stack.enter_async_context(serve(app, port=port, limits=LIMITS))
        write_lines(f"Your page on all: {address}/?token={door.token}")
        await ended.wait()


@dataclass(frozen=True, slots=True)
class _Many:
    """The page for all. `opened` has the addresses of the SOULs' own pages, which stay open, and their homes."""

    roots: Mapping[str, Path]
    clock: Clock
    stack: AsyncExitStack
    opened: dict[str, tuple[str, Home]] = field(default_factory=dict)
    changes: ChangeStreams = field(default_factory=ChangeStreams)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def all(self, request: Request) -> Response:
        async with self.opening:
            souls = [await self._soul(name, root) for name, root in self.roots.items()]
        page = templates().get_template("many.html")
        told = UNANSWERED if "unanswered" in request.query_params else ""
        return HTMLResponse(page.render(souls=souls, name="SOULs", places=(), here="/", told=told))

    async def wake(self, request: Request) -> Response:
        """Wake a SOUL that is asleep."""
        told = parse_qs((await request.body()).decode(errors="replace"))
        root = self.roots.get(next(iter(told.get("of", [])), ""))
        if root is None:
            return Response("Not found", 404)
        is_asked = await run_in_threadpool(_request_wake, root)
        return RedirectResponse("/" if is_asked else "/?unanswered=1", 303)

    async def events(self, request: Request) -> Response:
        return await self.changes.stream(request, [home for _, home in self.opened.values()])

    async def _soul(self, name: str, root: Path) -> dict[str, Any]:
        try:
            state = await run_in_threadpool(_state, root)
            await self._open(name, root)
        except SoulError as error:
            told = Redactor().text(f"{error}. {error.remedy}")
            state = {"name": "", "awake": False, "asleep": False, "lines": [told], "drafts": []}
        return {**state, "folder": name, "address": self.opened[name][0] if name in self.opened else ""}

    async def _open(self, name: str, root: Path) -> None:
        """Serve a SOUL's own page at the port of its settings, or else at a free one. Raises `ConfigError`."""
        if name in self.opened:
            return
        settings = await run_in_threadpool(load_settings, root)
        home = Home.at(root, settings.memory_dir)
        try:
            address = await self.stack.enter_async_context(serving_dashboard(settings, home, self.clock))
        except ConfigError:
            if settings.dashboard_origin:  # a proxy expects that port
                raise
            free = settings.model_copy(update={"dashboard_port": 0})
            address = await self.stack.enter_async_context(serving_dashboard(free, home, self.clock))
        self.opened[name] = (address, home)


def _request_wake(root: Path) -> bool:
    """Ask the watcher to wake a SOUL; return whether it answered. Raises `SoulError`."""
    return request_wake(Home.at(root, load_home_settings(root).memory_dir).memory)


def _state(root: Path) -> dict[str, Any]:
    """Return the name and state of a SOUL, a few lines on its state, and its drafts. Raises `SoulError`."""
    settings = load_home_settings(root)
    status = look(Home.at(root, settings.memory_dir))
    zone = settings.soul_timezone
    lines = [*status_lines(settings.agent_name, status, zone)[:1], *end_lines(status, zone)]
    return {
        "name": settings.agent_name,
        "awake": status["awake"],
        "asleep": bool(status["asleep"]),
        "lines": [line.strip() for line in lines],
        "drafts": [
            {"what": draft["act"], "text": draft["text"] or (draft["answers"] or {}).get("text", "")}
            for draft in status["drafts"]
        ],
    }
