"""The values of a request to a mind and of its answer. The wire format is in `service.py`."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from common.facts import TurnFacts

Role = Literal["system", "user", "assistant", "tool"]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that was called or is to be called."""

    name: str
    input: Json
    id: str = ""


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message. Only an assistant has `calls`, only a tool `answers` (the id of the call).

    `pictures` is their number. It is not part of the repr, from which the ids of an answer are computed.
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
    """A checked request. `force`: None (free choice), `any` (some tool) or the name of one tool.

    `facts` is the request's field of that name; without it only the messages are known.
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
    """The text of a mind's answer, and the tools that it calls."""

    text: str = ""
    calls: tuple[ToolUse, ...] = ()


class Mind(Protocol):
    """Something that answers requests. `about` is one honest line on what it is, for people who watch."""

    @property
    def models(self) -> tuple[str, ...]:
        """The model names that it answers to."""
        ...

    @property
    def about(self) -> str: ...

    async def complete(self, request: ChatRequest) -> Completion:
        """Answer one request."""
        ...
