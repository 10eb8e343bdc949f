"""What a room says to its members, as frames, and its record as log lines. The key order is part of the wire. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from adapters.space.types import (
    ActionDone,
    Claimed,
    EntryType,
    Frame,
    Joined,
    Left,
    LogEntry,
    Reflected,
    Refused,
    Said,
    ShuttingDown,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from adapters.space.wire_json import encode_message, encode_value

_Signed: TypeAlias = Left | Said | Typing | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress
Told: TypeAlias = _Signed | Joined | Refused | ShuttingDown
"""Events whose frame holds nothing that members chose the keys of."""


def event_frame(event: Told) -> Frame:
    """The frame of an event; `encode_message` leaves out what is None."""
    match event:
        case Refused():
            return {"type": "error", "message": event.message}
        case ShuttingDown():
            return {"type": "shutdown", "reason": event.reason, "timestamp": event.timestamp}
        case Joined():
            listed = None if event.capabilities is None else list(event.capabilities)
            signed = {"type": "join", "name": event.name, "id": event.id}
            return {**signed, "version": event.version, "capabilities": listed}
        case _:
            kind, fields = _fields(event)
            said = _after_words(event) if isinstance(event, Said) else {}
            return {**_signed(kind, event), **fields, "timestamp": event.timestamp, **said}


def identity_frame(name: str, agent_id: str, summary: Frame, at: str) -> Frame:
    """Who an agent says it is, its summary as it came."""
    return {"type": "identity", "name": name, "id": agent_id, "summary": summary, "timestamp": at}


def history_text(entries: Iterable[str], room_id: str = "") -> str:
    """The frame that replays the record, of entries that are JSON already; with the room's id, if it has one."""
    end = f',"roomId":{encode_value(room_id)}' if room_id else ""
    return f'{{"type":"history_response","entries":[{",".join(entries)}]{end}}}'


def encode_entry(entry: LogEntry) -> str:
    """One entry as compact JSON, on the wire and on disk."""
    return encode_message(
        {
            "timestamp": entry.timestamp,
            "agentName": entry.agent_name,
            "agentId": entry.agent_id,
            "type": entry.type,
            "content": entry.content,
        }
    )


def entry_of(event: Left | Said | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress) -> LogEntry:
    """How an event is kept in the record."""
    kind: EntryType
    match event:
        case Left():
            kind, content = "leave", ""
        case Said():
            kind, content = "chat", event.content
        case Claimed():
            kind, content = "claim", f"{event.action}:{event.target}"
        case StateChanged():
            kind, content = "state", f"{event.state}: {event.detail}" if event.detail else event.state
        case ActionDone():
            kind, content = "action_result", encode_message(_result(event))
        case Reflected():
            kind, content = "reflection", event.summary
        case WorkspaceProgress():
            kind, content = "workspace_state", _workspace_content(event)
    return LogEntry(event.timestamp, event.name, event.id, kind, content)


def identity_entry(name: str, agent_id: str, summary: Frame, at: str) -> LogEntry:
    """How a summary is kept in the record."""
    return LogEntry(at, name, agent_id, "identity", encode_value(summary))


def _after_words(event: Said) -> Frame:
    return {"threadId": event.thread_id or None, "addressed": list(event.addressed) or None}


def _signed(kind: str, event: _Signed) -> Frame:
    return {"type": kind, "name": event.name, "id": event.id}


def _fields(event: _Signed) -> tuple[str, Frame]:
    kind: str
    fields: Frame = {}
    match event:
        case Left():
            kind = "leave"
        case Typing():
            kind = "typing"
        case Claimed():
            kind, fields = "claim", {"action": event.action, "target": event.target}
        case StateChanged():
            kind, fields = "state", {"state": event.state, "detail": event.detail or None}
        case ActionDone():
            kind, fields = "action_result", _result(event)
        case Reflected():
            kind, fields = "reflection", {"summary": event.summary}
        case WorkspaceProgress():
            kind, fields = "workspace_state", _counts(event)
        case Said():
            kind, fields = "chat", {"content": event.content}
    return kind, fields


def _result(event: ActionDone) -> Frame:
    what = {"action": event.action, "target": event.target, "success": event.success}
    return {**what, "link": event.link or None, "error": event.error or None}


def _counts(event: WorkspaceProgress) -> Frame:
    return {
        "workspace": event.workspace,
        "planNumber": event.plan_number,
        "totalTasks": event.total,
        "completedTasks": event.completed,
        "blockedTasks": event.blocked,
        "inProgressTasks": event.in_progress,
    }


def _workspace_content(event: WorkspaceProgress) -> str:
    return encode_value(
        {
            "workspace": event.workspace,
            "plan": event.plan_number,
            "total": event.total,
            "completed": event.completed,
            "blocked": event.blocked,
            "inProgress": event.in_progress,
        }
    )
