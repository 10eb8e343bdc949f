"""Formats drafts, and intents that wait for their time to leave, for the terminal and for commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from adapters.atproto.records import web_url
from modules.services.explanation.drafts import Draft
from modules.services.identity.entries import waiting_line
from modules.services.outbox.audit import SHORT_ID_CHARS
from soul.terminal.output import Colour
from soul.terminal.wording import moment

_CHANGES = "\ndiff --git "
_COLOURS: dict[str, Colour] = {"+": "green", "-": "red", "@": "cyan"}


def list_lines(drafts: Sequence[Draft], now: datetime, timezone: str, documents: Iterable[str]) -> list[str]:
    """Return a line for each draft, with its number, and one for each of `documents`, whose changes wait."""
    lines = [*(_line(draft, now, timezone) for draft in drafts), *map(waiting_line, documents)]
    return lines or ["Nothing waits for your approval"]


def full_lines(draft: Draft, now: datetime, timezone: str) -> list[str]:
    """Return everything to know before deciding on a draft; the text that it answers stands before its own."""
    intent = draft.intent
    lines = [
        f"{draft.words.what}  {intent.id}",
        *([f"  waits because {draft.reason}"] if draft.reason else []),
        f"  since {moment(intent.created_at, timezone)}, {draft.when(now, timezone)}",
    ]
    if draft.words.theirs:
        lines.append(f"  {f'@{draft.words.author}' if draft.words.author else 'the SOUL'} wrote:")
        lines += [f"           {line}" for line in draft.words.theirs.splitlines()]
    if intent.target:
        lines.append(f"  at     {web_url(intent.target) or intent.target}")
    if intent.cause_id and intent.cause_id != intent.target:
        lines.append(f"  cause  {intent.cause_id}")
    lines += (f"  {line}" for line in draft.rests_on)
    if text := intent.body.preview:
        lines += ["", *(f"  {line}" for line in text.splitlines())]
    return lines


def split_changes(text: str) -> tuple[str, list[str]]:
    """Return the description of an act, and the lines of the diff that it shows, empty if it shows none."""
    told, begins, rest = text.partition(_CHANGES)
    return told.rstrip(), f"{begins}{rest}".strip().split("\n") if begins else []


def with_colours(lines: Iterable[str]) -> Iterator[tuple[str, Colour | None]]:
    """Yield each line of `full_lines` with its colour, which only the added, deleted and `@` lines of a diff have."""
    is_changes = False
    for line in lines:
        is_changes = is_changes or line.startswith(f"  {_CHANGES.strip()} ")
        yield line, _COLOURS.get(line[2:3]) if is_changes else None


def _line(draft: Draft, now: datetime, timezone: str) -> str:
    act, why = draft.words.with_theirs, draft.reason or "reject stops it"
    return f"{draft.number or '':>3}  {draft.intent.id[:SHORT_ID_CHARS]}  {act}  ({draft.when(now, timezone)}; {why})"
