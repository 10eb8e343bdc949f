"""An owner never reads that something was done which was not: the answer goes back, or the program says so below it."""

from __future__ import annotations

import pytest

from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, call, replying
from tests.scenarios.phone import Phone, look
from town.model.types import ChatRequest, Completion

CLAIM = "Done, I posted it."
BELOW = "nothing was done about this line"
SENT_BACK = "did not show this answer"


def everything(request: ChatRequest) -> str:
    return "\n".join(message.text for message in request.messages)


def judging(request: ChatRequest) -> Completion:
    return Completion(text="YES" if f'Reply: "{CLAIM}"\nDone: "nothing"' in request.messages[-1].text else "NO")


async def test_an_answer_that_tells_of_a_post_that_was_not_made_goes_back_and_the_post_is_made(
    running_town: RunningTown,
) -> None:
    checked: list[ChatRequest] = []

    def check(request: ChatRequest) -> Completion:
        checked.append(request)
        return judging(request)

    def mind(request: ChatRequest) -> Completion:
        if any(message.role == "tool" for message in request.messages):
            return Completion(text="It leaves in a moment.")
        if SENT_BACK in everything(request):
            return call("bluesky_post", text="The oven is hot.")
        return Completion(text=CLAIM)

    running_town.mind.answer, running_town.mind.check = mind, check
    async with awake(running_town.make_home("rowan")) as soul:
        assert await answered(soul.app.owner, "Post: The oven is hot.") == "It leaves in a moment."
        await soul.send()
        assert len(checked) == 1, "what a tool did is not asked about"
        running_town.mind.answer = replying("Hot.")
        assert await answered(soul.app.owner, "How is the oven?") == "Hot."
    assert running_town.texts("rowan") == ["The oven is hot."]
    assert CLAIM not in everything(running_town.mind.asked[-1]), "what the owner did not read is no part of the talk"


@pytest.mark.parametrize("by_message", [True, False])
async def test_below_an_answer_that_goes_on_claiming_it_the_program_says_that_nothing_was_done(
    running_town: RunningTown, *, by_message: bool
) -> None:
    running_town.mind.answer, running_town.mind.check = replying(CLAIM), judging
    phone = Phone(running_town, "owner")
    async with awake(running_town.make_home("rebecca")) as soul:
        await look(soul)
        if by_message:
            phone.says("Post: The oven is hot.")
            await look(soul)
            (told,) = phone.answers
        else:
            told = await answered(soul.app.owner, "Post: The oven is hot.")
        assert told.startswith(CLAIM)
        assert BELOW in told
        assert [SENT_BACK in everything(one) for one in running_town.mind.asked] == [False, True], "it goes back once"
        running_town.mind.answer = replying("Nothing was posted.")
        await answered(soul.app.owner, "And now?")
        assert BELOW in everything(running_town.mind.asked[-1]), "the talk keeps what the owner read"
    assert running_town.texts("rebecca") == []
