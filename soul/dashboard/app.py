"""The owner's page: pages rendered here, forms that act, and one stream that tells an open page to look again.

Nothing is kept here, and nothing here is needed for the SOUL to live: each request reads the home anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from common.clock import Clock, span
from common.errors import SoulError
from common.redact import Redactor
from common.settings import Settings
from common.text.markdown import as_prose
from modules.runtime.home import Home
from modules.services.memory.types import Memory, MemoryStore, Query
from soul.commands.memory import ask_memories
from soul.dashboard.access import HEALTH, METRICS, READY, Door, Guard
from soul.dashboard.acts import PageActs
from soul.dashboard.facts import PageFacts
from soul.dashboard.metrics import Metrics
from soul.dashboard.plots import days_until, plot_of
from soul.terminal.wording import moment
from town.serving import event_stream

_TICK_S = 1.0
_MAX_FORM_BYTES = 20_000
_MEMORIES_SHOWN = 40
_FOUND_SHOWN = 20
_PROMETHEUS = "text/plain; version=0.0.4"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PLACES = (
    ("/", "Now"),
    ("/work", "Work"),
    ("/memory", "Memory"),
    ("/people", "People"),
    ("/growing", "Growing"),
    ("/spending", "Spending"),
)


def dashboard_app(home: Home, settings: Settings, clock: Clock, door: Door) -> Starlette:
    """Return the application for one home; serve it with `town.serving.serve`."""
    pages = templates()
    pages.filters["moment"] = lambda at: moment(at, settings.soul_timezone)
    pages.filters["span"] = span
    pages.filters["prose"] = as_prose
    facts, acts = PageFacts(home, settings, clock), PageActs(home, settings, clock)
    page = _Dashboard(home, settings, clock, facts, acts, pages, Metrics(home, settings, clock))
    return Starlette(
        routes=[
            Route("/", page.now),
            Route("/why", page.why),
            Route("/work", page.work),
            Route("/memory", page.memory),
            Route("/people", page.people),
            Route("/growing", page.growing),
            Route("/spending", page.spending),
            Route("/act/{name}", page.act, methods=["POST"]),
            Route("/events", page.events),
            Route("/static/{name}", static),
            Route(METRICS, page.metrics),
            *(Route(path, page.health) for path in HEALTH),
        ],
        middleware=[Middleware(Guard, door=door)],
    )


def templates() -> Environment:
    """Return what reads the pages."""
    loader = PackageLoader("soul.dashboard")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


async def static(request: Request) -> Response:
    """Answer with a file of the page's looks."""
    name = request.path_params["name"]
    for package in ("soul.dashboard", "town.page"):  # the town's looks are this page's
        file = files(package) / "static" / name
        if "/" not in name and file.is_file():
            return Response(file.read_bytes(), media_type=_TYPES.get(name.rpartition(".")[2], "text/plain"))
    return Response("Not found", 404)


def told_of_changes(homes: Sequence[Home]) -> Response:
    """Answer with one event whenever something in a home has changed; a comment each second ends a lost page."""

    async def changes() -> AsyncIterator[str]:
        seen = await run_in_threadpool(_marks, homes)
        while True:
            await asyncio.sleep(_TICK_S)
            found = await run_in_threadpool(_marks, homes)
            yield "event: changed\ndata: {}\n\n" if found != seen else ": still here\n\n"
            seen = found

    return event_stream(changes())


def _marks(homes: Sequence[Home]) -> list[int]:
    """What differs whenever something that a page shows has changed."""
    paths = [
        path
        for home in homes
        for path in (home.status, home.database, Path(f"{home.database}-wal"), home.memory, home.self_md)
    ]
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]


@dataclass(frozen=True, slots=True)
class _Dashboard:
    home: Home
    settings: Settings
    clock: Clock
    facts: PageFacts
    acts: PageActs
    pages: Environment
    monitored: Metrics
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    """Signs the line that the page shows after an act: no link of somebody else can put words there."""

    async def now(self, request: Request) -> Response:
        return await self._page(request, "now.html", self.facts.now)

    async def why(self, request: Request) -> Response:
        of = request.query_params.get("of", "").strip()
        return await self._page(request, "why.html", lambda: {"of": of, "story": self.facts.story(of) if of else None})

    async def work(self, request: Request) -> Response:
        return await self._page(request, "work.html", self.facts.work)

    async def people(self, request: Request) -> Response:
        return await self._page(request, "people.html", self.facts.people)

    async def growing(self, request: Request) -> Response:
        return await self._page(request, "growing.html", self.facts.growing)

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
            found = await ask_memories(self.settings, self.home, look)
        except SoulError as error:
            return self._failed(request, error)
        shown = {"words": words, "memories": [{**asdict(one), "at": one.updated_at} for one in found]}
        return self._rendered(request, "memory.html", shown)

    async def act(self, request: Request) -> Response:
        """Do one act, and go back to the page it came from with a line on what became of it."""
        content = await request.body()
        if len(content) > _MAX_FORM_BYTES:
            return HTMLResponse("Too long", 413)
        given = dict(parse_qsl(content.decode(errors="replace")))
        back = given.get("back", "/")
        back = back if back in {path for path, _ in _PLACES} else "/"
        try:
            told = await self.acts.act(request.path_params["name"], given)
        except SoulError as error:
            told = Redactor(self.settings.secrets).text(f"{error}. {error.remedy}".strip(" ."))
        return RedirectResponse(f"{back}?{urlencode({'told': told, 'sign': self._sign(told)})}", 303)

    def _sign(self, told: str) -> str:
        return hmac.new(self.key, told.encode(), hashlib.sha256).hexdigest()

    async def events(self, _: Request) -> Response:
        return told_of_changes([self.home])

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
