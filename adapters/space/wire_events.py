"""What a server says, as a member understands it. A server of any make may be odd: nothing here raises.

Texts and lists are cut to bounds far above what a sound server sends. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from adapters.space.types import (
    ActionDone,
    AgentState,
    Claimed,
    EntryType,
    Event,
    History,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    LogEntry,
    Presence,
    PresenceList,
    Reflected,
    Refused,
    Said,
    ShuttingDown,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from adapters.space.wire_json import BadJson, parse_json
from common.constants import SPACE_MAX_CHAT_U16

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

_NAME_CHARS = 200
_LINE_CHARS = 2_000
_WORK_CHARS = 5_000
_SUMMARY_CHARS = 5_000
_LIST_ITEMS = 200
_AGENTS = 1_000
_ENTRIES = 5_000
_SERVER_FRAME_BYTES = 8 * 1024 * 1024
_STATES: tuple[AgentState, ...] = get_args(AgentState)
_ENTRY_TYPES: tuple[EntryType, ...] = get_args(EntryType)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A frame that tells a member nothing, and why."""

    reason: str


def decode_event(raw: str | bytes) -> Event | Unreadable:
    """A server's frame as an event; `Unreadable` where it is malformed, incomplete or of an unknown type."""
    try:
        frame = parse_json(raw, max_bytes=_SERVER_FRAME_BYTES, cut=True)
    except BadJson as error:
        return Unreadable(f"no JSON: {error}")
    if not isinstance(frame, dict):
        return Unreadable("not an object")
    kind = frame.get("type")
    if not isinstance(kind, str):
        return Unreadable("without a type")
    if kind in _FREE:
        return _FREE[kind](frame)
    read = _SIGNED.get(kind)
    if read is None:
        return Unreadable("of an unknown type")
    name, agent_id = text(frame, "name", _NAME_CHARS), text(frame, "id", _NAME_CHARS)
    event = read(name, agent_id, text(frame, "timestamp", _NAME_CHARS), frame) if name else None
    return event or Unreadable(f"an incomplete {kind}")


def decode_summary(value: object) -> IdentitySummary:
    """What of a summary can be understood; whatever else it holds is left out."""
    given = value if isinstance(value, Mapping) else {}
    return IdentitySummary(
        core_values=_texts(given.get("coreValues"), _LINE_CHARS) or (),
        current_interests=_texts(given.get("currentInterests"), _LINE_CHARS) or (),
        voice=text(given, "voice", _LINE_CHARS),
        expertise=_texts(given.get("expertise"), _LINE_CHARS) or (),
        recent_work=text(given, "recentWork", _LINE_CHARS),
        soul_essence=text(given, "soulEssence", _LINE_CHARS),
    )


def decode_entry(value: object) -> LogEntry | None:
    """One line of a record, from its object; None where it is none."""
    if not isinstance(value, Mapping) or value.get("type") not in _ENTRY_TYPES:
        return None
    name, at = text(value, "agentName", _NAME_CHARS), text(value, "timestamp", _NAME_CHARS)
    if not name or not at:
        return None
    content = text(value, "content", SPACE_MAX_CHAT_U16)
    return LogEntry(at, name, text(value, "agentId", _NAME_CHARS), value["type"], content)


def text(frame: Mapping[str, Any], key: str, limit: int) -> str:
    """The text under a key, cut; "" where there is none."""
    value = frame.get(key)
    return value[:limit] if isinstance(value, str) else ""


def number(frame: Mapping[str, Any], key: str) -> float:
    """The number under a key; 0 where there is none."""
    value = frame.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _texts(value: object, limit: int) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(item[:limit] for item in value if isinstance(item, str))[:_LIST_ITEMS]


def _presence(value: object) -> Presence | None:
    if not isinstance(value, Mapping) or not (name := text(value, "name", _NAME_CHARS)):
        return None
    return Presence(
        name=name,
        id=text(value, "id", _NAME_CHARS),
        version=text(value, "version", _NAME_CHARS),
        joined_at=text(value, "joinedAt", _NAME_CHARS),
        last_seen=text(value, "lastSeen", _NAME_CHARS),
        identity=decode_summary(value["identity"]) if isinstance(value.get("identity"), Mapping) else None,
        capabilities=_texts(value.get("capabilities"), _NAME_CHARS),
    )


