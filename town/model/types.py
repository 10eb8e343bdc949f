"""What a request to a mind says, and what a mind answers. Values only; the wire stands in `service.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from common.facts import TurnFacts

Role = Literal["system", "user", "assistant", "tool"]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that was called, or is to be called."""

    name: str
    input: Json
    id: str = ""


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message. `calls` only from an assistant, `answers` (the id of the call) only from a tool.

    `pictures` says how many came with it. Chance is drawn from what a message shows of itself, and does not see them.
    """

    role: Role
    text: str
    calls: tuple[ToolUse, ...] = ()
    answers: str = ""
    pictures: int = field(default=0, repr=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that the mind may use. `parameters` is JSON Schema of an object."""

    name: str
    description: str
    parameters: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, checked. `force`: None (free), `any` (some tool) or the name of one tool.

    `facts` is the field of that name; without it nothing is known beside the messages.
    """

    model: str
    messages: tuple[ModelMessage, ...]
    offers: tuple[Offer, ...] = ()
    force: str | None = None
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    facts: TurnFacts = field(default_factory=TurnFacts)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a mind says and which tools it calls."""

    text: str = ""
    calls: tuple[ToolUse, ...] = ()


class Mind(Protocol):
    """Something that answers. `about` is one honest line on what it is, for those who watch."""

    @property
    def models(self) -> tuple[str, ...]:
        """The names under which it can be asked."""
        ...

    @property
    def about(self) -> str: ...

    async def complete(self, request: ChatRequest) -> Completion:
        """Answer one request."""
        ...
