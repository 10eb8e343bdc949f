"""Stores whom the SOUL met and answered in `soul.db`; how far it read, and what it learned, in a small file.

An account is stored under its DID, as a handle may be given up and taken by somebody else.

A crash loses at most the change that it interrupted, and the notification that caused it comes again, since `seenAt` in
`.memory/relationships.json` moves last.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Actor, Notification
from common.clock import Clock, iso, parse_iso
from common.files import load_state, save_state
from common.text.untrusted import one_line
from common.wording import counted
from modules.runtime.database.database import Database
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.runtime.record_file import FileRecord, Moment
from modules.services.agent.attention_list import AttentionNeeds, Insight, Reflection
from modules.services.outbox.bodies import DirectMessageBody, IntentKind
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent
from modules.services.work.types import Perceiver

RELATIONSHIP_PRUNE_DAYS = 60
RELATIONSHIP_PRUNE_VALUABLE_DAYS = 90

Sentiment = Literal["unknown", "negative", "neutral", "positive"]
InsightCode = Literal["New Person", "Shared", "Commented", "Announced", "Answered", "Liked"]
"""A subsection of `Insights` in the `prosoche` skill."""

RECURRING_INTERACTIONS = 5
_KEPT_INTERACTIONS = 50
_SENTIMENT_WINDOW = 10
_POSITIVE_SIGNS = 3
_WARM = frozenset({"like", "repost", "follow"})
_TOP = 5


class Interaction(FileRecord):
    """An interaction of an account with us, once per uri."""

    type: str
    uri: str
    timestamp: Moment
    responded: bool = False


class Relationship(FileRecord):
    """The memory of one account; the newest 50 interactions are kept, of older ones their numbers and the follow."""

    handle: str
    did: str
    display_name: str | None = None
    interactions: tuple[Interaction, ...] = ()
    first_seen: Moment
    last_interaction: Moment
    sentiment: Sentiment = "unknown"
    responded: bool = False
    older_written: int = 0
    older_exchanges: int = 0
    older_follow: bool = False

    @property
    def times_written(self) -> int:
        """The number of interactions in words; a like, a repost and a follow are not."""
        return self.older_written + _written(self.interactions)

    def times_written_before(self, uri: str) -> int:
        """Return how many interactions were in words and came before the one with `uri`."""
        return self.older_written + _written(itertools.takewhile(lambda one: one.uri != uri, self.interactions))

    @property
    def exchanges(self) -> int:
        """The number of interactions in words that we responded to."""
        return self.older_exchanges + _written(one for one in self.interactions if one.responded)

    @property
    def follows_us(self) -> bool:
        """Whether the account is known to have followed us."""
        return self.older_follow or any(one.type == "follow" for one in self.interactions)

    @property
    def only_follow(self) -> Relationship | None:
        """What is kept of a follower who stays away; None for somebody else."""
        kept = {name: getattr(self, name) for name in ("handle", "did", "first_seen", "last_interaction")}
        return Relationship(**kept, older_follow=True) if self.follows_us else None

    @property
    def is_recurring(self) -> bool:
        return len(self.interactions) >= RECURRING_INTERACTIONS


class Relationships:
    """The store of relationships. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, database: Database, clock: Clock) -> None:
        self._path, self._database, self._clock = path, database, clock
        loaded = load_state(path, {}, fits=lambda data: isinstance(data.get(_PEOPLE, {}), dict))
        self._state, self.notice = loaded.data, loaded.notice

    async def open(self) -> None:
        """Move the people in a file of an earlier version into the database; what cannot be read stays in the file."""
        entries = self._state.get(_PEOPLE)
        if not entries:
            return
        people, unread = list[Relationship](), dict[str, Any]()
        for name, entry in entries.items():
            try:
                people.append(Relationship.model_validate(entry))
            except ValidationError:
                unread[name] = entry
        await self._database.run(lambda connection: _take_over(connection, people))
        if unread:
            self.notice = f"{self._path.name}: {len(unread)} entries cannot be read and stay as they are"
        if people:
            self._state[_PEOPLE] = unread
            self._save()

    @property
    def seen_at(self) -> str | None:
        """The `indexedAt` of the newest notification that was read, ISO-8601; None if none was."""
        value = self._state.get("seenAt")
        return value if _is_moment(value) else None

    def advance_seen_at(self, indexed_at: str) -> None:
        """Record that all was read up to `indexed_at`; never move back. Raises `ValueError` if that is not a time."""
        moment = parse_iso(indexed_at)
        if self.seen_at is None or moment > parse_iso(self.seen_at):
            self._state["seenAt"] = indexed_at
            self._save()

    async def get(self, did: str) -> Relationship | None:
        """Return the memory of an account, or None."""
        return (await self.of([did])).get(did)

    async def of(self, dids: Iterable[str]) -> dict[str, Relationship]:
        """Return the memories of these accounts, as far as there are any, by DID."""
        wanted = {*dids}
        found = await self._database.run(lambda rows: [one for did in wanted if (one := get(rows, did))])
        return {one.did: one for one in found}

    async def record_interactions(self, notifications: Iterable[Notification]) -> None:
        """Store the interactions in notifications; the same one twice changes nothing."""
        met = [
            (one.author, Interaction(type=one.kind, uri=one.uri, timestamp=parse_iso(one.indexed_at)))
            for one in notifications
        ]
        await self._keep(lambda rows: [_met(rows, *one) for one in met])

    async def record_messages(self, author: Actor, sent: Mapping[str, str], *, responded: bool) -> None:
        """Store that an account wrote direct messages, without their texts: by uri, when each was `sent`."""
        met = [
            Interaction(type="message", uri=uri, timestamp=parse_iso(at), responded=responded)
            for uri, at in sent.items()
        ]
        await self._keep(lambda rows: [_met(rows, author, one) for one in met])

    async def mark_responded(self, uris: Collection[str]) -> None:
        """Record that the posts or messages at these addresses were answered, by words or by a like."""
        await self._keep(lambda rows: _answer(rows, uris))

    async def _keep(self, change: Callable[[sqlite3.Connection], Iterable[Relationship | None]]) -> None:
        """Carry out a change. Who it returns became a new person by our first response; unanswered spam never does."""
        for one in filter(None, await self._database.run(change)):
            if is_handle(one.handle):
                self.note_insight("New Person", f"@{one.handle}", significant=True, did=one.did)

    async def prune_stale(self) -> int:
        """Forget accounts without contact for 60 days, 90 if positive or recurring; return how many.

        Of a follower only the follow is kept.
        """
        return await self._database.run(lambda connection: _prune(connection, self._clock.now()))

    @property
    def reflection(self) -> Reflection:
        """The events and insights since SELF.md was last changed."""
        return reflection_in(self._state)

    def note_insight(self, code: InsightCode, about: str, *, significant: bool = False, did: str = "") -> None:
        """Store an insight, and count the event if it was significant. Raises `StorageError`.

        `did` is the account that it is about, if there is one.
        """
        add(self._state, code, about, self._clock.now(), significant=significant, did=did)
        self._save()

    def integrate_insights(self) -> None:
        """Record that SELF.md was changed, so that pending insights count as used. Raises `StorageError`."""
        if self.reflection != Reflection():
            clear(self._state)
            self._save()

    async def attention(self) -> AttentionNeeds:
        """Return the pending reflection, for the list of what needs attention."""
        return AttentionNeeds(reflection=self.reflection)

    async def counts(self) -> tuple[int, int, int]:
        """Return the numbers of accounts that are known, positive, and recurring."""
        return await self._database.run(lambda rows: tuple(rows.execute(_COUNTS, (RECURRING_INTERACTIONS,)).fetchone()))

    async def closest(self) -> list[str]:
        """Return a line for each of the accounts with the most exchanges, closest first; none without exchanges."""
        found = await self._database.run(lambda connection: connection.execute(_CLOSEST, (_TOP,)).fetchall())
        return [f"@{handle}: {counted(exchanges, 'exchange')}" for handle, exchanges in found]

    def _save(self) -> None:
        self._state["lastUpdated"] = iso(self._clock.now())
        save_state(self._path, self._state)


