"""Proves that the page's server shows what the network holds, and lets nobody but the page write.

The whole town opens with everything a SOUL needs, and leaves nothing behind. Proves that a draft names its addressee
for as long as it waits, however many posts have come since.
"""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI

from common.clock import SystemClock, iso
from soul.commands.demo import HomeControls
from tests.town.page.conftest import STORY, Square
from town.atproto.network import Network
from town.gallery.library import picture
from town.model.service import GatewayMind
from town.page.view import ResidentStatus, people, read_status
from town.residents import RESIDENTS
from town.town import Listeners, open_town


async def next_event(lines: AsyncIterator[str], wanted: str) -> Any:
    name = ""
    async for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: ") and name == wanted:
            return json.loads(line.removeprefix("data: "))
    raise AssertionError(f"the stream ended without {wanted}")


# What is shown


async def test_the_stream_begins_with_everything_and_goes_on_with_what_changes(
    http: httpx.AsyncClient, square: Square
) -> None:
    root = square.say("maren", "A barometer falls.")
    answer = square.say("tobias", "Which needle?", root)
    square.say("odile", "The kettle knows.", answer)
    square.like("odile", root)
    async with http.stream("GET", "/api/events") as stream:
        lines = stream.aiter_lines()
        threads = await next_event(lines, "feed")
        people = await next_event(lines, "people")
        assert [(post["text"], post["depth"]) for post in threads[0]["posts"]] == [
            ("A barometer falls.", 0),
            ("Which needle?", 1),
            ("The kettle knows.", 2),
        ]
        assert [actor["name"] for actor in threads[0]["posts"][0]["likes"]] == ["Odile"]
        assert threads[0]["posts"][1]["parent"] == root
        assert [person["name"] for person in people] == ["Maren", "Tobias", "Odile"]
        assert not any(person["awake"] for person in people)
        square.say("you", "Something new")
        assert (await next_event(lines, "feed"))[0]["posts"][0]["text"] == "Something new"
        square.status("maren", mode="awareness")
        awake = await next_event(lines, "people")
        assert awake[0]["awake"]
        assert awake[0]["life"]["mode"] == "awareness"


async def test_a_thread_with_a_new_reply_comes_to_the_top(http: httpx.AsyncClient, square: Square) -> None:
    old = square.say("maren", "old")
    square.say("tobias", "newer")
    square.say("odile", "a reply", old)
    async with http.stream("GET", "/api/events") as stream:
        threads = await next_event(stream.aiter_lines(), "feed")
    assert [thread["posts"][0]["text"] for thread in threads] == ["old", "newer"]


async def test_a_picture_of_a_post_is_served_as_it_was_uploaded_and_nothing_else_of_an_account(
    http: httpx.AsyncClient, square: Square
) -> None:
    path = square.show("odile", "Drawn by hand.", "threads.png", "Crossing threads")
    answer = await http.get(path)
    assert (answer.headers["content-type"], answer.content) == ("image/png", picture("threads.png"))
    assert answer.headers["x-content-type-options"] == "nosniff"
    did = square.dids["odile"]
    other = square.network.upload(did, "image/svg+xml", b"<svg/>").cid
    for gone in (f"/pictures/{did}/{other}", f"/pictures/{did}/nothing", path.replace(did, square.dids["maren"])):
        assert (await http.get(gone)).status_code == 404, gone


# Who may write


async def test_you_can_post_and_reply(http: httpx.AsyncClient, square: Square) -> None:
    root = square.say("maren", "A barometer falls.")
    posted = await http.post("/api/posts", json={"text": "  Hello @maren.test  "})
    replied = await http.post("/api/posts", json={"text": "The sky.", "replyTo": root})
    assert (posted.status_code, replied.status_code) == (201, 201)
    newest, older, _ = square.network.posts()
    assert (older.text, older.author.did) == ("Hello @maren.test", square.dids["you"])
    assert newest.reply
    assert newest.reply.parent.uri == root


REFUSED: tuple[tuple[Any, str], ...] = (
    ({"text": "   "}, "nothing"),
    ({"text": "x" * 301}, "300"),
    ({"text": "x", "replyTo": "at://did:plc:none/app.bsky.feed.post/1"}, "gone"),
    ({"text": 7}, "could not be read"),
    ([], "could not be read"),
    ({"text": "x" * 30_000}, "could not be read"),
)


async def test_what_cannot_be_posted_is_refused_in_words(http: httpx.AsyncClient, square: Square) -> None:
    for body, says in REFUSED:
        answer = await http.post("/api/posts", json=body)
        assert answer.status_code == 400
        assert says in answer.json()["error"]
    assert (await http.post("/api/posts", content=b"{nope", headers={"content-type": "application/json"})).is_error
    assert square.network.posts() == []


FOREIGN = (
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://127.0.0.1:1"},
    {"content-type": "text/plain"},
    {"content-type": "application/x-www-form-urlencoded"},
)


