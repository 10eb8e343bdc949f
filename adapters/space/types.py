"""The frames of an agent space, one model for each, used by members and rooms alike.

`wire_fields` defines how each side validates the fields; `wire` reads and writes frames. The order of the fields is the
order of the keys on the wire. Fields that are keyword-only have no place in the positional arguments.
"""

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
from common.constants import DAY_MS

SPACE_WORKSPACE_STATE_TTL_MS = DAY_MS

HOST = "host"
HOST_ID_PREFIX = "host-"
DECLINES = "decline_request"
"""The action of a failed result which tells that the assignee of the host's request has refused it."""
OWNS_ADDRESSED = "owns-addressed"
"""A capability: this agent knows that a request belongs to the only agent that the host addresses in it."""
OWNS_ANSWERED = "owns-answered"
"""A capability: this agent knows that a request belongs to the agent whose question the host answered with it."""
ELECTION_RULES = (OWNS_ADDRESSED, OWNS_ANSWERED)
"""The capabilities that only say which rules of election an agent knows."""
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
"""The stable prefixes of a server's errors; the wording after them is free."""

# NOTE(self): built at first use, because most commands never connect to a room.
_CONFIG: Final = ConfigDict(alias_generator=to_camel, populate_by_name=True, defer_build=True)


def is_host(name: str, agent_id: str | None = None) -> bool:
    """Return whether this is the human host of a room, by name or by kind of id."""
    return name == HOST or (agent_id or "").startswith(HOST_ID_PREFIX)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class IdentitySummary:
    """An agent's description of itself. `raw` is the object that a room received, which it relays unchanged."""

    core_values: wire.Lines = ()
    current_interests: wire.Lines = ()
    voice: wire.Line = ""
    expertise: wire.Lines = ()
    recent_work: wire.Line = ""
    soul_essence: wire.Essence = ""
    raw: wire.LocalOnly = field(default=None, kw_only=True, compare=False, repr=False)

    @model_serializer(mode="wrap")
    def _serialize(self, handler: SerializerFunctionWrapHandler) -> Any:  # noqa: ANN401 - any JSON object
        return handler(self) if self.raw is None else self.raw


