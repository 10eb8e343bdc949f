"""Encodes and decodes frames: one JSON object each, keys in a fixed order, empty optional fields left out.

`types` defines a model for each frame, `wire_fields` the validation of its fields. Untrusted input is parsed with
bounds by `wire_json` before it reaches a model; no decoder raises for it. A frame for all is encoded once. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import rebuild_dataclass
from pydantic_core import ErrorDetails, to_json

from adapters.space.types import (
    ENTRY,
    HOST,
    HOST_ID_PREFIX,
    PRESENCE,
    ActionDone,
    Claimed,
    EntryType,
    Identified,
    Joined,
    Left,
    LogEntry,
    Presence,
    Reflected,
    Request,
    Said,
    SpaceEvent,
    StateChanged,
    WorkspaceProgress,
)
from adapters.space.wire_fields import Side, validate
from adapters.space.wire_json import MEMBER_DEPTH, MEMBER_VALUES, BadJson, encode_value, parse_json
from common.text.lookalikes import shape, skeleton

_SHOWN_CHARS = 100
_SERVER_FRAME_BYTES = 8 * 1024 * 1024
_NO_KIND = frozenset({"union_tag_invalid", "union_tag_not_found"})
_DEFER: Final = ConfigDict(defer_build=True)
_EVENT: Final[TypeAdapter[SpaceEvent]] = TypeAdapter(Annotated[SpaceEvent, Field(discriminator="type")], config=_DEFER)
_REQUEST: Final[TypeAdapter[Request]] = TypeAdapter(Annotated[Request, Field(discriminator="type")], config=_DEFER)


def build_codecs() -> None:
    """Build at once what reads and writes frames, and would otherwise be built for the first of them."""
    for kind in (*get_args(SpaceEvent), *get_args(Request)):
        rebuild_dataclass(kind)
    for adapter in (_EVENT, _REQUEST):
        adapter.rebuild()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A frame that a member cannot use, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """A frame that the room refuses. `kind` is its type, "" if it has none; `message` begins with a stable prefix."""

    kind: str
    message: str


def encode_event(event: SpaceEvent) -> str:
    """Returns the frame of an event as compact JSON."""
    return _EVENT.dump_json(event, by_alias=True).decode()


def encode_entry(entry: LogEntry) -> str:
    """Returns an entry as compact JSON, for the wire and the disk."""
    return ENTRY.dump_json(entry, by_alias=True).decode()


def encode_presence(presence: Presence) -> str:
    """Returns an agent as compact JSON, for the member list."""
    return PRESENCE.dump_json(presence, by_alias=True).decode()


# NOTE(self): the two longest frames are concatenated from JSON texts. A room keeps its record as text and replays up to
# 1,000 entries to each newcomer; encoding models would cost every join the time of the whole record.
def presence_frame(agents: Iterable[str], resume: str = "") -> str:
    """Returns the member list frame from agents as JSON, with the receiver's token, if any."""
    end = f',"resume":{encode_value(resume)}' if resume else ""
    return f'{{"type":"presence","agents":[{",".join(agents)}]{end}}}'


def history_frame(entries: Iterable[str], room_id: str = "") -> str:
    """Returns the record frame from entries as JSON, with the room's id, if any."""
    end = f',"roomId":{encode_value(room_id)}' if room_id else ""
    return f'{{"type":"history_response","entries":[{",".join(entries)}]{end}}}'


def decode_event(raw: str | bytes) -> SpaceEvent | Unreadable:
    """Decodes a server's frame; `Unreadable` if it is malformed, incomplete or of an unknown type."""
    try:
        frame = parse_json(raw, max_bytes=_SERVER_FRAME_BYTES, cut=True)
    except BadJson as error:
        return Unreadable(f"no JSON: {error}")
    if not isinstance(frame, dict):
        return Unreadable("not an object")
    if not isinstance(frame.get("type"), str):
        return Unreadable("without a type")
    try:
        return validate(_EVENT, frame, Side.MEMBER)
    except ValidationError as error:
        is_known = _first(error)["type"] not in _NO_KIND
        return Unreadable(f"an incomplete {frame['type']}" if is_known else "of an unknown type")


def decode_request(raw: str | bytes, name: str = "", agent_id: str = "", at: str = "") -> Request | Rejected | None:
    """Decodes a member's frame; None if it must be ignored (no object, an unknown type).

    Except in a join, name, id and time in the frame are replaced by `name`, `agent_id` and `at`, because the room knows
    who sent it. With the empty name of a connection that has not joined, every other request is rejected.
    """
    try:
        frame = parse_json(raw, max_values=MEMBER_VALUES, max_depth=MEMBER_DEPTH)
    except BadJson as error:
        return Rejected("", f"Invalid JSON: {str(error)[:_SHOWN_CHARS]}")
    if frame is None:
        return Rejected("", "Invalid JSON: null is no message")
    if not isinstance(frame, dict) or not isinstance(kind := frame.get("type"), str):
        return None
    stamp = {"timestamp": ""} if kind == "join" else {"name": name, "id": agent_id, "timestamp": at}
    try:
        request = validate(_REQUEST, {**frame, **stamp}, Side.ROOM)
    except ValidationError as error:
        first = _first(error)
        return None if first["type"] in _NO_KIND else Rejected(kind, f"Invalid {kind}: {_wrong(first)}")
    if isinstance(request, Joined) and is_reserved(request.name, request.id):
        return Rejected("join", "Invalid join: this name or id is the host's")
    return request


def decode_entry(value: object) -> LogEntry | None:
    """Decodes one entry of a record; None if it is invalid."""
    if not isinstance(value, Mapping):
        return None
    try:
        return validate(ENTRY, value, Side.MEMBER)
    except ValidationError:
        return None


def is_reserved(name: str, agent_id: str) -> bool:
    """Returns whether a name or id could be mistaken for the host's: the name in any spelling, or the kind of id."""
    return skeleton(name) == skeleton(HOST) or shape(agent_id).startswith(HOST_ID_PREFIX)


def entry_of(
    event: Left | Said | Identified | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress,
) -> LogEntry:
    """Returns the record's entry for an event."""
    kind: EntryType = event.type
    match event:
        case Left():
            content = ""
        case Said():
            content = event.content
        case Identified():
            content = to_json(event.summary, by_alias=True).decode()
        case Claimed():
            content = f"{event.action}:{event.target}"
        case StateChanged():
            content = f"{event.state}: {event.detail}" if event.detail else event.state
        case ActionDone():
            content = _EVENT.dump_json(event, by_alias=True, include=_RESULT).decode()
        case Reflected():
            content = event.summary
        case WorkspaceProgress():
            content = encode_value({key: getattr(event, name) for key, name in _PROGRESS.items()})
    return LogEntry(event.timestamp, event.name, event.id, kind, content)


_RESULT: Final = {"action", "target", "success", "link", "error"}
_PROGRESS: Final = {
    "workspace": "workspace",
    "plan": "plan_number",
    **{to_camel(name): name for name in ("total", "completed", "blocked", "in_progress")},
}


def _first(error: ValidationError) -> ErrorDetails:
    return error.errors(include_url=False, include_context=False)[0]


def _wrong(error: ErrorDetails) -> str:
    """Describes which field is wrong, why, and its value."""
    value = error["input"]
    shown = repr(value[:_SHOWN_CHARS]) if isinstance(value, str) else f"of type {type(value).__name__}"
    return f"{error['loc'][-1]} {error['msg'][:_SHOWN_CHARS].lower()}: it is {shown}"
