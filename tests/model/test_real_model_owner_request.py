"""A small real model is asked by its owner in public to act: it does nothing else, and says nothing twice.

`pytest -rP` shows what it did, and how many requests it carried out as asked.
"""

# ruff: noqa: T201 - what a real model does is worth reading, and pytest captures it

from __future__ import annotations

import re

import pytest

from modules.services.commitments.writer import contains_promise
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from tests.model.conftest import settings_for
from tests.running_town import RunningTown, awake
from town.atproto.index import FOLLOW, REPOST, THREADGATE

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600)]

ASKED: tuple[tuple[str, str], ...] = (
    ("@rowan.test please follow @kit.test", "follow @kit.test"),
    ("@rowan.test could you follow @ines.test? Her notes on gutters are good.", "follow @ines.test"),
    ("@rowan.test Bitte folge @moss.test", "follow @moss.test"),
    ("@rowan.test please post a thought about rain on tin roofs", "post"),
    ("@rowan.test write a post that welcomes our new neighbour, the bakery", "post"),
    ("@rowan.test please repost this: the library lends tools from Monday on", "repost"),
    ("@rowan.test please boost this post. The ferry leaves at nine from today.", "repost"),
    ("@rowan.test let nobody reply to your newest post", "limit nobody"),
    (
        "@rowan.test please post that the ferry leaves at nine, and let only your followers reply",
        "post limit followers",
    ),
    ("@rowan.test please open an issue in acme/site: the clock stops at midnight", "commitment"),
)
"""The owner's requests, each with the acts that a good model takes; the skills were tried on these words."""
OTHER_WORDS: tuple[tuple[str, str], ...] = (
    ("@rowan.test Suis @kit.test, s'il te plaît.", "follow @kit.test"),
    ("@rowan.test ¿Puedes seguir a @ines.test, por favor?", "follow @ines.test"),
    ("@rowan.test I'd like you to follow @moss.test, she restores clocks", "follow @moss.test"),
    ("@rowan.test Schreib etwas über Nebel am Hafen", "post"),
    ("@rowan.test announce that the choir meets on Tuesday at seven", "post"),
    ("@rowan.test Teile diesen Beitrag bitte: am Samstag ist Flohmarkt", "repost"),
    ("@rowan.test reshare this, would you? The bridge is closed until Friday.", "repost"),
    ("@rowan.test Sperre die Antworten unter deinem letzten Beitrag", "limit nobody"),
    (
        "@rowan.test please write that the market moves to the quay, and allow replies only from people you follow",
        "post limit following",
    ),
    ("@rowan.test please file an issue in acme/garden about the broken gate", "commitment"),
)
"""The same kinds of acts, requested in words that the skills were not tried on."""
_RULE = "app.bsky.feed.threadgate#"
LIMITS = {
    "[]": "nobody",
    f"[{{'$type': '{_RULE}followerRule'}}]": "followers",
    f"[{{'$type': '{_RULE}followingRule'}}]": "following",
}
_NAMED = re.compile(r"@(?!rowan\b)\w+\.test")


@pytest.mark.parametrize("asked_for", [ASKED, OTHER_WORDS], ids=["tried_words", "other_words"])
async def test_what_the_owner_asks_for_in_public_brings_one_answer_and_no_act_beyond_it(
    running_town: RunningTown, real_model: str, asked_for: tuple[tuple[str, str], ...]
) -> None:
    town, network = running_town, running_town.network
    rowan = town.account("rowan")
    for name in ("kit", "ines", "moss"):
        town.account(name)

    def acts() -> list[str]:
        """Return its acts so far, by kind, without replies, the follow of its owner, and posts with a promise."""
        followed = (network.actor(str(one.value["subject"])) for one in network.records(rowan, FOLLOW))
        follows = [f"follow @{actor.handle}" for actor in followed if actor.handle != "owner.test"]
        own = (post.text for post in network.posts(1000) if post.author.did == rowan and post.reply is None)
        posts = ["post" for text in own if not contains_promise(text)]
        reposts = ["repost" for _ in network.records(rowan, REPOST)]
        gates = (gate.value.get("allow", ["everybody"]) for gate in network.records(rowan, THREADGATE))
        limits = [f"limit {LIMITS.get(str(allow), allow)}" for allow in gates]
        return [*follows, *posts, *reposts, *limits]

    home = town.make_home("rowan", **settings_for(real_model, SOUL_SPEED="1", AI_GATEWAY_IDLE_TIMEOUT_S="1200"))
    right = 0
    async with awake(home) as soul:
        await soul.app.services.outbox.submit(ProposedAction(PostBody(text="Gates sing in frost."), by_owner=True))
        await soul.send()
        for asked, expected in asked_for:
            before, said = acts(), town.texts("rowan")
            network.post_as(town.account("owner"), asked)
            for _ in range(2):
                await soul.look()
                soul.passes(200)
            done = acts()
            for one in before:
                done.remove(one)
            replies = [text for text in town.texts("rowan") if text not in said]
            committed = ["commitment"] if any(map(contains_promise, replies)) else []
            found = " ".join([*done, *committed])
            right += found == expected and len(replies) > sum(one == "post" for one in done)
            print(f"{asked}\n  expected {expected}; done: {found or 'nothing'}; said: {replies}", flush=True)
            follows = {one for one in done if one.startswith("follow")}
            assert done.count("post") <= 1
            assert len(replies) <= 2
            assert not (named := _NAMED.findall(asked)) or follows <= {f"follow {one}" for one in named}
    print(f"{right} of {len(asked_for)} done as asked")
