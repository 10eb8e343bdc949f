"""How acts that wait for the owner's yes are shown, in the terminal and by a command."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from common.clock import local, parse_iso
from modules.outbox.policy import is_expired
from modules.outbox.story import SHORT_ID_CHARS
from modules.outbox.types import Intent

_LIST_CHARS = 80


def list_lines(drafts: Sequence[Intent], now: datetime, timezone: str) -> list[str]:
    """One line for each."""
    if not drafts:
        return ["Nothing waits for your yes"]
    return [_line(intent, now, timezone) for intent in drafts]


def numbered_lines(drafts: Sequence[Intent], now: datetime, timezone: str) -> list[str]:
    """The same, numbered from 1 where there are any."""
    lines = list_lines(drafts, now, timezone)
    return [f"{number:>2}  {line}" for number, line in enumerate(lines, start=1)] if drafts else lines


def full_lines(intent: Intent, now: datetime, timezone: str) -> list[str]:
    """All there is to know before saying yes or no."""
    until = "it has lost its sense" if is_expired(intent, now) else f"until {_time(intent.expires_at, timezone)}"
    lines = [
        f"{intent.kind} {intent.id}",
        f"  waits because {intent.error}",
        f"  since {_time(intent.created_at, timezone)}, {until}",
    ]
    if intent.target:
        lines.append(f"  to     {intent.target}")
    if intent.cause_id:
        lines.append(f"  cause  {intent.cause_id}")
    if text := _text(intent):
        lines += ["", *(f"  {line}" for line in text.splitlines())]
    return lines


def as_json(intent: Intent, now: datetime) -> dict[str, Any]:
    """The same for programs, in the camelCase of the status file."""
    return {
        "id": intent.id,
        "state": intent.state,
        "kind": intent.kind,
        "target": intent.target,
        "cause": intent.cause_id,
        "text": _text(intent),
        "why": intent.error,
        "createdAt": intent.created_at,
        "expiresAt": intent.expires_at,
        "expired": is_expired(intent, now),
    }


def _line(intent: Intent, now: datetime, timezone: str) -> str:
    until = "expired" if is_expired(intent, now) else f"until {_time(intent.expires_at, timezone)}"
    what = " ".join(_text(intent).split()) or intent.target
    shown = f"{what[:_LIST_CHARS]}…" if len(what) > _LIST_CHARS else what
    return f"{intent.id[:SHORT_ID_CHARS]}  {until:<18}  {intent.kind}: {shown}  ({intent.error})"


def _text(intent: Intent) -> str:
    text = intent.body.get("text")
    return text if isinstance(text, str) else ""


def _time(moment: str, timezone: str) -> str:
    return f"{local(parse_iso(moment), timezone):%a %H:%M}"
