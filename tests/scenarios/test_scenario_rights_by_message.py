"""People ask about their own data in a direct message: it is done, and told to them alone."""

from __future__ import annotations

from common.facts import MessageFacts
from modules.services.rights.requests import ForgetRequests
from tests.running_town import Answering, RunningTown, awake, call
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_rights import answering, asked_of, home_of, kind_in
from town.model.types import ChatRequest, Completion

WORDS = "Quagmire lanterns hum beside the seventh weir"


def talking(kinds: dict[str, str], said: str) -> Answering:
    """As `answering`, and answers direct messages."""
    other = answering(kinds, said)

    def answer(request: ChatRequest) -> Completion:
        offered, about = {offer.name for offer in request.offers}, request.facts.about
        if "data_request" in offered and isinstance(about, MessageFacts) and kind_in(kinds, about.text) != "none":
            return call("data_request", reason="their own data")
        if "message_answer" in offered:
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


async def test_the_model_that_answers_a_message_finds_a_request_and_no_other_message_is_read_for_one(
    running_town: RunningTown,
) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town)
    quillon.is_followed()
    running_town.mind.answer = talking({"vanish from your shelves": "forget"}, "I delete all of it within the hour.")
    async with awake(home) as soul:
        await look(soul)
        quillon.says("Hello! I am new on the quay. What should I write down first about the water?")
        await look(soul)
        assert asked_of(running_town, "rights-request") == []
        quillon.says("Kindly let me vanish from your shelves.")
        await look(soul)
        (request,) = ForgetRequests(home.memory).all()
    assert request.did == quillon.did
    assert quillon.answers[1:] == ["I delete all of it within the hour."]
