"""The reply that reaches a conversation's limit is its last word: the post it answers is liked, and the thread ends."""

from __future__ import annotations

import pytest

from common.clock import SystemClock
from tests.hasty_clock import HastyClock
from tests.running_town import RunningSoul, RunningTown, awake, call
from town.model.types import ChatRequest, Completion

SAID = (
    "@rowan.test which roof is louder in hail, tin or slate?",
    "And how do you fasten gutters when frost has cracked the fascia boards?",
    "What would you choose for flashing around a chimney built from soft brick?",
    "Does moss shorten the life of cedar shingles on the north side?",
    "How often should lead valleys be inspected after winter storms?",
)
ANSWERS = (
    "Tin sings while slate only mutters under hail.",
    "Stainless brackets straight into rafter ends, never the cracked timber.",
    "Lead soakers, dressed while warm, with lime mortar pointing.",
    "Moss holds water against cedar; brush it off every autumn.",
    "Twice: once after thaw, again before leaves fall.",
)


def answering(request: ChatRequest) -> Completion:
    """Answers each question with the words that belong to it."""
    text = request.messages[-1].text
    for said, answer in reversed(tuple(zip(SAID, ANSWERS, strict=True))):
        if said.removeprefix("@rowan.test ") in text:
            return call("bluesky_reply", text=answer)
    return call("stay_silent", reason="nothing to add")


async def _conclusion(soul: RunningSoul, root: str) -> tuple[str, str]:
    conversation = soul.app.lives.bluesky.tidying.conversations.get_conversation(root)
    assert conversation
    return conversation.state, conversation.conclusion_reason or ""


@pytest.mark.slow
async def test_the_post_whose_answer_reaches_the_limit_gets_a_like_too_once_over_a_restart(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = answering
    home, kit, clock = running_town.make_home("rowan"), running_town.account("kit"), HastyClock()
    root, _ = running_town.network.post_as(kit, SAID[0])
    uris = [root]
    async with awake(home, clock=clock) as soul:
        await soul.look()
        for said in SAID[1:4]:
            own = next(post for post in running_town.network.posts() if post.author.handle == "rowan.test")
            uris.append(running_town.network.post_as(kit, said, reply_to_uri=own.uri)[0])
            await soul.look()
        assert [running_town.likers(uri) for uri in uris] == [[], [], [], ["rowan.test"]]
        assert await _conclusion(soul, root) == (
            "concluded",
            "auto-concluded after response: We have replied 4 times (limit 4)",
        )
    async with awake(home, clock=clock) as soul:
        await soul.look()
        assert (await _conclusion(soul, root))[0] == "concluded"
    assert len(running_town.texts("rowan")) == 4
    assert running_town.likers(uris[3]) == ["rowan.test"]


@pytest.mark.parametrize(("who", "likes"), [("kit", [0, 0, 0, 1, 0]), ("owner", [0, 0, 0, 0, 0])])
@pytest.mark.slow
async def test_a_conversation_that_is_taken_up_again_is_liked_once_and_talk_with_the_owner_has_no_limit(
    running_town: RunningTown, who: str, likes: list[int]
) -> None:
    running_town.mind.answer = answering
    home, did = running_town.make_home("rowan"), running_town.account(who)
    uris = [running_town.network.post_as(did, SAID[0])[0]]
    async with awake(home, clock=SystemClock()) as soul:
        await soul.look()
        for said in SAID[1:]:
            own = next(post for post in running_town.network.posts() if post.author.handle == "rowan.test")
            uris.append(running_town.network.post_as(did, said, reply_to_uri=own.uri)[0])
            await soul.look()
    assert [len(running_town.likers(uri)) for uri in uris] == likes
    assert len(running_town.texts("rowan")) == len(SAID)
