"""In a thread about work a reply tells our account on GitHub once: asked for, and else put after the reply."""

from __future__ import annotations

import pytest

from local_tools.bluesky_turns import add_sentence, bare_account, told_account
from tests.running_town import RunningTown, awake, call
from town.model.types import ChatRequest, Completion

WORK = "@rowan.test shall we open a workspace for the weir and write a plan with two tasks?"
BARE = "Two tasks suit me: the gate first, then the screen."
TOLD = "I am `sh-rowan` on GitHub."


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("The gate first, then the screen. Find me as `sh-rowan`.", None),
        ("The gate first, @sh-rowan does it.", "The gate first, `sh-rowan` does it."),
        (BARE, f"{BARE} {TOLD}"),
    ],
)
async def test_a_reply_without_the_account_is_sent_back_once_and_then_completed(
    running_town: RunningTown, second: str, said: str | None
) -> None:
    def answering(request: ChatRequest) -> Completion:
        tried = any(message.role == "tool" for message in request.messages)
        return call("bluesky_reply", text=second if tried else BARE)

    running_town.mind.answer = answering
    home = running_town.make_home("rowan", AGENT_GITHUB_USERNAME="sh-rowan", SOUL_PEERS="wren.test")
    running_town.network.post_as(running_town.account("wren"), WORK)
    async with awake(home) as soul:
        await soul.look()
    assert running_town.texts("rowan") == [said or second]
    assert "`sh-rowan`" in running_town.mind.asked[1].messages[-1].text


@pytest.mark.parametrize(("author", "username"), [("kit", "sh-rowan"), ("wren", "")])
async def test_who_has_no_business_with_it_is_not_told(running_town: RunningTown, author: str, username: str) -> None:
    running_town.mind.answer = lambda _: call("bluesky_reply", text=BARE)
    home = running_town.make_home("rowan", AGENT_GITHUB_USERNAME=username, SOUL_PEERS="wren.test")
    running_town.network.post_as(running_town.account(author), WORK)
    async with awake(home) as soul:
        await soul.look()
    assert running_town.texts("rowan") == [BARE]


async def test_the_mind_of_the_town_tells_it_at_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", AGENT_GITHUB_USERNAME="sh-rowan", SOUL_PEERS="wren.test")
    running_town.network.post_as(running_town.account("wren"), WORK)
    async with awake(home) as soul:
        await soul.look()
    (said,) = running_town.texts("rowan")
    assert said.count(TOLD) == 1


@pytest.mark.parametrize(
    ("text", "most", "whole"),
    [
        ("One. Two.", 30, "One. Two. Me."),
        ("One. Two.", 9, "One. Me."),
        ("A sentence without an end", 20, "A sentence without an end"),
    ],
)
def test_the_last_sentences_give_way_to_the_account(text: str, most: int, whole: str) -> None:
    assert add_sentence(text, "Me.", most) == whole


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("I am @tin-soul.", "I am `tin-soul`."),
        ("I am `@tin-soul`", "I am `tin-soul`"),
        ("Ask @tin-soul.example or @tin-soul-two", "Ask @tin-soul.example or @tin-soul-two"),
    ],
)
def test_nobody_of_bluesky_is_called_by_it(text: str, bare: str) -> None:
    assert bare_account(text, "tin-soul") == bare
    assert bare_account(text, "") == text
    assert told_account(text, "")
