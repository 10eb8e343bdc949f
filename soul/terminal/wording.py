"""Plain words for what the program calls by name, and one way to write moments for the owner."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from common.clock import local, parse_iso_or_none
from soul.terminal.output import printable

_DOING = {
    "alarm": "telling you what you must know at once",
    "github-experiences": "remembering what happened on GitHub",
    "expression-check": "thinking of something to post",
    "message": "answering a direct message",
    "post": "answering on Bluesky",
    "request": "answering what somebody asks about their own data",
    "owner": "thinking about what to tell you",
    "reflection": "looking back on what it lived through",
    "sessions": "archiving what was said",
    "commitment-fulfillment": "fulfilling a commitment",
    "space-participation": "following the room",
    "thread": "answering on GitHub",
    "voice-phrases": "finding its own words for what it says often",
}
_LOOPS = {
    "awareness": "answers on Bluesky",
    "notifications": "reads Bluesky",
    "github-awareness": "looks at GitHub",
    "github-experiences": "remembers what happened on GitHub",
    "plan-awareness": "looks at the plans of its workspaces",
    "tasks": "does a task of a plan",
    "merges": "looks after its pull requests",
    "reviews": "reviews pull requests of its workspaces",
    "expression-check": "thinks of a post",
    "work": "does what has come due",
    "session-refresh": "renews its login",
    "alarms": "looks for what you must be told at once",
    "messages": "reads direct messages",
    "message-others": "answers the direct messages of others",
    "peers": "looks for other SOULs",
    "peer-histories": "counts what it and its peers did together",
    "engagement": "looks at its own posts",
    "version-check": "looks for a newer version",
    "message-talk": "answers your direct messages",
    "outbox": "sends what waits",
    "heartbeat": "takes stock",
    "identity-watch": "checks SOUL.md",
    "control": "checks for a pause",
    "home-lease": "checks that no copy of it lives elsewhere",
    "sessions": "archives talks",
    "commitment-fulfillment": "fulfils its commitments",
    "space-participation": "follows the room",
}
_ROOM = re.compile(r"^\[space\] ")


def doing(mode: str) -> str:
    """What the SOUL does while `mode` has its attention, as the rest of a sentence; "" while nothing does."""
    return "" if mode == "idle" else _DOING.get(mode, f"busy with {mode.replace('-', ' ')}")


def moment(at: str | datetime, timezone: str) -> str:
    """A date and time as `2026-01-31 14:05`, in that time zone; what is no time there stays as it is."""
    when = parse_iso_or_none(at) if isinstance(at, str) else at
    try:
        return f"{local(when, timezone):%Y-%m-%d %H:%M}" if when else str(at)
    except (OverflowError, ValueError):  # the first or the last day of the calendar, beyond it in this time zone
        return str(at)


def is_of_room(text: str) -> bool:
    """Return whether a line of the journal tells of a room."""
    return _ROOM.match(text) is not None


def troubles_text(status: Mapping[str, Any], timezone: str) -> list[str]:
    """Return what the SOUL of a status waits for, each with the moment until which it lasts, if that is known."""
    return [
        printable(one["what"]) + (f", until {moment(one['until'], timezone)}" if one["until"] else "")
        for one in status.get("troubles", ())
    ]


def told_line(text: str) -> str:
    """What the journal says, with the mark of the room as a word."""
    return _ROOM.sub("Room: ", text)


def loop_name(name: str) -> str:
    """What a loop does, with the SOUL as its subject."""
    return _LOOPS.get(name, name)