ROUTES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/posts", {"text": "hi"}),
    ("/api/drafts", {"handle": "odile.test", "id": "cafe01", "yes": True}),
    ("/api/pause", {"handle": "odile.test", "paused": True}),
)


async def test_a_foreign_website_cannot_act_through_the_browser(square: Square) -> None:
    async with httpx.AsyncClient(base_url=square.url) as http:
        for headers in FOREIGN:
            whole = {"origin": square.url, "content-type": "application/json"} | headers
            for route, body in (*ROUTES, ("/api/room", {"text": "hi"})):
                answer = await http.post(route, content=json.dumps(body), headers=whole)
                assert answer.status_code == 403, (route, headers)
    assert square.network.posts() == []
    assert square.room.view.rows() == []
    assert square.hand.decided == []
    assert square.hand.paused == []


# The owner's controls


async def test_a_yes_a_no_and_a_pause_reach_the_resident_they_are_meant_for(
    http: httpx.AsyncClient, square: Square
) -> None:
    for route, body in ROUTES[1:]:
        assert (await http.post(route, json=body)).status_code == 204
    await http.post("/api/drafts", json={"handle": "odile.test", "id": "cafe02", "yes": False})
    assert square.hand.decided == [("odile.test", "cafe01", True), ("odile.test", "cafe02", False)]
    assert square.hand.paused == [("odile.test", True)]


async def test_what_cannot_be_done_is_said_in_words(http: httpx.AsyncClient, square: Square) -> None:
    square.hand.trouble = "cafe01 does not wait any more"
    for route, body in ROUTES[1:]:
        answer = await http.post(route, json=body)
        assert (answer.status_code, answer.json()["error"]) == (400, square.hand.trouble)


async def test_half_an_answer_decides_nothing(http: httpx.AsyncClient, square: Square) -> None:
    bodies: tuple[Any, ...] = ([], {"handle": "x", "id": "y", "yes": "true"})
    for body in bodies:
        assert (await http.post("/api/drafts", json=body)).status_code == 400
    assert square.hand.decided == []


async def test_a_story_is_told_and_the_lack_of_one_too(http: httpx.AsyncClient, square: Square) -> None:
    square.hand.stories["at://x/y/1"] = STORY
    told = (await http.get("/api/why", params={"handle": "maren.test", "uri": "at://x/y/1"})).json()
    assert (told["title"], told["ending"], len(told["steps"])) == (STORY.title, STORY.ending, 5)
    assert told["steps"][0] == {
        "at": "2026-01-05T12:00:00.000Z",
        "text": "@you.test mentioned it",
        "details": ["“Will it rain?”"],
    }
    unknown = await http.get("/api/why", params={"handle": "maren.test", "uri": "at://x/y/2"})
    assert (unknown.status_code, unknown.json()) == (404, {"error": "at://x/y/2 was never seen"})


async def test_a_rebound_name_reaches_nothing(http: httpx.AsyncClient) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "10.0.0.1"):
        for path in ("/", "/api/town", "/api/events"):
            assert (await http.get(path, headers={"host": host})).status_code == 400, (host, path)


async def test_every_answer_forbids_foreign_code_frames_and_sniffing(http: httpx.AsyncClient) -> None:
    for path in ("/", "/static/main.js", "/api/town", "/avatars/maren.test", "/missing"):
        headers = (await http.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


# Status files

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def status_file(folder: Path, **changes: Any) -> Path:
    content = {"state": "running", "pid": 1, "updatedAt": iso(NOW), "mode": "idle", "secret": "x"} | changes
    path = folder / "status.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("changes", "awake"),
    [
        ({}, True),
        ({"state": "stopped"}, False),
        ({"updatedAt": iso(NOW - timedelta(minutes=4))}, False),
        ({"pid": 2**22 + 12345}, False),
        ({"pid": 2**70}, False),
        ({"pid": "x"}, False),
        ({"updatedAt": "yesterday"}, False),
    ],
)
def test_awake_is_only_whose_file_is_fresh_and_whose_process_runs(
    tmp_path: Path, changes: dict[str, Any], *, awake: bool
) -> None:
    status = read_status("maren.test", status_file(tmp_path, **changes), NOW)
    assert status.awake is awake
    assert "secret" not in status.life


# Posts to nobody in particular


async def told_of(http: httpx.AsyncClient, square: Square, text: str, to: str | None = None) -> list[str]:
    """Post as the visitor; return the names of the residents who are notified of it."""
    answer = await http.post("/api/posts", json={"text": text, "replyTo": to})
    uri = answer.raise_for_status().json()["uri"]
    names = [resident.name for resident in RESIDENTS]
    return [
        name
        for name in names
        if any(item.record.uri == uri for item in square.network.index.notices(square.dids[name]))
    ]


