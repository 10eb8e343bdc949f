"""Proves which calls count as repeats and what a model is shown of a tool."""

import json
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from common.errors import SkillError
from common.provenance import Provenance
from local_tools.memory_tools import MemoryHistoryInput
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.policy import (
    MIXED,
    allowed,
    approval_reason,
    deduplicate_reply_tool_calls,
    lower_provenance,
)
from modules.services.agent.tools.types import Effect, Tool, ToolResult, Turn
from modules.services.skills.tool_schema import read_description, simple_schema


def reply(uri: object, call_id: str = "a") -> ToolCall:
    return ToolCall(call_id, "bluesky_reply", {"post_uri": uri, "text": "hi"})


LIKE = ToolCall("l", "bluesky_like", {"post_uri": "at://1"})


@pytest.mark.parametrize(
    ("calls", "replied", "kept", "skipped"),
    [
        ([reply("at://1")], {"at://1"}, [], [0]),
        ([reply("at://1"), reply("at://2"), reply("at://1")], set(), [0, 1], [2]),
        ([LIKE, LIKE, reply("at://1")], {"at://9"}, [0, 1, 2], []),
        ([LIKE], {"at://1"}, [0], []),
        ([reply(7), reply(7), reply(None)], set(), [0, 1, 2], []),
    ],
)
def test_a_post_is_replied_to_once_in_a_session_and_once_in_a_batch(
    calls: list[ToolCall], replied: set[str], kept: list[int], skipped: list[int]
) -> None:
    assert deduplicate_reply_tool_calls(calls, replied) == ([calls[i] for i in kept], [calls[i] for i in skipped])


STRANGER, PEER, SELF, OWNER = Provenance


async def nothing(arguments: BaseModel, turn: Turn) -> ToolResult:
    return ToolResult("")


def tool(effect: Effect, needs: Provenance, *, holdable: bool = False) -> Tool:
    return Tool("t", "Does it.", BaseModel, "social", needs, nothing, effect=effect, holdable=holdable)


@pytest.mark.parametrize(
    ("effect", "needs", "holdable", "asked_by", "words", "outcome"),
    [
        ("look", STRANGER, False, STRANGER, STRANGER, "runs"),
        ("look", OWNER, False, OWNER, STRANGER, "runs"),
        ("look", OWNER, False, STRANGER, STRANGER, "refused"),
        ("act", STRANGER, True, STRANGER, STRANGER, "runs"),
        ("act", SELF, True, SELF, SELF, "runs"),
        ("act", SELF, True, SELF, STRANGER, "refused"),
        ("act", OWNER, True, OWNER, OWNER, "runs"),
        ("act", OWNER, True, OWNER, STRANGER, "waits"),
        ("act", STRANGER, True, OWNER, STRANGER, "waits"),
        ("act", OWNER, False, OWNER, STRANGER, "refused"),
        ("act", STRANGER, False, OWNER, STRANGER, "runs"),
        ("act", OWNER, True, STRANGER, STRANGER, "refused"),
    ],
)
def test_who_asked_decides_what_may_be_seen_and_whose_words_are_there_decides_what_may_be_done(
    effect: Effect, needs: Provenance, asked_by: Provenance, words: Provenance, outcome: str, *, holdable: bool
) -> None:
    subject, turn = tool(effect, needs, holdable=holdable), Turn("test", words, origin=asked_by)
    assert allowed(subject, turn, social_only=True) == (outcome != "refused")
    assert approval_reason(subject, turn) == (MIXED if outcome == "waits" else "")


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [(OWNER, None, OWNER), (OWNER, STRANGER, STRANGER), (STRANGER, OWNER, STRANGER), (SELF, PEER, PEER)],
)
def test_a_turn_sinks_and_never_rises_and_stays_the_request_of_who_began_it(
    before: Provenance, words: Provenance | None, after: Provenance
) -> None:
    turn = lower_provenance(Turn("test", before), words)
    assert (turn.provenance, turn.asked_by) == (after, before)


class Ref(BaseModel):
    """A pair."""

    uri: str
    cid: str | None = None


class Everything(BaseModel):
    """All that a tool may ask for."""

    text: Annotated[str, Field(description="The words.", min_length=1, max_length=300, pattern=r"^\d+$")]
    mood: Literal["calm", "glad"] = "calm"
    limit: int = Field(default=20, ge=1, le=100)
    ref: Ref | None = Field(default=None, description="Which one.")
    tags: list[str] = Field(default_factory=list, max_length=3)
    where: Ref | str = "here"


def test_a_schema_holds_only_what_every_grammar_understands() -> None:
    schema = simple_schema(Everything)
    assert schema["type"] == "object"
    assert schema["required"] == ["text"]
    assert "description" not in schema
    assert schema["properties"] == {
        "text": {"type": "string", "description": "The words."},
        "mood": {"type": "string", "enum": ["calm", "glad"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "ref": {
            "type": "object",
            "description": "Which one.",
            "required": ["uri"],
            "properties": {"uri": {"type": "string"}, "cid": {"type": "string"}},
        },
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "where": {
            "anyOf": [
                {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string"}, "cid": {"type": "string"}},
                },
                {"type": "string"},
            ]
        },
    }
    assert not any(word in json.dumps(schema) for word in ("$ref", "$defs", "title", "pattern", "Length", "default"))


def test_a_description_is_split_into_the_tool_and_its_fields() -> None:
    text = "Look at one.\nAll of it.\n- id: The number, as shown: in brackets.\n"
    assert read_description(text) == ("Look at one.\nAll of it.", {"id": "The number, as shown: in brackets."})
    schema = simple_schema(MemoryHistoryInput, read_description(text)[1])
    assert schema["properties"]["id"] == {"type": "integer", "description": "The number, as shown: in brackets."}


def test_a_field_that_does_not_exist_cannot_be_described() -> None:
    with pytest.raises(SkillError, match="MemoryHistoryInput has no field number"):
        simple_schema(MemoryHistoryInput, {"number": "The number."})
