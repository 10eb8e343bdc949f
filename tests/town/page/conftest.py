"""A small town for the page: a network, status files in a folder, a room, the page on loopback, and a browser on it."""

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, async_playwright
from starlette.applications import Starlette

from common.clock import SystemClock, iso
from common.errors import SoulError
from tests.loopback import NO_TLS
from tests.patience import HANG_S
from tests.town.page.browsing import ARGS, CHROMIUM, Watched, open_page
from town.atproto.index import LIKE, POST
from town.atproto.network import Network
from town.gallery.library import picture
from town.github.arrangement import REQUESTS
from town.github.network import GitHubNetwork
from town.page.app import PageSource, Told, ToldStep, page_app
from town.page.room import KnownResident, RoomOnPage
from town.page.view import read_status
from town.residents import RESIDENTS, VISITOR_AVATAR
from town.serving import serve
from town.town import Listeners, TownRoom, open_room

GITHUB = "http://127.0.0.1:9"


@dataclass(slots=True)
class Hand:
    """The owner's controls for a test: they record what was asked of them and know the stories that the test gives."""

    stories: dict[str, Told] = field(default_factory=dict)
    decided: list[tuple[str, str, bool]] = field(default_factory=list)
    paused: list[tuple[str, bool]] = field(default_factory=list)
    trouble: str = ""

    async def why(self, handle: str, uri: str) -> Told:
        if uri not in self.stories:
            raise SoulError(f"{uri} was never seen")
        return self.stories[uri]

    async def decide(self, handle: str, draft_id: str, *, yes: bool) -> None:
        self._refuse_in_trouble()
        self.decided.append((handle, draft_id, yes))

    async def pause(self, handle: str, *, paused: bool) -> None:
        self._refuse_in_trouble()
        self.paused.append((handle, paused))

    def _refuse_in_trouble(self) -> None:
        if self.trouble:
            raise SoulError(self.trouble)


STORY = Told(
    "Why: reply to @you.test (done)",
    (
        ToldStep("2026-01-05T12:00:00.000Z", "@you.test mentioned it", ("“Will it rain?”",)),
        ToldStep(
            "2026-01-05T12:00:01.000Z",
            "It thought it over with town-script: 1 round, 1,539 tokens in, 33 out, $0.0004",
            (
                "The prompt contained only your words and its own",
                "It was told: SOUL.md (1,073 characters, a778d122180a), SELF.md (1,933 characters, 24a94df392e5)",
                "It called bluesky_reply",
            ),
        ),
        ToldStep(
            "2026-01-05T12:00:02.000Z",
            "Queued reply",
            ("Rules that let it pass: consent (they are the owner), points-per-hour (12 of 4,000)",),
        ),
        ToldStep("2026-01-05T12:00:03.000Z", "Decided: Replying to @you.test", ("Because: question asked",)),
        ToldStep("", "Sent reply"),
    ),
    "It stands.",
    "You wrote to it, it wrote an answer, and the result passed 14 etiquette checks.",
)
BUDGET = {
    "step": "normal",
    "tokens": {"used": 24_310, "cap": 150_000},
    "usd": None,
    "resetsAt": "2099-01-06T00:00:00.000Z",
}


def draft(**changes: Any) -> dict[str, Any]:
    content = {
        "id": "cafe01",
        "kind": "reply",
        "act": "reply to @tobias.test",
        "text": "The kettle knows before the window does. Do you salt the water?",
        "target": "",
        "why": "addressed to a stranger: tobias.test",
        "createdAt": iso(datetime.now(UTC)),
        "expiresAt": "2099-01-06T00:00:00.000Z",
    }
    return content | changes


@dataclass(frozen=True, slots=True)
class Square:
    """The page's address, what is behind it, the accounts' DIDs, the folder of status files, the owner's controls."""

    url: str
    network: Network
    dids: dict[str, str]
    folder: Path
    app: Starlette
    hand: Hand
    room: TownRoom
    github: GitHubNetwork

    def say(self, who: str, text: str, to: str | None = None) -> str:
        return self.network.post_as(self.dids[who], text, reply_to_uri=to)[0]

    def show(self, who: str, text: str, name: str, alt: str, *, mime_type: str = "image/png") -> str:
        """Post a picture of the gallery; return the path at which the page serves its file."""
        did, now = self.dids[who], iso(datetime.now(UTC))
        file = self.network.upload(did, mime_type, picture(name))
        blob = {"$type": "blob", "ref": {"$link": file.cid}, "mimeType": mime_type, "size": len(file.content)}
        images = [{"alt": alt, "image": blob, "aspectRatio": {"width": 4, "height": 3}}]
        embed = {"$type": "app.bsky.embed.images", "images": images}
        self.network.create(did, POST, {"text": text, "createdAt": now, "embed": embed})
        return f"/pictures/{did}/{file.cid}"

    def like(self, who: str, uri: str) -> None:
        post = self.network.index.posts[uri]
        subject = {"uri": uri, "cid": post.cid}
        self.network.create(self.dids[who], LIKE, {"subject": subject, "createdAt": iso(datetime.now(UTC))})

    def status(self, who: str, **changes: Any) -> None:
        now = datetime.now(UTC)
        content = {
            "name": who,
            "pid": os.getpid(),
            "state": "running",
            "startedAt": iso(now),
            "updatedAt": iso(now),
            "mode": "idle",
            "loops": [{"name": "awareness", "nextAt": iso(now), "lastRanAt": None, "lastOutcome": ""}],
            "counts": {"posts": 4, "replies": 3, "likes": 2, "silences": 1},
            "lastDecision": None,
            "decisions": [],
            "waits": {"posts": 0, "acts": 0},
            "modelBudget": BUDGET,
            "standing": {"paused": False, "safeMode": False, "reasons": []},
            "drafts": [],
        }
        (self.folder / f"{who}.json").write_text(json.dumps(content | changes))


@pytest.fixture
async def square(tmp_path: Path) -> AsyncIterator[Square]:
    network = Network(clock=SystemClock())
    dids = {
        resident.name: network.create_account(
            resident.handle, "pw", display_name=resident.display_name, description=resident.bio
        ).did
        for resident in RESIDENTS
    }
    dids["you"] = network.create_account("you.test", "pw", display_name="You").did
    hand, github = Hand(), GitHubNetwork(clock=SystemClock())
    known = {item.name: KnownResident(item.handle, item.display_name) for item in RESIDENTS}
    async with open_room(tmp_path / ".room", SystemClock(), known, KnownResident("you.test", "You")) as room:
        app = page_app(
            PageSource(
                network,
                lambda: [
                    read_status(item.handle, tmp_path / f"{item.name}.json", datetime.now(UTC)) for item in RESIDENTS
                ],
                dids["you"],
                about="They think with a small scripted mind, not a language model.",
                avatars={item.handle: item.avatar for item in RESIDENTS} | {"you.test": VISITOR_AVATAR},
                controls=hand,
                room=RoomOnPage(room.view, room.server, GITHUB, REQUESTS),
                github=github,
                listen=Listeners(RESIDENTS, list).choose,
            )
        )
        async with serve(app) as url:
            yield Square(url, network, dids, tmp_path, app, hand, room, github)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGS))
        yield chromium
        await chromium.close()


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
async def page(browser: Browser, square: Square, watched: Watched) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield await open_page(context, square.url, watched)
    await context.close()
    assert watched.complaints == []
    assert watched.hosts <= {"127.0.0.1"}


@pytest.fixture
async def http(square: Square) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=square.url, headers={"origin": square.url}, timeout=HANG_S, verify=NO_TLS
    ) as client:
        yield client
