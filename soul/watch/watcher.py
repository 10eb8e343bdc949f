"""Watches over the SOULs that sleep. It learns that something came, stores no text, and never acts in their name.

A SOUL that falls asleep asks the watcher to mark how things stand, looks once more itself, and hands over; the watcher
then sees what came since the mark. It wakes the SOUL when its time comes, when something came, when a command wrote
something for it, and when its note is gone; also when a service refuses the SOUL, since only it can tell its owner.
"""

import asyncio
import hmac
import math
import signal
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import httpx
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from adapters.atproto.newest import AccountNewest, SharedRequests, shared_requests
from adapters.github.notifications import MOST_ADDRESSES, GitHubNewest, is_watchable
from adapters.space.discovery import RoomNewest, RoomSearch, discover_space
from adapters.watch import SPENT, wake_token, watch_token
from adapters.web.client import http_transport_factory
from common.clock import Clock, parse_iso
from common.errors import SoulError
from common.lenient_json import parse
from common.result import ApiResult, Err
from common.settings import Settings, read_settings
from modules.runtime.home import Home
from modules.runtime.sleep_note import (
    Figures,
    SleepNote,
    is_dated,
    is_noted,
    is_wake_requested,
    read_note,
    woke,
    write_note,
)
from soul.terminal.output import write_lines
from soul.watch.policy import LOOKS_PER_S, OWN_TIMES_S, is_blind, is_over, step_s, used_usd
from town.serving import ConnectionLimits, Listener, serve

_LIMITS = ConnectionLimits(connections=256, head_s=10.0)
_LOOK_S = 1.0
_TIMEOUT_S = 15.0
_LOOK_DEADLINE_S = 60.0
_BODY_BYTES = 262_144
_AGAIN_S = 30.0
_NS = 1e9
CALLS = 4  # SOULs that are woken or suspended at once: each may take a process of its own
_OWNERS = (".env", "HEARTBEAT.md", "SOUL.md")
_LASTING = frozenset({"auth", "fatal"})
_TOLD_S = 600.0
"""How old the reported figures of a SOUL that is awake may be."""
_NOTE, _FIGURES = TypeAdapter(SleepNote), TypeAdapter(Figures)


class Newest(Protocol):
    """Looks at one service for one account. `slower` is the factor on the usual wait that the service asks for."""

    service: str
    seen: dict[str, str]
    slower: float

    async def came(self) -> ApiResult[bool]:
        """Return whether anything came since `seen`; the first look only sets `seen`."""
        ...


@dataclass(slots=True)
class Source:
    """One service that is looked at for a sleeper; times are those of the monotonic clock.

    Attributes:
        looked_s: the time of the last look.
        every_s: the seconds between looks that the sleeper asked for.
        not_before_s: until when the service asked for a pause.
        unread_s: since when it could not be read; None if it can be.

    """

    newest: Newest
    looked_s: float
    every_s: float = 0.0
    not_before_s: float = 0.0
    unread_s: float | None = None
    is_looking: bool = False


@dataclass(slots=True)
class Sleeper:
    """One home that is asleep, or about to be.

    Attributes:
        sources: the services to look at for it, by name.
        note: what it handed over; None while it is still awake.
        overdue: why it is woken at once; its home may be unknown then.
        edited: the last change times of its owner's files, in ns.
        call_s: when it may be called again, after a failed call.

    """

    name: str
    home: Home | None
    sources: dict[str, Source]
    note: SleepNote | None = None
    overdue: str = ""
    edited: tuple[int, ...] = ()
    call_s: float = 0.0