_PEOPLE = "relationships"
"""The key of the people in the file of an earlier version."""
_COLUMNS = [name for name in Relationship.model_fields if name != "interactions"]
_NAMED = ", ".join(_COLUMNS)
_PUT = f"""INSERT INTO people_met ({_NAMED}) VALUES ({", ".join(f":{name}" for name in _COLUMNS)})
    ON CONFLICT (did) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}"""  # noqa: S608 - names of fields
_COUNTS = """SELECT count(*), coalesce(sum(sentiment = 'positive'), 0), (SELECT count(*) FROM
    (SELECT 1 FROM interactions GROUP BY did HAVING count(*) >= ?)) FROM people_met"""
_CLOSEST = """SELECT handle, older_exchanges + (SELECT count(*) FROM interactions AS one WHERE one.did = known.did
    AND one.responded AND one.type NOT IN ('like', 'repost', 'follow')) AS exchanges
    FROM people_met AS known WHERE responded AND exchanges ORDER BY exchanges DESC, rowid LIMIT ?"""

RELATIONSHIPS_OF_PEOPLE = PersonalRows(
    "relationships",
    (
        PersonalTable(
            name="people_met",
            theirs="did = :did",
            shown="'met as @' || handle",
            at="last_interaction",
            redacts={"display_name": "redacted(display_name)"},
        ),
        PersonalTable(name="interactions", theirs="did = :did", shown="type || ' ' || uri", at="timestamp"),
    ),
)


