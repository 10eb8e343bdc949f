"""A short life of three SOULs among people on Bluesky's own server software, with the rules of a fortnight in the town.

The model asks for too much here as it does there. Each SOUL is ended and woken again in the middle.
"""

from __future__ import annotations

import itertools
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from common.clock import SystemClock, iso
from modules.lives.bluesky.expression_policy import lacks_invitation
from modules.runtime.home import Home
from modules.services.peers.registry import IDENTITY_POST_MARKER
from modules.services.rights.policy import PREFERENCE
from tests.hasty_clock import HastyClock
from tests.kept_prompts import KeptPrompts
from tests.network.rig import Rig
from tests.running_town import KEY, PASSWORD, RunningSoul, awake, settings_of, write_home
from tests.scenarios.days_audit import alike
from tests.scenarios.days_mind import MODEL, WilfulMind, question
from tests.scenarios.peers_github import page_of
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.model.service import model_app
from town.serving import serve

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

SOULS, PEOPLE, DENIER = ("rowan", "wren", "sable"), ("owner", "kit", "sam"), "nell"
ROUNDS = 16
A_QUARTER_HOUR_S = 5.0
"""More than enough at the speed of these tests."""


@dataclass
class Person:
    """A person with an account, who speaks the protocol directly."""

    http: httpx.AsyncClient
    did: str
    handle: str

    async def post(self, text: str, *mentions: Person, parent: dict[str, str] | None = None) -> dict[str, str]:
        """Post with a facet for each of `mentions`, whose handles must be in the text; return the URI and CID."""
        record: dict[str, Any] = {"$type": "app.bsky.feed.post", "text": text, "createdAt": iso(SystemClock().now())}
        facets = []
        for mention in mentions:
            start = text.encode().index(f"@{mention.handle}".encode())
            feature = {"$type": "app.bsky.richtext.facet#mention", "did": mention.did}
            index = {"byteStart": start, "byteEnd": start + len(mention.handle) + 1}
            facets.append({"index": index, "features": [feature]})
        if facets:
            record["facets"] = facets
        if parent:
            record["reply"] = {"root": parent, "parent": parent}
        body = {"repo": self.did, "collection": "app.bsky.feed.post", "record": record}
        answer = await self.http.post("/xrpc/com.atproto.repo.createRecord", json=body)
        answer.raise_for_status()
        return {"uri": answer.json()["uri"], "cid": answer.json()["cid"]}

    async def declares(self, record: dict[str, Any]) -> None:
        """Write the record of this person's choices about AI."""
        body = {"repo": self.did, "collection": record["$type"], "rkey": "self", "record": record}
        (await self.http.post("/xrpc/com.atproto.repo.putRecord", json=body)).raise_for_status()

    async def likes_of(self, uri: str) -> list[str]:
        answer = await self.http.get("/xrpc/app.bsky.feed.getLikes", params={"uri": uri})
        return [like["actor"]["handle"] for like in answer.json()["likes"]]

    async def feed_of(self, other: Person) -> list[dict[str, Any]]:
        """Return the records of somebody's posts and replies, oldest first, each with its URI and CID."""
        answer = await self.http.get("/xrpc/app.bsky.feed.getAuthorFeed", params={"actor": other.did, "limit": 100})
        posts = [item["post"] for item in reversed(answer.json()["feed"])]
        return [{**post["record"], "uri": post["uri"], "cid": post["cid"]} for post in posts]

    async def follows_of(self, other: Person) -> list[str]:
        """Return the handles of the accounts that somebody follows."""
        answer = await self.http.get("/xrpc/app.bsky.graph.getFollows", params={"actor": other.did})
        return [one["handle"] for one in answer.json()["follows"]]


