"""The owner's page: HTML pages, forms that act, metrics for a monitor, and a stream of change events.

It stores nothing, and the SOUL does not need it: each request reads the home again.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from common.clock import Clock, from_local, iso, parse_iso, span
from common.errors import SoulError, UsageError
from common.redact import Redactor
from common.settings import Settings, read_settings
from common.text.markdown import as_prose
from common.version import __version__
from common.wording import deed, source
from modules.runtime.control import Control
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.runtime.journal import rows
from modules.services.day.gathering import DayReader
from modules.services.memory.admission import Memory, Query
from modules.services.memory.rows import MemoryStore
from soul.commands.memory import ask_memories
from soul.commands.status import read_status
from soul.dashboard.access import HEALTH, METRICS, READY, Door, Guard
from soul.dashboard.facts import PageActs, PageFacts
from soul.terminal.wording import moment
from town.serving import STREAM_HEADERS

Sample: TypeAlias = tuple[Mapping[str, object], float]

_STALE = timedelta(minutes=5)
"""A process that holds a home counts as hung this long after its last status."""
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics and the health of one home, for a monitor."""

    home: Home
    settings: Settings
    clock: Clock

    def not_alive(self) -> str:
        """Return why the SOUL counts as dead, "" if it lives: a process holds its home, and its status is recent."""
        if lock_holder(self.home) is None:
            return "not awake"
        told = read_status(self.home).get("updatedAt")
        return "" if told and self.clock.now() - parse_iso(told) < _STALE else "awake, and silent for five minutes"

    def not_ready(self) -> str:
        """Return why the SOUL cannot act in public, "" if it may."""
        return self.not_alive() or ("" if Control(self.home.memory).standing().may_act else "paused")

    def text(self) -> str:
        """Return all metrics as Prometheus text. Raises `SoulError` if there is no database yet."""
        name = self.settings.agent_name
        day = DayReader(self.settings, self.home, self.clock).read()
        midnight = datetime.combine(date.fromisoformat(day.day), time())
        with reading(self.home.database) as connection:
            counts = rows.counts_since(connection, iso(from_local(midnight, day.timezone)))
        spent = {"tokens": day.spent.tokens, "usd": day.spent.usd}
        caps = {"tokens": day.spent.tokens_cap, "usd": day.spent.usd_cap}
        told: tuple[tuple[str, str, str, Iterable[Sample]], ...] = (
            ("info", "gauge", "The program.", [({"version": __version__}, 1)]),
            ("alive", "gauge", "1 while it lives.", [({}, not self.not_alive())]),
            ("ready", "gauge", "1 while it lives and may act in public.", [({}, not self.not_ready())]),
            (
                "entries_total",
                "counter",
                "Decisions and errors of the day.",
                [({"kind": kind, "loop": loop, "outcome": act}, count) for kind, loop, act, count in counts],
            ),
            ("acts", "gauge", "Acts of the day that stand.", [({"kind": kind}, n) for kind, n in day.done.items()]),
            ("model_calls_total", "counter", "Calls of the model of the day.", [({}, day.spent.calls)]),
            ("budget_used", "gauge", "What the day has cost.", _known("unit", spent)),
            ("budget_cap", "gauge", "What the day may cost.", _known("unit", caps)),
            ("waiting", "gauge", "What waits.", _known("what", asdict(day.waits))),
        )
        return "".join(
            line
            for metric, kind, help_text, samples in told
            for line in _lines(f"soul_{metric}", kind, help_text, samples, name)
        )


def _known(label: str, values: Mapping[str, float | None]) -> list[Sample]:
    return [({label: key}, value) for key, value in values.items() if value is not None]


def _lines(metric: str, kind: str, help_text: str, samples: Iterable[Sample], soul: str) -> Iterator[str]:
    yield f"# HELP {metric} {help_text}\n# TYPE {metric} {kind}\n"
    for labels, value in samples:
        told = ",".join(f'{key}="{str(one).translate(_ESCAPED)}"' for key, one in {"soul": soul, **labels}.items())
        yield f"{metric}{{{told}}} {float(value):g}\n"


_WIDTH, _HEIGHT, _GAP = 600, 120, 0.25
_LINE_TIMES = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar, in units of the drawing; `label` describes it in words."""

    left: float
    top: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars in a drawing of `width` by `height`; no bars if each day counts 0.

    Attributes:
        top: the value at the upper edge, in words; the lower edge is 0.
        limit: the distance of the limit's line from the upper edge; None for no line.
        notes: sentences that explain the plot.

    """

    title: str
    bars: Sequence[Bar]
    first: str
    last: str
    top: str
    notes: Sequence[str]
    limit: float | None = None
    width: int = _WIDTH
    height: int = _HEIGHT


