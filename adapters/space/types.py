"""What is known of an agent space: who is in it, what was said, claimed and done. One model for each frame of the wire.

Members and rooms use the same models; `wire_fields` tells how each side validates them, `wire` reads and writes them.
Fields stand in the order of their keys on the wire; those after `kw_only` have a place there only.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError, to_json

from adapters.space import wire_fields as wire

HOST = "host"
HOST_ID_PREFIX = "host-"
OWNS_ADDRESSED = "owns-addressed"
"""Among the capabilities of an agent: it knows that whom the host addresses alone owns the request."""
MAX_IDENTITY_BYTES = 16 * 1024

AgentState = Literal["idle", "thinking", "acting", "blocked"]
EntryType = Literal[
    "join", "leave", "chat", "identity", "claim", "state", "action_result", "reflection", "workspace_state"
]
ERROR_PREFIXES: Final = (
    "Invalid JSON",
    "Join timeout",
    "Invalid join",
    "Must join",
    "Invalid chat",
    "Rate limited",
    "Invalid identity",
    "Invalid claim",
    "Claim conflict",
    "Invalid state",
    "Invalid action_result",
    "Invalid reflection",
    "Invalid workspace_state",
)
"""The stable beginnings of a server's errors; the wording after them is free."""

# NOTE(self): built at first use, because most commands never talk to a room.
_CONFIG: Final = ConfigDict(alias_generator=to_camel, populate_by_name=True, defer_build=True)


def is_host(name: str, agent_id: str | None = None) -> bool:
    """Whether this is the human host of a room; an agent that has left stays an agent."""
    return name == HOST or (agent_id or "").startswith(HOST_ID_PREFIX)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class IdentitySummary:
    """Who an agent says it is. `told`: the object that a room read it from, which it passes on as it came."""

    core_values: wire.Lines = ()
    current_interests: wire.Lines = ()
    voice: wire.Line = ""
    expertise: wire.Lines = ()
    recent_work: wire.Line = ""
    soul_essence: wire.Essence = ""
    told: wire.Ours = field(default=None, kw_only=True, compare=False, repr=False)

    @model_serializer(mode="wrap")
    def _as_told(self, handler: SerializerFunctionWrapHandler) -> Any:  # noqa: ANN401 - whatever it was told as
        return handler(self) if self.told is None else self.told


