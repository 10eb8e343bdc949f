"""When each act that waits for its turn is expected to leave, and why not sooner.

The outbox notes it after each round, so that every reader of the database can tell it, also beside the running SOUL.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from adapters.atproto.records import web_url
from common.clock import iso, local, parse_iso
from common.text.graphemes import shortened
from common.text.untrusted import clean
from common.wording import deed, told_reason
from modules.runtime.control import Standing
from modules.runtime.database import marks
from modules.services.outbox import store
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.github_bodies import OnGitHub
from modules.services.outbox.types import ACTIVE_STATES, Intent, Wait


@dataclass(frozen=True, slots=True)
class Departure:
    """When an act is expected to leave: `at` is ISO-8601, "" where nobody knows; `reason` is why not sooner."""

    at: str
    reason: str


def anything_waits(connection: sqlite3.Connection) -> bool:
    """Return whether any intent waits for the owner's approval, or for its turn."""
    query = "SELECT 1 FROM intents WHERE state IN ('held', 'pending') LIMIT 1"
    return connection.execute(query).fetchone() is not None


def told(departure: Departure, now: datetime, timezone: str) -> str:
    """Return when it leaves and why, as `leaves at 14:32: 30 min after the last post`."""
    if not departure.at:
        return f"cannot leave yet: {departure.reason}"
    if (at := parse_iso(departure.at)) <= now:
        return f"leaves in its turn: {departure.reason}"
    moment, today = local(at, timezone), local(now, timezone).date()
    return f"leaves at {moment:%H:%M}{'' if moment.date() == today else f' on {moment:%Y-%m-%d}'}: {departure.reason}"


_MARK = "departures"
SOON_S = 60.0


def departure_of(wait: Wait | None, now: datetime) -> Departure | None:
    """Return when what waits so leaves; None where it leaves within a minute."""
    if wait is None or (wait.ends and wait.seconds < SOON_S) or not wait.reason:
        return None
    at = (now + timedelta(seconds=wait.seconds)).replace(microsecond=0)
    return Departure(iso(at) if wait.ends else "", wait.reason)


def note(connection: sqlite3.Connection, waits: Mapping[str, Wait], now: datetime) -> None:
    """Keep when each act leaves, by its id; what leaves within a minute is left out."""
    found = {of: asdict(departure) for of, wait in waits.items() if (departure := departure_of(wait, now))}
    text = json.dumps(found) if found else ""
    if text != marks.get(connection, _MARK):
        marks.put(connection, {_MARK: text})


def expected(connection: sqlite3.Connection) -> dict[str, Departure]:
    """Return when each act is expected to leave that waits for longer than a minute, by its id."""
    text = marks.get(connection, _MARK)
    return {of: Departure(**fields) for of, fields in json.loads(text).items()} if text else {}


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
