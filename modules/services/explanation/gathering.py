"""Puts a story together from the rows: the journal, the intents, what waited to be handled, and what the model cost.

Only reads; each function is one step of a transaction that its caller opened.
"""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from modules.runtime.budget import ledger
from modules.runtime.journal import rows
from modules.runtime.journal.rows import JournalRow
from modules.services.coding import trajectory
from modules.services.explanation.handles import known_handles
from modules.services.explanation.naming import Subject, became_of, is_task, thread_of
from modules.services.explanation.story import (
    Act,
    Call,
    Movement,
    Part,
    Received,
    RuleSaid,
    Story,
    StoryEntry,
    Thinking,
    Unknown,
)
from modules.services.inbox import messages, received
from modules.services.inbox.messages import MESSAGES, ReceivedMessage
from modules.services.outbox import departures, store
from modules.services.outbox.types import Intent
from modules.services.outbox.waiting import Departure
from modules.services.work import table as work

T = TypeVar("T", Part, RuleSaid)

_RECEIVED = ("at://", MESSAGES)


def gather(connection: sqlite3.Connection, subject: Subject) -> Story | Unknown:
    """The story of an act, of somebody's post, of a task, or of what was decided about a thread on GitHub."""
    cause = subject.uri or _cause(connection, subject.intent)
    handled_with = _handled_with(connection, cause)
    made = asked.result_uri or "" if (asked := store.get(connection, subject.intent)) else ""
    posts = [uri for uri in (cause, handled_with, made) if uri.startswith(_RECEIVED) or is_task(uri) or thread_of(uri)]
    posts += became_of(connection, made)
    acts = store.about(connection, subject.intent, posts)
    entries = _entries(connection, posts, acts)
    leaving = departures.expected(connection)
    trigger = _received(connection, cause, handled_with, entries) if cause.startswith(_RECEIVED) else None
    waits = trigger is not None and trigger.state == "pending"
    story = Story(
        asked=subject.uri or subject.intent,
        act_id=subject.intent,
        cause=cause,
        trigger=trigger,
        thinkings=tuple(_thinking(connection, entry) for entry in entries if entry["kind"] == "model"),
        decisions=tuple(_decided(entry) for entry in entries if entry["kind"] in {"decision", "error", "life"}),
        acts=tuple(_act(row, entries, leaving.get(row.id)) for row in acts),
        coding=tuple(trajectory.latest(connection, cause)),
        holding=tuple(map(_decided, rows.holding(connection))) if waits else (),
        since=rows.kept_since(connection),
        handles=known_handles(connection, " ".join(_reasons(acts, entries))),
    )
    if trigger and trigger.state in {"handled", "dropped"} and not acts and not entries:
        return Unknown(
            f"{cause} reached it on {trigger.received_at[:10]} and was let go; the reason is not kept any more"
            + (f": the journal reaches back to {story.since[:10]}, what was before is pruned" if story.since else "")
        )
    return story


def _reasons(acts: Iterable[Intent], entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Why each act stands where it stands, and all that was given as a reason; none of it is anybody's post."""
    yield from (act.error or "" for act in acts)
    for entry in entries:
        yield str(entry["reason"] or "")
        rules = entry["data"].get("rules")
        yield from (str(rule.get("reason", "")) for rule in rules or () if isinstance(rule, dict))


def _cause(connection: sqlite3.Connection, intent_id: str) -> str:
    intent = store.get(connection, intent_id)
    return (intent.cause_id or "") if intent else ""


def _handled_with(connection: sqlite3.Connection, uri: str) -> str:
    """Of several posts or messages by one person only the newest is handled: its name, if it is not this one."""
    post = messages.named(connection, uri) if uri.startswith(MESSAGES) else received.get(connection, uri)
    if post is None or post.state == "pending" or rows.was_decided(connection, uri, finished=True):
        return ""
    if isinstance(post, ReceivedMessage):
        later = [one.name for one in messages.later_than(connection, post)]
    else:
        thread = received.in_thread(connection, post.root_uri)
        theirs = [one for one in thread if one.author_did == post.author_did and one.indexed_at >= post.indexed_at]
        later = [one.uri for one in theirs if one.uri != uri]
    return next((one for one in later if rows.was_decided(connection, one)), "")


def _entries(connection: sqlite3.Connection, posts: list[str], acts: list[Intent]) -> list[JournalRow]:
    """All that was recorded of it, in order: by the posts, by the acts, and by the turns of acts with another cause."""
    found = {row["id"]: row for row in rows.about(connection, posts, [act.id for act in acts])}
    for act in acts:
        if act.cause_id and not act.cause_id.startswith(_RECEIVED):
            found |= {row["id"]: row for row in rows.turn_of(connection, act.id, act.cause_id.partition(":")[0])}
    return [found[number] for number in sorted(found)]


def _received(
    connection: sqlite3.Connection, uri: str, handled_with: str, entries: Iterable[Mapping[str, Any]]
) -> Received:
    row = messages.named(connection, uri) or received.get(connection, uri)
    if row is None:
        author = next((entry["author"] for entry in entries if entry["trigger_uri"] == uri and entry["author"]), "")
        return Received(uri, author=author)
    return Received(
        uri=uri,
        author=row.handle,
        did=row.author_did,
        reason=row.reason,
        text=row.text,
        at=row.at,
        received_at=row.received_at,
        state=row.state,
        outcome=row.outcome,
        attempts=work.tries(connection, uri),
        handled_with=handled_with,
    )


def _thinking(connection: sqlite3.Connection, entry: Mapping[str, Any]) -> Thinking:
    data = entry["data"]
    began, purpose = data.get("began", entry["at"]), data.get("purpose", "")
    came_in, went_out, usd, unanswered = ledger.between(connection, purpose, began, entry["at"])
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
    said = arguments.get("text") or arguments.get("closing_message") or arguments.get("reason") or ""
    return Call(call["tool"], str(said), call.get("error", ""), call.get("intent_id", ""))


def _decided(entry: Mapping[str, Any]) -> StoryEntry:
    act = str(entry["data"].get("act", ""))
    reason = "" if entry["data"].get("held") else entry["reason"]  # the act that is held tells it
    return StoryEntry(entry["at"], entry["kind"], entry["loop"], entry["summary"], reason, act)


def _act(act: Intent, entries: Iterable[Mapping[str, Any]], leaves: Departure | None) -> Act:
    return Act(
        id=act.id,
        kind=act.kind,
        target=act.target,
        text=act.body.preview,
        state=act.state,
        uri=act.result_uri or "",
        why=act.error or "",
        cause=act.cause_id or "",
        created_at=act.created_at,
        expires_at=act.expires_at,
        leaves_at=leaves.at if leaves else "",
        waits_for=leaves.reason if leaves else "",
        movements=tuple(
            _movement(entry) for entry in entries if entry["kind"] == "act" and entry["intent_id"] == act.id
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