def _presence_list(frame: Mapping[str, Any]) -> Event:
    agents = frame.get("agents")
    listed = [_presence(agent) for agent in agents[:_AGENTS]] if isinstance(agents, list) else []
    return PresenceList(
        tuple(agent for agent in listed if agent is not None), resume=text(frame, "resume", _NAME_CHARS)
    )


def _history(frame: Mapping[str, Any]) -> Event:
    entries = frame.get("entries")
    read = [decode_entry(entry) for entry in entries[-_ENTRIES:]] if isinstance(entries, list) else []
    known = tuple(entry for entry in read if entry is not None)
    return History(known, text(frame, "roomId", _NAME_CHARS))


def _error(frame: Mapping[str, Any]) -> Event:
    message = text(frame, "message", _LINE_CHARS)
    # NOTE(self): "Invalid join" is no beginning of another prefix, yet longest first stays right if one is added.
    found = sorted((prefix for prefix in ERROR_PREFIXES if message.startswith(prefix)), key=len)
    return Refused(found[-1] if found else "", message)


def _shutdown(frame: Mapping[str, Any]) -> Event:
    return ShuttingDown(text(frame, "reason", _LINE_CHARS), text(frame, "timestamp", _NAME_CHARS))


def _joined(name: str, agent_id: str, _at: str, frame: Mapping[str, Any]) -> Event | None:
    return Joined(name, agent_id, text(frame, "version", _NAME_CHARS), _texts(frame.get("capabilities"), _NAME_CHARS))


def _said(name: str, agent_id: str, at: str, frame: Mapping[str, Any]) -> Event | None:
    content = text(frame, "content", SPACE_MAX_CHAT_U16)
    addressed = _texts(frame.get("addressed"), _NAME_CHARS) or ()
    return Said(name, agent_id, content, at, text(frame, "threadId", _NAME_CHARS), addressed) if content else None


def _claimed(name: str, agent_id: str, at: str, frame: Mapping[str, Any]) -> Event | None:
    action, target = text(frame, "action", _WORK_CHARS), text(frame, "target", _WORK_CHARS)
    return Claimed(name, agent_id, action, target, at) if action and target else None


def _state(name: str, agent_id: str, at: str, frame: Mapping[str, Any]) -> Event | None:
    state = frame.get("state")
    return StateChanged(name, agent_id, state, at, text(frame, "detail", _LINE_CHARS)) if state in _STATES else None


def _action_done(name: str, agent_id: str, at: str, frame: Mapping[str, Any]) -> Event | None:
    action, target = text(frame, "action", _WORK_CHARS), text(frame, "target", _WORK_CHARS)
    success = frame.get("success")
    if not action or not target or not isinstance(success, bool):
        return None
    link, error = text(frame, "link", _WORK_CHARS), text(frame, "error", _WORK_CHARS)
    return ActionDone(name, agent_id, action, target, success, at, link, error)


def _reflected(name: str, agent_id: str, at: str, frame: Mapping[str, Any]) -> Event | None:
    summary = text(frame, "summary", _SUMMARY_CHARS)
    return Reflected(name, agent_id, summary, at) if summary else None


def _identified(name: str, agent_id: str, at: str, frame: Mapping[str, Any]) -> Event | None:
    summary = frame.get("summary")
    return Identified(name, agent_id, decode_summary(summary), at) if isinstance(summary, Mapping) else None


def _workspace(name: str, agent_id: str, at: str, frame: Mapping[str, Any]) -> Event | None:
    workspace = text(frame, "workspace", _LINE_CHARS)
    if not workspace:
        return None
    return WorkspaceProgress(
        name,
        agent_id,
        workspace,
        plan_number=number(frame, "planNumber"),
        total=number(frame, "totalTasks"),
        completed=number(frame, "completedTasks"),
        blocked=number(frame, "blockedTasks"),
        in_progress=number(frame, "inProgressTasks"),
        timestamp=at,
    )


_FREE: Final[Mapping[str, Callable[[Mapping[str, Any]], Event]]] = {
    "presence": _presence_list,
    "history_response": _history,
    "error": _error,
    "shutdown": _shutdown,
}
_SIGNED: Final[Mapping[str, Callable[[str, str, str, Mapping[str, Any]], Event | None]]] = {
    "join": _joined,
    "leave": lambda name, agent_id, at, _frame: Left(name, agent_id, at),
    "chat": _said,
    "typing": lambda name, agent_id, at, _frame: Typing(name, agent_id, at),
    "identity": _identified,
    "claim": _claimed,
    "state": _state,
    "action_result": _action_done,
    "reflection": _reflected,
    "workspace_state": _workspace,
}
