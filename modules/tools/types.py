"""Tools: what a SOUL can do when the model asks. A tool is an input model and a small handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from pydantic import BaseModel

Capability = Literal["social", "github", "code", "self"]


class Provenance(IntEnum):
    """Whose words shape this turn, least trusted first. A turn has the provenance of its least trusted text."""

    STRANGER = 0
    PEER = 1
    SELF = 2
    OWNER = 3


@dataclass(frozen=True, slots=True)
class Turn:
    """One stretch of thinking with tools.

    Attributes:
        loop: who thinks, for example `awareness`.
        provenance: computed by code from the texts in the turn, never by the model.
        cause_id: what caused it: a notification's uri, or a name such as `expression`.
        subject: the life's own value, for its own tools.

    """

    loop: str
    provenance: Provenance
    cause_id: str | None = None
    subject: object | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a handler answers. `ends_turn` says that nothing more needs to be asked of the model."""

    content: str
    is_error: bool = False
    ends_turn: bool = False
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """A capability with a name.

    Attributes:
        name: as the model calls it, for example `bluesky_reply`.
        description: as the model reads it.
        input_model: validates what the model sent; its JSON Schema is what the model sees.
        capability: `social` tools are the only ones in a social-only life, besides `self`.
        needs: the least provenance at which the tool exists.
        handler: does it.
        subject: the kind of turn in which it has a meaning, by the type of `Turn.subject`; None for any.
        time_limit_s: seconds after which the handler is stopped.

    """

    name: str
    description: str
    input_model: type[BaseModel]
    capability: Capability
    needs: Provenance
    handler: Callable[[Any, Turn], Awaitable[ToolResult]]
    time_limit_s: float = 60.0
    subject: type | None = None
