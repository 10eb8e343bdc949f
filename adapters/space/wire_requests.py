"""What a member asks of a room, checked: each frame becomes a value, a refusal that it may read, or nothing.

Name and id in a frame mean nothing after the join: the room knows who speaks. What is merely too long is cut where the
wire says so and refused otherwise. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, get_args

from adapters.space.types import HOST, HOST_ID_PREFIX, AgentState, Frame
from adapters.space.wire_json import MEMBER_DEPTH, MEMBER_VALUES, BadJson, encode_value, parse_json
from common.constants import SPACE_MAX_CHAT_U16
from common.text.lookalikes import shape, skeleton
from common.text.utf16 import u16_len, u16_slice

MAX_NAME_U16 = 100
MAX_VERSION_U16 = 50
MAX_DETAIL_U16 = 1_000
MAX_SUMMARY_U16 = 5_000
MAX_IDENTITY_BYTES = 16 * 1024
MAX_CAPABILITIES = 16
MAX_CAPABILITY_U16 = 50
MAX_CLAIM_U16 = 5_000
MAX_WORKSPACE_U16 = 200
MAX_THREAD_ID_U16 = 200
MAX_LINK_U16 = 5_000
_SHOWN_CHARS = 100
_STATES: tuple[AgentState, ...] = get_args(AgentState)


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """Somebody wants in. `capabilities` None: not told.

    `resume` is the token that it got as it joined before, "" if it knows of tokens and has none, None if it knows none.
    """

    name: str
    id: str
    version: str
    capabilities: tuple[str, ...] | None
    resume: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Words for all."""

    content: str
    thread_id: str


@dataclass(frozen=True, slots=True)
class TypingRequest:
    """About to speak."""


@dataclass(frozen=True, slots=True)
class IdentityRequest:
    """Who the member says it is, in its own words and keys; they are passed on as they came."""

    summary: Frame


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """To work at `action` on `target` alone."""

    action: str
    target: str


@dataclass(frozen=True, slots=True)
class StateRequest:
    """What the member is doing."""

    state: AgentState
    detail: str


@dataclass(frozen=True, slots=True)
class ResultRequest:
    """How an action ended."""

    action: str
    target: str
    success: bool
    link: str
    error: str


@dataclass(frozen=True, slots=True)
class ReflectionRequest:
    """What the member learned about itself."""

    summary: str


@dataclass(frozen=True, slots=True)
class WorkspaceRequest:
    """How far a plan has come."""

    workspace: str
    plan_number: float
    total: float
    completed: float
    blocked: float
    in_progress: float


@dataclass(frozen=True, slots=True)
class Rejected:
    """A frame of type `kind` ("" if it has none) that the room does not take; `message` begins with a stable prefix."""

    kind: str
    message: str


Request: TypeAlias = (
    JoinRequest
    | ChatRequest
    | TypingRequest
    | IdentityRequest
    | ClaimRequest
    | StateRequest
    | ResultRequest
    | ReflectionRequest
    | WorkspaceRequest
)


def decode_request(raw: str | bytes) -> Request | Rejected | None:
    """A member's frame; None for what is to be passed over in silence (no object, an unknown type)."""
    try:
        frame = parse_json(raw, max_values=MEMBER_VALUES, max_depth=MEMBER_DEPTH)
    except BadJson as error:
        return Rejected("", f"Invalid JSON: {str(error)[:_SHOWN_CHARS]}")
    if frame is None:
        return Rejected("", "Invalid JSON: null is no message")
    kind = frame.get("type") if isinstance(frame, dict) else None
    read = _READERS.get(kind) if isinstance(kind, str) else None
    return read(frame) if read is not None and isinstance(frame, dict) else None


def is_reserved(name: str, agent_id: str) -> bool:
    """Whether somebody who joins so could be taken for the host: its name in any spelling, or its kind of id."""
    return skeleton(name) == skeleton(HOST) or shape(agent_id).startswith(HOST_ID_PREFIX)


def _join(frame: Mapping[str, Any]) -> Request | Rejected:
    name, agent_id = _line(frame, "name", MAX_NAME_U16), _line(frame, "id", MAX_NAME_U16)
    version = frame.get("version")
    if not name or not agent_id or not isinstance(version, str) or not 0 < u16_len(version) <= MAX_VERSION_U16:
        return Rejected("join", "Invalid join: name, id (1 to 100) and version (1 to 50) must be text")
    if is_reserved(name, agent_id):
        return Rejected("join", "Invalid join: this name or id is the host's")
    listed = frame.get("capabilities")
    capabilities = None if not isinstance(listed, list) else _capabilities(listed)
    resume = frame.get("resume")
    token = resume if isinstance(resume, str) and len(resume) <= MAX_NAME_U16 else None
    return JoinRequest(name, agent_id, version, capabilities, token)


