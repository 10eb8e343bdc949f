"""One odd item costs itself only: the stream goes on, and the page shows what stands beside it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.town.page.conftest import BUDGET, GITHUB, Square, draft
from tests.town.page.room_guests import guest
from tests.town.page.test_town_page_server import next_event
from town.atproto.index import POST, PROFILE
from town.page.room import KnownResident

NOW = "2026-01-05T12:00:00.000Z"
HALF = "\ud83d"
DEEP: Any = json.loads("[" * 900 + "]" * 900)
RECORDS: dict[str, dict[str, Any]] = {
    "a time that is none": {"text": "when?", "createdAt": "never"},
    "a year before all years": {"text": "old", "createdAt": "0000-01-01T00:00:00Z"},
    "no words at all": {"text": "", "createdAt": NOW},
    "control characters": {"text": "\x00\x07\u2028\u202ebackwards", "createdAt": NOW},
    "a very long word": {"text": "w" * 3000, "createdAt": NOW},
    "an answer to nothing": {
        "text": "to whom?",
        "createdAt": NOW,
        "reply": {
            end: {"uri": "at://did:plc:gone/app.bsky.feed.post/gone", "cid": "bafy"} for end in ("root", "parent")
        },
    },
}
NAMES = ["", " ", "__proto__", "constructor", "\u202etset.nerma", "%E0%A4%A", "n" * 640, "<b>"]
TALK = [
    f"{GITHUB}/%E0%A4%A is a bad link",
    f"{GITHUB}/%E2%80%AEgnp.exe and {GITHUB}/%",
    f"{GITHUB}/{HALF}",
    "http://[ and http://[::1 and //x",
    "**" * 2000,
    "`" * 3999,
    HALF,
    "\u2028\u2029\x00",
    "@" * 3999,
]
STATUSES: dict[str, dict[str, Any]] = {
    "not a number": {"counts": {"posts": float("nan"), "replies": float("inf")}},
    "a deep thing": {"lastDecision": {"deep": DEEP}},
    "wrong types everywhere": {
        "mode": 7,
        "loops": {"name": "awareness"},
        "decisions": "none",
        "counts": [],
        "modelBudget": "much",
        "standing": None,
        "drafts": 3,
    },
    "wrong types within": {
        "mode": "constructor",
        "loops": [None, 4, {"name": 5, "nextAt": 6}],
        "decisions": [{}, "x", {"at": 5, "summary": None, "reason": [], "triggerUri": 9}],
        "counts": {"posts": {}, "replies": None},
        "modelBudget": {"step": "constructor", "tokens": None, "usd": {"used": "free"}, "resetsAt": 4},
        "standing": {"paused": True, "reasons": "because"},
        "drafts": [{}, draft(kind="constructor", why=None, createdAt=5, text=HALF)],
    },
}


async def streamed(http: httpx.AsyncClient, *wanted: str) -> dict[str, Any]:
    """These parts, from one stream."""
    async with http.stream("GET", "/api/events") as stream:
        lines = lines_of(stream)
        return {name: await next_event(lines, name) for name in wanted}


async def lines_of(stream: httpx.Response) -> AsyncIterator[str]:
    """As an event stream has them: only CR and LF end a line."""
    rest = ""
    async for part in stream.aiter_text():
        *whole, rest = (rest + part).split("\n")
        for line in whole:
            yield line


def write_odd_posts(square: Square) -> None:
    for record in RECORDS.values():
        square.network.create(square.dids["maren"], POST, record, validate=False)


def write_odd_names(square: Square) -> None:
    for number, name in enumerate(NAMES):
        did = square.network.create_account(f"odd{number}.test", "pw").did
        square.network.put(did, PROFILE, "self", {"displayName": name}, validate=False)
        square.network.post_as(did, f"Written by number {number}.")


@pytest.mark.slow
async def test_a_talk_of_two_thousand_posts_is_one_thread(http: httpx.AsyncClient, square: Square) -> None:
    uri = square.say("maren", "0")
    for number in range(1, 2000):
        uri = square.say("tobias", str(number), uri)
    threads = (await streamed(http, "feed"))["feed"]
    assert [int(post["text"]) for post in threads[0]["posts"]] == list(range(2000))
    assert threads[0]["posts"][-1]["depth"] == 1999


async def test_a_status_file_that_is_none_means_not_awake(http: httpx.AsyncClient, square: Square) -> None:
    square.status("odile")
    for content in ("[" * 100_000, '{"pid": 1e999}', "\ud83d", "NaN", "", "7", '{"updatedAt":[]}'):
        (square.folder / "maren.json").write_bytes(content.encode("utf-8", "surrogatepass"))
        people = (await streamed(http, "people"))["people"]
        assert [person["awake"] for person in people] == [False, False, True], content[:9]


async def test_odd_talk_does_not_end_the_stream(http: httpx.AsyncClient, square: Square) -> None:
    async with guest(square.room.url, "odile") as odile:
        for words in TALK:
            square.room.server.broadcast_from_host(words)
        await odile.tell("reflection", summary=HALF)
        await odile.tell("state", state="blocked", detail=HALF)
        square.room.server.broadcast_from_host("after all of it")
        await odile.tell("typing")
        told = await streamed(http, "room", "present")
    assert "after all of it" in [row["text"] for row in told["room"]]
    assert [one["name"] for one in told["present"]] == ["Odile"]


@pytest.mark.parametrize("path", ["/api/posts", "/api/room"])
async def test_an_odd_request_is_answered(http: httpx.AsyncClient, path: str) -> None:
    for body in ("[" * 9000, '{"text": "\\ud83d odd"}', '{"text": NaN}', "\x00", '{"text": 1e999}'):
        answer = await http.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code in {201, 204, 400}, body[:30]


# In the browser


@pytest.mark.browser
async def test_the_page_shows_what_stands_beside_odd_posts_and_names(page: Page, square: Square) -> None:
    write_odd_posts(square)
    write_odd_names(square)
    square.say("odile", "The kettle knows.")
    await expect(page.locator(".thread")).to_have_count(len(RECORDS) + len(NAMES) + 1)
    await expect(page.locator(".thread .text").first).to_have_text("The kettle knows.")
    square.say("odile", "And goes on.")
    await expect(page.locator(".thread .text").first).to_have_text("And goes on.")


@pytest.mark.browser
async def test_the_page_shows_what_is_said_after_odd_talk(page: Page, square: Square) -> None:
    await page.get_by_role("tab", name="The room").click()
    for number, words in enumerate(TALK, 1):
        square.room.server.broadcast_from_host(words)
        await expect(page.locator(".said .words")).to_have_count(number)
    square.room.server.broadcast_from_host("after it")
    await expect(page.locator(".said .words").last).to_have_text("after it")


@pytest.mark.browser
async def test_a_link_that_cannot_be_read_is_shown_as_it_stands_and_turns_nothing(page: Page, square: Square) -> None:
    await page.get_by_role("tab", name="The room").click()
    square.room.server.broadcast_from_host(f"{GITHUB}/%E0%A4%A {GITHUB}/a%E2%80%AEb {GITHUB}/caf%C3%A9")
    await expect(page.locator(".words a")).to_have_text(["%E0%A4%A", "a%E2%80%AEb", "café"])


@pytest.mark.browser
@pytest.mark.parametrize("odd", STATUSES)
async def test_the_page_shows_the_others_beside_an_odd_status(page: Page, square: Square, odd: str) -> None:
    square.status("maren", **STATUSES[odd])
    square.status("odile", modelBudget=BUDGET, drafts=[draft(id="cafe02", text="Ready to go.")])
    await expect(page.locator("#people > li")).to_have_count(3)
    await expect(page.locator("#people > li").last.locator(".awake")).to_have_count(1)
    await expect(page.locator("#drafts .text", has_text="Ready to go.")).to_have_count(1)
    square.say("odile", "Still here.")
    await expect(page.locator(".thread .text")).to_have_text("Still here.")


@pytest.mark.browser
async def test_an_odd_member_of_the_room_is_only_odd(page: Page, square: Square) -> None:
    square.room.view._known = {"odile": KnownResident("%E0%A4%A", "")}
    await page.get_by_role("tab", name="The room").click()
    async with guest(square.room.url, "odile") as odile, guest(square.room.url, "__proto__") as other:
        await odile.tell("chat", content="I have no name.")
        await other.tell("chat", content="Nor have I.")
        await expect(page.locator(".said .words")).to_have_text(["I have no name.", "Nor have I."])