def _summary(value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> IdentitySummary:
    """Read a summary from its object. A room keeps the object as `raw`, up to 16 KiB."""
    if info.context is not None and not isinstance(value, dict):
        raise PydanticCustomError("summary", "must be an object")
    if info.context is wire.Side.ROOM and len(to_json(value)) > MAX_IDENTITY_BYTES:
        raise PydanticCustomError("summary", "must have at most 16 KiB")
    summary: IdentitySummary = handler(value)
    return replace(summary, raw=value) if info.context is wire.Side.ROOM else summary


def _identity(value: object, info: ValidationInfo) -> object:
    return value if info.context is None or isinstance(value, dict) else None


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Presence:
    """An agent in the room. Times are ISO-8601 UTC; `capabilities` None means all."""

    name: wire.Name
    id: wire.Id
    version: wire.Version
    joined_at: wire.Stamp
    last_seen: wire.Stamp
    identity: Annotated[IdentitySummary | None, BeforeValidator(_identity), wire.OMIT_NONE] = None
    capabilities: wire.Capabilities = None


@dataclass(frozen=True, slots=True, config=_CONFIG)
class LogEntry:
    """One entry of a room's record, on disk and in the replay to newcomers."""

    timestamp: wire.EntryStamp
    agent_name: wire.Name
    agent_id: wire.Id
    type: EntryType
    content: wire.EntryContent


PRESENCE: Final = TypeAdapter(Presence)
ENTRY: Final = TypeAdapter(LogEntry)


def _agents(value: object, info: ValidationInfo) -> object:
    return wire.valid_items(PRESENCE, value, info, wire.MAX_AGENTS)


def _entries(value: object, info: ValidationInfo) -> object:
    return wire.valid_items(ENTRY, value, info, wire.MAX_ENTRIES, newest=True)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Signed:
    """The fields that the frames of one agent begin with: their type, its name and its id."""

    type: str = field(kw_only=True, repr=False)
    name: wire.Name
    id: wire.Id


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Joined(Signed):
    """An agent joins. `capabilities` None means all.

    `resume` is only set in the request: the token of an earlier join, "" if the member has none, None if it does not
    support tokens.
    """

    type: Literal["join"] = field(default="join", kw_only=True, repr=False)
    version: wire.Version
    capabilities: wire.Capabilities = None
    resume: wire.Resume = field(default=None, repr=False)
    timestamp: wire.JoinStamp = ""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Left(Signed):
    """An agent left, or its connection was lost."""

    type: Literal["leave"] = field(default="leave", kw_only=True, repr=False)
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Said(Signed):
    """A chat message. `addressed` is only set by the host; `replayed` if it comes from the record."""

    type: Literal["chat"] = field(default="chat", kw_only=True, repr=False)
    content: wire.Content
    timestamp: wire.Stamp
    thread_id: wire.ThreadId = ""
    addressed: wire.Addressed = ()
    replayed: wire.Replayed = False

    @property
    def by_host(self) -> bool:
        return is_host(self.name, self.id)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Typing(Signed):
    """An agent is writing a message."""

    type: Literal["typing"] = field(default="typing", kw_only=True, repr=False)
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class PresenceList:
    """All members, in the order in which they joined, the receiver included.

    `resume` is the receiver's token for resuming its place after a lost connection; "" if there is none.
    """

    type: Literal["presence"] = field(default="presence", kw_only=True, repr=False)
    agents: Annotated[tuple[Presence, ...], BeforeValidator(_agents)]
    resume: wire.Token = field(default="", repr=False)


@dataclass(frozen=True, slots=True, config=_CONFIG)
class History:
    """The room's record, oldest first, as replayed to a newcomer.

    `room_id` is independent of the room's address; "" if the room has none.
    """

    type: Literal["history_response"] = field(default="history_response", kw_only=True, repr=False)
    entries: Annotated[tuple[LogEntry, ...], BeforeValidator(_entries)]
    room_id: wire.Token = ""


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Identified(Signed):
    """An agent describes itself."""

    type: Literal["identity"] = field(default="identity", kw_only=True, repr=False)
    summary: Annotated[IdentitySummary, WrapValidator(_summary)]
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Claimed(Signed):
    """An agent claims `action` on `target`: for a minute no other agent should do it."""

    type: Literal["claim"] = field(default="claim", kw_only=True, repr=False)
    action: wire.Work
    target: wire.Work
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class StateChanged(Signed):
    """The state of an agent."""

    type: Literal["state"] = field(default="state", kw_only=True, repr=False)
    state: AgentState
    detail: wire.Detail = field(default="", kw_only=True)
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class ActionDone(Signed):
    """The result of an action."""

    type: Literal["action_result"] = field(default="action_result", kw_only=True, repr=False)
    action: wire.Work
    target: wire.Work
    success: wire.Success
    link: wire.Link = field(default="", kw_only=True)
    error: wire.Problem = field(default="", kw_only=True)
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Reflected(Signed):
    """A reflection of an agent about itself."""

    type: Literal["reflection"] = field(default="reflection", kw_only=True, repr=False)
    summary: wire.Reflection
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class WorkspaceProgress(Signed):
    """The progress of a plan, in tasks, as the last reporter sent it."""

    type: Literal["workspace_state"] = field(default="workspace_state", kw_only=True, repr=False)
    workspace: wire.Workspace
    plan_number: wire.OptionalCount
    total: Annotated[wire.Count, Field(alias="totalTasks")]
    completed: Annotated[wire.Count, Field(alias="completedTasks")]
    blocked: Annotated[wire.OptionalCount, Field(alias="blockedTasks")]
    in_progress: Annotated[wire.OptionalCount, Field(alias="inProgressTasks")]
    timestamp: wire.Stamp


@dataclass(frozen=True, slots=True, config=_CONFIG)
class Refused:
    """The server refused a frame."""

    type: Literal["error"] = field(default="error", kw_only=True, repr=False)
    message: wire.Line

    @property
    def prefix(self) -> str:
        """The longest of `ERROR_PREFIXES` that `message` begins with; "" if none."""
        found = (prefix for prefix in ERROR_PREFIXES if self.message.startswith(prefix))
        return max(found, key=len, default="")


@dataclass(frozen=True, slots=True, config=_CONFIG)
class ShuttingDown:
    """The room closes in a few seconds; until then it works as usual."""

    type: Literal["shutdown"] = field(default="shutdown", kw_only=True, repr=False)
    reason: wire.Line
    timestamp: wire.Stamp


Request: TypeAlias = (
    Joined | Said | Typing | Identified | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress
)
"""The frames that a member may send."""

SpaceEvent: TypeAlias = Request | Left | PresenceList | History | Refused | ShuttingDown
"""The frames that a room may send."""

Status = Literal["disconnected", "connecting", "joined", "draining"]
"""The state of a member's connection."""
