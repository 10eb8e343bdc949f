"""Proves over real HTTP that the parts that stay the same are marked for caching, and that cached tokens are counted.

Proves over real HTTP that facts reach only the service that reads them, bounded and without secrets.
"""

import dataclasses
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from common.clock import FakeClock
from common.facts import FACTS_ITEMS, FACTS_TEXT_CHARS, PostFacts, RoomFacts, SaidLine, TurnFacts
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.llm.connection import NoBudgetGuard, Request, Reservation
from modules.runtime.llm.dialect import Message, PromptBlock, ToolSpec, Usage
from modules.runtime.llm.gateway import REMEMBERED_CALLS, CacheMeter, LLMGateway
from tests.loopback import to_loopback
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, calls, refuses, says, scripted_gateway
from town.model.service import BadRequest, read_request

HELLO = [Message("user", "hello")]
BLOCKS = (PromptBlock("static", "I am."), PromptBlock("dynamic", "It is noon."))
CLAUDE, GPT = "anthropic/claude-haiku-4-5", "openai/gpt-5.2"
LIKE = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}})


class Other(NoBudgetGuard):
    """A budget guard that sends every second request to another model."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._count = 0

    async def reserve(self, request: Request, *, purpose: str, importance: str) -> Reservation:
        self._count += 1
        return Reservation("", request if self._count % 2 else request | {"model": self._model})


@dataclasses.dataclass
class Gateways:
    """Opens gateways to the scripted model, and closes them."""

    url: str
    made: list[LLMGateway] = dataclasses.field(default_factory=list)

    def open(self, model: str, **given: Any) -> LLMGateway:
        given = {"budget_guard": NoBudgetGuard(), **given}
        opened = LLMGateway(
            transport=to_loopback,
            base_url=self.url,
            api_key="made-up",
            model=model,
            clock=FakeClock(),
            rng=Random(7),
            console=SilentConsole(),
            cache_key="Odile",
            **given,
        )
        self.made.append(opened)
        return opened


@pytest.fixture
async def gateways(model: ScriptedModel) -> AsyncIterator[Gateways]:
    gateways = Gateways(model.url)
    yield gateways
    for opened in gateways.made:
        await opened.aclose()


def counting(prompt: int, cached: int) -> Reply:
    said = says("hi")
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 1,
        "total_tokens": prompt + 1,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return dataclasses.replace(said, chunks=(*said.chunks[:-1], {**said.chunks[-1], "usage": usage}))


async def test_each_model_gets_the_prompt_in_its_own_wording_even_when_the_wall_chooses_another(
    gateways: Gateways, model: ScriptedModel
) -> None:
    model.plays(says("a"), says("b"))
    opened = gateways.open(CLAUDE, budget_guard=Other(GPT))
    await opened.chat(HELLO, system=BLOCKS)
    await opened.chat(HELLO, system=BLOCKS)
    marked, plain = model.requests
    assert [part.get("cache_control") for part in marked["messages"][0]["content"]] == [{"type": "ephemeral"}, None]
    assert "prompt_cache_key" not in marked
    assert plain["messages"][0] == {"role": "system", "content": "I am.\n\nIt is noon."}
    assert plain["prompt_cache_key"] == "Odile"


@pytest.mark.parametrize(
    "problem",
    [
        "messages.0.content.0.cache_control: Extra inputs are not permitted",
        "messages[0].content must be a string",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ],
)
async def test_marks_that_a_service_refuses_are_left_out_from_then_on(
    gateways: Gateways, model: ScriptedModel, problem: str
) -> None:
    model.plays(refuses(400, problem), says("a"), says("b"))
    opened = gateways.open(CLAUDE)
    talk = [*HELLO, Message("assistant", "yes?"), *HELLO]
    await opened.chat(talk, system=BLOCKS)
    await opened.chat(talk, system=BLOCKS)
    marked, *bare = [[message["content"] for message in request["messages"]] for request in model.requests]
    assert [isinstance(content, list) for content in marked] == [True, True, False, True]
    assert bare == [["I am.\n\nIt is noon.", "hello", "yes?", "hello"]] * 2


async def test_a_key_that_a_service_refuses_is_left_out_from_then_on(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(refuses(400, "Unrecognized request argument supplied: prompt_cache_key"), says("a"), says("b"))
    opened = gateways.open(GPT)
    await opened.chat(HELLO, system=BLOCKS)
    await opened.chat(HELLO, system=BLOCKS)
    assert ["prompt_cache_key" in request for request in model.requests] == [True, False, False]


async def test_what_one_model_refuses_another_still_gets(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"), refuses(400, "unknown parameter temperature"), says("b"), says("c"))
    opened = gateways.open(CLAUDE, budget_guard=Other(GPT))
    await opened.chat(HELLO, temperature=0)
    await opened.chat(HELLO, temperature=0)
    await opened.chat(HELLO, temperature=0)
    assert [(r["model"], "temperature" in r) for r in model.requests] == [
        (CLAUDE, True),
        (GPT, True),
        (CLAUDE, True),
        (GPT, False),
    ]


async def test_a_secret_inside_a_block_stays_here(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"))
    opened = gateways.open(CLAUDE, redactor=Redactor(["hunter2-hunter2"]))
    await opened.chat(HELLO, system=[PromptBlock("static", "It is hunter2-hunter2.")])
    assert model.requests[0]["messages"][0]["content"][0]["text"] == "It is [redacted]."


async def test_the_share_that_was_kept_is_known_over_the_latest_calls(gateways: Gateways, model: ScriptedModel) -> None:
    opened = gateways.open(GPT)
    assert opened.cache.share is None
    model.plays(counting(1000, 0), counting(1000, 900), says("uncounted", usage=False))
    for _ in range(3):
        await opened.chat(HELLO)
    assert opened.cache.share == 0.45


def test_what_was_long_ago_is_forgotten() -> None:
    meter = CacheMeter()
    meter.note(Usage(500, 1))
    for _ in range(REMEMBERED_CALLS - 1):
        meter.note(Usage(100, 1, cached_tokens=90))
    assert meter.share != 0.9
    meter.note(Usage(100, 1, cached_tokens=90))
    assert meter.share == 0.9


async def test_who_estimates_tokens_hears_of_each_counted_answer_what_was_sent_for_it(
    gateways: Gateways, model: ScriptedModel
) -> None:
    received: list[tuple[str, int, int]] = []
    model.plays(calls(("like", '{"uri": "a"}')), says("x", usage=False), counting(30, 20))
    opened = gateways.open(CLAUDE, budget_guard=Other(GPT), on_measured=lambda *told: received.append(told))
    await opened.chat_with_tools(HELLO, system=BLOCKS, tools=[LIKE])
    await opened.chat(HELLO)
    await opened.chat(HELLO, system="be kind")
    tool = '{"name": "like", "description": "Likes.", "parameters": {"type": "object", "properties": {"uri": {"type": '
    words = len("I am.\nIt is noon.") + len("hello")
    assert received == [(CLAUDE, words + len(f'{tool}"string"}}}}}}}}'), 20), (CLAUDE, len("be kind" + "hello"), 30)]


POST = TurnFacts(PostFacts("at://a/b/c", "bafy", "kit.test", "Is it hunter2-hunter2?", thread=(SaidLine("", "Hm."),)))


async def sent(
    model: ScriptedModel, facts: TurnFacts | None, *, reads: bool, times: int = 1, first: tuple[Reply, ...] = ()
) -> dict[str, Any]:
    """Send `times` requests with these facts, and return the body of the last one."""
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
