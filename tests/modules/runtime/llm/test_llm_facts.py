"""Proves over real HTTP that facts reach the service that reads them, without secrets and bounded, and no other."""

from typing import Any

import pytest

from common.clock import FakeClock
from common.facts import FACTS_ITEMS, FACTS_TEXT_CHARS, PostFacts, RoomFacts, SaidLine, TurnFacts
from common.redact import Redactor
from modules.runtime.llm.dialect import Message
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, refuses, says, scripted_gateway
from town.model.service import BadRequest, read_request

HELLO = [Message("user", "hello")]
POST = TurnFacts(PostFacts("at://a/b/c", "bafy", "kit.test", "Is it hunter2-hunter2?", thread=(SaidLine("", "Hm."),)))


async def sent(
    model: ScriptedModel, facts: TurnFacts | None, *, reads: bool, times: int = 1, first: tuple[Reply, ...] = ()
) -> dict[str, Any]:
    """The body of the last request of so many that had these facts."""
    model.plays(*first, *[says("hi")] * times)
    gateway = scripted_gateway(
        model.url,
        clock=FakeClock(),
        redactor=Redactor(["hunter2-hunter2"]),
        reads_facts=reads,
    )
    for _ in range(times):
        await gateway.chat(HELLO, facts=facts, purpose="test")
    await gateway.aclose()
    return model.requests[-1]


@pytest.mark.parametrize(("facts", "reads"), [(POST, False), (None, True)])
async def test_a_service_that_does_not_read_facts_sees_no_such_field(
    model: ScriptedModel, facts: TurnFacts | None, *, reads: bool
) -> None:
    assert set(await sent(model, facts, reads=reads)) == {"max_tokens", "messages", "model", "stream", "stream_options"}


async def test_a_service_that_reads_facts_gets_them_without_secrets(model: ScriptedModel) -> None:
    body = await sent(model, POST, reads=True)
    assert body["facts"]["about"]["text"] == "Is it [redacted]?"
    assert body["facts"]["about"]["kind"] == "post"
    assert body["facts"]["purpose"] == "test"
    assert "facts" not in str(body["messages"])


async def test_a_service_that_refuses_the_field_by_name_is_sent_it_no_more(model: ScriptedModel) -> None:
    refusal = refuses(400, "Unrecognized request argument supplied: facts")
    await sent(model, POST, reads=True, times=2, first=(refusal,))
    assert ["facts" in request for request in model.requests] == [True, False, False]


async def test_untrusted_text_is_cleaned_and_the_size_is_bounded(model: ScriptedModel) -> None:
    lines = tuple(SaidLine("kit", f"{number}\u202e" + "x" * (FACTS_TEXT_CHARS + 1)) for number in range(300))
    body = await sent(model, TurnFacts(RoomFacts("maren", said=lines)), reads=True)
    said = body["facts"]["about"]["said"]
    assert len(said) == FACTS_ITEMS
    assert said[-1]["text"].startswith("299xxx")
    assert {len(line["text"]) for line in said} == {FACTS_TEXT_CHARS}


async def test_the_town_reads_what_was_sent_as_the_same_values(model: ScriptedModel) -> None:
    body = await sent(model, POST, reads=True)
    about = read_request(body, models=["scripted"]).facts.about
    assert isinstance(about, PostFacts)
    assert about.thread == (SaidLine("", "Hm."),)


@pytest.mark.parametrize("facts", [1, [], {"about": {"kind": "dance"}}, {"about": {"kind": "post", "uri": 3}}])
def test_facts_of_another_form_are_refused_by_name(facts: object) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "facts": facts}
    with pytest.raises(BadRequest) as refused:
        read_request(body, models=["m"])
    assert refused.value.param == "facts"