def get(connection: sqlite3.Connection, did: str) -> Relationship | None:
    """Return the memory of an account, or None."""
    return next(iter(_people(connection, "WHERE did = ?", did)), None)


def newest(connection: sqlite3.Connection, limit: int) -> list[Relationship]:
    """Return the accounts with the latest interactions, newest first."""
    return _people(connection, "ORDER BY last_interaction DESC LIMIT ?", limit)


def names(connection: sqlite3.Connection, limit: int = -1) -> list[tuple[str, str, str]]:
    """Return DID, handle and display name of the accounts with the latest interactions, newest first."""
    query = "SELECT did, handle, coalesce(display_name, '') FROM people_met ORDER BY last_interaction DESC LIMIT ?"
    return [tuple(row) for row in connection.execute(query, (limit,))]


def follows_us(connection: sqlite3.Connection, did: str) -> bool:
    """Return whether the account with this DID is known to have followed us."""
    known = get(connection, did)
    return known is not None and known.follows_us


def is_handle(name: str) -> bool:
    """Return whether a name has the form of a handle; foreign servers may return any name."""
    return [span.value for span in detect_mentions(f"@{name}")] == [name.lower()]


def _people(connection: sqlite3.Connection, which: str, *values: object) -> list[Relationship]:
    query = f"SELECT {_NAMED} FROM people_met {which}"  # noqa: S608 - our own text
    theirs = "SELECT type, uri, timestamp, responded FROM interactions WHERE did = ? ORDER BY rowid"
    found = []
    for row in connection.execute(query, values).fetchall():
        interactions = tuple(Interaction(**dict(one)) for one in connection.execute(theirs, (row["did"],)))
        found.append(Relationship(**dict(row), interactions=interactions))
    return found


def _put(connection: sqlite3.Connection, one: Relationship) -> None:
    connection.execute(_PUT, one.model_dump(mode="json", include={*_COLUMNS}))
    connection.execute("DELETE FROM interactions WHERE did = ?", (one.did,))
    connection.executemany(
        "INSERT INTO interactions VALUES (:did, :type, :uri, :timestamp, :responded)",
        [{"did": one.did, **each.model_dump(mode="json")} for each in one.interactions],
    )


def _take_over(connection: sqlite3.Connection, people: Iterable[Relationship]) -> None:
    """Store the people of a file; who is known already stays as stored, as a kill may have kept the file."""
    for one in people:
        if get(connection, one.did) is None:
            _put(connection, one)


def _met(connection: sqlite3.Connection, author: Actor, interaction: Interaction) -> Relationship | None:
    """Store an interaction; return the account if this is the first that we responded to."""
    moment = interaction.timestamp
    before = get(connection, author.did) or Relationship(
        handle=author.handle, did=author.did, first_seen=moment, last_interaction=moment
    )
    if any(item.uri == interaction.uri for item in before.interactions):
        return None
    met = (*before.interactions, interaction)
    older, interactions = met[:-_KEPT_INTERACTIONS], met[-_KEPT_INTERACTIONS:]
    after = before.replace(
        older_written=before.older_written + _written(older),
        older_exchanges=before.older_exchanges + _written(one for one in older if one.responded),
        older_follow=before.older_follow or any(one.type == "follow" for one in older),
        handle=author.handle,
        display_name=author.display_name or before.display_name,
        interactions=interactions,
        last_interaction=max(moment, before.last_interaction),
        sentiment=_sentiment(interactions, before.sentiment),
        responded=before.responded or interaction.responded,
    )
    _put(connection, after)
    return after if after.responded and not before.responded else None


def _answer(connection: sqlite3.Connection, uris: Collection[str]) -> list[Relationship]:
    """Mark interactions as answered; return the accounts to which we responded for the first time."""
    found = "did IN (SELECT did FROM interactions WHERE NOT responded AND uri IN (SELECT value FROM json_each(?)))"
    first = []
    for one in _people(connection, f"WHERE {found}", json.dumps(sorted(uris))):
        answered = tuple(item.replace(responded=item.responded or item.uri in uris) for item in one.interactions)
        _put(connection, one.replace(interactions=answered, responded=True))
        first += [] if one.responded else [one]
    return first


