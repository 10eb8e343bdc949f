"""People ask about their own data in a direct message: it is done, and told to them alone."""

from __future__ import annotations

from common.facts import MessageFacts
from common.text.rights_requests import may_be_rights_request
from modules.services.rights.requests import ForgetRequests
from tests.running_town import Answering, RunningTown, awake, call
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_rights import answering, calls_it_a_request, home_of
from town.model.types import ChatRequest, Completion

WORDS = "Quagmire lanterns hum beside the seventh weir"


def talking(kinds: dict[str, str], said: str) -> Answering:
    """As `answering`, and answers direct messages."""
    other = answering(kinds, said)

    def answer(request: ChatRequest) -> Completion:
        about = request.facts.about
        if isinstance(about, MessageFacts) and not calls_it_a_request(request, kinds, about.text):
            return call("message_answer", text=f"{WORDS}, and so do I, at the {len(request.messages)}th hour.")
        return other(request)

    return answer


async def test_who_asks_for_no_reply_gets_one_last_answer_and_then_none(running_town: RunningTown) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town)
    quillon.is_followed()
    said = "That was my last word to you, until you say otherwise."
    running_town.mind.answer = talking({"do not reply": "no_reply", "You may answer me": "reply_again"}, said)
    async with awake(home) as soul:
        await look(soul)
        for text in ("Please do not reply to me any more.", "Which roof is louder, tin or slate?"):
            quillon.says(text)
            await look(soul)
        assert quillon.answers == [said]
        quillon.says("You may answer me again, reply as you like.")
        await look(soul)
        quillon.says("Which roof is louder, tin or slate?")
        await look(soul)
        assert len(quillon.answers) == 3


async def test_who_asks_why_they_were_answered_in_a_message_is_told_of_messages_and_in_public_is_not(
    running_town: RunningTown,
) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town)
    quillon.is_followed()
    running_town.mind.answer = talking({"why did you": "why"}, "You wrote to me, and I had something to say.")
    async with awake(home) as soul:
        await look(soul)
        quillon.says("Which roof is louder, tin or slate?")
        await look(soul)
        quillon.says("And why did you answer me at all?")
        await look(soul)
        running_town.network.post_as(quillon.did, "@rowan.test why did you reply to me the other day?")
        await soul.look()
        private, public = (one for one in running_town.mind.asked if one.facts.purpose == "rights-answer")
        assert "you wrote me a direct message" in private.messages[-1].text
        assert "direct message" not in public.messages[-1].text
        assert "I find no reply of mine to you" in public.messages[-1].text


async def test_the_model_that_is_to_answer_finds_a_request_and_a_message_that_only_sounds_like_one_costs_one_call(
    running_town: RunningTown,
) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town)
    quillon.is_followed()
    asked, sounds = "futa kumbukumbu zako zote kuhusu mimi", "could you find out why its low tides read too high?"
    assert (may_be_rights_request(asked), may_be_rights_request(sounds)) == (False, True)
    said = "Within the hour your page in my book is blank."
    running_town.mind.answer = talking({"futa kumbukumbu": "forget"}, said)
    async with awake(home) as soul:
        await look(soul)
        quillon.says(sounds)
        await look(soul)
        assert [one.facts.purpose for one in running_town.mind.asked] == ["direct-messages"]
        quillon.says(asked)
        await look(soul)
    assert quillon.answers[1:] == [said]
    assert [one.did for one in ForgetRequests(home.memory).all()] == [quillon.did]
