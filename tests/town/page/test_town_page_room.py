"""The page's server shows the room as it happens, and lets nobody but the page speak as its host."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

from adapters.space.types import DECLINES, ActionDone, Joined, Said, Typing, WorkspaceProgress
from common.clock import FakeClock
from tests.town.page.conftest import GITHUB, Square
from tests.town.page.room_guests import guest
from town.atproto.network import Network
from town.page.app import PageSource, page_app
from town.page.room import TYPING_S, KnownResident, PageRoom
from town.serving import serve

AT = "2026-01-05T12:00:00.000Z"


class Stream:
    """The page's events, read until one says what is waited for."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def until(self, wanted: str, words: str) -> Any:
        name = ""
        async for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == wanted and words in line:
                return json.loads(line.removeprefix("data: "))
        raise AssertionError(f"the stream ended without {wanted} of {words}")


async def test_the_talk_and_who_is_in_it_come_by_the_stream(http: httpx.AsyncClient, square: Square) -> None:
    async with http.stream("GET", "/api/events") as answer, guest(square.room.url, "maren") as maren:
        stream = Stream(answer.aiter_lines())
        present = await stream.until("present", "maren")
        assert present[0] == {
            "handle": "maren.test",
            "name": "Maren",
            "room": "maren",
            "version": "0.1.0",
            "state": "idle",
            "detail": "",
            "typing": False,
        }
        await maren.tell("typing")
        assert (await stream.until("present", '"typing":true'))[0]["typing"]
        await maren.tell("chat", content="The bench faces north.")
        rows = await stream.until("room", "bench")
        assert [row["kind"] for row in rows] == ["joined", "said"]
        assert rows[1]["by"] == {"handle": "maren.test", "name": "Maren"}
        assert rows[0]["id"] < rows[1]["id"]
        link = f"{GITHUB}/you/town-square/issues/1"
        await maren.tell("claim", action="create_issue", target="you/town-square")
        await maren.tell("action_result", action="create_issue", target="you/town-square", success=True, link=link)
        rows = await stream.until("room", "issues/1")
        assert [(row["kind"], row["text"], row["link"]) for row in rows[2:]] == [
            ("claimed", "an issue in town-square", ""),
            ("done", "an issue in town-square", link),
        ]


async def test_the_visitor_speaks_as_the_host_and_everybody_hears_it(http: httpx.AsyncClient, square: Square) -> None:
    async with guest(square.room.url, "maren") as maren:
        answer = await http.post("/api/room", json={"text": "  Good evening, @maren.  "})
        assert answer.status_code == 204
        received = await maren.receive("chat")
    assert (received["name"], received["content"], received["addressed"]) == (
        "host",
        "Good evening, @maren.",
        ["maren"],
    )
    assert [row["by"]["name"] for row in square.room.view.rows() if row["kind"] == "host"] == ["You"]


async def test_a_town_without_a_room_says_so(square: Square) -> None:
    network = Network(clock=FakeClock())
    you = network.create_account("you.test", "pw", display_name="You")
    app = page_app(PageSource(network, list, you.did, about="", avatars={}, controls=square.hand))
    async with serve(app) as url, httpx.AsyncClient(base_url=url, headers={"origin": url}) as http:
        assert (await http.get("/api/town")).json()["room"] is None
        assert (await http.post("/api/room", json={"text": "hi"})).status_code == 404


async def test_typing_ends_by_itself() -> None:
    clock = FakeClock()
    view = PageRoom(clock, {}, KnownResident("you.test", "You"))
    view.happened(Joined("marvin", "m", "1"))
    view.happened(Typing("marvin", "m", AT))
    assert view.present()[0]["typing"]
    await clock.advance(TYPING_S)
    assert not view.present()[0]["typing"]


def test_the_view_keeps_the_last_rows_only_and_cuts_what_is_endless() -> None:
    view = PageRoom(FakeClock(), {}, KnownResident("you.test", "You"))
    for number in range(400):
        view.happened(Said("marvin", "m", f"{number} " + "x" * 30_000, AT))
    rows = view.rows()
    assert (len(rows), rows[-1]["id"]) == (150, 400)
    assert all(len(row["text"]) == 20_000 for row in rows)


def test_how_far_a_workspace_is_stands_in_one_row_that_moves_and_a_refusal_in_none() -> None:
    view = PageRoom(FakeClock(), {}, KnownResident("you.test", "You"))
    for done in range(4):
        view.happened(WorkspaceProgress("marvin", "m", "acme/site", 1, 3, done, 0, 0, AT))
        view.happened(WorkspaceProgress("marvin", "m", "acme/site-two", 1, 9, done, 0, 0, AT))
    view.happened(ActionDone("marvin", "m", DECLINES, "a web server", success=False, timestamp=AT, error="declined"))
    assert [row["text"] for row in view.rows()] == ["acme/site: 3 of 3 done", "acme/site-two: 3 of 9 done"]
