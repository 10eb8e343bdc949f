"""What came back, in our own words: calls salvaged from what the model wrote, and whether it was cut short. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from common.lenient_json import with_whole_pairs
from common.tolerant import brought_home
from modules.runtime.llm.reasoning import said_values, without_reasoning, without_template
from modules.runtime.llm.salvage import SalvagedCall, find_calls, looks_cut, parse_arguments
from modules.runtime.llm.stream import StreamedAnswer
from modules.runtime.llm.types import ChatResult, NamedTool, ToolCall, ToolChoice, ToolSpec

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME_PARTS = re.compile(r"[A-Za-z0-9_-]+")


def offer(tools: Sequence[ToolSpec], choice: ToolChoice) -> tuple[Sequence[ToolSpec], bool]:
    """Which tools to send, and whether a call is required.

    A service may ignore the object form of `tool_choice`; a single tool that is required cannot be misread.
    """
    if isinstance(choice, NamedTool):
        offered = [tool for tool in tools if tool.name == choice.name]
        if not offered:
            raise ValueError(f"{choice.name} is forced but not among the tools")
        return offered, True
    return tools, choice == "required" and bool(tools)


def read(
    answer: StreamedAnswer, offered: Sequence[ToolSpec], *, required: bool, new_id: Callable[[], str]
) -> ChatResult:
    """The answer; `new_id` names the calls whose id the service forgot."""
    text = without_reasoning(with_whole_pairs(answer.text)).strip()
    calls: list[ToolCall] = []
    for raw in answer.calls:
        arguments, malformed = parse_arguments(raw.arguments)
        called = SalvagedCall(with_whole_pairs(raw.name), arguments, malformed)
        fields = with_whole_pairs(raw.service_fields)
        calls.append(replace(_as_call(called, raw.id or new_id(), offered), service_fields=fields))
    text, found = find_calls(text, offered, required=required and not calls)
    found = found if offered and not calls else ()
    calls += [_as_call(call, new_id(), offered) for call in found]
    text = without_template(text).strip()
    schemas = {tool.name: tool.input_schema for tool in offered}
    calls = [replace(call, input=brought_home(schemas.get(call.name, {}), call.input)) for call in calls]
    if calls:
        calls[0] = replace(calls[0], service_fields=with_whole_pairs(answer.service_fields) | calls[0].service_fields)
    cut, refusal = answer.is_cut, "" if calls else with_whole_pairs(answer.refusal)
    whole = any(not call.malformed for call in calls)
    return ChatResult(
        text="" if refusal else text,
        refusal=refusal,
        tool_calls=tuple(calls),
        stop_reason="tool_use" if whole or (calls and not cut) else "max_tokens" if cut else "end_turn",
        model=answer.model,
    )


def cut_short(result: ChatResult, offered: Sequence[ToolSpec]) -> bool:
    """Whether the limit left nothing usable: no text at all, or half of a call."""
    if result.stop_reason != "max_tokens":
        return False
    return not result.text or bool(result.tool_calls) or (bool(offered) and looks_cut(result.text))


def _as_call(found: SalvagedCall, call_id: str, offered: Sequence[ToolSpec]) -> ToolCall:
    """The call as it goes back to the service, too; there a name that none can have would be refused.

    Some services leave a namespace or marks of a template in a name: `functions.reply`, `reply<|channel|>commentary`.
    """
    name, names = found.name, {tool.name for tool in offered}
    if name not in names and len(parts := names.intersection(_NAME_PARTS.findall(name))) == 1:
        (name,) = parts
    if _NAME.fullmatch(name) or not offered:
        return ToolCall(call_id, name, said_values(found.arguments), found.malformed)
    return ToolCall(call_id, offered[0].name, malformed=found.malformed or f"no tool is named {name!r}")
