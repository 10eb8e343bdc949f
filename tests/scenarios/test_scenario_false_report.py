"""An answer that wrongly claims an act goes back to the model, or the program corrects it below the answer."""

from collections.abc import Callable

import pytest

from common.clock import SystemClock
from common.errors import Transient
from tests.owner_lines import answer_message, answered
from tests.running_town import RunningTown, awake, call, prompt_of, replying
from tests.scenarios.phone import Phone, look
from town.atproto.index import FOLLOW
from town.gallery.service import gallery_app
from town.model.service import Fault
from town.model.types import ChatRequest, Completion, ToolUse
from town.serving import serve

CLAIM = "Done, I posted it."
BELOW = "nothing was done about this line"
SENT_BACK = "did not show this answer"


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
        if SENT_BACK in prompt_of(request):
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
    assert CLAIM not in prompt_of(running_town.mind.asked[-1]), "what the owner did not read is no part of the talk"


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
        assert [SENT_BACK in prompt_of(one) for one in running_town.mind.asked] == [False, True], "it goes back once"
        running_town.mind.answer = replying("Nothing was posted.")
        await answered(soul.app.owner, "And now?")
        assert BELOW in prompt_of(running_town.mind.asked[-1]), "the talk keeps what the owner read"
    assert running_town.texts("rebecca") == []


LINE = "Post: The oven is hot."


def claims_so(request: ChatRequest) -> Completion:
    return Completion(text="YES" if f'Reply: "{CLAIM}"' in request.messages[-1].text else "NO")


def is_honest(told: str) -> bool:
    return CLAIM not in told or BELOW in told


def says_nothing_more(request: ChatRequest) -> Completion:
    return Completion(text="" if SENT_BACK in prompt_of(request) else CLAIM)


def fails_alike(request: ChatRequest) -> Completion:
    return call("bluesky_pst", text="Hot.") if SENT_BACK in prompt_of(request) else Completion(text=CLAIM)


def claims_beside_a_look(request: ChatRequest) -> Completion:
    if any(message.role == "tool" for message in request.messages):
        return Completion(text="")
    return Completion(text=CLAIM, calls=(ToolUse("memory_search", {"query": "oven"}),))


def claims_in_the_last_round(request: ChatRequest) -> Completion:
    looks = sum(message.role == "tool" for message in request.messages)
    return call("memory_search", query=f"oven {looks}") if looks < 11 else Completion(text=CLAIM)


@pytest.mark.parametrize("mind", [says_nothing_more, fails_alike, claims_beside_a_look, claims_in_the_last_round])
async def test_a_claim_is_never_read_as_it_is_however_its_turn_ends(
    running_town: RunningTown, mind: Callable[[ChatRequest], Completion]
) -> None:
    running_town.mind.answer, running_town.mind.check = mind, claims_so
    async with awake(running_town.make_home("rowan")) as soul:
        assert is_honest(await answered(soul.app.owner, LINE))


async def test_an_act_for_the_line_before_is_no_act_for_this_one(running_town: RunningTown) -> None:
    def silent(request: ChatRequest) -> Completion:
        if any(message.role == "tool" for message in request.messages):
            return Completion(text="")
        return call("bluesky_post", text="Flour is dust.")

    running_town.mind.check = claims_so
    async with awake(running_town.make_home("rowan")) as soul:
        running_town.mind.answer = silent
        await answered(soul.app.owner, "Post: Flour is dust.")
        running_town.mind.answer = replying(CLAIM)
        assert is_honest(await answered(soul.app.owner, LINE))
        await soul.send()
    assert running_town.texts("rowan") == ["Flour is dust."]


async def test_an_act_for_an_earlier_line_is_none_for_lines_that_are_answered_together(
    running_town: RunningTown,
) -> None:
    running_town.mind.check = claims_so
    async with awake(running_town.make_home("rowan")) as soul:
        running_town.mind.answer = lambda request: (
            Completion(text="Yes.") if request.messages[-1].role == "tool" else call("bluesky_post", text="Flour.")
        )
        await answered(soul.app.owner, "Post: Flour.")
        running_town.mind.answer = replying(CLAIM)
        running_town.mind_faults.arm(Fault("rate_limited", times=99, seconds=0))
        for key, line in (("1", LINE), ("2", "I saw a heron."), ("3", LINE)):
            with pytest.raises(Transient):
                await answer_message(soul.app.owner, key, line)
        running_town.mind_faults.clear()
        told = await answer_message(soul.app.owner, "3", LINE)
    assert is_honest(told.text)


async def test_a_page_that_was_read_is_no_act_that_an_answer_can_tell_of(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_ALLOW_PRIVATE_NET="on")
    async with awake(home) as soul, serve(gallery_app(SystemClock())) as url:

        def reads(request: ChatRequest) -> Completion:
            is_read = any(message.role == "tool" for message in request.messages)
            return Completion(text=CLAIM) if is_read else call("web_fetch", url=f"{url}/exhibition")

        running_town.mind.answer, running_town.mind.check = reads, claims_so
        told = await answered(soul.app.owner, f"Read {url}/exhibition and post a line about it.")
        assert any("Light on surfaces" in prompt_of(one) for one in running_town.mind.asked)
    assert is_honest(told)


async def test_what_waits_for_approval_is_still_told_to_the_judge_of_the_second_answer(
    running_town: RunningTown,
) -> None:
    asked: list[str] = []

    def check(request: ChatRequest) -> Completion:
        asked.append(request.messages[-1].text)
        return Completion(text="NO" if "(held)" in asked[-1] and CLAIM not in asked[-1] else "YES")

    def mind(request: ChatRequest) -> Completion:
        if not request.offers:
            return Completion(text="NO")
        if SENT_BACK in prompt_of(request):
            return Completion(text="The post is ready as draft 1.")
        calls = sum(message.role == "tool" for message in request.messages)
        steps = (
            call("bluesky_get_timeline", limit=5),
            call("bluesky_post", text="Ovens are hot."),
            Completion(text=CLAIM),
        )
        return steps[calls]

    kit, rowan = running_town.account("kit"), running_town.account("rowan")
    running_town.network.create(rowan, FOLLOW, {"subject": kit, "createdAt": "2026-01-01T00:00:00.000Z"})
    running_town.network.post_as(kit, "Is the oven cold?")
    running_town.mind.answer, running_town.mind.check = mind, check
    async with awake(running_town.make_home("rowan")) as soul:
        told = await answered(soul.app.owner, "See what is new, and post something about it.")
        assert len(await soul.app.services.outbox.held()) == 1
    assert "(held)" in asked[0]
    assert "(held)" in asked[-1], asked
    assert BELOW not in told


async def test_an_answer_that_a_judge_rejects_is_not_lost_where_the_model_fails_then(running_town: RunningTown) -> None:
    def check(_: ChatRequest) -> Completion:
        running_town.mind_faults.arm(Fault("payment_required", times=99))
        return Completion(text="YES")

    running_town.mind.answer, running_town.mind.check = replying("Kettles sing because bubbles burst."), check
    async with awake(running_town.make_home("rowan")) as soul:
        told = await answered(soul.app.owner, "Why do kettles sing?")
    assert told.startswith("Kettles sing")
