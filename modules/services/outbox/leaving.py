"""What an act is, when it leaves after the owner's approval, and how it ended, in a few words for the owner."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from adapters.atproto.records import web_url
from common.clock import local, parse_iso
from common.text.graphemes import shortened
from common.text.untrusted import clean
from common.wording import deed, told_reason
from modules.runtime.control import Standing
from modules.services.outbox import store
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.departures import Departure, expected, told
from modules.services.outbox.github_bodies import OnGitHub
from modules.services.outbox.types import ACTIVE_STATES, Intent


def expected_kinds(connection: sqlite3.Connection) -> list[tuple[str, Departure]]:
    """Return what each of these acts is, with its departure, the earliest first; those without a time come last."""
    found = expected(connection).items()
    pending = [(one, when) for of, when in found if (one := store.get(connection, of)) and one.state == "pending"]
    return [(deed(one.kind), when) for one, when in sorted(pending, key=lambda item: item[1].at or "~")]


_WORDS_CHARS, _REASON_CHARS = 60, 150


def act_of(intent: Intent) -> str:
    """Return what an act is, without the words that it publishes: `follow @kit.test`."""
    if isinstance(intent.body, OnGitHub):
        number = getattr(intent.body, "number", 0) or intent.issue_number
        return f"{deed(intent.kind)} in {intent.body.repo}{f'#{number}' if number else ''}"
    return intent.body.deed or deed(intent.kind)


def end_of(intent: Intent) -> str:
    """Return how an act ended or stands, in a sentence: `Done: follow @kit.test`."""
    words = "" if isinstance(intent.body, OnGitHub) else shortened(clean(intent.body.short_preview), _WORDS_CHARS)
    what = act_of(intent) + (f" “{words}”" if words else "")
    if intent.state == "done":
        uri = intent.result_uri or ""
        link = "" if intent.body.deed else web_url(uri) or (uri if uri.startswith("https://") else "")
        return f"Done: {what}{f' {link}' if link else ''}"
    if intent.state == "held":
        return f"Waiting for your approval (/drafts): {what}"
    if intent.state in ACTIVE_STATES:
        return f"On its way: {what}"
    reason = shortened(clean(told_reason(intent.error or "")), _REASON_CHARS) or "no reason is kept"
    return f"Not done: {what}. Reason: {reason}. Order it again if you still want it."


def leaving(
    approved: Sequence[Intent],
    standing: Standing,
    timezone: str,
    *,
    is_awake: bool,
    now: datetime,
    expected: Mapping[str, Departure] | None = None,
) -> str:
    """Return when what was approved leaves; `expected` is what the running SOUL expects, by id, where it is asked."""
    later = [one.scheduled_for for one in approved if one.waits_for_its_moment and one.scheduled_for]
    if later and standing.may_act:
        return f"It leaves by itself on {local(parse_iso(max(later)), timezone):%Y-%m-%d %H:%M}"
    if standing.writes_blocked and not standing.paused and not standing.safe_mode:
        return f"It leaves once nothing keeps this process from it any more: {standing}"
    if not standing.may_act:
        return f"It leaves after `soul resume`: {standing}"
    if not is_awake:
        return "Nobody is awake: it leaves after the next `soul run`, unless it has lost its sense by then"
    waits = [(one, expected[one.id]) for one in approved if expected and one.id in expected]
    if waits:
        return "; ".join(f"{act_of(one)} {told(departure, now, timezone)}" for one, departure in waits)
    number = f" {approved[0].id[:SHORT_ID_CHARS]}" if len(approved) == 1 else ""
    return f"It leaves within a minute, unless a limit is reached; `soul why{number}` tells how it went"
