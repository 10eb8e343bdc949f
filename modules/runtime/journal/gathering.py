"""Puts a story together from the rows: the journal, the intents, what waited to be met, and what the model cost.

Only reads; each function is one step of a transaction that its caller opened.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from modules.runtime.journal.handles import known_handles
from modules.runtime.journal.naming import Subject, kept_since
from modules.runtime.journal.story import (
    Act,
    Call,
    Decided,
    Movement,
    Part,
    Received,
    RuleSaid,
    Story,
    Thinking,
    Unknown,
)

T = TypeVar("T", Part, RuleSaid)

_ACTS = """
SELECT * FROM intents
WHERE id = :act OR cause_id IN (SELECT value FROM json_each(:posts)) OR target IN (SELECT value FROM json_each(:posts))
ORDER BY created_at
"""
_ABOUT = """
SELECT * FROM journal
WHERE trigger_uri IN (SELECT value FROM json_each(:posts)) OR intent_id IN (SELECT value FROM json_each(:acts))
"""
_TURN_BEFORE = "SELECT max(id) FROM journal WHERE id < ? AND loop = ? AND kind IN ('model', 'decision')"
_DECIDED = """
SELECT 1 FROM journal
WHERE trigger_uri = ? AND kind = 'decision' AND json_extract(data, '$.act') IS NOT 'undecided'
"""
_LATER = """
SELECT later.uri FROM pending_notifications AS later
JOIN pending_notifications AS this ON this.uri = :uri
WHERE later.root_uri = this.root_uri AND later.author_did = this.author_did AND later.indexed_at >= this.indexed_at
    AND later.uri <> this.uri
    AND EXISTS (SELECT 1 FROM journal WHERE trigger_uri = later.uri AND kind = 'decision')
ORDER BY later.indexed_at LIMIT 1
"""
_COST = """
SELECT sum(input_tokens), sum(output_tokens), CASE WHEN min(cost_micro_usd) >= 0 THEN sum(cost_micro_usd) / 1e6 END,
    sum((input_tokens + output_tokens) * unanswered)
FROM model_calls WHERE purpose = ? AND at BETWEEN ? AND ?
"""
_HOLDING = """
SELECT * FROM journal WHERE id IN (SELECT max(id) FROM journal WHERE kind = 'life' AND loop IN ('budget', 'control')
    GROUP BY loop) AND json_extract(data, '$.act') IS NOT 'resumed' AND json_extract(data, '$.step') IS NOT 'normal'
ORDER BY id
"""


def gather(connection: sqlite3.Connection, subject: Subject) -> Story | Unknown:
    """The story of an act or of somebody's post."""
    cause = subject.uri or _cause(connection, subject.intent)
    met_with = _met_with(connection, cause)
    posts = json.dumps([uri for uri in (cause, met_with) if uri.startswith("at://")])
    acts = connection.execute(_ACTS, {"act": subject.intent, "posts": posts}).fetchall()
    entries = _entries(connection, posts, acts)
    trigger = _received(connection, cause, met_with, entries) if cause.startswith("at://") else None
    waits = trigger is not None and trigger.state == "pending"
    story = Story(
        asked=subject.uri or subject.intent,
        act_id=subject.intent,
        cause=cause,
        trigger=trigger,
        thinkings=tuple(_thinking(connection, entry) for entry in entries if entry["kind"] == "model"),
        decisions=tuple(_decided(entry) for entry in entries if entry["kind"] in {"decision", "error", "life"}),
        acts=tuple(_act(row, entries) for row in acts),
        holding=tuple(map(_decided, _read(connection.execute(_HOLDING)))) if waits else (),
        since=kept_since(connection),
        handles=known_handles(connection, " ".join(_reasons(acts, entries))),
    )
    if trigger and trigger.state in {"handled", "dropped"} and not acts and not entries:
        return Unknown(
            f"{cause} reached it on {trigger.received_at[:10]} and was let go; the reason is not kept any more"
            + (f": the journal reaches back to {story.since[:10]}, what was before is pruned" if story.since else "")
        )
    return story


