"""What is new: fetches notifications, remembers who reached us, and stores what deserves a look by the mind.

Order matters for crashes: first the posts are stored, then they count as seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.atproto.client import Atproto
from adapters.atproto.types import Notification
from common.clock import Clock, parse_iso
from common.constants import (
    NOTIFICATION_FETCH_LIMIT,
    NOTIFICATION_MAX_AGE_MS,
    NOTIFICATION_MAX_PAGES,
    NOTIFICATION_OVERLAP_MS,
)
from common.result import ApiResult, Decision, Err, Ok
from modules.bluesky.policy import prioritize_notifications, should_respond_to
from modules.bluesky.publish import Publisher
from modules.bluesky.relationships import Relationships
from modules.bluesky.state import PendingPosts
from modules.identity import Identity
from modules.journal.journal import Journal
from modules.journal.types import Entry

_WORDS = {"reply", "mention", "quote"}
LIKED_WHEN_LET_GO = frozenset(
    {"closing or acknowledgment message", "emoji reaction", "low-value acknowledgment"},
)


@dataclass(frozen=True, slots=True)
class Perceived:
    """How many notifications were new, how many posts now wait for the mind, how many were let go with a reason."""

    new: int
    waiting: int
    let_go: int


class Perceiver:
    """Looks at the notifications of our account."""

    def __init__(
        self,
        *,
        atproto: Atproto,
        pending: PendingPosts,
        relationships: Relationships,
        publisher: Publisher,
        identity: Identity,
        journal: Journal,
        clock: Clock,
        owner_did: str,
    ) -> None:
        self._atproto = atproto
        self._pending = pending
        self._relationships = relationships
        self._publisher = publisher
        self._identity = identity
        self._journal = journal
        self._clock = clock
        self._owner_did = owner_did

    async def look(self) -> ApiResult[Perceived]:
        """Take in what is new.

        The network may show an older notification after a newer one, so each look reaches back a little; what is
        stored already is not new.
        """
        fetched = await self._fetch_new()
        if isinstance(fetched, Err):
            return fetched
        known = await self._pending.known([item.uri for item in fetched.data])
        fresh = [item for item in fetched.data if item.uri not in known and self._is_news(item)]
        if not fresh:
            return Ok(Perceived(0, 0, 0))
        ranked = prioritize_notifications(
            fresh,
            owner_did=self._owner_did,
            agent_did=self._atproto.did,
            relationships=self._relationships,
        )
        for item in ranked:
            self._relationships.record_interaction(item.notification)
        skip = self._identity.extract().social_mechanics.skip_low_value_acknowledgments
        wanted: list[Notification] = []
        let_go: list[tuple[Notification, Decision]] = []
        for item in ranked:
            notification = item.notification
            if notification.reason not in _WORDS or notification.author.did == self._atproto.did:
                continue
            decision = should_respond_to(notification, self._owner_did, skip_acknowledgments=skip)
            if decision:
                wanted.append(notification)
            else:
                let_go.append((notification, decision))
        for notification, decision in let_go:
            await self._let_go(notification, decision)
        await self._pending.take_in([notification for notification, _ in let_go], state="dropped")
        stored = await self._pending.take_in(wanted)
        if stored:
            await self._announce(wanted)
        self._relationships.advance_seen_at(max(item.indexed_at for item in fresh))
        seen = await self._atproto.update_seen_notifications()
        if isinstance(seen, Err):
            summary = f"Notifications could not be marked as seen: {seen.error}"
            await self._journal.record(Entry("error", "awareness", summary, line="warn"))
        return Ok(Perceived(len(fresh), stored, len(let_go)))

    def _is_news(self, notification: Notification) -> bool:
        seen_at = self._relationships.seen_at
        return notification.reason in _WORDS or not seen_at or _indexed(notification) > parse_iso(seen_at)

    async def _fetch_new(self) -> ApiResult[list[Notification]]:
        floor = self._clock.now() - timedelta(milliseconds=NOTIFICATION_MAX_AGE_MS)
        if seen_at := self._relationships.seen_at:
            floor = max(floor, parse_iso(seen_at) - timedelta(milliseconds=NOTIFICATION_OVERLAP_MS))
        new: list[Notification] = []
        cursor: str | None = None
        for _ in range(NOTIFICATION_MAX_PAGES):
            page = await self._atproto.get_notifications(NOTIFICATION_FETCH_LIMIT, cursor)
            if isinstance(page, Err):
                return page
            items = page.data.notifications
            new += [item for item in items if _indexed(item) > floor]
            cursor = page.data.cursor
            if not cursor or not items or _indexed(items[-1]) <= floor:
                break
        return Ok(new)

    async def _let_go(self, notification: Notification, decision: Decision) -> None:
        """Small words get a like, and end the talk; the rest is simply noted."""
        act, intent_id = "skipped", None
        if decision.reason in LIKED_WHEN_LET_GO:
            published = await self._publisher.conclude(
                notification.root, decision.reason, like=notification.ref, cause_id=notification.uri
            )
            act, intent_id = "liked", published.intent_id or None
        await self._journal.record(
            Entry(
                "decision",
                "awareness",
                f"{'Liked, no reply' if act == 'liked' else 'No reply'} to @{notification.author.handle}",
                line="social",
                reason=decision.reason,
                trigger_uri=notification.uri,
                author=notification.author.handle,
                intent_id=intent_id,
                data={"act": act, "text_chars": len(notification.text)},
            )
        )

    async def _announce(self, wanted: list[Notification]) -> None:
        names = ", ".join(f"{item.reason} from @{item.author.handle}" for item in wanted)
        await self._journal.record(Entry("life", "awareness", f"{len(wanted)} to look at: {names}", line="info"))


def _indexed(notification: Notification) -> datetime:
    return parse_iso(notification.indexed_at)
