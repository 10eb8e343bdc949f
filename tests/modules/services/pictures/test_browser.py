"""Real Chromium in the sandbox opens pages; names that end in `.test` stand for servers of the open web."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from adapters.web.client import vetted_address
from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.sandbox.policy import MIB
from modules.runtime.sandbox.runner import Sandbox
from modules.services.pictures.choosing import PageBrowser, PictureFinder, browser_program
from tests.adapters.results import ok
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.modules.services.pictures.sharing import pictures_in
from town.serving import serve

pytestmark = [
    needs_sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(not browser_program(), reason="needs Chromium: apt-get install chromium"),
]
GALLERY = """<title>Gallery</title><meta property="og:image" content="/cover.png"><script>
fetch('/works').then(answer => answer.text()).then(names => names.split(' ').forEach(name => {
  const work = document.body.appendChild(document.createElement('img'));
  work.src = `/${name}.png`; work.alt = name; work.width = 800;
}));
</script>"""
HOSTILE = """<title>Trap</title><body><script>
const trap = location.hash.slice(1);
for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]']) {
  fetch(`http://${host}:${trap}/fetched`, {mode: 'no-cors'}).catch(() => 0);
  document.body.append(Object.assign(new Image(), {src: `http://${host}:${trap}/image`}));
  document.body.append(Object.assign(document.createElement('iframe'), {src: `http://${host}:${trap}/frame`}));
}
new WebSocket(`ws://127.0.0.1:${trap}/socket`);
fetch(`/away?to=http://127.0.0.1:${trap}/redirected`, {mode: 'no-cors'}).catch(() => 0);
document.body.append(Object.assign(new Image(), {src: 'file:///etc/passwd'}));
document.title = 'Tried';
</script>"""
FLOOD = """<title>Flood</title><script>(async () => {
  const sent = new Blob([new Uint8Array(16 << 20)]);
  for (let left = 12; left; left--) await fetch('/flooded', {method: 'POST', body: sent}).catch(() => 0);
})();</script>"""


@dataclass
class Site:
    """A server, the paths that it was asked for, and how many bytes it was sent."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    taken: int = 0

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    made = Site()

    async def answer(request: Request) -> Response:
        made.asked.append(request.url.path)
        async for sent in request.stream():
            made.taken += len(sent)
        match request.url.path:
            case "/away":
                return RedirectResponse(request.query_params["to"])
            case "/works":
                return Response("lamp bridge harbour")
            case "/hostile" | "/flood" as path:
                return HTMLResponse(HOSTILE if path == "/hostile" else FLOOD)
            case "/endless":
                return HTMLResponse(
                    "<title>Endless</title><script>for (let all = [];;) all.push(new Uint8Array(1e8).fill(1))</script>"
                )
            case _:
                return HTMLResponse(GALLERY)

    async with serve(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])) as url:
        made.url = url
        yield made


async def address_of(host: str, port: int) -> str:
    return "127.0.0.1" if host.endswith(".test") else await vetted_address(host, port, private_ok=False)


BROWSER = PageBrowser(Sandbox(redactor=Redactor()), address_of)


async def test_pictures_that_a_page_loads_by_script_are_found(
    tmp_path: Path, database: Database, journal: Journal
) -> None:
    clock = FakeClock()
    async with site() as gallery:
        pictures = pictures_in(tmp_path, clock, database, journal, gallery.url, private_ok=True)
        browser = PageBrowser(BROWSER.sandbox, lambda host, port: vetted_address(host, port, private_ok=True))
        plain, shown = PictureFinder(pictures, random.Random(1)), PictureFinder(pictures, random.Random(1), browser)
        assert [urlsplit(one.url).path for one in ok(await plain.browse(gallery.url, 400)).images] == ["/cover.png"]
        found = ok(await shown.browse(gallery.url, 400)).images
        assert [one.alt for one in found] == ["", "lamp", "bridge", "harbour"]
        assert shown.is_listed(f"{gallery.url}/lamp.png")
        await pictures.web.aclose()


async def test_no_request_of_a_page_reaches_this_machine_by_whatever_way() -> None:
    async with site() as public, site() as trap:
        html = await BROWSER.html_of(f"http://gallery.test:{public.port}/hostile#{trap.port}")
        assert "<title>Tried</title>" in html
        assert {"/hostile", "/away"} <= set(public.asked)
        for host in ("127.0.0.1", "localhost", f"gallery.test:{public.port}/away?to=http://127.0.0.1"):
            await BROWSER.html_of(f"http://{host}:{trap.port}/direct")
        assert trap.asked == []


async def test_a_page_that_takes_all_memory_is_ended() -> None:
    async with site() as public:
        assert "<title>Gallery</title>" in await BROWSER.html_of(f"http://gallery.test:{public.port}/")
        assert not await BROWSER.html_of(f"http://gallery.test:{public.port}/endless")


async def test_a_page_cannot_flood_others_from_here() -> None:
    async with site() as public:
        await BROWSER.html_of(f"http://gallery.test:{public.port}/flood")
        assert 16 * MIB <= public.taken < 70 * MIB
