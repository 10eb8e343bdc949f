"""Proves that the page shows what is built together: plans as boards of tasks, and pull requests with their reviews.

An odd item costs only itself: the stream goes on, and the page shows what stands beside it. The page's server shows
the room as it happens, and lets nobody but the page speak as its host.
"""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from adapters.space.roster import TYPING_S
from adapters.space.types import DECLINES, ActionDone, Joined, Said, Typing, WorkspaceProgress
from common.clock import FakeClock
from tests.loopback import NO_TLS
from tests.town.page.browsing import INJECTION, Watched, open_page
from tests.town.page.conftest import BUDGET, GITHUB, Square, draft
from tests.town.page.page_contrast import CONTRAST
from tests.town.page.room_guests import guest
from tests.town.page.test_town_page_server import next_event
from town.atproto.index import POST, PROFILE
from town.atproto.network import Network
from town.github import pulls
from town.github.network import GitHubNetwork
from town.github.values import GitHubAccount, StoredRepo
from town.page.app import PageSource, page_app, tasks, work
from town.page.room import KnownResident, PageRoom
from town.serving import serve

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
    """Read these events from one stream; return them by name."""
    async with http.stream("GET", "/api/events") as stream:
        lines = lines_of(stream)
        return {name: await next_event(lines, name) for name in wanted}


async def lines_of(stream: httpx.Response) -> AsyncIterator[str]:
    """Yield the lines of an event stream: only a line feed ends one."""
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


BODY = """# [PLAN] Benches

## Goal
Somewhere to sit.

## Tasks

### Task 1: Choose the wood
**Status:** completed
**Assignee:** @maren
**Estimate:** 10 min

**Description:**
Not **Status:** of anything.

---

### Task 2: Build it
**Status:** in_progress
**Assignee:** @odile

### Task 3: Paint it
**Status:** sideways
**Assignee:** (none)

### Task: no number
### Task 4: Try it
**Status:** Blocked
"""


def open_plan(
    github: GitHubNetwork, title: str = "[PLAN] Benches", body: str = BODY
) -> tuple[StoredRepo, GitHubAccount]:
    """Create a repository with one plan; return it and the plan's author."""
    maren = github.create_account("maren")
    repo = github.create_repo(maren, "square", collaborators=["odile"])
    github.open_issue(repo, maren, title=title, body=body)
    return repo, maren


def open_pull(
    github: GitHubNetwork, repo: StoredRepo, author: GitHubAccount, reviewers: Sequence[GitHubAccount] = ()
) -> None:
    pull = pulls.open_pull(
        github,
        repo,
        author,
        title="Build the bench",
        body=None,
        refs=("main", "soul/1-build-it"),
        commits=("a" * 40, "b" * 40),
        draft=False,
    )
    for event, reviewer in zip(("REQUEST_CHANGES", "APPROVE"), (*reviewers, *reviewers), strict=False):
        pulls.submit_review(github, repo, pull, reviewer, event=event, body="So.", commit=pull.head)


def test_a_plans_tasks_are_read_with_state_and_holder() -> None:
    assert [(task["number"], task["title"], task["state"], task["holder"]) for task in tasks(BODY)] == [
        (1, "Choose the wood", "completed", "maren"),
        (2, "Build it", "in_progress", "odile"),
        (3, "Paint it", "pending", ""),
        (4, "Try it", "blocked", ""),
    ]


def test_plans_and_pull_requests_of_public_repositories_are_shown() -> None:
    github = GitHubNetwork(clock=FakeClock())
    repo, maren = open_plan(github)
    odile = github.create_account("odile")
    github.open_issue(repo, maren, title="No plan", body=BODY)
    secret = github.create_repo(maren, "secret", private=True)
    github.open_issue(secret, maren, title="[PLAN] Secret", body=BODY)
    open_pull(github, repo, maren, [odile])
    pull = repo.pulls[3]
    pulls.request_reviewers(github, repo, pull, maren, ["odile"])
    told = work(github)
    assert [(plan["title"], plan["state"], len(plan["tasks"])) for plan in told["plans"]] == [("Benches", "open", 4)]
    assert told["pulls"] == [
        {
            "repo": "maren/square",
            "number": 3,
            "title": "Build the bench",
            "by": "maren",
            "branch": "soul/1-build-it",
            "state": "open",
            "reviews": [{"by": "odile", "state": "approved"}],
            "asked": ["odile"],
        }
    ]
    pulls.set_merged(github, repo, pull, maren, "c" * 40)
    assert work(github)["pulls"][0]["state"] == "merged"


async def test_the_work_comes_by_the_stream_whenever_it_changes(square: Square) -> None:
    async with (
        httpx.AsyncClient(base_url=square.url, verify=NO_TLS) as http,
        http.stream("GET", "/api/events") as answer,
    ):
        told, name = [], ""
        async for line in answer.aiter_lines():
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if name == "work" and line.startswith("data: "):
                told.append(json.loads(line.removeprefix("data: ")))
                if len(told) == 1:
                    open_plan(square.github)
                elif told[-1]["plans"]:
                    break
    assert (told[0], told[-1]["plans"][0]["title"]) == ({"plans": [], "pulls": []}, "Benches")


@pytest.mark.browser
async def test_a_visitor_sees_boards_and_pull_requests(page: Page, square: Square) -> None:
    await page.get_by_role("tab", name="The work").click()
    await expect(page.get_by_text("Nothing is being built yet.")).to_be_visible()
    repo, maren = open_plan(square.github)
    open_pull(square.github, repo, maren, [square.github.create_account("odile")])
    await expect(page.locator(".plan-title a")).to_have_attribute("href", f"{GITHUB}/maren/square/issues/1")
    await expect(page.locator(".plan .plan-about")).to_have_text("maren/square, open: 1 of 4 done")
    await expect(page.locator(".plan .clone")).to_contain_text("/maren/square.git")
    await expect(page.locator(".column h3")).to_have_text(["To do 1", "In work 1", "Blocked 1", "Done 1"])
    await expect(page.get_by_label("In work").locator(".task")).to_have_text("2. Build it@odile")
    await expect(page.locator(".pull .plan-about").last).to_have_text("odile approved it")


@pytest.mark.browser
async def test_what_is_written_there_stays_text(page: Page, square: Square, watched: Watched) -> None:
    await page.get_by_role("tab", name="The work").click()
    evil = f"### Task 1: {INJECTION}\n**Assignee:** @{INJECTION}\n"
    open_plan(square.github, f"[PLAN] {INJECTION}"[:250], evil)
    await expect(page.locator(".task")).to_have_count(1)
    assert await page.title() == "The town"
    assert await page.locator("#work img, #work script").count() == 0
    assert watched.complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_work_can_be_read(browser: Browser, square: Square, watched: Watched, scheme: str) -> None:
    context = await browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": 360, "height": 700}
    )
    page = await open_page(context, square.url, watched)
    await page.get_by_role("tab", name="The work").click()
    repo, maren = open_plan(square.github)
    open_pull(square.github, repo, maren)
    await expect(page.locator(".pull")).to_have_count(1)
    assert await page.evaluate(CONTRAST) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await context.close()


AT = "2026-01-05T12:00:00.000Z"


class Stream:
    """The page's events; `until` reads them up to one that holds the given words."""

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
