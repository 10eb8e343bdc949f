"""Proves what a newcomer sees of the demo: all have posted, one a picture, two have talked, and you were answered.

Residents find each other by their identity posts: one mentions another, and follows them. What the page suggests to ask
for is built, and does what was asked for.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from common.clock import SystemClock, iso
from modules.services.peers.registry import IDENTITY_POST_MARKER
from tests import patience
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import HANG_S
from tests.program import started, until
from tests.running_town import RunningTown, call
from tests.town.github_place import needs_git
from town.github.arrangement import ALMANAC, PRICEBOOK
from town.model.types import ChatRequest, Completion
from town.residents import RESIDENTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COUNTED = "posts of yours that reached me"
QUESTION = "Good evening, @maren.test! What does the fog do to the tide?"
_COLUMNS = 80


@asynccontextmanager
async def demo(folder: Path, *more: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Start the demo; yield its process and the address of its page."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "soul.cli",
        "demo",
        "--port",
        "0",
        *more,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        told = await until(process, "http://127.0.0.1:", seconds=60)
        yield process, re.findall(r"http://127\.0\.0\.1:\d+", told)[0]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.wait(), HANG_S)


async def told(http: httpx.AsyncClient, wanted: str) -> Any:
    """Return what the page is told now: `feed`, `people`, `work` or `room`."""
    async with http.stream("GET", "/api/events") as events:
        name = ""
        async for line in events.aiter_lines():
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if name == wanted and line.startswith("data: "):
                return json.loads(line.removeprefix("data: "))
    return []


async def feed(http: httpx.AsyncClient) -> list[list[dict[str, Any]]]:
    """Return the threads that the page shows now."""
    return [thread["posts"] for thread in await told(http, "feed")]


async def tended(http: httpx.AsyncClient) -> set[str]:
    """Return what the owner could act on: who uses a budget, and whose drafts wait."""
    shown: set[str] = set()
    for person in await told(http, "people"):
        budget, drafts = person["life"].get("modelBudget"), person["life"].get("drafts")
        shown |= {f"budget of {person['handle']}"} if budget and budget["tokens"]["used"] > 0 else set()
        shown |= {f"draft by {person['handle']}"} if drafts else set()
    return shown


def tells_of(posts: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return (author, resident) handles for each resident whom the first post mentions with their GitHub page."""
    author, text = posts[0]["author"]["handle"], posts[0]["text"]
    return {
        (author, peer.handle)
        for peer in RESIDENTS
        if peer.handle != author and f"@{peer.handle}" in text and f"github.com/{peer.name}" in text
    }


async def found(http: httpx.AsyncClient, threads: list[list[dict[str, Any]]]) -> set[str]:
    """Return `peer found` if a resident follows one whom they mention, after both posted their identity."""
    follows = {
        (person["handle"], followed["handle"])
        for person in await told(http, "people")
        for followed in person["follows"]
    }
    known = {posts[0]["author"]["handle"] for posts in threads if IDENTITY_POST_MARKER in posts[0]["text"]}
    announced = {pair for posts in threads for pair in tells_of(posts) if known.issuperset(pair)}
    return {"peer found" for _ in announced & follows}


def living(folder: Path) -> list[int]:
    """Return the process ids of the SOULs whose homes lie in `folder`."""
    return [json.loads(path.read_text())["pid"] for path in folder.glob("soul-demo-*/*/.memory/status.json")]


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def seen(threads: list[list[dict[str, Any]]]) -> set[str]:
    """Return which of the announced things the page shows."""
    residents = {resident.handle for resident in RESIDENTS}
    shown = {f"post by {posts[0]['author']['handle']}" for posts in threads}
    for posts in threads:
        authors = {post["author"]["handle"] for post in posts}
        shown |= {"picture" for post in posts if any(one["alt"] for one in post["pictures"])}
        if len(authors & residents) >= 2:
            shown.add("exchange")
        if posts[0]["author"]["handle"] == "you.test" and authors & residents:
            shown.add("answer")
        if any(COUNTED in post["text"] for post in posts[1:]):
            shown.add("what is known")
    return shown


async def story_of_what_is_done(http: httpx.AsyncClient, asked: dict[str, str]) -> Any:
    """Return the story of a post once the resident knows that it was posted, a moment after the town shows it."""
    story: Any = {}

    async def is_done() -> bool:
        nonlocal story
        story = (await http.get("/api/why", params=asked)).raise_for_status().json()
        return str(story["title"]).endswith("(done)")

    await patience.until(is_done, what=f"story of {asked}")
    return story