@dataclass(slots=True)
class Watcher:
    """The watcher.

    Attributes:
        load: returns home and settings of a name, None if there is none; session and note are in its `.memory`.
            Raises `SoulError`.
        wake: wakes the SOUL of a name; returns whether that succeeded.
        held: called with the name of a SOUL that sleeps from now on.
        told: called with the name of a SOUL and its figures.
        budget_usd: what all may spend on the model in a day; once it is used, time alone wakes no SOUL, and those that
            are awake are told so.
        kept_by: the process on this machine that keeps this watcher running (`process_mark`), "" if unknown.

    """

    load: Callable[[str], tuple[Home, Settings] | None]
    wake: Callable[[str], Awaitable[bool]]
    clock: Clock
    held: Callable[[str], Awaitable[object]] | None = None
    told: Callable[[str, Figures], Awaitable[object]] | None = None
    budget_usd: float | None = None
    kept_by: str = ""
    sleepers: dict[str, Sleeper] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)
    _told_s: dict[str, float] = field(default_factory=dict)
    _own_time_s: float = 0.0
    """Until when no SOUL is woken for its own time alone."""
    _bluesky: dict[tuple[str, bool], SharedRequests] = field(default_factory=dict)
    _github: dict[tuple[str, bool], httpx.AsyncClient] = field(default_factory=dict)
    _answered_s: dict[str, float] = field(default_factory=dict)
    """When a service last answered, for any sleeper."""
    _locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS))
    _rooms: RoomSearch = field(init=False)

    def __post_init__(self) -> None:
        self._rooms = RoomSearch(self.clock, partial(discover_space, space_url=""))

    def app(self) -> Starlette:
        """Return the application that answers the SOULs."""
        answers = {"POST": self._begin, "PUT": self._hold, "DELETE": self._release, "PATCH": self._note}
        routes = [Route("/sleepers", answer, methods=[verb]) for verb, answer in answers.items()]
        return Starlette(routes=[*routes, Route("/wake", self._call, methods=["POST"])])

    async def resume(self, names: Iterable[str], asleep: Collection[str]) -> None:
        """Continue with SOULs whose notes can be used. Of the others, `watch` wakes those that may be `asleep`."""
        for name in names:
            home, why = None, "its note is missing or cannot be used"
            try:
                if found := await run_in_threadpool(self.load, name):
                    home = found[0]
                    if self._resumed(name, *found):
                        continue
            except Exception as error:
                told = str(error) if isinstance(error, SoulError) else type(error).__name__
                why = f"it cannot be watched over: {told}"
                write_lines(f"{name}: {why}")
            if name in asleep:
                self.sleepers.setdefault(name, Sleeper(name, home, {}, overdue=why))

    def _resumed(self, name: str, home: Home, settings: Settings) -> bool:
        """Continue with a home if it has a valid note of this SOUL, with all marks, and no newer edit; else False."""
        note = _checked(asdict(found)) if (found := read_note(home.memory)) else None
        if not note or bool(note.kept_by) != bool(self.kept_by) or note.name not in {name, settings.agent_name}:
            return False
        if max(_edited(home)) > parse_iso(note.asleep_since).timestamp() * _NS:
            return False
        one = self._sleeper(name, home, settings, note.github, room=note.room)
        if not all(note.seen.get(service) for service in one.sources):
            return False
        for service, source in one.sources.items():
            source.newest.seen = dict(note.seen[service])
        if note.kept_by != self.kept_by:  # of an earlier supervisor
            write_note(home.memory, replace(note, kept_by=self.kept_by))
        _expect(one, note.did)
        self._take(one, note)
        return True

    async def watch(self) -> None:
        """Look and wake, until cancelled. A service that does not answer delays no other."""
        async with asyncio.TaskGroup() as looks:
            while True:
                await self.clock.sleep(_LOOK_S)
                now = self.clock.now()
                counts = Counter(source.newest.service for _, source in self._held())
                first = self._first_by_time(now)
                for one in [*self.sleepers.values()]:
                    try:
                        why = self._due(one, now, counts, may_wait=one is not first)
                    except Exception as error:
                        why = f"its home cannot be read: {type(error).__name__}"
                    if why:
                        looks.create_task(self._wake(one, why))
                for one, source in [*self._late(counts)]:
                    source.looked_s, source.is_looking = self.clock.monotonic(), True
                    looks.create_task(self._look(one, source))

    async def aclose(self) -> None:
        """Close the connections."""
        for shared in self._bluesky.values():
            await shared.request.close()
        for client in self._github.values():
            await client.aclose()

    @property
    def _is_spent(self) -> bool:
        return self.budget_usd is not None and used_usd(self.figures.values(), self.clock.now()) >= self.budget_usd

    def _held(self) -> Iterator[tuple[Sleeper, Source]]:
        return ((one, source) for one in self.sleepers.values() if one.note for source in one.sources.values())

    def _first_by_time(self, now: datetime) -> Sleeper | None:
        """Return the sleeper whose own time came first, at most once in `OWN_TIMES_S`; None while all of them wait."""
        now_s = self.clock.monotonic()
        if now_s < self._own_time_s or self._is_spent:
            return None
        due = ((one.note.wake_at, one) for one in self.sleepers.values() if one.note and now_s >= one.call_s)
        wake_at, first = min(due, key=itemgetter(0), default=("", None))
        if first is None or parse_iso(wake_at) > now:
            return None
        self._own_time_s = now_s + OWN_TIMES_S
        return first

    def _due(self, one: Sleeper, now: datetime, counts: Mapping[str, int], *, may_wait: bool) -> str:
        """Return why a sleeper must wake, apart from what the looks find; "" if it need not."""
        if (note := one.note) is None or one.home is None or one.overdue:
            return one.overdue
        why = is_over(note, now, may_wait=may_wait)
        why = why or ("" if is_noted(one.home.memory) else "its note is gone")
        why = why or ("something was written for it" if is_wake_requested(one.home.memory) else "")
        if why := why or ("its owner edited a file" if _edited(one.home) != one.edited else ""):
            return why
        now_s = self.clock.monotonic()
        for service, source in one.sources.items():
            place = source.newest.service
            is_alone = counts.get(place, 0) <= 1
            if is_blind(source.unread_s, now_s, self._answered_s.get(place, 0.0), is_alone=is_alone):
                return f"{service} could not be read for it"
        return ""

    def _late(self, counts: Mapping[str, int]) -> Iterator[tuple[Sleeper, Source]]:
        """Yield what to look at now: at each service as many as its limit allows, the longest wait first."""
        now_s, left = self.clock.monotonic(), dict.fromkeys(counts, LOOKS_PER_S)
        for one, source in sorted(self._held(), key=lambda pair: pair[1].looked_s):
            place = source.newest.service
            step = step_s(counts[place], source.every_s * source.newest.slower)
            if left[place] and not source.is_looking and now_s >= max(source.looked_s + step, source.not_before_s):
                left[place] -= 1
                yield one, source

    async def _look(self, one: Sleeper, source: Source) -> None:
        found = await self._looked(source)
        source.is_looking = False
        if self.sleepers.get(one.name) is not one:
            return
        now_s = self.clock.monotonic()
        if not isinstance(found, Err):
            source.unread_s = None
            self._answered_s[source.newest.service] = now_s
            if found.data:
                await self._wake(one, "something came")
        elif found.kind in _LASTING:
            await self._wake(one, found.error)
        else:
            source.unread_s = now_s if source.unread_s is None else source.unread_s
            source.not_before_s = now_s + (found.retry_after or 0.0)

    async def _looked(self, source: Source) -> ApiResult[bool]:
        """Look once, within a minute. An exception counts as a lasting failure."""
        try:
            async with self.clock.timeout(_LOOK_DEADLINE_S):
                return await source.newest.came()
        except TimeoutError:
            return Err(f"no answer within {_LOOK_DEADLINE_S:g} s", "transient")
        except Exception as error:
            return Err(f"the check failed: {type(error).__name__}", "fatal")

    async def _wake(self, one: Sleeper, why: str) -> None:
        if self.clock.monotonic() < one.call_s:
            return
        one.call_s = math.inf  # until this call has ended
        async with self._locks[one.name], self._calls:
            if self.sleepers.get(one.name) is not one:
                return
            write_lines(f"{one.name}: woken, {why}")
            try:
                if await self.wake(one.name) and self.sleepers.get(one.name) is one:
                    del self.sleepers[one.name]
                    if one.home is not None:
                        woke(one.home.memory)
            except Exception as error:
                write_lines(f"{one.name}: not woken as it should be: {type(error).__name__}")
            one.call_s = self.clock.monotonic() + _AGAIN_S

    async def _tell_held(self, one: Sleeper, held: Callable[[str], Awaitable[object]]) -> None:
        """Report that a SOUL sleeps; wake it if it took that back, since the report may have ended its process."""
        async with self._locks[one.name], self._calls:
            if self.sleepers.get(one.name) is not one:
                return
            if self.told and one.note:
                await self.told(one.name, one.note.figures)
            await held(one.name)
            if self.sleepers.get(one.name) is not one:
                self.sleepers[one.name] = Sleeper(one.name, one.home, {}, overdue="it woke while it was suspended")

    def _take(self, one: Sleeper, note: SleepNote) -> None:
        """Watch over a home from now on."""
        self.figures[one.name] = note.figures
        one.note, one.edited = note, _edited(one.home) if one.home else ()
        for service, source in one.sources.items():
            source.every_s, source.looked_s = note.every_s.get(service, 0.0), self.clock.monotonic()
        self.sleepers[one.name] = one

    async def _asked(
        self, request: Request, token_of: Callable[[str], str] = watch_token
    ) -> Response | tuple[str, Home, Settings]:
        """Return who asks, proved by the token that is derived from its password, or the refusal."""
        name = request.query_params.get("name", "")
        try:
            found = await run_in_threadpool(self.load, name)
        except SoulError as error:
            return PlainTextResponse(str(error), 503)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        password = found[1].agent_bluesky_password.get_secret_value() if found else ""
        if not found or not password or not hmac.compare_digest(given.encode(), token_of(password).encode()):
            return PlainTextResponse("Nobody of that name and token is watched over here", 401)
        return name, *found

    async def _begin(self, request: Request) -> Response:
        if isinstance(asked := await self._asked(request), Response):
            return asked
        told: Any = await _json(request)
        addresses = told.get("github") if isinstance(told, dict) else None
        if not isinstance(addresses, list) or not all(isinstance(one, str) and is_watchable(one) for one in addresses):
            return PlainTextResponse("Say which addresses at GitHub to look at", 400)
        one = self._sleeper(*asked, addresses[:MOST_ADDRESSES], room=told.get("room") is True)
        if refused := await self._refusal(one):
            return refused
        self.sleepers[one.name] = one
        return Response(status_code=204)

    async def _hold(self, request: Request) -> Response:
        if isinstance(asked := await self._asked(request), Response):
            return asked
        name, home, one = asked[0], asked[1], self.sleepers.get(asked[0])
        note = _checked(await _json(request))
        if one is None or note is None or not all(note.every_s.get(service) for service in one.sources):
            return PlainTextResponse("Begin first, and say until when and how often to look", 400)
        _expect(one, note.did)
        if refused := await self._refusal(one):
            return refused
        seen = {service: source.newest.seen for service, source in one.sources.items()}
        try:
            await run_in_threadpool(write_note, home.memory, replace(note, seen=seen, kept_by=self.kept_by))
        except SoulError as error:
            return PlainTextResponse(str(error), 503)
        if self.sleepers.get(name) is not one:
            woke(home.memory)  # else a watcher that starts would take the SOUL for asleep
            return PlainTextResponse("It took that back meanwhile", 400)
        self._take(one, note)
        return Response(status_code=204, background=self.held and BackgroundTask(self._tell_held, one, self.held))

    async def _refusal(self, one: Sleeper) -> Response | None:
        """Look at all services of a sleeper; return why it may not sleep, or None."""
        for source in one.sources.values():
            if isinstance(found := await self._looked(source), Err):
                return PlainTextResponse(found.error, 503)
            if found.data:
                return PlainTextResponse("Something came", 409)
        return None

    async def _release(self, request: Request) -> Response:
        if isinstance(asked := await self._asked(request), Response):
            return asked
        if self.sleepers.pop(asked[0], None):
            woke(asked[1].memory)
        return Response(status_code=204)

    async def _note(self, request: Request) -> Response:
        if isinstance(asked := await self._asked(request), Response):
            return asked
        try:
            figures = _FIGURES.validate_python(await _json(request))
        except ValueError:
            return PlainTextResponse("Say how it stands", 400)
        self.figures[asked[0]], now_s = figures, self.clock.monotonic()
        status = SPENT if self._is_spent else 204
        if not self.told or now_s < self._told_s.get(asked[0], 0.0):
            return Response(status_code=status)
        self._told_s[asked[0]] = now_s + _TOLD_S
        return Response(status_code=status, background=BackgroundTask(self.told, asked[0], figures))

    async def _call(self, request: Request) -> Response:
        asked = await self._asked(request, lambda password: wake_token(watch_token(password)))
        if isinstance(asked, Response):
            return asked
        if one := self.sleepers.get(asked[0]):  # also one that is about to sleep
            one.overdue = "something was written for it"
        return Response(status_code=204)

    def _sleeper(self, name: str, home: Home, settings: Settings, addresses: Sequence[str], *, room: bool) -> Sleeper:
        newest: dict[str, Newest] = {"bluesky": self._account(settings, home)}
        if addresses:
            newest["github"] = self._repositories(settings, addresses)
        if room:
            newest["room"] = RoomNewest(self._rooms)
        now_s = self.clock.monotonic()
        return Sleeper(name, home, {service: Source(one, now_s) for service, one in newest.items()})

    def _account(self, settings: Settings, home: Home) -> AccountNewest:
        url, private_ok = str(settings.atproto_service_url), settings.soul_allow_private_net
        if (url, private_ok) not in self._bluesky:
            self._bluesky[url, private_ok] = shared_requests(http_transport_factory(url, private_ok=private_ok)())
        return AccountNewest(
            self._bluesky[url, private_ok],
            service_url=url,
            identifier=settings.agent_bluesky_username,
            password=settings.agent_bluesky_password.get_secret_value(),
            session_path=home.watch_session,
            clock=self.clock,
            messages=settings.soul_direct_messages,
        )

    def _repositories(self, settings: Settings, addresses: Sequence[str]) -> GitHubNewest:
        url, private_ok = str(settings.github_api_url).rstrip("/"), settings.soul_allow_private_net
        if (url, private_ok) not in self._github:
            transport = http_transport_factory(url, private_ok=private_ok)()
            self._github[url, private_ok] = httpx.AsyncClient(transport=transport, timeout=_TIMEOUT_S)
        return GitHubNewest(
            self._github[url, private_ok],
            api_url=url,
            token=settings.agent_github_token.get_secret_value(),
            addresses=addresses,
            clock=self.clock,
        )


