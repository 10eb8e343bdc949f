"""How often the network is asked for one post that is answered."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from common.clock import SystemClock
from tests.running_town import KEY, Mind, RunningTown, awake, replying, served
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, atproto_app
from town.model.service import ModelFaults, model_app


def counted(app: ASGIApp, requests: Counter[str]) -> ASGIApp:
    """The same application; each request counts by its method."""

    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            requests[scope["path"].rpartition(".")[2]] += 1
        await app(scope, receive, send)

    return count


async def test_what_was_read_of_a_post_is_not_asked_for_again(tmp_path: Path) -> None:
    requests: Counter[str] = Counter()
    network, faults, mind = (
        Network(clock=SystemClock()),
        AtprotoFaults(random.Random(7)),
        Mind(replying("Slate sings.")),
    )
    apps = counted(atproto_app(network, faults=faults), requests), model_app(mind, api_key=KEY, faults=ModelFaults())
    async with served(*apps) as (atproto_url, model_url):
        running_town = RunningTown(network, atproto_url, faults, mind, model_url, ModelFaults(), tmp_path)
        home = running_town.make_home("rowan")
        top, _ = network.post_as(running_town.account("sam"), "Which roof is louder, tin or slate?")
        network.post_as(running_town.account("kit"), "What do you say, @rowan.test?", reply_to_uri=top)
        async with awake(home) as life:
            await life.app.lives.bluesky.perceiver.look()
            requests.clear()
            await life.look()
        assert running_town.texts("rowan") == ["Slate sings."]
    assert requests == {
        "listNotifications": 2,  # words, and reactions
        "getPostThread": 2,  # the post with what is above and below, and the root with its other answers
        "describeRepo": 2,  # what each of the two people allows, once a day
        "putRecord": 1,
    }
