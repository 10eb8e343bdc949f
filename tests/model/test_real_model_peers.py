"""A small real model says who it is, tells of a peer, and finds its own words beside a peer in a thread.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from modules.services.peers.identity_post import IDENTITY_POST_MARKER
from modules.services.peers.types import Peer
from modules.services.peers.voice import PeerVoice, is_identity_text
from tests.model.conftest import settings_for
from tests.running_town import RunningSoul, RunningTown, awake

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
TRIES = 5


@pytest.fixture
def mind(real_model: str) -> dict[str, str]:
    return settings_for(real_model, SOUL_SPEED="1", AGENT_GITHUB_USERNAME="sh-rowan")


def peer(soul: RunningSoul) -> Peer:
    return Peer(
        github_username="sh-wren",
        bluesky_handle="wren.test",
        bluesky_did="did:plc:wren",
        discovered_at=soul.app.services.clock.now(),
        discovered_via="owner_mention",
        confidence="medium",
        last_seen_at=soul.app.services.clock.now(),
    )


def voice_of(soul: RunningSoul) -> PeerVoice:
    services = soul.app.services
    return PeerVoice(
        "rowan.test", services.gateway, soul.app.lives.turn_services.prompter, services.skills, services.clock
    )


async def test_it_says_who_it_is_in_a_post_that_others_can_read(
    running_town: RunningTown, mind: dict[str, str]
) -> None:
    async with awake(running_town.make_home("rowan", **mind)) as soul:
        voice = voice_of(soul)
        texts = [await voice.introduce("sh-rowan") for _ in range(TRIES)]
    print(*texts, sep="\n---\n")
    assert sum(is_identity_text(text, "sh-rowan") for text in texts) >= TRIES - 1
    assert all(text.count(IDENTITY_POST_MARKER) == 1 for text in texts if text)


async def test_it_tells_of_a_peer_by_handle_and_address(running_town: RunningTown, mind: dict[str, str]) -> None:
    async with awake(running_town.make_home("rowan", **mind)) as soul:
        voice = voice_of(soul)
        texts = [await voice.announce(peer(soul)) for _ in range(TRIES)]
    print(*texts, sep="\n---\n")
    told = [text for text in texts if "@wren.test" in text.lower() and text.endswith("https://github.com/sh-wren")]
    assert len(told) >= TRIES - 1


async def test_beside_a_peer_it_says_something_else_or_likes(running_town: RunningTown, mind: dict[str, str]) -> None:
    for name in ("kit", "wren"):
        running_town.account(name)
    home = running_town.make_home("rowan", SOUL_PEERS="wren.test", **mind)
    uri, _ = running_town.network.post_as(
        running_town.account("kit"), "@rowan.test @wren.test which roof is louder in the rain?"
    )
    said = "Slate hums all night, because the battens underneath carry the rain."
    running_town.network.post_as(running_town.account("wren"), said, reply_to_uri=uri)
    async with awake(home) as soul:
        for _ in range(3):
            soul.passes(200)
            await soul.look()
        for one in await soul.decisions():
            print(one.entry.summary, "|", one.entry.reason)
    texts = running_town.texts("rowan")
    print(*texts)
    assert texts or running_town.likers(uri) == ["rowan.test"]
    assert said not in texts
