"""How acts that wait for the owner's approval, or for their moment, are shown, in the terminal and by a command."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.clock import local, parse_iso
from common.wording import deed, told_reason
from modules.services.explanation.story import named
from modules.services.inbox import received
from modules.services.outbox import store
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.policy import is_expired
from modules.services.outbox.types import Intent
from soul.terminal.output import Colour

_LIST_CHARS = 80
_CHANGES = "\ndiff --git "
_COLOURS: dict[str, Colour] = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class Answered:
    """The post that an act answers, as it was received."""

    handle: str
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An act that waits, what it answers, None if that never came as a notification, and why it waits, in words.

    `number` names it on every surface, 0 where it has none yet.
    """

    intent: Intent
    answers: Answered | None = None
    reason: str = ""
    number: int = 0


def with_answered(connection: sqlite3.Connection, intents: Iterable[Intent]) -> list[Draft]:
    """Each act with the post that it answers or likes; who is known by handle is named so in the reason."""
    numbers = store.draft_numbers(connection)
    return [
        Draft(intent, _answered(connection, intent), _reason(connection, intent), numbers.get(intent.id, 0))
        for intent in intents
    ]


def list_lines(drafts: Sequence[Draft], now: datetime, timezone: str) -> list[str]:
    """One line for each, with its number."""
    if not drafts:
        return ["Nothing waits for your approval"]
    return [_line(draft, now, timezone) for draft in drafts]


def full_lines(draft: Draft, now: datetime, timezone: str) -> list[str]:
    """Return all there is to know before approving or rejecting; what it answers stands before its own words."""
    intent = draft.intent
    until = "it has lost its sense" if is_expired(intent, now) else f"until {_time(intent.expires_at, timezone)}"
    moment = [f"  leaves {_time(intent.scheduled_for, timezone)}"] if intent.scheduled_for else []
    lines = [
        f"{deed(intent.kind)} {intent.id}",
        *([f"  {intent.body.deed}"] if intent.body.deed else []),
        *([f"  waits because {draft.reason}"] if draft.reason else []),
        *moment,
        f"  since {_time(intent.created_at, timezone)}, {until}",
    ]
    if draft.answers:
        lines.append(f"  to     @{draft.answers.handle}, who wrote:")
        lines += [f"           {line}" for line in draft.answers.text.splitlines()]
    if intent.target:
        lines.append(f"  {'post  ' if draft.answers else 'to    '} {intent.target}")
    if intent.cause_id and intent.cause_id != intent.target:
        lines.append(f"  cause  {intent.cause_id}")
    if text := intent.body.preview:
        lines += ["", *(f"  {line}" for line in text.splitlines())]
    return lines


def split_changes(text: str) -> tuple[str, list[str]]:
    """Return what is told of an act, and the lines of the changes of files that it shows, if it shows any."""
    told, begins, rest = text.partition(_CHANGES)
    return told.rstrip(), f"{begins}{rest}".strip().split("\n") if begins else []


def with_colours(lines: Iterable[str]) -> Iterator[tuple[str, Colour | None]]:
    """Yield each line of `full_lines`; those that changes of files add, delete or begin at have a colour."""
    is_changes = False
    for line in lines:
        is_changes = is_changes or line.startswith(f"  {_CHANGES.strip()} ")
        yield line, _COLOURS.get(line[2:3]) if is_changes else None


def draft_fields(draft: Draft, now: datetime) -> dict[str, Any]:
    """The same for programs, in the camelCase of the status file."""
    intent = draft.intent
    return {
        "id": intent.id,
        "number": draft.number,
        "state": intent.state,
        "kind": intent.kind,
        "target": intent.target,
        "answers": {"handle": draft.answers.handle, "text": draft.answers.text} if draft.answers else None,
        "cause": intent.cause_id,
        "text": intent.body.preview,
        "why": intent.error,
        "createdAt": intent.created_at,
        "expiresAt": intent.expires_at,
        "scheduledFor": intent.scheduled_for,
        "expired": is_expired(intent, now),
    }


def _line(draft: Draft, now: datetime, timezone: str) -> str:
    intent = draft.intent
    whom = f" to @{draft.answers.handle}" if draft.answers else ""
    last = intent.scheduled_for or intent.expires_at
    until = f"{'leaves' if intent.scheduled_for else 'until'} {_time(last, timezone)}"
    until = "expired" if is_expired(intent, now) else until
    what = " ".join(intent.body.preview.split()) or intent.target
    shown = f"{what[:_LIST_CHARS]}…" if len(what) > _LIST_CHARS else what
    act = intent.body.deed or f"{deed(intent.kind)}{whom}: {shown}"
    number = draft.number or ""
    return f"{number:>3}  {intent.id[:SHORT_ID_CHARS]}  {until:<23}  {act}  ({draft.reason or 'scheduled'})"


def _reason(connection: sqlite3.Connection, intent: Intent) -> str:
    return named(connection, told_reason(intent.error or ""))


def _answered(connection: sqlite3.Connection, intent: Intent) -> Answered | None:
    for uri in filter(None, (intent.target, intent.cause_id)):
        if (found := received.get(connection, uri)) is not None and found.payload:
            return Answered(found.handle or "?", found.text)
    return None


def _time(moment: str, timezone: str) -> str:
    return f"{local(parse_iso(moment), timezone):%Y-%m-%d %H:%M}"