def _reasons(acts: Iterable[sqlite3.Row], entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Why each act stands where it stands, and all that was given as a reason; none of it is anybody's post."""
    yield from (str(act["error"] or "") for act in acts)
    for entry in entries:
        yield str(entry["reason"] or "")
        rules = entry["data"].get("rules")
        yield from (str(rule.get("reason", "")) for rule in rules or () if isinstance(rule, dict))


def _cause(connection: sqlite3.Connection, intent_id: str) -> str:
    row = connection.execute("SELECT cause_id FROM intents WHERE id = ?", (intent_id,)).fetchone()
    return str(row["cause_id"] or "")


def _met_with(connection: sqlite3.Connection, uri: str) -> str:
    """Of several posts by one person in one thread only the newest is met: its uri, if it is not this one."""
    row = connection.execute("SELECT state FROM pending_notifications WHERE uri = ?", (uri,)).fetchone()
    if row is None or row["state"] == "pending" or connection.execute(_DECIDED, (uri,)).fetchone():
        return ""
    later = connection.execute(_LATER, {"uri": uri}).fetchone()
    return str(later["uri"]) if later else ""


def _entries(connection: sqlite3.Connection, posts: str, acts: list[sqlite3.Row]) -> list[dict[str, Any]]:
    """All that was recorded of it, in order: by the posts, by the acts, and by the turns of acts with another cause."""
    ids = json.dumps([act["id"] for act in acts])
    found = {row["id"]: row for row in connection.execute(_ABOUT, {"posts": posts, "acts": ids})}
    for act in acts:
        if act["cause_id"] and not act["cause_id"].startswith("at://"):
            found |= {row["id"]: row for row in _turn(connection, act["id"], act["cause_id"])}
    return _read(found[number] for number in sorted(found))


def _read(rows: Iterable[sqlite3.Row]) -> list[dict[str, Any]]:
    return [{**row, "data": json.loads(row["data"])} for row in rows]


def _turn(connection: sqlite3.Connection, act_id: str, loop: str) -> Iterator[sqlite3.Row]:
    """The entries of the turn from which an act came: one mind has one turn at a time, and journals it at its end."""
    first = connection.execute("SELECT min(id) FROM journal WHERE intent_id = ?", (act_id,)).fetchone()[0]
    if first is None:
        return
    begin = connection.execute(_TURN_BEFORE, (first, loop)).fetchone()[0] or 0
    thought = False
    for row in connection.execute("SELECT * FROM journal WHERE id > ? AND loop = ? ORDER BY id", (begin, loop)):
        if thought and row["kind"] != "decision":
            return
        yield row
        if thought:
            return
        thought = row["kind"] == "model" and row["id"] > first


def _received(
    connection: sqlite3.Connection, uri: str, met_with: str, entries: Iterable[Mapping[str, Any]]
) -> Received:
    row = connection.execute("SELECT * FROM pending_notifications WHERE uri = ?", (uri,)).fetchone()
    if row is None:
        author = next((entry["author"] for entry in entries if entry["trigger_uri"] == uri and entry["author"]), "")
        return Received(uri, author=author)
    told = json.loads(row["payload"])
    return Received(
        uri=uri,
        author=told["author"]["handle"],
        did=row["author_did"],
        reason=told["reason"],
        text=told["text"],
        at=row["indexed_at"],
        received_at=row["received_at"],
        state=row["state"],
        outcome=row["outcome"] or "",
        attempts=row["attempts"],
        met_with=met_with,
    )


def _thinking(connection: sqlite3.Connection, entry: Mapping[str, Any]) -> Thinking:
    data = entry["data"]
    began, purpose = data.get("began", entry["at"]), data.get("purpose", "")
    came_in, went_out, usd, unanswered = connection.execute(_COST, (purpose, began, entry["at"])).fetchone()
    return Thinking(
        began=began,
        at=entry["at"],
        purpose=purpose,
        provenance=data.get("provenance", ""),
        sank_to=data.get("sank_to", ""),
        importance=data.get("importance", ""),
        model=data.get("model", ""),
        rounds=data.get("rounds", 0),
        input_tokens=data.get("input_tokens", came_in or 0),
        output_tokens=data.get("output_tokens", went_out or 0),
        usd=data.get("usd", usd),
        unanswered_tokens=unanswered or 0,
        prompt=tuple(_as(Part, part) for part in data.get("prompt", ())),
        memories=tuple(data.get("memories", ())),
        calls=tuple(_call(call) for call in data.get("calls", ())),
        failed="" if entry["reason"] == "ended" else entry["reason"],
    )


def _call(call: Mapping[str, Any]) -> Call:
    arguments = call.get("input") or {}
    said = arguments.get("text") or arguments.get("reason") or arguments.get("closing_message") or ""
    return Call(call["tool"], str(said), call.get("error", ""), call.get("intent_id", ""))


def _decided(entry: Mapping[str, Any]) -> Decided:
    act = str(entry["data"].get("act", ""))
    return Decided(entry["at"], entry["kind"], entry["loop"], entry["summary"], entry["reason"], act)


def _act(row: sqlite3.Row, entries: Iterable[Mapping[str, Any]]) -> Act:
    return Act(
        id=row["id"],
        kind=row["kind"],
        target=row["target"],
        text=str(json.loads(row["body"]).get("text", "")),
        state=row["state"],
        uri=row["result_uri"] or "",
        why=row["error"] or "",
        cause=row["cause_id"] or "",
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        movements=tuple(
            _movement(entry) for entry in entries if entry["kind"] == "act" and entry["intent_id"] == row["id"]
        ),
    )


def _movement(entry: Mapping[str, Any]) -> Movement:
    data = entry["data"]
    rules = tuple(_as(RuleSaid, rule) for rule in data.get("rules", ()))
    return Movement(entry["at"], str(data.get("state", "")), entry["summary"], entry["reason"], rules)


def _as(kind: type[T], stored: Mapping[str, Any]) -> T:
    """A value of `kind`, of what an older or newer version stored."""
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in stored.items() if name in known})
