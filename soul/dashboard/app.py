"""The owner's page: pages rendered here, forms that act, and one stream that tells an open page to look again.

Nothing is kept here, and nothing here is needed for the SOUL to live: each request reads the home anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.resources import files
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
from common.wording import deed, source
from modules.runtime.home import Home
from modules.services.memory.store import MemoryStore
from modules.services.memory.types import Memory, Query
from soul.commands.memory import ask_memories
from soul.dashboard.access import HEALTH, METRICS, READY, Door, Guard
from soul.dashboard.acts import PageActs
from soul.dashboard.changes import ChangeStreams
from soul.dashboard.face import Face
from soul.dashboard.facts import PageFacts
from soul.dashboard.metrics import Metrics
from soul.dashboard.plots import days_until, plot_of
from soul.dashboard.words import in_line, in_log, in_talk
from soul.terminal.wording import moment

_FORM_S = 10.0
_MAX_FORM_BYTES = 20_000
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
    facts, acts = PageFacts(home, settings, clock), PageActs(home, settings, clock)
    page = _Dashboard(
        home, settings, clock, facts, acts, pages, Metrics(home, settings, clock), Face(home, settings, clock)
    )
    return Starlette(
        routes=[
            Route("/", page.now),
            Route("/why", page.why),
            Route("/talk", page.talk),
            Route("/work", page.work),
            Route("/memory", page.memory),
            Route("/people", page.people),
            Route("/growing", page.growing),
            Route("/spending", page.spending),
            Route("/log", page.log),
            Route("/settings", page.shown_settings),
            Route("/act/{name}", page.act, methods=["POST"]),
            Route("/events", page.events),
            Route("/static/{name}", static),
            Route("/face", page.shown_face),
            Route(METRICS, page.metrics),
            *(Route(path, page.health) for path in HEALTH),
        ],
        middleware=[Middleware(Guard, door=door)],
    )


def templates() -> Environment:
    """Return what reads the pages."""
    loader = PackageLoader("soul.dashboard")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    pages.filters |= {"in_line": in_line, "in_log": in_log, "in_talk": in_talk, "deed": deed, "source": source}
    return pages


async def static(request: Request) -> Response:
    """Answer with a file of the page's looks."""
    name = request.path_params["name"]
    for package in ("soul.dashboard", "town.page"):  # the town's looks are this page's
        file = files(package) / "static" / name
        if "/" not in name and file.is_file():
            return Response(file.read_bytes(), media_type=_TYPES.get(name.rpartition(".")[2], "text/plain"))
    return Response("Not found", 404)


@dataclass(frozen=True, slots=True)
class _Dashboard:
    home: Home
    settings: Settings
    clock: Clock
    facts: PageFacts
    acts: PageActs
    pages: Environment
    monitored: Metrics
    face: Face
    changes: ChangeStreams = field(default_factory=ChangeStreams)
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    """Signs the line that the page shows after an act: no link of somebody else can put words there."""

    async def now(self, request: Request) -> Response:
        return await self._page(request, "now.html", self.facts.now)

    async def why(self, request: Request) -> Response:
        of = request.query_params.get("of", "").strip()
        return await self._page(request, "why.html", lambda: {"of": of, "story": self.facts.story(of) if of else None})

    async def talk(self, request: Request) -> Response:
        return await self._page(request, "talk.html", self.facts.talk)

    async def log(self, request: Request) -> Response:
        words, kind = (request.query_params.get(name, "").strip() for name in ("q", "kind"))
        return await self._page(request, "log.html", lambda: self.facts.log(words, kind))

    async def shown_settings(self, request: Request) -> Response:
        words = request.query_params.get("q", "").strip()
        return await self._page(request, "settings.html", lambda: self.facts.shown_settings(words))

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
            found = await ask_memories(self.home, look)
        except SoulError as error:
            return self._failed(request, error)
        shown = {"words": words, "memories": [{**asdict(one), "at": one.updated_at} for one in found]}
        return self._rendered(request, "memory.html", shown)

    async def act(self, request: Request) -> Response:
        """Do one act, and go back to the page it came from with a line on what became of it."""
        try:
            async with asyncio.timeout(_FORM_S):
                content = await request.body()
        except TimeoutError:
            return HTMLResponse("The form did not arrive in time", 408)
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

    async def events(self, request: Request) -> Response:
        return await self.changes.stream(request, [self.home])

    async def shown_face(self, _: Request) -> Response:
        return await self.face.answer()

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