async def join(pds: str, name: str, stack: AsyncExitStack) -> Person:
    http = await stack.enter_async_context(httpx.AsyncClient(base_url=pds, timeout=30))
    body = {"handle": f"{name}.test", "password": PASSWORD, "email": f"{name}@example.com"}
    answer = await http.post("/xrpc/com.atproto.server.createAccount", json=body)
    answer.raise_for_status()
    http.headers["authorization"] = f"Bearer {answer.json()['accessJwt']}"
    return Person(http, answer.json()["did"], f"{name}.test")


@dataclass
class Asked:
    """A post of a person, and the SOULs that it addresses."""

    ref: dict[str, str]
    author: str
    souls: tuple[str, ...]


@dataclass
class Life:
    """The people, the SOULs, and what was asked of them."""

    rig: Rig
    mind: WilfulMind
    people: dict[str, Person]
    homes: dict[str, Home]
    clock: HastyClock
    rng: random.Random
    asked: list[Asked] = field(default_factory=list)
    thanked: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    feeds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    follows: dict[str, list[str]] = field(default_factory=dict)

    async def lead(self) -> None:
        """Run all rounds, with a restart in the middle."""
        for half in range(2):
            async with AsyncExitStack() as stack:
                souls = {
                    name: await stack.enter_async_context(awake(home, clock=self.clock))
                    for name, home in self.homes.items()
                }
                for number in range(ROUNDS // 2):
                    await self._round(half * ROUNDS // 2 + number, souls)
        self.rig.settle()
        for name in SOULS:
            self.feeds[name] = await self.people["kit"].feed_of(self.people[name])
            self.follows[name] = await self.people["kit"].follows_of(self.people[name])

    async def _round(self, number: int, souls: dict[str, RunningSoul]) -> None:
        await self._people_speak(number)
        for name, soul in souls.items():
            self.clock.ahead += A_QUARTER_HOUR_S
            self.rig.settle()
            await soul.look()
            await soul.app.scheduler.run_guarded("peers")
            if number % len(SOULS) == SOULS.index(name):
                await soul.app.lives.bluesky.expression.express()
            await soul.send()
        self.rig.settle()

    async def _people_speak(self, number: int) -> None:
        """Let one person ask one SOUL or all, one say thanks, and one who denies inference write too."""
        author, soul = PEOPLE[number % len(PEOPLE)], SOULS[number // 2 % len(SOULS)]
        await self._ask(author, SOULS if number % 4 == 0 else (soul,))
        await self._thank_for_the_newest(soul)
        words = f"{secrets.token_hex(4)} and {secrets.token_hex(4)}"
        self.denied.append(words)
        denier, target = self.people[DENIER], self.people[soul]
        post = await denier.post(f"@{target.handle} {words} stands by the gate, is that so?", target)
        if number % 2:
            self.rig.settle()
            await self._ask("sam", (soul,), under=post)

    async def _ask(self, author: str, names: tuple[str, ...], under: dict[str, str] | None = None) -> None:
        souls = [self.people[name] for name in names]
        text = f"{' '.join(f'@{soul.handle}' for soul in souls)} {question(self.rng)}"
        ref = await self.people[author].post(text, *souls, parent=under)
        self.asked.append(Asked(ref, author, names))

    async def _thank_for_the_newest(self, name: str) -> None:
        replies = [post for post in await self.people["kit"].feed_of(self.people[name]) if "reply" in post]
        if replies:
            parent = {"uri": str(replies[-1]["uri"]), "cid": str(replies[-1]["cid"])}
            record = {**parent, "root": replies[-1]["reply"]["root"]}
            thanks = await self.people["kit"].post("Thanks a lot!", parent=record)
            self.thanked.append(thanks["uri"])

    def replies(self, uri: str, name: str) -> list[str]:
        """Return what a SOUL replied to a post."""
        return [
            str(post["text"]) for post in self.feeds[name] if "reply" in post and post["reply"]["parent"]["uri"] == uri
        ]

    def top_level(self, name: str) -> list[str]:
        return [str(post["text"]) for post in self.feeds[name] if "reply" not in post]


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[Life]:
    rig, clock, run = Rig.start(), HastyClock(), secrets.token_hex(3)
    rng = random.Random(21)
    handles = frozenset(f"{name}{run}.test" for name in SOULS)
    mind = WilfulMind(KeptPrompts(tmp_path / "prompts.jsonl", SystemClock()), handles, seed=21)
    async with AsyncExitStack() as stack:
        model_url = await stack.enter_async_context(serve(model_app(mind, api_key=KEY)))
        people = {name: await join(rig.pds, f"{name}{run}", stack) for name in (*SOULS, *PEOPLE, DENIER)}
        await people[DENIER].declares({"$type": PREFERENCE, "preferences": {"inference": {"allow": False}}})
        rig.settle()
        github = GitHubNetwork(clock=clock)
        github_url = await stack.enter_async_context(serve(github_app(github)))
        accounts = {name: github.create_account(f"sh-{name}", website=page_of(people[name].did)) for name in SOULS}
        homes = {
            name: write_home(
                tmp_path / name,
                name,
                AGENT_BLUESKY_USERNAME=people[name].handle,
                AGENT_GITHUB_USERNAME=f"sh-{name}",
                AGENT_GITHUB_TOKEN=accounts[name].token,
                GITHUB_API_URL=github_url,
                OWNER_BLUESKY_SOCIAL_HANDLE=people["owner"].handle,
                OWNER_BLUESKY_SOCIAL_HANDLE_DID=people["owner"].did,
                ATPROTO_SERVICE_URL=rig.pds,
                AI_GATEWAY_BASE_URL=f"{model_url}/v1",
                AI_GATEWAY_MODEL=MODEL,
                AI_GATEWAY_FACTS="on",
            )
            for name in SOULS
        }
        yield Life(rig, mind, people, homes, clock, rng)


async def test_what_holds_for_a_fortnight_in_the_town_holds_on_bluesky_s_own_software(life: Life) -> None:
    await life.lead()
    replies = sum("reply" in post for feed in life.feeds.values() for post in feed)
    print(  # noqa: T201 - the figures of the run
        f"\n{ROUNDS} rounds, {len(SOULS)} SOULs: {len(life.asked)} posts to them, {replies} replies, "
        f"{life.mind.prompts.count} prompts searched for {len(life.denied)} posts; {dict(life.mind.wanted)}"
    )
    for name in SOULS:
        texts = [" ".join(str(post["text"]).lower().split()) for post in life.feeds[name]]
        assert [text for text, count in Counter(texts).items() if count > 1] == []
        others = sorted(life.people[other].handle for other in SOULS if other != name)
        identity = [text for text in life.top_level(name) if text.startswith(IDENTITY_POST_MARKER)]
        announced = [text for text in life.top_level(name) if "https://github.com/sh-" in text and text not in identity]
        own = [text for text in life.top_level(name) if text not in (*identity, *announced)]
        assert len(identity) == 1
        assert sorted(life.follows[name]) == others
        assert [sum(f"@{other}" in text for text in announced) for other in others] == [1, 1]
        assert len(own) >= ROUNDS // len(SOULS) - 1
        feed = life.top_level(name)
        assert [text for at, text in enumerate(feed) if text in own and lacks_invitation(text, feed[at + 1 :])] == []
    assert life.thanked
    assert [uri for uri in life.thanked for name in SOULS if life.replies(uri, name)] == []
    for one in life.asked:
        likers = await life.people["kit"].likes_of(one.ref["uri"])
        said = {name: life.replies(one.ref["uri"], name) for name in one.souls}
        assert [name for name in one.souls if not said[name] and life.people[name].handle not in likers] == []
        texts = [text for replies_of in said.values() for text in replies_of]
        assert [pair for pair in itertools.combinations(texts, 2) if alike(*pair) > 0.6] == []
        assert one.author != "owner" or len(one.souls) > 1 or said[one.souls[0]]
    assert life.mind.prompts.holding(life.denied) == []
    assert life.mind.prompts.holding(settings_of(next(iter(life.homes.values()))).secrets) == []
