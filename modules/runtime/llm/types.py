"""What goes to a model and what comes back, in no provider's dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

CacheGroup = Literal["static", "semi-static", "dynamic"]
GROUPS: tuple[CacheGroup, ...] = ("static", "semi-static", "dynamic")


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """The text of one cache group, as it goes over the wire."""

    group: CacheGroup
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message: the media store's key for its bytes, and what its author says it shows."""

    key: str
    mime: str
    alt: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `input` is what it sent, parsed; `malformed` says why it could not be.

    `service_fields` is what the service sent beside the call and wants back with it, unread: the thought before it, or
    the seal of one.
    """

    id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict)
    malformed: str = ""
    service_fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool call came to."""

    tool_use_id: str
    name: str
    content: str
    is_error: bool = False


Block: TypeAlias = Text | Image | ToolCall | ToolAnswer


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


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls took: tokens as the service counted them, and what the budget says of them.

    Attributes:
        input_tokens: zero if the service does not say.
        output_tokens: the same; hidden reasoning included.
        cost_usd: of every attempt, failed ones included; None while no price is known.
        cached_tokens: how many of the input tokens the service had kept from an earlier call; zero if it does not say.
        step: how far the day's budget was used, in the budget's words; "" without one.
        model: the model that was asked, which need not be the one of the settings.

    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    step: str = ""
    model: str = field(default="", compare=False)
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Both together; step and model are those of the later one."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(costs) if costs else None,
            other.step or self.step,
            other.model or self.model,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class ChatResult:
    """The model's answer.

    `refusal` says why there is none, in the service's words or by its name for the reason; then there are neither text
    nor calls. `attempts` counts the calls that were needed; `seconds` the time in all.
    """

    text: str
    refusal: str = field(default="", kw_only=True)
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = "end_turn"
    usage: Usage = Usage()
    model: str = ""
    attempts: int = 1
    seconds: float = 0.0

    @property
    def cost_usd(self) -> float | None:
        """Of the whole call, all attempts; None if the price is unknown."""
        return self.usage.cost_usd
