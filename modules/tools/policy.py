"""Which tools a turn may use, which calls are repeats, and how a wrong call is explained to the model. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from modules.llm_gateway.types import ToolCall
from modules.tools.types import Tool, Turn

REPLY_TOOL = "bluesky_reply"
_SOCIAL = {"social", "self"}


def allowed(tool: Tool, turn: Turn, *, social_only: bool) -> bool:
    """Whether `tool` exists in `turn`: it means something there, fits the mode, and the texts are trusted enough."""
    if tool.subject is not None and not isinstance(turn.subject, tool.subject):
        return False
    return turn.provenance >= tool.needs and (not social_only or tool.capability in _SOCIAL)


def replied_uri(call: ToolCall) -> str | None:
    """The uri of the post that `call` replies to; None if it is no reply."""
    uri = call.input.get("post_uri")
    return uri if call.name == REPLY_TOOL and isinstance(uri, str) and uri else None


def deduplicate_reply_tool_calls(
    calls: Iterable[ToolCall], replied_uris: Collection[str]
) -> tuple[list[ToolCall], list[ToolCall]]:
    """Split `calls` into `(kept, skipped)`: a post is replied to once in a session, and once in a batch."""
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
    """What the model sent, without the nulls by which small models say "not given"."""
    fields = model.model_fields
    return {
        name: value
        for name, value in sent.items()
        if value is not None or name not in fields or fields[name].is_required()
    }


def explain(tool: Tool, error: ValidationError) -> str:
    """One line that names each wrong field and says what the tool takes."""
    problems = "; ".join(
        f"`{'.'.join(map(str, item['loc'])) or 'input'}`: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors(include_url=False, include_context=False)
    )
    fields = tool.input_model.model_fields.items()
    takes = ", ".join(name if field.is_required() else f"{name} (optional)" for name, field in fields)
    return f"Error: {tool.name} was not called. {problems}. It takes: {takes or 'nothing'}."
