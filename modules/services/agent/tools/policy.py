"""Decides which tools a turn may use and which calls are repeats, and explains wrong calls to the model. Pure.

The provenance of the words in a turn decides. To look, only whoever asked for the turn must be trusted enough: a look
leaves nothing behind, and its answer reaches only them. To act, every word in the turn must be trusted enough, since
any of them may ask for it. If the owner asked and others' words came in, an act waits for the owner's approval, unless
their newest line gives all of it and a judge who reads that line finds that it asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import Tool, Turn

REPLY_TOOL = "bluesky_reply"
MIXED = "other people's words were read before it"
_SOCIAL = {"social", "self"}
_EMPTY: tuple[object, ...] = (None, "", [], {})
"""Values of an unknown field that mean "not given"."""


def allowed(tool: Tool, turn: Turn, *, social_only: bool) -> bool:
    """Return whether `tool` exists in `turn`: it applies to it, fits the mode, and the words are trusted enough."""
    if tool.subject is not None and not isinstance(turn.subject, tool.subject):
        return False
    if social_only and tool.capability not in _SOCIAL:
        return False
    trusted = turn.asked_by if tool.effect == "look" else turn.provenance
    may_be_named = tool.named_only and turn.asked_by is Provenance.OWNER and turn.request is not None
    if trusted < tool.needs and not may_be_named and not approval_reason(tool, turn):
        return False
    return tool.fits is None or tool.fits(turn)


def approval_reason(tool: Tool, turn: Turn) -> str:
    """Return why an act of `tool` in `turn` must wait for the owner's approval; "" if it need not, or cannot.

    This applies even to acts that a stranger's turn may do freely: that turn saw nothing private, this one may have.
    """
    mixed = turn.asked_by is Provenance.OWNER and turn.provenance < Provenance.OWNER
    return MIXED if tool.effect == "act" and tool.holdable and mixed else ""


def is_order_open(tool: Tool, turn: Turn) -> bool:
    """Return whether it is open if the owner's line asks for an act of `tool`, as the turn also holds others' words.

    These may have talked the model into the act, so a judge then reads the line alone.
    """
    is_owners = turn.asked_by is Provenance.OWNER and turn.request is not None and turn.provenance < Provenance.OWNER
    return is_owners and (tool.named_only or bool(approval_reason(tool, turn)))


def withheld_fields(tool: Tool, turn: Turn) -> frozenset[str]:
    """Return the fields that `tool` does not take in `turn`, because the owner did not ask for it."""
    return frozenset() if turn.asked_by is Provenance.OWNER else tool.owner_fields


def hidden_fields(tool: Tool, turn: Turn) -> frozenset[str]:
    """Return the fields of `tool` that the model is not shown: those withheld, and those that the subject sets."""
    given = tool.given.get(type(turn.subject), frozenset())
    return withheld_fields(tool, turn) | (given - tool.named_fields if turn.asked_by is Provenance.OWNER else given)


def lower_provenance(turn: Turn, words: Provenance | None) -> Turn:
    """Return `turn` with its provenance lowered to `words`, if that is lower; None stands for the SOUL's own words."""
    if words is None or words >= turn.provenance:
        return turn
    return replace(turn, provenance=words, origin=turn.asked_by)


def replied_uri(call: ToolCall) -> str | None:
    """Return the URI of the post that `call` replies to; None if it is not a reply."""
    uri = call.input.get("post_uri")
    return uri if call.name == REPLY_TOOL and isinstance(uri, str) and uri else None


def deduplicate_reply_tool_calls(
    calls: Iterable[ToolCall], replied_uris: Collection[str]
) -> tuple[list[ToolCall], list[ToolCall]]:
    """Split `calls` into `(kept, skipped)`: skip replies to a post in `replied_uris` or of an earlier call."""
    seen = set(replied_uris)
    kept: list[ToolCall] = []
    skipped: list[ToolCall] = []
    for call in calls:
        uri = replied_uri(call)
        (skipped if uri in seen else kept).append(call)
        if uri is not None:
            seen.add(uri)
    return kept, skipped


def without_empty_options(model: type[BaseModel], sent: dict[str, Any]) -> dict[str, Any]:
    """Return what the model sent without nulls, by which small models say "not given", and empty unknown fields."""
    fields = model.model_fields
    return {
        name: value
        for name, value in sent.items()
        if (value is not None or fields[name].is_required() if name in fields else value not in _EMPTY)
    }


def left_out(arguments: BaseModel, sent: Mapping[str, Any]) -> str:
    """Return the ignored fields of a call: unknown ones, and invalid choices with what is allowed; "" for none."""
    fields = type(arguments).model_fields
    choices = (
        f"`{name}` (allowed: {', '.join(filter(None, get_args(field.annotation)))})"
        for name, field in fields.items()
        if get_origin(field.annotation) is Literal and sent.get(name) and not getattr(arguments, name)
    )
    known = {*fields, *(field.alias for field in fields.values())}
    unknown = (f"`{name}`" for name, value in sent.items() if name not in known and value not in _EMPTY)
    return ", ".join((*choices, *unknown))


def explain(tool: Tool, turn: Turn, error: ValidationError) -> tuple[str, str]:
    """Return what is wrong with each field, and which fields the tool takes in `turn`."""
    problems = "; ".join(
        f"`{'.'.join(map(str, item['loc'])) or 'input'}`: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors(include_url=False, include_context=False)
    )
    return problems, taken_fields(tool, turn)


def taken_fields(tool: Tool, turn: Turn) -> str:
    """Return the names of the fields that `tool` takes in `turn`, as text for the model."""
    withheld, fields = withheld_fields(tool, turn), tool.input_model.model_fields.items()
    shown = ((field.alias or name, field) for name, field in fields if name not in withheld)
    taken = (name if field.is_required() else f"{name} (optional)" for name, field in shown)
    return ", ".join(taken) or "nothing"