def _capabilities(listed: list[object]) -> tuple[str, ...]:
    sound = (item for item in listed if isinstance(item, str) and u16_len(item) <= MAX_CAPABILITY_U16)
    return tuple(sound)[:MAX_CAPABILITIES]


def _chat(frame: Mapping[str, Any]) -> Request | Rejected:
    content = _line(frame, "content", SPACE_MAX_CHAT_U16)
    if not content:
        return Rejected("chat", f"Invalid chat: content must be text of 1 to {SPACE_MAX_CHAT_U16} characters")
    return ChatRequest(content, _line(frame, "threadId", MAX_THREAD_ID_U16))


def _identity(frame: Mapping[str, Any]) -> Request | Rejected:
    summary = frame.get("summary")
    if not isinstance(summary, dict):
        return Rejected("identity", "Invalid identity: summary must be an object")
    if len(encode_value(summary).encode()) > MAX_IDENTITY_BYTES:
        return Rejected("identity", "Invalid identity: summary has more than 16 KiB")
    return IdentityRequest(summary)


def _claim(frame: Mapping[str, Any]) -> Request | Rejected:
    action, target = _line(frame, "action", MAX_CLAIM_U16), _line(frame, "target", MAX_CLAIM_U16)
    if not action or not target:
        shown = f"action {_shown(frame, 'action')}, target {_shown(frame, 'target')}"
        return Rejected("claim", f"Invalid claim: both must be text of 1 to {MAX_CLAIM_U16} characters: {shown}")
    return ClaimRequest(action, target)


def _state(frame: Mapping[str, Any]) -> Request | Rejected:
    state = frame.get("state")
    if state not in _STATES:
        return Rejected("state", f"Invalid state: it must be one of {', '.join(_STATES)}")
    return StateRequest(state, _cut(frame, "detail", MAX_DETAIL_U16))


def _action_result(frame: Mapping[str, Any]) -> Request | Rejected:
    action, target = _line(frame, "action", MAX_CLAIM_U16), _line(frame, "target", MAX_CLAIM_U16)
    success = frame.get("success")
    if not action or not target or not isinstance(success, bool):
        return Rejected("action_result", "Invalid action_result: action and target must be text, success true or false")
    return ResultRequest(
        action, target, success, _line(frame, "link", MAX_LINK_U16), _cut(frame, "error", MAX_LINK_U16)
    )


def _reflection(frame: Mapping[str, Any]) -> Request | Rejected:
    summary = _cut(frame, "summary", MAX_SUMMARY_U16)
    if not summary.strip():
        return Rejected("reflection", "Invalid reflection: summary must be text")
    return ReflectionRequest(summary)


def _workspace(frame: Mapping[str, Any]) -> Request | Rejected:
    workspace = _line(frame, "workspace", MAX_WORKSPACE_U16)
    total, completed = _number(frame, "totalTasks"), _number(frame, "completedTasks")
    if not workspace or total is None or completed is None:
        return Rejected("workspace_state", "Invalid workspace_state: workspace must be text, task counts numbers")
    plan, blocked, moving = (_number(frame, key) or 0 for key in ("planNumber", "blockedTasks", "inProgressTasks"))
    return WorkspaceRequest(workspace, plan, total, completed, blocked, moving)


def _line(frame: Mapping[str, Any], key: str, limit: int) -> str:
    """The text under a key; "" if it is no text, blank, or longer than `limit`."""
    value = frame.get(key)
    return value if isinstance(value, str) and value.strip() and u16_len(value) <= limit else ""


def _cut(frame: Mapping[str, Any], key: str, limit: int) -> str:
    """The text under a key, cut to `limit`; "" if it is no text."""
    value = frame.get(key)
    return u16_slice(value, limit) if isinstance(value, str) else ""


def _number(frame: Mapping[str, Any], key: str) -> float | None:
    value = frame.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _shown(frame: Mapping[str, Any], key: str) -> str:
    value = frame.get(key)
    shown = value if isinstance(value, str) else f"of type {type(value).__name__}"
    return f"{shown[:_SHOWN_CHARS]!r}"


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Request | Rejected]]] = {
    "join": _join,
    "chat": _chat,
    "typing": lambda _frame: TypingRequest(),
    "identity": _identity,
    "claim": _claim,
    "state": _state,
    "action_result": _action_result,
    "reflection": _reflection,
    "workspace_state": _workspace,
}
