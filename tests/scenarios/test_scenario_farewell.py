"""A conversation that is over ends with one warm line or with a like, and nothing more is said after it."""

from __future__ import annotations

import pytest

from tests.hasty_clock import HastyClock
from tests.running_town import RunningTown, awake, call
from town.model.types import ChatRequest, Completion

WARM = "Good bench talk; the river and I will remember it."


@pytest.mark.parametrize("ending", ["message", pytest.param("like", marks=pytest.mark.slow)])
async def test_a_conversation_is_left_with_one_warm_line_or_with_a_like_and_stays_so(
    running_town: RunningTown, ending: str
) -> None:
    def leaving(request: ChatRequest) -> Completion:
        if any(offer.name == "graceful_exit" for offer in request.offers):
            words = {"closing_message": WARM} if ending == "message" else {}
            return call("graceful_exit", closing_type=ending, reason="all is said", **words)
        return Completion("[]")

    town, kit = running_town, running_town.account("kit")
    town.mind.answer = leaving
    home = town.make_home("rowan")
    last, _ = town.network.post_as(kit, "@rowan.test so that is how a dry stone wall drains. What a good evening.")
    async with awake(home, clock=HastyClock()) as soul:
        await soul.look()
        asked = len(town.mind.asked)
        above = next((post.uri for post in town.network.posts() if post.text == WARM), last)
        for words in ("Bye!", "Thanks again, see you soon"):
            soul.passes(90)
            above, _ = town.network.post_as(kit, words, reply_to_uri=above)
            await soul.look()
        decisions = [stored.entry for stored in await soul.decisions()]
    assert town.texts("rowan") == ([WARM] if ending == "message" else [])
    assert town.likers(last) == ([] if ending == "message" else ["rowan.test"])
    assert len(town.mind.asked) == asked, "no model is asked about what only closes"
    assert all(entry.reason for entry in decisions)
    assert decisions[0].reason == "all is said"