def days_until(last: date, count: int) -> list[date]:
    """Return the `count` days that end with `last`."""
    return [last - timedelta(days=back) for back in reversed(range(count))]


def plot_of(title: str, by_day: Mapping[date, float], shown: Sequence[date], unit: str, *, cap: float = 0) -> Plot:
    """Return the plot of the days `shown`; a missing day counts 0.

    `cap`, a limit for each day, is drawn as a line, unless the bars would become too low to read.
    """
    values = [by_day.get(day, 0) for day in shown]
    highest = max(values)
    is_line = bool(cap) and (not highest or cap <= _LINE_TIMES * highest)
    most = max(highest, cap if is_line else 0) or 1
    notes = [
        f"Highest: {_told(highest)} {unit} on {shown[values.index(highest)].isoformat()}." if highest else "None yet."
    ]
    if cap:
        where = "the dashed line" if is_line else "above this chart"
        notes.append(f"Limit {_told(cap)} {unit} a day ({where}).")
    step = _WIDTH / len(shown)
    bars = [
        Bar(
            left=round(index * step, 2),
            top=round(_HEIGHT * (1 - value / most), 2),
            width=round(step * (1 - _GAP), 2),
            height=round(_HEIGHT * value / most, 2),
            label=f"{day.isoformat()}: {_told(value)} {unit}",
        )
        for index, (day, value) in enumerate(zip(shown, values, strict=True))
        if highest
    ]
    limit = round(_HEIGHT * (1 - cap / most), 2) if is_line else None
    return Plot(title, bars, shown[0].isoformat(), shown[-1].isoformat(), _told(most), notes, limit)


