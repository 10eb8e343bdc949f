"""What is known of an agent space: who is in it, what was said, claimed, and done. Values only; see `wire` for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

HOST = "host"
HOST_ID_PREFIX = "host-"

AgentState = Literal["idle", "thinking", "acting", "blocked"]
EntryType = Literal[
    "join", "leave", "chat", "identity", "claim", "state", "action_result", "reflection", "workspace_state"
]


def is_host(name: str, agent_id: str | None = None) -> bool:
    """Whether this is the human host of a room; an agent that has left stays an agent."""
    return name == HOST or (agent_id or "").startswith(HOST_ID_PREFIX)


@dataclass(frozen=True, slots=True)
class IdentitySummary:
    """Who an agent says it is. On the wire its keys are coreValues, currentInterests, … in this order."""

    core_values: tuple[str, ...] = ()
    current_interests: tuple[str, ...] = ()
    voice: str = ""
    expertise: tuple[str, ...] = ()
    recent_work: str = ""
    soul_essence: str = ""


OWNS_ADDRESSED = "owns-addressed"
"""Among the capabilities of an agent: it knows that whom the host addresses alone owns the request."""


@dataclass(frozen=True, slots=True)
class Presence:
    """An agent in the room. Times are ISO-8601 UTC; `capabilities` None means all of them."""

    name: str
    id: str
    version: str
    joined_at: str
    last_seen: str
    identity: IdentitySummary | None = None
    capabilities: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of a room's record, as kept on disk and replayed to who joins."""

    timestamp: str
    agent_name: str
    agent_id: str
    type: EntryType
    content: str


@dataclass(frozen=True, slots=True)
class Joined:
    """An agent came in."""

    name: str
    id: str
    version: str
    capabilities: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """An agent went, or was lost."""

    name: str
    id: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class Said:
    """Words in the room. `addressed` only from the host; `replayed` when they come from the room's record."""

    name: str
    id: str
    content: str
    timestamp: str
    thread_id: str = ""
    addressed: tuple[str, ...] = ()
    replayed: bool = False

    @property
    def by_host(self) -> bool:
        return is_host(self.name, self.id)


@dataclass(frozen=True, slots=True)
class Typing:
    """An agent is about to speak."""

    name: str
    id: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class PresenceList:
    """All who are in the room, in the order in which they joined, the receiver among them.

    `resume` is what the receiver shows to take its own place over after a lost connection; "" where none is told.
    """

    agents: tuple[Presence, ...]
    resume: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class History:
    """The room's record, oldest first, as replayed to who joins.

    `room_id` stays the same wherever the room listens; "" where none is told.
    """

    entries: tuple[LogEntry, ...]
    room_id: str = ""


@dataclass(frozen=True, slots=True)
class Identified:
    """An agent told who it is."""

    name: str
    id: str
    summary: IdentitySummary
    timestamp: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """Somebody works at `action` on `target`, and for a minute nobody else should."""

    name: str
    id: str
    action: str
    target: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class StateChanged:
    """An agent told what it is doing."""

    name: str
    id: str
    state: AgentState
    timestamp: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ActionDone:
    """How an action ended."""

    name: str
    id: str
    action: str
    target: str
    success: bool
    timestamp: str
    link: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reflected:
    """An agent told what it learned about itself."""

    name: str
    id: str
    summary: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class WorkspaceProgress:
    """How far a plan has come, by its latest reporter."""

    name: str
    id: str
    workspace: str
    plan_number: float
    total: float
    completed: float
    blocked: float
    in_progress: float
    timestamp: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The server did not take something. `prefix` is one of the stable beginnings of `message`, "" if unknown."""

    prefix: str
    message: str


@dataclass(frozen=True, slots=True)
class ShuttingDown:
    """The room closes in a moment; until then everything still works."""

    reason: str
    timestamp: str


Event: TypeAlias = (
    Joined
    | Left
    | Said
    | Typing
    | PresenceList
    | History
    | Identified
    | Claimed
    | StateChanged
    | ActionDone
    | Reflected
    | WorkspaceProgress
    | Refused
    | ShuttingDown
)
"""What a server tells its members, as a member understands it."""

Frame: TypeAlias = Mapping[str, Any]
"""One JSON object of the wire, its keys in order; see `wire`."""

Status = Literal["disconnected", "connecting", "joined", "draining"]
"""Where a member stands towards its room."""