async def built(http: httpx.AsyncClient, request: str, repo: str, folder: Path) -> None:
    """Ask for `request` in the room; once its plan in `repo` is done, clone the merged result to `folder`."""
    (await http.post("/api/room", json={"text": request})).raise_for_status()

    async def is_done() -> bool:
        plans = [one for one in (await told(http, "work"))["plans"] if one["repo"] == repo]
        return bool(plans) and all(one["state"] == "closed" for one in plans)

    await patience.until(is_done, within_s=240, what=f"a plan in {repo}")
    github = (await http.get("/api/town")).json()["room"]["github"]
    code, _ = await run("git", "clone", "--quiet", f"{github}/{repo}.git", str(folder))
    assert code == 0


async def run(*command: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def asked_of_the_room(http: httpx.AsyncClient, folder: Path) -> None:
    """Have both requests that the page suggests built, and try the results."""
    build, mend = (await http.get("/api/town")).json()["room"]["requests"]
    expenses, library = folder / "expenses", folder / "library"
    await built(http, build, ALMANAC, expenses)
    (folder / "mine.csv").write_text("date,amount\n2026-03-01,4.50\n2026-03-14,8.25\n")
    assert await run("python3", str(expenses / "monthly.py"), str(folder / "mine.csv")) == (0, "2026-03  12.75\n")
    await built(http, mend, PRICEBOOK, library)
    assert (await run("make", "-C", str(library), "test"))[0] == 0
    assert "cannot be added" in (library / "src" / "pricebook" / "price.py").read_text()


@needs_git
@needs_sandbox
async def test_all_have_posted_two_have_talked_one_found_a_peer_and_what_you_ask_is_answered_and_built(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wanted = {f"{what} {resident.handle}" for resident in RESIDENTS for what in ("post by", "budget of")}
    wanted |= {"exchange", "answer", "picture", "draft by odile.test", "what is known", "peer found"}
    async with demo(tmp_path) as (process, url):
        async with httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=HANG_S) as http:
            (await http.post("/api/posts", json={"text": QUESTION})).raise_for_status()

            shown: set[str] = set()

            async def is_shown(what: str) -> bool:
                if what not in shown:
                    threads = await feed(http)
                    shown.update(seen(threads) | await tended(http) | await found(http, threads))
                return what in shown

            # NOTE(self): one after the other, so that each gets the whole waiting time on a busy machine.
            for what in sorted(wanted):
                await patience.until(partial(is_shown, what), what=what)
            for posts in await feed(http):
                for post in posts:
                    if post["author"]["handle"] in {resident.handle for resident in RESIDENTS}:
                        asked = {"handle": post["author"]["handle"], "uri": post["uri"]}
                        story = await story_of_what_is_done(http, asked)
                        tells_who_it_is = story["lead"].startswith("It was to tell other agents who it is")
                        steps = " ".join(step["text"] for step in story["steps"])
                        was_asked = COUNTED in post["text"] and "asked what is known of them" in steps
                        tells_of_a_peer = "Tells of @" in steps
                        opens_a_ritual = story["lead"].startswith("It was the hour of its ritual")
                        is_told = tells_who_it_is or tells_of_a_peer or was_asked or opens_a_ritual
                        assert is_told or "thought it over" in steps, story
            await asked_of_the_room(http, tmp_path_factory.mktemp("built"))
        pids = living(tmp_path)
        assert len(pids) == len(RESIDENTS)
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert left_in(tmp_path) == []


async def mends_itself(http: httpx.AsyncClient) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the friction of Tobias that the page is told of, {} if there is none, and what waits for a yes."""
    (tobias,) = [one for one in await told(http, "people") if one["handle"] == "tobias.test"]
    growth = tobias["life"].get("growth") or {"friction": [], "waiting": []}
    met = [one for one in growth["friction"] if "Wrong Fields" in one["description"]]
    return (met[0] if met else {}), growth["waiting"]


async def test_a_resident_calls_a_tool_wrongly_proposes_a_skill_and_after_the_visitors_yes_does_it_right(
    tmp_path: Path,
) -> None:
    async with (
        demo(tmp_path, "--speed", "400") as (_, url),
        httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=HANG_S) as http,
    ):
        states: list[str] = []

        async def is_at(proposal: str) -> bool:
            met, _ = await mends_itself(http)
            states.extend([met["state"]] if met and met["state"] not in states else [])
            return bool(met) and met["proposal"]["state"] == proposal

        await patience.until(partial(is_at, "waiting"), within_s=240, what="a skill that waits")
        _, (skill,) = await mends_itself(http)
        assert skill["file"] == "skills/one-piece-of-text"
        assert any("in one piece" in line for line in skill["diff"])
        yes = {"handle": "tobias.test", "id": f"{skill['file']}@{skill['at']}", "yes": True}
        (await http.post("/api/drafts", json=yes)).raise_for_status()
        approved_at = iso(SystemClock().now())
        await patience.until(partial(is_at, "taken"), within_s=120, what="a skill that is in use")
        met, waiting = await mends_itself(http)
        assert (met["state"], waiting) == ("proposed", []), "not called mended before seven of its days are over"
        assert met["countedAt"] > iso(SystemClock().now())
        assert "mended" not in states

        async def did_it_right() -> bool:
            """Check that a call was refused for each of its posts before the yes; return whether there is one since."""
            calls: list[tuple[bool, int]] = []
            for posts in await feed(http):
                if posts[0]["author"]["handle"] == "tobias.test":
                    asked = {"handle": "tobias.test", "uri": posts[0]["uri"]}
                    steps = (await story_of_what_is_done(http, asked))["steps"]
                    details = [line for step in steps for line in step["details"] if "It called bluesky_post" in line]
                    since, refused = steps[0]["at"] > approved_at, sum(", refused:" in line for line in details)
                    calls += [(since, refused)] if details and not any("_found" in one for one in details) else []
            assert all(number == (0 if since else 1) for since, number in calls), calls
            return any(since for since, _ in calls)

        await patience.until(did_it_right, within_s=120, what="a post at the first call")


async def answered(http: httpx.AsyncClient) -> None:
    """Return once the page is told of an answer to what was written on it."""
    async with http.stream("GET", "/api/events") as events:
        async for line in events.aiter_lines():
            if line.startswith("data: ") and isinstance(told := json.loads(line.removeprefix("data: ")), list):
                threads = [one["posts"] for one in told if "posts" in one]
                if "answer" in seen(threads):
                    return


@pytest.mark.smoke
async def test_what_is_asked_on_the_page_is_answered(tmp_path: Path) -> None:
    async with (
        demo(tmp_path) as (_, url),
        httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=HANG_S) as http,
        asyncio.timeout(HANG_S),
    ):
        (await http.post("/api/posts", json={"text": QUESTION})).raise_for_status()
        await answered(http)


async def test_it_ends_by_itself_with_code_0(tmp_path: Path) -> None:
    async with demo(tmp_path, "--minutes", "0.1") as (process, _):
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0


async def test_a_soul_of_ones_own_moves_into_the_town_by_what_the_demo_prints(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with demo(tmp_path, "--alone") as (process, _):
        printed = await until(process, "Ctrl-C", seconds=HANG_S)
        (home / ".env").write_text("\n".join(re.findall(r"^ *[A-Z_]+=.*$", printed, re.MULTILINE)))
        one = printed.partition(" maren.test\n")[2]
        password, login, token = (line.partition(": ")[2] for line in one.splitlines()[:3])
        assert all(len(line) < _COLUMNS for line in one.splitlines()[:3])
        answers = "Maren", "off", "maren.test", password, "you.test", "", "y", login, token, ""
        async with started("init", "--home", str(home), stdin=asyncio.subprocess.PIPE) as init:
            output, _ = await asyncio.wait_for(init.communicate("\n".join([*answers, ""]).encode()), HANG_S)
        assert init.returncode == 0, output.decode()
        assert "GitHub: logged in as maren" in output.decode()
        assert "Its display name is Maren." in output.decode()


async def test_a_model_of_one_s_own_can_take_the_place_of_the_scripted_mind(
    running_town: RunningTown, tmp_path: Path
) -> None:
    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if request.force and (posting := names & {"bluesky_post", "bluesky_post_found"}):
            number = len(running_town.mind.asked)
            return call(posting.pop(), text=f"Completion {number} of a borrowed mind: tin or slate?")
        return call("stay_silent", reason="only listening") if request.force else Completion(text="Yes.")

    running_town.mind.answer = respond
    home = running_town.make_home("owner-home")
    async with (
        demo(tmp_path, "--mind", "gateway", "--home", str(home.root)) as (_, url),
        httpx.AsyncClient(base_url=url, timeout=HANG_S) as http,
    ):

        async def is_said() -> bool:
            return any("of a borrowed mind" in post["text"] for posts in await feed(http) for post in posts)

        await patience.until(is_said, what="a post of the borrowed mind")
