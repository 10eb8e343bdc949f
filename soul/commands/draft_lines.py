"""How acts that wait for the owner's approval, or for their moment, are shown, in the terminal and by a command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from adapters.atproto.records import web_url
from common.clock import local, parse_iso
from modules.services.explanation.drafts import Draft
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.policy import is_expired
from modules.services.outbox.types import Intent
from soul.terminal.output import Colour

_CHANGES = "\ndiff --git "
_COLOURS: dict[str, Colour] = {"+": "green", "-": "red", "@": "cyan"}


def list_lines(drafts: Sequence[Draft], now: datetime, timezone: str) -> list[str]:
    """One line for each, with its number."""
    if not drafts:
        return ["Nothing waits for your approval"]
    return [_line(draft, now, timezone) for draft in drafts]


def full_lines(draft: Draft, now: datetime, timezone: str) -> list[str]:
    """Return all there is to know before approving or rejecting; what it answers stands before its own words."""
    intent = draft.intent
    until = "it has lost its sense" if is_expired(intent, now) else f"until {_time(intent.expires_at, timezone)}"
    moment = [f"  {leaves_text(intent, timezone)}"] if intent.scheduled_for else []
    lines = [
        f"{draft.words.what}  {intent.id}",
        *([f"  waits because {draft.reason}"] if draft.reason else []),
        *moment,
        f"  since {_time(intent.created_at, timezone)}, {until}",
    ]
    if draft.words.theirs:
        lines.append(f"  {f'@{draft.words.author}' if draft.words.author else 'the SOUL'} wrote:")
        lines += [f"           {line}" for line in draft.words.theirs.splitlines()]
    if intent.target:
        lines.append(f"  at     {web_url(intent.target) or intent.target}")
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


def _line(draft: Draft, now: datetime, timezone: str) -> str:
    intent = draft.intent
    last = intent.scheduled_for or intent.expires_at
    until = "expired" if is_expired(intent, now) else f"{_verb(intent)} {_time(last, timezone)}"
    number, act = draft.number or "", draft.words.with_theirs
    why = draft.reason or ("scheduled" if intent.scheduled_for else "needs no approval; reject stops it")
    return f"{number:>3}  {intent.id[:SHORT_ID_CHARS]}  {until:<23}  {act}  ({why})"


def leaves_text(intent: Intent, timezone: str) -> str:
    """Return when a scheduled act leaves, and whether it needs approval first; "" where it is not scheduled."""
    if not intent.scheduled_for:
        return ""
    after = ", if you approve it" if intent.state == "held" else ""
    return f"leaves {_time(intent.scheduled_for, timezone)}{after}"


def _verb(intent: Intent) -> str:
    if not intent.scheduled_for:
        return "until"
    return "if approved, leaves" if intent.state == "held" else "leaves"


def _time(moment: str, timezone: str) -> str:
    return f"{local(parse_iso(moment), timezone):%Y-%m-%d %H:%M}"
