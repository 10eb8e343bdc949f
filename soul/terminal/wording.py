"""The words for loops, moments and lines of the journal, the same on every surface for the owner."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from common.clock import local, parse_iso_or_none
from common.wording import LineKind
from soul.terminal.output import printable

_DOING = {
    "alarm": "telling you what you must know at once",
    "github-experiences": "remembering what happened on GitHub",
    "expression-check": "thinking of something to post",
    "message": "answering a direct message",
    "post": "answering on Bluesky",
    "request": "reading what somebody wrote to it",
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
    """Return what the SOUL does while `mode` has its attention, as the rest of a sentence; "" if it is idle."""
    return "" if mode == "idle" else _DOING.get(mode, f"busy with {mode.replace('-', ' ')}")


def moment(at: str | datetime, timezone: str) -> str:
    """Return a time as `2026-01-31 14:05` in `timezone`; what is not a time is returned as it is."""
    when = parse_iso_or_none(at) if isinstance(at, str) else at
    try:
        return f"{local(when, timezone):%Y-%m-%d %H:%M}" if when else str(at)
    except (OverflowError, ValueError):  # beyond the first or last day of the calendar in this time zone
        return str(at)


def is_of_room(text: str) -> bool:
    """Return whether a line of the journal is about a room."""
    return _ROOM.match(text) is not None


def troubles_text(status: Mapping[str, Any], timezone: str) -> list[str]:
    """Return what the SOUL of a status waits for, each with the time when it ends, if that is known."""
    return [
        printable(one["what"]) + (f", until {moment(one['until'], timezone)}" if one["until"] else "")
        for one in status.get("troubles", ())
    ]


def told_line(text: str) -> str:
    """Return a line of the journal, with the mark of the room as a word."""
    return _ROOM.sub("Room: ", text)


def loop_name(name: str) -> str:
    """Return what a loop does, in words with the SOUL as their subject."""
    return _LOOPS.get(name, name)


LOOKS: dict[LineKind, tuple[str, str, str]] = {
    "info": ("○", "note", ""),
    "done": ("✓", "done", "green"),
    "warn": ("◆", "warning", "yellow"),
    "error": ("✗", "error", "red"),
    "act": ("▸", "acts", "cyan"),
    "think": ("•", "thinks", "magenta"),
    "mem": ("★", "memory", "blue"),
    "sys": ("■", "state", "bright_black"),
    "refl": ("◆", "self", "magenta"),
    "mind": ("○", "thinks", "magenta"),
    "queue": ("\u203a", "to do", "cyan"),
    "social": ("♥", "social", "bright_red"),
    "said": ("♥", "social", "bright_red"),
}