async def keep_watch(watcher: Watcher, listener: Listener, names: Iterable[str], asleep: Collection[str]) -> None:
    """Watch over the SOULs of these names until SIGTERM or SIGINT, and answer them at `listener`.

    Those that may be `asleep` are woken if their notes cannot be used.
    """
    ended = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    async with serve(watcher.app(), listener=listener, limits=_LIMITS):
        await watcher.resume(names, asleep)
        watching = asyncio.create_task(watcher.watch(), name="watch")
        stopped = asyncio.create_task(ended.wait(), name="until-ended")
        try:
            await asyncio.wait([watching, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (watching, stopped):
                task.cancel()
            ends = await asyncio.gather(watching, stopped, return_exceptions=True)
            await watcher.aclose()
        for end in ends:
            if isinstance(end, Exception):
                raise end


def home_at(root: Path) -> tuple[Home, Settings]:
    """Return a home and its settings, as far as they can be read. Raises `SoulError`."""
    settings, _ = read_settings(root)
    return Home.at(root, settings.memory_dir), settings


def _expect(one: Sleeper, did: str) -> None:
    """Accept only this account for a home: what another account receives must not wake it."""
    for source in one.sources.values():
        if isinstance(source.newest, AccountNewest):
            source.newest.did = did


def _checked(told: object) -> SleepNote | None:
    """Return a note if all of its fields are valid; None otherwise."""
    try:
        note = _NOTE.validate_python(told)
    except ValidationError:
        return None
    return note if is_dated(note) and all(map(is_watchable, note.github)) else None


async def _json(request: Request) -> object:
    """Return the parsed body; None if it is not JSON, or too long."""
    body = b""
    async for piece in request.stream():
        if len(body := body + piece) > _BODY_BYTES:
            return None
    try:
        return parse(body)
    except ValueError:
        return None


def _edited(home: Home) -> tuple[int, ...]:
    """Return the change times in ns of the files by which an owner asks for something; 0 for a missing one."""
    return tuple(_changed_ns(home.root / name) for name in _OWNERS)


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