def _told(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


_LINE = MarkdownIt("zero").enable("backticks")
_TALK = MarkdownIt("zero", {"breaks": True}).enable(
    ["backticks", "emphasis", "newline", "escape", "list", "fence", "blockquote"]
)
_RECORD = re.compile(
    r"at://[\w.:%-]{1,253}/(?:[\w-]{1,63}\.){1,8}(\w{1,63})/[\w.~:-]{1,512}"
    r"|https://bsky\.app/profile/[\w.:%-]{1,253}/(post)/[\w.~:-]{1,512}"
)

_RECORD_AT_END = re.compile(r"\s{1,9}at://\S{1,1000}\Z")


def in_line(text: str) -> Markup:
    """Return a sentence as HTML: `code` in backticks becomes code, the address of a post becomes "a post"."""
    return _without_addresses(_LINE.renderInline(text))


def in_log(line: str) -> Markup:
    """Return a line of the log as HTML, without the address of a record at its end."""
    return in_line(_RECORD_AT_END.sub("", line))


def in_talk(text: str) -> Markup:
    """Return what somebody said as HTML, with its lists, code and emphasis."""
    return _without_addresses(_TALK.render(text))


def _without_addresses(shown: str) -> Markup:
    def named(found: re.Match[str]) -> str:
        return f'<span title="{found[0]}">a {found[1] or found[2]}</span>'

    return Markup(_RECORD.sub(named, shown))  # noqa: S704 - markdown-it escaped it, and no address holds markup


_FORM_S = 10.0
_MAX_FORM_BYTES = 100_000
_MEMORIES_SHOWN = 40
_FOUND_SHOWN = 20
_PROMETHEUS = "text/plain; version=0.0.4"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PLACES = (
    ("/", "Now"),
    ("/talk", "Talk"),
    ("/work", "Work"),
    ("/memory", "Memory"),
    ("/people", "People"),
    ("/growing", "Growing"),
    ("/spending", "Spending"),
    ("/log", "Log"),
    ("/settings", "Settings"),
)


def dashboard_app(home: Home, settings: Settings, clock: Clock, door: Door) -> Starlette:
    """Return the application for one home; serve it with `town.serving.serve`."""
    pages = templates()
    pages.filters["moment"] = lambda at: moment(at, settings.soul_timezone)
    pages.filters["span"] = span
    pages.filters["prose"] = as_prose
    page = _Dashboard(home, clock, PageActs(home, settings, clock), pages)
    return Starlette(
        routes=[
            Route("/", page.showing("now.html", PageFacts.now)),
            Route("/why", page.why),
            Route("/talk", page.showing("talk.html", PageFacts.talk)),
            Route("/work", page.showing("work.html", PageFacts.work)),
            Route("/memory", page.memory),
            Route("/people", page.showing("people.html", PageFacts.people)),
            Route("/growing", page.showing("growing.html", PageFacts.growing)),
            Route("/spending", page.spending),
            Route("/log", page.log),
            Route("/settings", page.shown_settings),
            Route("/act/{name}", page.act, methods=["POST"]),
            Route("/events", page.events),
            Route("/static/{name}", static),
            Route(METRICS, page.metrics),
            *(Route(path, page.health) for path in HEALTH),
        ],
        middleware=[Middleware(Guard, door=door)],
    )


def templates() -> Environment:
    """Return the environment that loads the templates of the pages."""
    loader = PackageLoader("soul.dashboard")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    pages.filters |= {"in_line": in_line, "in_log": in_log, "in_talk": in_talk, "deed": deed, "source": source}
    return pages


async def static(request: Request) -> Response:
    """Answer with a stylesheet, script or picture of the page."""
    name = request.path_params["name"]
    for package in ("soul.dashboard", "town.page"):  # this page uses the town's styles
        file = files(package) / "static" / name
        if "/" not in name and file.is_file():
            return Response(file.read_bytes(), media_type=_TYPES.get(name.rpartition(".")[2], "text/plain"))
    return Response("Not found", 404)


_TICK_S = 1.0
_STREAMS = 24
STREAMS_PER_ADDRESS = 12


@dataclass(slots=True)
class ChangeStreams:
    """The open streams, counted by client address."""

    _open: Counter[str] = field(default_factory=Counter)

    async def stream(self, request: Request, homes: Sequence[Home]) -> Response:
        """Answer with a stream of events, one for each change in a home, or with 503 if too many streams are open."""
        seen = await run_in_threadpool(_marks, homes)
        # NOTE(self): nothing is awaited between this check and the count, so parallel requests cannot pass the limits.
        address = request.client.host if request.client else ""
        if self._open.total() >= _STREAMS or self._open[address] >= STREAMS_PER_ADDRESS:
            return PlainTextResponse("Too many pages are open\n", 503)
        return _CountedStream(_changes(homes, seen), self._open, address)


class _CountedStream(StreamingResponse):
    def __init__(self, content: AsyncIterator[str], open_streams: Counter[str], address: str) -> None:
        super().__init__(content, media_type="text/event-stream", headers=STREAM_HEADERS)
        self._open_streams, self._address = open_streams, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open_streams[self._address] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open_streams[self._address] -= 1
            self._open_streams += Counter()  # drops addresses without a stream


async def _changes(homes: Sequence[Home], seen: list[int]) -> AsyncIterator[str]:
    """Yield an event for each change since `seen`, else a comment each second, to notice when the page is closed."""
    while True:
        await asyncio.sleep(_TICK_S)
        found = await run_in_threadpool(_marks, homes)
        yield "event: changed\ndata: {}\n\n" if found != seen else ": still here\n\n"
        seen = found


def _marks(homes: Sequence[Home]) -> list[int]:
    """Return the change times in ns of all files that a page shows; 0 for a missing file."""
    paths = [
        path
        for home in homes
        for path in (home.status, home.database, Path(f"{home.database}-wal"), home.memory, home.self_md)
    ]
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]