def _summary(value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> IdentitySummary:
    """A summary from its object; a room keeps the object beside it, up to 16 KiB."""
    if info.context is not None and not isinstance(value, dict):
        raise PydanticCustomError("summary", "must be an object")
    if info.context is wire.Side.ROOM and len(to_json(value)) > MAX_IDENTITY_BYTES:
        raise PydanticCustomError("summary", "must have at most 16 KiB")
    summary: IdentitySummary = handler(value)
    return replace(summary, told=value) if info.context is wire.Side.ROOM else summary


def _identity(value: object, info: ValidationInfo) -> object:
    return value if info.context is None or isinstance(value, dict) else None


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Presence:
    """An agent in the room. Times are ISO-8601 UTC; `capabilities` None means all of them."""

    name: wire.Name
    id: wire.Id
    version: wire.Version
    joined_at: wire.Stamp
    last_seen: wire.Stamp
    identity: Annotated[IdentitySummary | None, BeforeValidator(_identity), wire.OMIT_NONE] = None
    capabilities: wire.Capabilities = None


@dataclass(frozen=True, slots=True, config=_CONFIG)
class LogEntry:
    """One line of a room's record, as kept on disk and replayed to who joins."""

    timestamp: wire.EntryStamp
    agent_name: wire.Name
    agent_id: wire.Id
    type: EntryType
    content: wire.EntryContent


_PRESENCE: Final = TypeAdapter(Presence)
_ENTRY: Final = TypeAdapter(LogEntry)


def _agents(value: object, info: ValidationInfo) -> object:
    return wire.sound_items(_PRESENCE, value, info, wire.MAX_AGENTS)


def _entries(value: object, info: ValidationInfo) -> object:
    return wire.sound_items(_ENTRY, value, info, wire.MAX_ENTRIES, newest=True)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Joined:
    """An agent comes in. `capabilities` None: not told.

    `resume` is only of a member that asks to come in: the token that it got as it joined before, "" if it knows of
    tokens and has none, None if it knows none.
    """

    type: Literal["join"] = field(default="join", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    version: wire.Version
    capabilities: wire.Capabilities = None
    resume: wire.Resume = field(default=None, repr=False)
    timestamp: wire.JoinStamp = ""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Left:
    """An agent went, or was lost."""

    type: Literal["leave"] = field(default="leave", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Said:
    """Words in the room. `addressed` only from the host; `replayed` when they come from the room's record."""

    type: Literal["chat"] = field(default="chat", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    content: wire.Content
    timestamp: wire.Stamp
    thread_id: wire.ThreadId = ""
    addressed: wire.Addressed = ()
    replayed: wire.Replayed = False

    @property
    def by_host(self) -> bool:
        return is_host(self.name, self.id)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Typing:
    """An agent is about to speak."""

    type: Literal["typing"] = field(default="typing", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class PresenceList:
    """All who are in the room, in the order in which they joined, the receiver among them.

    `resume` is what the receiver shows to take its own place over after a lost connection; "" where none is told.
    """

    type: Literal["presence"] = field(default="presence", kw_only=True, repr=False)
    agents: Annotated[tuple[Presence, ...], BeforeValidator(_agents)]
    resume: wire.Token = field(default="", repr=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class History:
    """The room's record, oldest first, as replayed to who joins.

    `room_id` stays the same wherever the room listens; "" where none is told.
    """

    type: Literal["history_response"] = field(default="history_response", kw_only=True, repr=False)
    entries: Annotated[tuple[LogEntry, ...], BeforeValidator(_entries)]
    room_id: wire.Token = ""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Identified:
    """An agent tells who it is."""

    type: Literal["identity"] = field(default="identity", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    summary: Annotated[IdentitySummary, WrapValidator(_summary)]
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Claimed:
    """Somebody works at `action` on `target`, and for a minute nobody else should."""

    type: Literal["claim"] = field(default="claim", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    action: wire.Work
    target: wire.Work
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class StateChanged:
    """What an agent is doing."""

    type: Literal["state"] = field(default="state", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    state: AgentState
    detail: wire.Detail = field(default="", kw_only=True)
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class ActionDone:
    """How an action ended."""

    type: Literal["action_result"] = field(default="action_result", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    action: wire.Work
    target: wire.Work
    success: wire.Success
    link: wire.Link = field(default="", kw_only=True)
    error: wire.Problem = field(default="", kw_only=True)
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Reflected:
    """What an agent learned about itself."""

    type: Literal["reflection"] = field(default="reflection", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    summary: wire.Reflection
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class WorkspaceProgress:
    """How far a plan has come, in tasks, by its latest reporter."""

    type: Literal["workspace_state"] = field(default="workspace_state", kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id
    workspace: wire.Workspace
    plan_number: wire.OptionalCount
    total: Annotated[wire.Count, Field(alias="totalTasks")]
    completed: Annotated[wire.Count, Field(alias="completedTasks")]
    blocked: Annotated[wire.OptionalCount, Field(alias="blockedTasks")]
    in_progress: Annotated[wire.OptionalCount, Field(alias="inProgressTasks")]
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Refused:
    """The server did not take something."""

    type: Literal["error"] = field(default="error", kw_only=True, repr=False)
    message: wire.Line

    @property
    def prefix(self) -> str:
        """The stable beginning of `message`; "" if it has none. The longest, should one begin with another."""
        found = (prefix for prefix in ERROR_PREFIXES if self.message.startswith(prefix))
        return max(found, key=len, default="")


@dataclass(frozen=True, slots=True, config=_CONFIG)
class ShuttingDown:
    """The room closes in a moment; until then everything still works."""

    type: Literal["shutdown"] = field(default="shutdown", kw_only=True, repr=False)
    reason: wire.Line
    timestamp: wire.Stamp


Request: TypeAlias = (
    Joined | Said | Typing | Identified | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress
)
"""What a member may tell its room."""

Event: TypeAlias = Request | Left | PresenceList | History | Refused | ShuttingDown
"""What a room tells its members."""

Status = Literal["disconnected", "connecting", "joined", "draining"]
"""Where a member stands towards its room."""
