"""Watches over the SOULs of one machine that sleep. It learns that something came, keeps no text, and never acts.

A SOUL that falls asleep asks it to note how things stand, looks once more itself, and hands over; what came since the
note is then seen here. It is called when its time comes, when something came, and when a command wrote something for
it. Whoever a service refuses is called too, for it is theirs to tell.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from adapters.atproto.newest import Newest, NewestReader, shared_request
from adapters.atproto.request import TimedRequest
from adapters.web.client import http_transport_factory
from common.clock import Clock, parse_iso_or_none
from common.errors import SoulError
from common.files import write_atomic
from common.result import Err
from common.settings import Settings, load_settings
from modules.runtime.home import Home
from modules.runtime.sleep_note import is_wake_requested, woke
from soul.terminal.output import write_lines
from soul.watch.policy import KEPT_FOR, LOOKS_PER_S, step_s
from town.serving import serve

_LOOK_S = 1.0
_TOKEN_BYTES = 32
_OWNERS = (".env", "HEARTBEAT.md", "SOUL.md")
_SET_BACK = timedelta(minutes=1)
_LASTING = frozenset({"auth", "fatal"})


@dataclass(slots=True)
class Sleeper:
    """One home that is asleep, or about to be.

    Attributes:
        reader: looks at its account.
        seen: how things stood before its last look.
        since: when it handed over; None while it is still awake.
        wake_at: when it wakes at the latest.
        looked_s: when it was last looked for.
        every_s: how often it asked to be looked for.
        edited: when its owner's files were changed last.

    """

    name: str
    home: Home
    reader: NewestReader
    seen: Newest
    looked_s: float
    every_s: float = 0.0
    since: datetime | None = None
    wake_at: datetime | None = None
    edited: tuple[int, ...] = ()


@dataclass(slots=True)
class Watcher:
    """The watcher. `call` wakes the SOUL of a name; `homes` are their folders by name; sessions lie in `folder`."""

    homes: Mapping[str, Path]
    folder: Path
    call: Callable[[str], object]
    clock: Clock
    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    sleepers: dict[str, Sleeper] = field(default_factory=dict)
    _requests: dict[tuple[str, bool], TimedRequest] = field(default_factory=dict)

    def app(self) -> Starlette:
        """Return what answers the SOULs."""
        routes = [
            Route("/sleepers", self._begin, methods=["POST"]),
            Route("/sleepers", self._hold, methods=["PUT"]),
            Route("/sleepers", self._release, methods=["DELETE"]),
        ]
        return Starlette(routes=routes)

    async def watch(self) -> None:
        """Look and call, until cancelled. A service that does not answer keeps nobody else waiting."""
        async with asyncio.TaskGroup() as looks:
            while True:
                await self.clock.sleep(_LOOK_S)
                now = self.clock.now()
                for one in [*self.sleepers.values()]:
                    if one.since is not None and (why := self._due(one, now)):
                        self._wake(one, why)
                for _ in range(LOOKS_PER_S):
                    if late := self._next():
                        late.looked_s = self.clock.monotonic()
                        looks.create_task(self._look(late))

    async def aclose(self) -> None:
        for request in self._requests.values():
            await request.close()

    def _due(self, one: Sleeper, now: datetime) -> str:
        """Return why a sleeper wakes whatever the network says; "" if it need not."""
        if one.wake_at is None or one.since is None or one.wake_at <= now or now - one.since > KEPT_FOR:
            return "its time has come"
        if now < one.since - _SET_BACK:
            return "the clock was set back"
        if is_wake_requested(one.home.memory):
            return "something was written for it"
        return "its owner edited a file" if _edited(one.home) != one.edited else ""

    def _next(self) -> Sleeper | None:
        """Return who was not looked for the longest, if it is time."""
        held = [one for one in self.sleepers.values() if one.since is not None]
        one = min(held, key=lambda sleeper: sleeper.looked_s, default=None)
        return one if one and self.clock.monotonic() - one.looked_s >= step_s(len(held), one.every_s) else None

    async def _look(self, one: Sleeper) -> None:
        found = await one.reader.read(one.seen)
        if self.sleepers.get(one.name) is not one:
            return
        if isinstance(found, Err):
            if found.kind in _LASTING:
                self._wake(one, found.error)
        elif found.data != one.seen:
            self._wake(one, "something came")

    def _wake(self, one: Sleeper, why: str) -> None:
        del self.sleepers[one.name]
        write_lines(f"{one.name}: woken, {why}")
        self.call(one.name)

    def _may(self, request: Request) -> Response | None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return PlainTextResponse("No token", 401)
        return None if request.query_params.get("name") in self.homes else PlainTextResponse("Nobody of that name", 404)

    async def _begin(self, request: Request) -> Response:
        if refusal := self._may(request):
            return refusal
        name = request.query_params["name"]
        try:
            settings = await run_in_threadpool(load_settings, self.homes[name])
        except SoulError as error:
            return PlainTextResponse(str(error), 503)
        home = Home.at(self.homes[name], settings.memory_dir)
        reader = self._reader(settings)
        seen = await reader.read()
        if isinstance(seen, Err):
            return PlainTextResponse(seen.error, 503)
        self.sleepers[name] = Sleeper(name, home, reader, seen.data, self.clock.monotonic())
        return Response(status_code=204)

    async def _hold(self, request: Request) -> Response:
        if refusal := self._may(request):
            return refusal
        one = self.sleepers.get(request.query_params["name"])
        given = await request.json()
        wake_at = parse_iso_or_none(given.get("wake_at")) if isinstance(given, dict) else None
        every_s = given.get("every_s") if isinstance(given, dict) else None
        if one is None or wake_at is None or not isinstance(every_s, float):
            return PlainTextResponse("Begin first, and say until when and how often to look", 400)
        found = await one.reader.read(one.seen)
        if isinstance(found, Err):
            return PlainTextResponse(found.error, 503)
        if found.data != one.seen:
            self.sleepers.pop(one.name, None)
            return PlainTextResponse("Something came", 409)
        one.since, one.wake_at, one.every_s = self.clock.now(), wake_at, every_s
        one.looked_s, one.edited = self.clock.monotonic(), _edited(one.home)
        return Response(status_code=204)

    async def _release(self, request: Request) -> Response:
        if refusal := self._may(request):
            return refusal
        self.sleepers.pop(request.query_params["name"], None)
        return Response(status_code=204)

    def _reader(self, settings: Settings) -> NewestReader:
        url, private_ok = str(settings.atproto_service_url), settings.soul_allow_private_net
        if (url, private_ok) not in self._requests:
            self._requests[url, private_ok] = shared_request(http_transport_factory(url, private_ok=private_ok)())
        return NewestReader(
            self._requests[url, private_ok],
            service_url=url,
            identifier=settings.agent_bluesky_username,
            password=settings.agent_bluesky_password.get_secret_value(),
            session_path=self.folder / f"{settings.agent_bluesky_username}.json",
            clock=self.clock,
            messages=settings.soul_direct_messages,
        )


def _edited(home: Home) -> tuple[int, ...]:
    """Return when those files were changed by which an owner asks for something; 0 where there is none."""
    return tuple(_changed_ns(home.root / name) for name in _OWNERS)


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


async def keep_watch(homes: Mapping[str, Path], address: Path, call: Callable[[str], object], clock: Clock) -> None:
    """Watch over these homes until SIGTERM; `address` is the file that tells them where to ask."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    watcher = Watcher(homes, address.parent, call, clock)
    async with serve(watcher.app()) as url:
        write_atomic(address, json.dumps({"url": url, "token": watcher.token}))
        watching = asyncio.create_task(watcher.watch(), name="watch")
        stopped = asyncio.create_task(ended.wait(), name="until-ended")
        try:
            await asyncio.wait([watching, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (watching, stopped):
                task.cancel()
            ends = await asyncio.gather(watching, stopped, return_exceptions=True)
            for one in watcher.sleepers.values():
                woke(one.home.memory)  # nobody wakes it any more, and `soul status` says so
            await watcher.aclose()
        for end in ends:
            if isinstance(end, Exception):
                raise end
