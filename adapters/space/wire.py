"""The wire of a room: one JSON object per text frame, `type` first, keys in a fixed order.

Here is what both ends need by name. `wire_json` holds the bytes, `wire_member` what members say, `wire_requests` how a
server reads it, `wire_room` what a server says, `wire_events` how a member reads that. All pure; nothing is kept.
"""

from __future__ import annotations

from adapters.space.wire_events import ERROR_PREFIXES, Unreadable, decode_entry, decode_event, decode_summary
from adapters.space.wire_json import BadJson, encode_message, encode_value, iso_now, parse_json
from adapters.space.wire_member import MemberFrames, summary_frame

__all__ = [
    "ERROR_PREFIXES",
    "BadJson",
    "MemberFrames",
    "Unreadable",
    "decode_entry",
    "decode_event",
    "decode_summary",
    "encode_message",
    "encode_value",
    "iso_now",
    "parse_json",
    "summary_frame",
]