async def test_what_addresses_nobody_is_told_to_the_one_whose_field_it_touches(
    http: httpx.AsyncClient, square: Square
) -> None:
    assert await told_of(http, square, "I am repotting my lemon tree.") == ["odile"]
    assert await told_of(http, square, "Such fog on the harbour!") == ["maren"]


async def test_what_touches_nobody_s_field_is_told_in_turn(http: httpx.AsyncClient, square: Square) -> None:
    received = [await told_of(http, square, text) for text in ("hello", "17 + 25?", "Xyzzy")]
    assert received == [["maren"], ["tobias"], ["odile"]]


async def test_what_names_somebody_or_answers_somebody_is_told_to_nobody_else(
    http: httpx.AsyncClient, square: Square
) -> None:
    root = square.say("tobias", "Which needle?")
    assert await told_of(http, square, "Good evening, @odile.test") == ["odile"]
    assert await told_of(http, square, "The long one, in fog", root) == ["tobias"]
    mine = square.say("you", "Hm.")
    assert await told_of(http, square, "Does it rain, I wonder?", mine) == ["maren"]


def test_who_is_named_is_told_of_it_also_without_the_end_of_the_handle() -> None:
    listeners = Listeners(RESIDENTS, lambda: ["maren.test"])
    named = ("Odile, such fog at sea?", "@odile is the tide high?", "@odile.test such fog")
    assert {listeners.choose(text) for text in named} == {"odile.test"}


def test_a_resident_whose_home_was_just_made_is_getting_up(tmp_path: Path) -> None:
    status_file = tmp_path / "maren" / ".memory" / "status.json"
    assert not read_status("maren.test", status_file, NOW).getting_up
    status_file.parent.parent.mkdir()
    assert read_status("maren.test", status_file, NOW).getting_up


def test_who_is_asleep_or_paused_is_not_asked_while_others_are_there() -> None:
    ready = ["odile.test"]
    listeners = Listeners(RESIDENTS, lambda: ready)
    assert {listeners.choose(text) for text in ("fog", "hello", "zip")} == {"odile.test"}
    ready.clear()
    assert listeners.choose("Such fog at sea") == "maren.test"


NOBODY = HomeControls({})


async def test_the_town_opens_with_accounts_a_model_and_a_page(tmp_path: Path) -> None:
    async with open_town(homes=tmp_path, controls=NOBODY) as town, httpx.AsyncClient() as http:
        assert [resident.name for resident in town.residents] == ["maren", "tobias", "odile"]
        for resident in town.residents:
            account = town.accounts[resident.name]
            login = {"identifier": resident.handle, "password": account.password}
            answer = await http.post(f"{town.atproto_url}/xrpc/com.atproto.server.createSession", json=login)
            assert answer.json()["did"] == account.did
        assert (await http.get(town.page_url)).status_code == 200
        assert (await http.get(f"{town.gallery_url}/v2/channels/unsorted")).json()["length"] == 2
        async with AsyncOpenAI(base_url=town.model_url, api_key=town.model_key, max_retries=0) as model:
            said = await model.chat.completions.create(
                model=town.model, messages=[{"role": "user", "content": "Are you an AI?"}]
            )
        assert "AI agent" in (said.choices[0].message.content or "")
    with pytest.raises(httpx.ConnectError):
        async with httpx.AsyncClient() as http:
            await http.get(town.page_url)


async def test_a_town_whose_residents_live_fast_takes_so_much_more_from_them(tmp_path: Path) -> None:
    async with open_town(homes=tmp_path, controls=NOBODY, speed=40) as town, httpx.AsyncClient() as http:
        answer = await http.get(f"{town.atproto_url}/xrpc/com.atproto.server.describeServer")
    assert answer.headers["ratelimit-policy"] == f"{40 * 3000};w=300"


async def test_another_model_can_think_for_the_town_and_the_page_says_so(tmp_path: Path) -> None:
    mind = GatewayMind(base_url="http://127.0.0.1:9/v1", api_key="k", model="some/model")
    async with open_town(homes=tmp_path, controls=NOBODY, mind=mind) as town, httpx.AsyncClient() as http:
        assert town.model == "some/model"
        assert "some/model" in (await http.get(f"{town.page_url}/api/town")).json()["about"]


FOLLOW = "app.bsky.graph.follow"


def test_a_resident_is_shown_with_those_whom_it_follows_and_who_are_still_there() -> None:
    network = Network(clock=SystemClock())
    odile, tobias = (
        network.create_account(f"{name}.test", "pw", display_name=name.title()).did for name in ("odile", "tobias")
    )
    for key, subject in (("3kfollow1", tobias), ("3kfollow2", "did:plc:gone")):
        record = {"$type": FOLLOW, "subject": subject, "createdAt": "2026-01-05T12:00:00.000Z"}
        network.put(odile, FOLLOW, key, record, validate=False)
    (shown,) = people(network, [ResidentStatus("odile.test", awake=True)])
    assert [one["name"] for one in shown["follows"]] == ["Tobias"]
