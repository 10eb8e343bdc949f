"""Encodes and decodes frames: one compact JSON object each, keys in fixed order, empty optional fields left out. Pure.

`types` defines a model for each frame, `wire_fields` the validation of its fields. Untrusted input is parsed within
bounds before it reaches a model; no decoder raises for it. A frame for all is encoded once.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, NoReturn, get_args

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
from common.lenient_json import cut_nesting, deepest, with_whole_pairs
from common.text.hidden import shape, skeleton

SPACE_MAX_PAYLOAD_BYTES = 1_048_576

MAX_DEPTH = 32
MAX_VALUES = 400_000
"""Limit of commas and opening brackets; ten times as many as the longest record has."""
MEMBER_DEPTH = 16
MEMBER_VALUES = 5_000
_EXACT = 2**53


class BadJson(ValueError):
    """The bytes are not acceptable JSON; the message says why."""


def encode_value(value: object) -> str:
    """Return any JSON value as compact text, lone surrogates as U+FFFD.

    Raises:
        ValueError: a number is not finite.

    """
    return json.dumps(with_whole_pairs(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse_json(
    raw: str | bytes,
    *,
    max_bytes: int = SPACE_MAX_PAYLOAD_BYTES,
    max_values: int = MAX_VALUES,
    max_depth: int = MAX_DEPTH,
    cut: bool = False,
) -> object:
    """Return the value of a frame, without lone surrogates. Infinite numbers become None, whole ones `int`.

    With `cut`, values nested too deeply become null, and the rest is read.

    Raises:
        BadJson: it is too large, has too many values, is nested too deeply, not UTF-8, or not JSON.

    """
    if len(raw) > max_bytes:
        raise BadJson("more than 1 MiB")
    try:
        text = _bounded(raw.decode() if isinstance(raw, bytes) else raw, max_values, max_depth, cut=cut)
        value: object = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from error
    return with_whole_pairs(value) if "\\u" in text else value


def _bounded(text: str, max_values: int, max_depth: int, *, cut: bool) -> str:
    """Return the text of a JSON value, with `cut` without what is nested too deeply. Raises `BadJson` over a limit."""
    if _count(text, ",[{") <= max_values and _count(text, "[{") <= max_depth:
        return text
    bare = text.replace("\\\\", "").replace('\\"', "")
    if bare.count('"') > 4 * (max_values + 1) or _count(outside := "".join(bare.split('"')[::2]), ",[{") > max_values:
        raise BadJson(f"more than {max_values} values")
    if deepest(outside.encode(errors="replace")) <= max_depth:
        return text
    if not cut:
        raise BadJson(f"nested deeper than {max_depth}")
    return cut_nesting(text.encode(errors="replace"), max_depth).decode()


def _count(text: str, signs: str) -> int:
    return sum(map(text.count, signs))


def _number(text: str) -> float | None:
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _no_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is no JSON")


_SHOWN_CHARS = 100
_SERVER_FRAME_BYTES = 8 * 1024 * 1024
_NO_KIND = frozenset({"union_tag_invalid", "union_tag_not_found"})
_DEFER: Final = ConfigDict(defer_build=True)
_EVENT: Final[TypeAdapter[SpaceEvent]] = TypeAdapter(Annotated[SpaceEvent, Field(discriminator="type")], config=_DEFER)
_REQUEST: Final[TypeAdapter[Request]] = TypeAdapter(Annotated[Request, Field(discriminator="type")], config=_DEFER)


def build_codecs() -> None:
    """Build the encoders and decoders of frames now; otherwise the first frame would wait for them."""
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
    """Return the frame of an event as compact JSON."""
    return _EVENT.dump_json(event, by_alias=True).decode()


def encode_entry(entry: LogEntry) -> str:
    """Return an entry as compact JSON, for the wire and the disk."""
    return ENTRY.dump_json(entry, by_alias=True).decode()


def encode_presence(presence: Presence) -> str:
    """Return an agent as compact JSON, for the member list."""
    return PRESENCE.dump_json(presence, by_alias=True).decode()


# NOTE(self): the two longest frames are concatenated from JSON texts. A room keeps its record as text and replays up to
# 1,000 entries to each newcomer; encoding models would cost every join the time of the whole record.
def presence_frame(agents: Iterable[str], resume: str = "") -> str:
    """Return the member list frame from agents as JSON, with the receiver's token, if any."""
    end = f',"resume":{encode_value(resume)}' if resume else ""
    return f'{{"type":"presence","agents":[{",".join(agents)}]{end}}}'


def history_frame(entries: Iterable[str], room_id: str = "") -> str:
    """Return the record frame from entries as JSON, with the room's id, if any."""
    end = f',"roomId":{encode_value(room_id)}' if room_id else ""
    return f'{{"type":"history_response","entries":[{",".join(entries)}]{end}}}'


def decode_event(raw: str | bytes) -> SpaceEvent | Unreadable:
    """Decode a server's frame; `Unreadable` if it is malformed, incomplete or of an unknown type."""
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
    """Decode a member's frame; None if it must be ignored (not an object, or an unknown type).

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
    """Decode one entry of a record; None if it is invalid."""
    if not isinstance(value, Mapping):
        return None
    try:
        return validate(ENTRY, value, Side.MEMBER)
    except ValidationError:
        return None


def is_reserved(name: str, agent_id: str) -> bool:
    """Return whether a name or id could be mistaken for the host's: the name in any spelling, or the kind of id."""
    return skeleton(name) == skeleton(HOST) or shape(agent_id).startswith(HOST_ID_PREFIX)


def entry_of(
    event: Left | Said | Identified | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress,
) -> LogEntry:
    """Return the record's entry for an event."""
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
    """Return which field is wrong, why, and its value."""
    value = error["input"]
    shown = repr(value[:_SHOWN_CHARS]) if isinstance(value, str) else f"of type {type(value).__name__}"
    return f"{error['loc'][-1]} {error['msg'][:_SHOWN_CHARS].lower()}: it is {shown}"