@dataclass(frozen=True, slots=True)
class _Dashboard:
    home: Home
    clock: Clock
    acts: PageActs
    pages: Environment
    changes: ChangeStreams = field(default_factory=ChangeStreams)
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    """Signs the line that the page shows after an act, so that no foreign link can put words there."""

    @property
    def settings(self) -> Settings:
        """The settings in `.env` now."""
        return read_settings(self.home.root)[0]

    @property
    def facts(self) -> PageFacts:
        return PageFacts(self.home, self.settings, self.clock)

    @property
    def monitored(self) -> Metrics:
        return Metrics(self.home, self.settings, self.clock)

    def showing(
        self, name: str, read: Callable[[PageFacts], dict[str, Any]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that answers with the page `name`, filled with facts read at each request."""

        async def show(request: Request) -> Response:
            return await self._page(request, name, lambda: read(self.facts))

        return show

    async def why(self, request: Request) -> Response:
        of = request.query_params.get("of", "").strip()
        return await self._page(request, "why.html", lambda: {"of": of, "story": self.facts.story(of) if of else None})

    async def log(self, request: Request) -> Response:
        words, kind = (request.query_params.get(name, "").strip() for name in ("q", "kind"))
        return await self._page(request, "log.html", lambda: self.facts.log(words, kind))

    async def shown_settings(self, request: Request) -> Response:
        words = request.query_params.get("q", "").strip()
        return await self._page(request, "settings.html", lambda: self.facts.shown_settings(words))

    async def spending(self, request: Request) -> Response:
        def read() -> dict[str, Any]:
            found = self.facts.spending()
            shown, days = days_until(found["today"], found["shown"]), found["days"]
            tokens: Mapping[date, float] = {day: one.tokens for day, one in days.items()}
            dollars: Mapping[date, float] = {day: one.usd or 0 for day, one in days.items()}
            cap = self.settings.budget_tokens_per_day
            plots = [
                plot_of("Tokens a day", tokens, shown, "tokens", cap=cap),
                plot_of("Acts a day", found["acts"], shown, "acts"),
            ]
            if found["dollars"]:
                usd_cap = self.settings.budget_usd_per_day or 0
                plots.insert(1, plot_of("Dollars a day", dollars, shown, "dollars", cap=usd_cap))
            return {**found, "plots": plots}

        return await self._page(request, "spending.html", read)

    async def memory(self, request: Request) -> Response:
        words, now = request.query_params.get("q", "").strip(), self.clock.now()

        def look(store: MemoryStore) -> Awaitable[list[Memory]]:
            return store.search(Query(words, limit=_FOUND_SHOWN), now) if words else store.listed(limit=_MEMORIES_SHOWN)

        try:
            found = await ask_memories(self.home, look)
        except SoulError as error:
            return self._failed(request, error)
        shown = {"words": words, "memories": [{**asdict(one), "at": one.updated_at} for one in found]}
        return self._rendered(request, "memory.html", shown)

    async def act(self, request: Request) -> Response:
        """Do one act, and redirect to the page it came from with a line on the result."""
        try:
            async with asyncio.timeout(_FORM_S):
                content = await request.body()
        except TimeoutError:
            return HTMLResponse("The form did not arrive in time", 408)
        given = {name: " ".join(values) for name, values in parse_qs(content.decode(errors="replace")).items()}
        back = given.get("back", "/")
        back = back if back in {path for path, _ in _PLACES} else "/"
        try:
            if len(content) > _MAX_FORM_BYTES:
                raise UsageError("Too long for one form", remedy="Go back in your browser, and send it in parts.")
            told = await self.acts.act(request.path_params["name"], given)
        except SoulError as error:
            told = Redactor(self.settings.secrets).text(f"{error}. {error.remedy}".strip(" ."))
        return RedirectResponse(f"{back}?{urlencode({'told': told, 'sign': self._sign(told)})}", 303)

    def _sign(self, told: str) -> str:
        return hmac.new(self.key, told.encode(), hashlib.sha256).hexdigest()

    async def events(self, request: Request) -> Response:
        return await self.changes.stream(request, [self.home])

    async def metrics(self, _: Request) -> Response:
        try:
            text = await run_in_threadpool(self.monitored.text)
        except SoulError as error:
            return PlainTextResponse(f"{Redactor(self.settings.secrets).text(str(error))}\n", 503)
        return PlainTextResponse(text, media_type=_PROMETHEUS)

    async def health(self, request: Request) -> Response:
        ask = self.monitored.not_ready if request.url.path == READY else self.monitored.not_alive
        try:
            why = await run_in_threadpool(ask)
        except SoulError:
            why = "its state cannot be read"
        return PlainTextResponse(f"{why or 'ok'}\n", 503 if why else 200)

    async def _page(self, request: Request, name: str, read: Callable[[], dict[str, Any]]) -> Response:
        try:
            facts = await run_in_threadpool(read)
        except SoulError as error:
            return self._failed(request, error)
        return self._rendered(request, name, facts)

    def _failed(self, request: Request, error: SoulError) -> Response:
        clean = Redactor(self.settings.secrets).text
        return self._rendered(request, "failed.html", {"error": clean(str(error)), "remedy": clean(error.remedy)}, 404)

    def _rendered(self, request: Request, name: str, facts: Mapping[str, Any], status: int = 200) -> Response:
        told, sign = (request.query_params.get(name, "") for name in ("told", "sign"))
        told = told if hmac.compare_digest(sign.encode(), self._sign(told).encode()) else ""
        text = self.pages.get_template(name).render(
            **facts, name=self.settings.agent_name, places=_PLACES, here=request.url.path, told=told
        )
        return HTMLResponse(text, status)
