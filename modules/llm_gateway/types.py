"""What goes to a model and what comes back, in no provider's dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `input` is what it sent, parsed; `malformed` says why it could not be."""

    id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict)
    malformed: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool call came to."""

    tool_use_id: str
    name: str
    content: str
    is_error: bool = False


Block: TypeAlias = Text | ToolCall | ToolAnswer


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation with the model."""

    role: Literal["user", "assistant"]
    content: str | tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `input_schema` is JSON Schema of an object."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NamedTool:
    """Force exactly this tool."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "required"] | NamedTool
StopReason: TypeAlias = Literal["end_turn", "tool_use", "max_tokens"]
Importance: TypeAlias = Literal["own", "commitment", "mention", "owner"]
"""For whom a call is made, least pressing first: the budget decides by it who may still speak when it runs low."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the service counted them."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ChatResult:
    """The model's answer. `attempts` counts the calls that were needed; `seconds` the time in all."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = "end_turn"
    usage: Usage = Usage()
    model: str = ""
    attempts: int = 1
    seconds: float = 0.0
