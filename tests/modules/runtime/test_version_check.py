"""A newer version that is published is told once, and changes nothing; nothing else that an address answers is."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from adapters.web.client import WebClient, WebTransport
from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.runtime.version_check import VersionLoop, is_newer, version_in
from town.serving import serve


@pytest.mark.parametrize(
    ("published", "newer"),
    [
        ("0.1.1", True),
        ("0.2", True),
        ("0.10.0", True),
        ("0.1.0", False),
        ("0.2.0-rc1", False),
        ("", False),
        ("latest", False),
        ("9" * 100, False),
    ],
)
def test_only_a_later_release_is_newer(published: str, *, newer: bool) -> None:
    assert is_newer(published, "0.1.0") is newer


@pytest.mark.parametrize(("published", "newer"), [("0.2.0", True), ("0.2.1", True), ("0.1.9", False)])
def test_a_development_version_makes_room_for_the_release_that_it_names(published: str, *, newer: bool) -> None:
    assert is_newer(published, "0.2.0.dev0") is newer


@pytest.mark.parametrize(
    ("document", "version"),
    [
        ('{"version": "1.2.3"}', "1.2.3"),
        ('[project]\nname = "x"\nversion = "1.2.3"', "1.2.3"),
        ('{"version": 7}', ""),
        ("[]", ""),
        ("[" * 5000, ""),
    ],
)
def test_json_and_toml_are_read_and_nothing_else(document: str, version: str) -> None:
    assert version_in(document) == version


async def test_a_newer_version_is_told_once_and_so_is_each_failure_to_read_it(tmp_path: Path) -> None:
    newer = '[project]\nversion = "0.2.0"'
    answers = ["", '{"version": "0.1.0"}', "nothing", "nothing", newer, newer, '{"version": "0.3.0"}']
    asked: list[str] = []

    async def publish(request: Request) -> Response:
        asked.append(str(request.url.query))
        answer = answers.pop(0)
        return PlainTextResponse(answer, status_code=200 if answer else 503)

    clock, console = FakeClock(), SilentConsole()
    database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
    journal = Journal(database, console, clock, Redactor())
    async with serve(Starlette(routes=[Route("/version", publish)])) as url:
        web = WebClient(WebTransport(allow=[url]))
        loop = VersionLoop(f"{url}/version", web, journal, clock, own="0.1.0")
        outcomes = []
        for _ in range(7):
            outcomes.append((await loop.run()).reason)
            await clock.advance(300)
        await web.aclose()
    lines = [(kind, message) for kind, message, _ in console.lines]
    await database.close()
    assert outcomes[:4] == [
        "the answer is HTTP 503",
        "0.1.0 is published, this is 0.1.0",
        "the answer names no version",
        "the answer names no version",
    ]
    assert lines == [
        ("warn", "The published version could not be read"),
        ("warn", "The published version could not be read"),
        ("warn", "Version 0.2.0 is published, this is 0.1.0"),
        ("warn", "Version 0.3.0 is published, this is 0.1.0"),
    ]
    assert len(set(asked)) == 7, "no cache on the way can answer"
