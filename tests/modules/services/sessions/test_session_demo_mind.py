"""Proves that the mind of the town keeps something sensible of a conversation, as the skill asks for it."""

from __future__ import annotations

from common.facts import MemoryFacts, TurnFacts
from common.provenance import Provenance
from modules.runtime.llm.types import Message as Said
from modules.services.sessions.distil_policy import memories_of, summary_of
from modules.services.sessions.transcript import said_lines, transcript
from tests.modules.services.sessions.session_values import rows_of
from town.mind.scripted import ScriptedMind
from town.model.types import ChatRequest, ModelMessage, Offer

TALK = [
    Said("user", "I'm Ada and I live by the harbour. What did you post today?"),
    Said("assistant", "A thought about slate roofs."),
    Said("user", "I like it when you write about roofs. Do it again tomorrow?"),
    Said("assistant", "Gladly."),
]


async def kept(*lists: str) -> dict[str, object]:
    properties = {name: {"type": "array", "items": {"type": "string"}} for name in lists}
    request = ChatRequest(
        model="m",
        messages=(ModelMessage("user", "Words."),),
        offers=(Offer("keep_memories", "", {"type": "object", "properties": properties}),),
        force="any",
        facts=TurnFacts(MemoryFacts(said_lines(rows_of(TALK)))),
    )
    thought = await ScriptedMind().complete(request)
    (call,) = thought.calls
    assert call.name == "keep_memories"
    return call.input


async def test_what_the_town_keeps_passes_every_check() -> None:
    answer = await kept("people", "preferences")
    said = transcript(rows_of(TALK), len, 10_000)
    assert "slate roofs" not in str(answer["people"])
    assert summary_of(answer, said, str).startswith("It began with \"I'm Ada and I live by the harbour.")
    assert summary_of(answer, said, str).endswith('my own was "Gladly.".')
    memories = memories_of(answer, said, str, session_key="owner:terminal", provenance=Provenance.OWNER)
    assert [(memory.kind, memory.body) for memory in memories] == [
        ("person", "I'm Ada and I live by the harbour."),
        ("preference", "I like it when you write about roofs."),
    ]


async def test_it_fills_no_list_that_was_not_offered() -> None:
    assert list(await kept("people")) == ["summary", "people"]