def _prune(connection: sqlite3.Connection, now: datetime) -> int:
    gone, which = 0, "WHERE last_interaction < ? AND (NOT older_follow OR did IN (SELECT did FROM interactions))"
    for one in _people(connection, which, iso(now - timedelta(days=RELATIONSHIP_PRUNE_DAYS))):
        valuable = one.sentiment == "positive" or one.is_recurring
        if valuable and now - one.last_interaction <= timedelta(days=RELATIONSHIP_PRUNE_VALUABLE_DAYS):
            continue
        if one.only_follow:
            _put(connection, one.only_follow)
        else:
            connection.execute("DELETE FROM people_met WHERE did = ?", (one.did,))
            connection.execute("DELETE FROM interactions WHERE did = ?", (one.did,))
        gone += 1
    return gone


def _written(interactions: Iterable[Interaction]) -> int:
    return sum(one.type not in _WARM for one in interactions)


def _sentiment(interactions: tuple[Interaction, ...], before: Sentiment) -> Sentiment:
    warm = sum(item.type in _WARM for item in interactions[-_SENTIMENT_WINDOW:])
    if warm >= _POSITIVE_SIGNS:
        return "positive"
    return "neutral" if warm else before


def _is_moment(value: object) -> bool:
    try:
        parse_iso(str(value))
    except ValueError:
        return False
    return True


KEPT_INSIGHTS = 20
_KEY, _EVENTS, _INSIGHTS = "reflection", "significantEvents", "pendingInsights"
_SAME_CHARS = 30
_ABOUT_CHARS = 80

State = MutableMapping[str, Any]


def reflection_in(state: State) -> Reflection:
    """Return the reflection in `state`; entries that cannot be read are left out."""
    kept = _kept(state)
    events, entries = kept.get(_EVENTS), kept.get(_INSIGHTS)
    return Reflection(
        events=events if isinstance(events, int) and events > 0 else 0,
        insights=tuple(
            Insight(entry["code"], entry["about"])
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and isinstance(entry.get("code"), str) and isinstance(entry.get("about"), str)
        ),
    )


def add(state: State, code: str, about: str, now: datetime, *, significant: bool, did: str = "") -> None:
    """Count a significant event, and keep an insight unless one like it is kept; of more than 20 the oldest goes."""
    reflection, about = reflection_in(state), one_line(about, _ABOUT_CHARS)
    kept = _kept(state)
    entries = [entry for entry in kept.get(_INSIGHTS, ()) if isinstance(entry, dict)]
    if not any(_same(one, Insight(code, about)) for one in reflection.insights):
        whose = {"did": did} if did else {}
        entries.append({"code": code, "about": about, "at": iso(now), **whose})
    events = reflection.events + significant
    state[_KEY] = {**kept, _EVENTS: events, _INSIGHTS: entries[-KEPT_INSIGHTS:]}


def clear(state: State) -> None:
    """Drop events and insights once SELF.md contains them."""
    state.pop(_KEY, None)


def _kept(state: State) -> dict[str, Any]:
    kept = state.get(_KEY)
    return kept if isinstance(kept, dict) else {}


def _same(one: Insight, other: Insight) -> bool:
    first, second = (insight.about[:_SAME_CHARS].casefold() for insight in (one, other))
    return one.code == other.code and first == second


_KINDS: tuple[IntentKind, ...] = ("reply", "like", "direct_message")
_OPEN_FOR = timedelta(days=2)
"""An act that was accepted longer ago has left, was refused, or no longer matters."""


@dataclass(kw_only=True)
class ResponsePerceiver(Perceiver):
    """Counts replies, likes and direct messages that left or are on their way; a draft once it is approved."""

    outbox: Outbox
    relationships: Relationships
    clock: Clock
    _looked_at: datetime | None = field(default=None, init=False)

    async def perceive(self) -> None:
        now = self.clock.now()
        since = self._looked_at - _OPEN_FOR if self._looked_at else now - timedelta(days=RELATIONSHIP_PRUNE_DAYS)
        acts = await self.outbox.since(_KINDS, since)
        answered = {_answered(one) for one in acts if one.state in ACTIVE_STATES and one.state != "held"}
        await self.relationships.mark_responded(answered)
        self._looked_at = now


def _answered(act: Intent) -> str:
    """Return the address of the post or message that an act answers."""
    if isinstance(act.body, DirectMessageBody):
        return act.body.subject.partition("#")[0]
    return act.target
