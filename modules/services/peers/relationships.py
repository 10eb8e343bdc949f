"""Stores whom the SOUL met and answered, and how far it read its notifications, in `.memory/relationships.json`.

An account is stored under its DID, as a handle may be given up and taken by somebody else.

Written atomically after each change, and kept across versions. A crash loses at most the change that it interrupted,
and the notification that caused it comes again, since `seenAt` moves last.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from adapters.atproto.types import Actor, Notification
from common.clock import Clock, iso, parse_iso
from common.constants import STATE_MAX_BYTES
from common.files import read_bounded
from common.text.untrusted import one_line
from common.wording import counted
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.services.agent.attention_list import AttentionNeeds, Insight, Reflection
from modules.services.outbox.bodies import DirectMessageBody, IntentKind
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent
from modules.services.peers.registry import is_handle
from modules.services.work.types import Perceiver

RELATIONSHIP_PRUNE_DAYS = 60
RELATIONSHIP_PRUNE_VALUABLE_DAYS = 90

Sentiment = Literal["unknown", "negative", "neutral", "positive"]
InsightCode = Literal["New Person", "Shared", "Commented", "Announced", "Answered", "Liked"]
"""A subsection of `Insights` in the `prosoche` skill."""

RECURRING_INTERACTIONS = 5
_KEPT_INTERACTIONS = 50
_MOST_BYTES = STATE_MAX_BYTES * 3 // 4
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


@dataclass(frozen=True, slots=True)
class RelationshipSummary:
    """The numbers of accounts that are known, positive, and recurring; and a line for each of the closest."""

    total: int
    positive: int
    recurring: int
    closest: tuple[str, ...]


class Relationships:
    """The store of relationships. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._file = RecordFile(path, "relationships", Relationship)
        self._file.records = {one.did: one for one in self._file.records.values()}
        self.notice = self._file.notice

    @property
    def seen_at(self) -> str | None:
        """The `indexedAt` of the newest notification that was read, ISO-8601; None if none was."""
        value = self._file.rest.get("seenAt")
        return value if _is_moment(value) else None

    def advance_seen_at(self, indexed_at: str) -> None:
        """Record that all was read up to `indexed_at`; never move back. Raises `ValueError` if that is not a time."""
        moment = parse_iso(indexed_at)
        if self.seen_at is None or moment > parse_iso(self.seen_at):
            self._file.rest["seenAt"] = indexed_at
            self._save()

    def get(self, did: str, /) -> Relationship | None:
        """Return the memory of an account, or None."""
        return self._file.records.get(did)

    def follows_us(self, did: str) -> bool:
        """Return whether the account with this DID is known to have followed us; may be called from any thread."""
        known = self.get(did)
        return known is not None and known.follows_us

    def record_interaction(self, notification: Notification) -> Relationship:
        """Store the interaction in a notification; the same one twice changes nothing."""
        at, kind = parse_iso(notification.indexed_at), notification.kind
        return self._record(notification.author, Interaction(type=kind, uri=notification.uri, timestamp=at))

    def record_message(self, author: Actor, uri: str, sent_at: str, *, responded: bool) -> Relationship:
        """Store that an account wrote a direct message, without its text; the same one twice changes nothing."""
        return self._record(
            author, Interaction(type="message", uri=uri, timestamp=parse_iso(sent_at), responded=responded)
        )

    def _record(self, author: Actor, interaction: Interaction) -> Relationship:
        moment = interaction.timestamp
        before = self.get(author.did) or Relationship(
            handle=author.handle, did=author.did, first_seen=moment, last_interaction=moment
        )
        if any(item.uri == interaction.uri for item in before.interactions):
            return before
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
        self._keep(after)
        return after

    def mark_responded(self, uris: Collection[str]) -> None:
        """Record that the posts or messages at these addresses were answered, by words or by a like."""
        with self.one_save():
            for one in list(self._file.records.values()):
                if any(item.uri in uris and not item.responded for item in one.interactions):
                    interactions = tuple(
                        item.replace(responded=True) if item.uri in uris else item for item in one.interactions
                    )
                    self._keep(one.replace(interactions=interactions, responded=True))

    @contextmanager
    def one_save(self) -> Iterator[None]:
        """Write many changes at once, when the block ends."""
        with self._file.one_save():
            yield

    def prune_stale(self) -> int:
        """Forget accounts without contact for 60 days, 90 if positive or recurring; return how many.

        Of a follower only the follow is kept. If the file is close to its limit, those without contact for longest are
        forgotten earlier.
        """
        now, records = self._clock.now(), self._file.records

        def stale(one: Relationship) -> bool:
            valuable = one.sentiment == "positive" or one.is_recurring
            days = RELATIONSHIP_PRUNE_VALUABLE_DAYS if valuable else RELATIONSHIP_PRUNE_DAYS
            return now - one.last_interaction > timedelta(days=days)

        oldest = sorted(records.values(), key=lambda one: one.last_interaction)
        excess = len(oldest) * max(0, self._file.size - _MOST_BYTES) // max(1, self._file.size)
        gone = 0
        for index, one in enumerate(oldest):
            left = one.only_follow
            if index >= excess and (left == one or not stale(one)):
                continue
            if left and left != one:
                records[one.did] = left
            else:
                del records[one.did]
            gone += 1
        if gone:
            self._save()
        return gone

    @property
    def reflection(self) -> Reflection:
        """The events and insights since SELF.md was last changed."""
        return reflection_in(self._file.rest)

    def note_insight(self, code: InsightCode, about: str, *, significant: bool = False, did: str = "") -> None:
        """Store an insight, and count the event if it was significant. Raises `StorageError`.

        `did` is the account that it is about, if there is one.
        """
        add(self._file.rest, code, about, self._clock.now(), significant=significant, did=did)
        self._save()

    def integrate_insights(self) -> None:
        """Record that SELF.md was changed, so that pending insights count as used. Raises `StorageError`."""
        if self.reflection != Reflection():
            clear(self._file.rest)
            self._save()

    async def attention(self) -> AttentionNeeds:
        """Return the pending reflection, for the list of what needs attention."""
        return AttentionNeeds(reflection=self.reflection)

    def newest(self, limit: int) -> list[Relationship]:
        """Return the accounts with the latest interactions, newest first."""
        known = sorted(self._file.records.values(), key=lambda one: one.last_interaction, reverse=True)
        return known[:limit]

    def summary(self) -> RelationshipSummary:
        """Return the counts, and the closest accounts."""
        known = self._file.records.values()
        return RelationshipSummary(
            total=len(known),
            positive=sum(one.sentiment == "positive" for one in known),
            recurring=sum(one.is_recurring for one in known),
            closest=tuple(self.closest()),
        )

    def closest(self) -> list[str]:
        """Return a line for each of the accounts with the most exchanges, closest first; none without exchanges."""
        ranked = sorted(self._file.records.values(), key=lambda one: -one.exchanges)[:_TOP]
        return [f"@{one.handle}: {counted(one.exchanges, 'exchange')}" for one in ranked if one.exchanges]

    def _keep(self, relationship: Relationship) -> None:
        """Store an account. Its first response makes it a new person; unanswered spam never does."""
        known, who = self.get(relationship.did), f"@{relationship.handle}"
        self._file.records[relationship.did] = relationship
        if relationship.responded and not (known and known.responded) and is_handle(relationship.handle):
            add(self._file.rest, "New Person", who, self._clock.now(), significant=True, did=relationship.did)
        self._save()

    def _save(self) -> None:
        self._file.rest["lastUpdated"] = iso(self._clock.now())
        self._file.save()


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


def read_reflection(path: Path) -> Reflection:
    """Return the reflection in the file at `path`, without changing it; an empty one if it cannot be read."""
    try:
        state = json.loads(read_bounded(path, STATE_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return Reflection()
    return reflection_in(state) if isinstance(state, dict) else Reflection()


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
        self.relationships.mark_responded(answered)
        self._looked_at = now


def _answered(act: Intent) -> str:
    """Return the address of the post or message that an act answers."""
    if isinstance(act.body, DirectMessageBody):
        return act.body.subject.partition("#")[0]
    return act.target
