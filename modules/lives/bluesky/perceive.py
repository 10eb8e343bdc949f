"""Fetches notifications, records who wrote to us, and stores the posts that deserve a look by the model.

The order matters for crashes: first the posts are stored, then they count as seen. The loops of this life are here too.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from adapters.atproto.client import Atproto
from adapters.atproto.types import Notification
from common.clock import Clock, local, parse_iso, parse_iso_or_none
from common.constants import DAY_MS, MINUTE_MS, SECOND_MS, SESSION_EXPIRY_MARGIN_S
from common.errors import Fatal, Transient
from common.intervals import Pace
from common.provenance import Importance
from common.result import ApiResult, Err, ErrKind, Ok, answering
from common.text.rights_requests import may_be_rights_request
from common.wording import counted
from modules.lives.bluesky.expression import ExpressionCycle
from modules.lives.bluesky.policy import (
    NOTIFICATION_MAX_AGE_MS,
    OWNER_MAX_AGE_MS,
    Queued,
    Screening,
    is_too_late,
    prioritize_notifications,
    queue_of,
    should_respond_to,
)
from modules.lives.bluesky.publish import PendingPosts, Publisher
from modules.lives.bluesky.types import (
    AWARENESS,
    CONVERSATION_STALE_RETENTION_MS,
    EXPRESSION_CHECK,
    POST,
    REQUEST,
    ActTerms,
)
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome, awareness_skip_probability
from modules.services.identity.identity import Identity, Me
from modules.services.moderation import Moderation
from modules.services.outbox.account import ACCOUNT_REMEDY
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.own_feed.engagement import OwnFeed
from modules.services.peers.own_identity import OwnIdentity
from modules.services.peers.registry import PeerDiscovery
from modules.services.relationships import Relationships
from modules.services.rights.requests import ForgottenPeople
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork, Perceiver
from modules.services.workspaces.addresses import workspaces_in
from modules.services.workspaces.watched import NO_ROOM, WatchedWorkspaces

NOTIFICATION_FETCH_LIMIT = 50
NOTIFICATION_MAX_PAGES = 4
NOTIFICATION_MAX_BURST_PAGES = 40
REQUEST_MAX_AGE_MS = 7 * DAY_MS

_WORDS = ("reply", "mention", "quote")
_UNREAD_MENTION = "its mention of us is not visible as an @handle to people who read the post"
_REACTIONS = {"like": "liked a post of ours", "repost": "reposted a post of ours", "follow": "follows us"}


@dataclass(frozen=True, slots=True)
class PerceivedPosts:
    """How many notifications were new, how many posts now wait for the model, and how many were dropped by rule."""

    new: int
    waiting: int
    let_go: int


@dataclass(kw_only=True, slots=True)
class PostPerceiver(Perceiver):
    """Reads the notifications of our account, and queues new posts for their handler."""

    atproto: Atproto
    outbox: Outbox
    pending: PendingPosts
    work: WorkTable
    relationships: Relationships
    publisher: Publisher
    identity: Identity
    journal: Journal
    clock: Clock
    rng: random.Random
    me: Me
    etiquette: Etiquette
    peers: PeerDiscovery
    workspaces: WatchedWorkspaces
    moderation: Moderation
    forgotten: ForgottenPeople
    _unreadable: int = field(default=0, init=False)
    _errors: int = field(default=0, init=False)
    _skipped: int = field(default=0, init=False)
    _trouble: str = field(default="", init=False)
    """The first error since notifications were last read; it is reported once."""
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _was_read: bool = field(default=False, init=False)

    async def perceive(self) -> None:
        was_read, self._was_read = self._was_read, False
        if not was_read and not (await self.read()).success:
            message = f"Notifications could not be read: {self._trouble}"
            raise Transient(message)

    async def read_first(self) -> None:
        """Read notifications before a start makes any other request; the first `perceive` then does not read them."""
        self._was_read = isinstance(await self.read(), Ok)

    async def read(self) -> ApiResult[PerceivedPosts]:
        """Read notifications, and queue what waits for its handler.

        After failures most looks are skipped, but never many in a row.
        """
        if self.rng.random() < awareness_skip_probability(self._errors, self._skipped):
            self._skipped += 1
            return Err(f"backing off after {self._errors} failures", kind="transient")
        async with self._reading:
            self._skipped = 0
            self._errors += 1  # an exception counts as a failure too
            perceived = await self.look()
            await self._queue()
            if isinstance(perceived, Ok):
                self._errors, self._trouble = 0, ""
            else:
                self._trouble = self._trouble or perceived.error
            return perceived

    async def _queue(self) -> None:
        """Queue a row of work for the newest post of each person in a thread, and for each post that cannot be read."""
        waiting = await self.pending.waiting()
        known = await self.relationships.of(one.notification.author.did for one in waiting)
        queue = queue_of(waiting, self.me.owner_did, known, self.atproto.did)
        unreadable = [NewWork(POST, uri, cause_id=uri) for uri in await self.pending.unreadable()]
        await self.work.queue((POST, REQUEST), [*map(self._row, queue), *unreadable])

    def _importance_of(self, did: str) -> Importance:
        """Return the importance of a post by this author, for the budget."""
        if self.me.is_owner(did):
            return "owner"
        return "stranger" if self.etiquette.is_stranger(did) else "mention"

    def _row(self, queued: Queued) -> NewWork:
        post = queued.item.notification
        return NewWork(
            REQUEST if queued.is_request else POST,
            post.uri,
            {"handle": post.author.handle, "earlier": [one.uri for one in queued.item.earlier]},
            author=post.author.did,
            importance=self._importance_of(post.author.did),
            cause_id=post.uri,
            rank=queued.rank,
        )

    @answering
    async def look(self) -> ApiResult[PerceivedPosts]:
        """Store what is new. What is stored already is not new, however often the network shows it."""
        words, quiet = await self._fetch_words(), await self._fetch_quiet()
        self.moderation.note(*(item.author for item in (*words, *quiet)))
        known = await self.pending.known([item.uri for item in words])
        unmet = [item for item in words if item.uri not in known and item.author.did != self.atproto.did]
        floor = self._floor()
        reactions, _ = await self.forgotten.sift(quiet)
        sifted, not_remembered = await self.forgotten.sift([*unmet, *reactions])
        kept = [item for item in sifted if item.addresses(self.atproto.did)]
        await self._pass_over([item for item in sifted if item not in kept], lambda _: _UNREAD_MENTION)
        fresh = [item for item in kept if self._is_in_time(item) or self._may_be_late_request(item)]
        taken = {item.uri for item in fresh}
        late = [item for item in kept if item.uri not in taken and _indexed(item) <= floor]
        if not fresh and not late and not reactions:
            return Ok(PerceivedPosts(0, 0, 0))
        await self._pass_over(late, self._too_late)
        for item in reactions:
            await self._note(item)
        remembered = [item for item in fresh if item.author.did not in not_remembered]
        await self.relationships.record_interactions(remembered)
        self.peers.note_notifications(remembered, self.atproto.did)
        await self._note_workspaces(remembered)
        ranked = prioritize_notifications(
            fresh,
            owner_did=self.me.owner_did,
            agent_did=self.atproto.did,
            relationships=await self.relationships.of(one.author.did for one in fresh),
        )
        perceived = await self._sort_out([item.notification for item in ranked if item.notification.kind in _WORDS])
        self.relationships.advance_seen_at(max(item.indexed_at for item in (*fresh, *late, *quiet)))
        seen = await self.atproto.update_seen_notifications()
        if isinstance(seen, Err):
            summary = f"Notifications could not be marked as seen: {seen.error}"
            await self.journal.record(Entry("error", AWARENESS, summary, line="warn"))
        return Ok(PerceivedPosts(len(fresh), *perceived))

    async def _note_workspaces(self, notifications: Iterable[Notification]) -> None:
        """Watch the workspaces that the owner and listed peers name; nobody else can make the SOUL watch one."""
        for item in notifications:
            is_owner = self.me.is_owner(item.author.did)
            if not is_owner and not self.etiquette.is_listed_peer(item.author.did):
                continue
            ordered_at = parse_iso_or_none(item.indexed_at) if is_owner else None
            for repo in workspaces_in(item):
                if self.workspaces.watch(repo, item.root.uri, ordered_at=ordered_at):
                    summary = f"Watches the workspace {repo.full_name}, which @{item.author.handle} named"
                    await self.journal.record(Entry("life", AWARENESS, summary, line="done", trigger_uri=item.uri))
                elif not self.workspaces.has_room_for(repo):
                    summary = f"Does not watch {repo.full_name}, which @{item.author.handle} named: {NO_ROOM}"
                    await self.journal.record(Entry("decision", AWARENESS, summary, line="warn", trigger_uri=item.uri))

    async def _sort_out(self, notifications: list[Notification]) -> tuple[int, int]:
        """Store what the model should see, let go of the rest; return how many of each."""
        asked = {item.uri for item in notifications if may_be_rights_request(item.text)}
        owner, skip = self.me.owner_did, self.identity.extract().social_mechanics.skip_low_value_acknowledgments
        decided = [(item, should_respond_to(item, owner, skip_acknowledgments=skip)) for item in notifications]
        if not all(decision for _, decision in decided):
            await self.moderation.refresh()
        unseen = {item.uri: why for item in notifications if (why := self.moderation.why_unseen(item))}
        passed_over = [item for item in notifications if item.uri in unseen and item.uri not in asked]
        await self._pass_over(passed_over, lambda item: unseen[item.uri])
        # NOTE(self): nothing gets a like unread before it is known what our account chose not to see.
        let_go = [
            (item, decision)
            for item, decision in decided
            if not decision and not {item.uri} & (asked | unseen.keys()) and self.moderation.is_known
        ]
        settled = [*passed_over, *(item for item, _ in let_go)]
        wanted = [item for item in notifications if item not in settled]
        # NOTE(self): stored before anything is done, because a like needs the row with its reason; after a crash in
        # between, the model handles them.
        await self.pending.take_in([item for item, _ in let_go])
        for item, decision in let_go:
            await self._let_go(item, decision)
        await self.pending.settle([item.uri for item, _ in let_go], "dropped", "let go")
        stored = await self.pending.take_in(wanted)
        if stored:
            await self._announce(wanted)
        return stored, len(let_go) + len(passed_over)

    async def _fetch_words(self) -> list[Notification]:
        """Return mentions, replies and quotes of the last day or, after a pause, since the last look; also some older.

        A notification has the time at which its post was made, so that one made hours ago can show up only now, behind
        others that are known. Each look therefore reaches back the whole day, and reads more pages than usual if all
        of a page is unseen.
        """
        floor = self._floor()
        forgotten = self.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS)
        seen_at = self.relationships.seen_at
        reach = floor if seen_at is None else min(floor, max(parse_iso(seen_at), self._owner_floor()))
        found: list[Notification] = []
        unreadable = 0
        cursor: str | None = None
        for number in range(1, NOTIFICATION_MAX_BURST_PAGES + 1):
            page = (await self.atproto.get_notifications(NOTIFICATION_FETCH_LIMIT, cursor, reasons=_WORDS)).or_raise()
            items, cursor = page.notifications, page.cursor
            unreadable += page.unreadable
            found += [item for item in items if item.kind in _WORDS and _indexed(item) > forgotten]
            if not cursor or not (items or page.unreadable) or (items and _indexed(items[-1]) <= reach):
                break
            caught_up = seen_at is not None and bool(items) and _indexed(items[-1]) <= parse_iso(seen_at)
            if number >= NOTIFICATION_MAX_PAGES and caught_up:
                break
        await self._tell_unreadable(unreadable)
        return found

    async def _tell_unreadable(self, count: int) -> None:
        """Record how many are unreadable if it is more than before, because each look finds them again."""
        if count > self._unreadable:
            summary = f"{counted(count, 'notification')} could not be read and will get no answer"
            await self.journal.record(Entry("error", AWARENESS, summary, line="warn", reason="unreadable"))
        self._unreadable = count

    async def _fetch_quiet(self) -> list[Notification]:
        """Return the latest reactions, which need no answer; a burst may lose some."""
        page = (await self.atproto.get_notifications(NOTIFICATION_FETCH_LIMIT, reasons=tuple(_REACTIONS))).or_raise()
        floor = self._floor()
        if seen_at := self.relationships.seen_at:
            floor = max(floor, parse_iso(seen_at))
        return [item for item in page.notifications if item.kind in _REACTIONS and _indexed(item) > floor]

    async def _let_go(self, notification: Notification, decision: Screening) -> None:
        """Record a post that needs no answer; mere thanks and the like get a like, and end the conversation."""
        act, intent_id, reason = "skipped", None, decision.reason
        if decision.deserves_like:
            root, terms = notification.root, ActTerms(notification.uri)
            if self.publisher.is_between(root, notification.author.did):
                published = await self.publisher.conclude(root, decision.reason, like=notification.ref, terms=terms)
            else:
                published = await self.publisher.like(notification.ref, terms)
            act = "liked" if published.status == "accepted" else "skipped"
            intent_id = published.intent_id or None
            if published.status == "blocked":
                reason = f"{decision.reason}; no like: {published.reason}"
        await self.journal.record(
            Entry(
                "decision",
                AWARENESS,
                f"{'Liked, no reply' if act == 'liked' else 'No reply'} to @{notification.author.handle}",
                line="social",
                reason=reason,
                trigger_uri=notification.uri,
                author=notification.author.handle,
                intent_id=intent_id,
                data={"act": act, "text_chars": len(notification.text)},
            )
        )

    async def _pass_over(self, notifications: list[Notification], why: Callable[[Notification], str]) -> None:
        """Record posts that need no look by the model, each with its reason."""
        for notification in notifications:
            await self.journal.record(
                Entry(
                    "decision",
                    AWARENESS,
                    f"No reply to @{notification.author.handle}",
                    line=None,
                    reason=why(notification),
                    trigger_uri=notification.uri,
                    author=notification.author.handle,
                    data={"act": "passed_over"},
                )
            )
        await self.pending.take_in(notifications, state="dropped")

    async def _note(self, notification: Notification) -> None:
        """Record a reaction, which needs no answer; one to a post of ours with the act that made the post."""
        handle, subject = notification.author.handle, notification.reason_subject or ""
        made = await self.outbox.made(subject) if subject else None
        summary, reason = f"@{handle} {_REACTIONS[notification.kind]}", f"a {notification.kind} asks for no answer"
        await self.journal.record(
            Entry(
                "decision",
                AWARENESS,
                summary,
                line=None,
                reason=reason,
                trigger_uri=notification.uri,
                author=handle,
                intent_id=made.id if made else None,
                data={"act": "noted", "kind": notification.kind, "subject": subject},
            )
        )

    def _is_in_time(self, notification: Notification) -> bool:
        """Return whether a post is recent enough for an answer."""
        by_owner = self.me.is_owner(notification.author.did)
        return not is_too_late(_indexed(notification), self.clock.now(), by_owner=by_owner)

    def _owner_floor(self) -> datetime:
        """Return the time before which the owner's posts are no longer answered."""
        return self.clock.now() - timedelta(milliseconds=OWNER_MAX_AGE_MS)

    def _floor(self) -> datetime:
        """Return the time before which posts of others are no longer answered."""
        return self.clock.now() - timedelta(milliseconds=NOTIFICATION_MAX_AGE_MS)

    def _may_be_late_request(self, notification: Notification) -> bool:
        """Return whether it may be a request about the author's own data, which is carried out even after days."""
        since = self.clock.now() - timedelta(milliseconds=REQUEST_MAX_AGE_MS)
        return (
            notification.kind in _WORDS and _indexed(notification) > since and may_be_rights_request(notification.text)
        )

    def _too_late(self, notification: Notification) -> str:
        hours = (self.clock.now() - _indexed(notification)) / timedelta(hours=1)
        return f"it was seen only after {hours:.0f} hours; an answer would come too late"

    async def _announce(self, wanted: list[Notification]) -> None:
        names = ", ".join(f"{item.kind} from @{item.author.handle}" for item in wanted)
        summary, dids = f"{len(wanted)} to look at: {names}", tuple({item.author.did for item in wanted})
        await self.journal.record(Entry("life", AWARENESS, summary, line="info", dids=dids))


def _indexed(notification: Notification) -> datetime:
    return parse_iso(notification.indexed_at)


_LOGIN_REMEDY = "set AGENT_BLUESKY_PASSWORD in .env to an app password that is valid, and start it again"


def _at_once() -> bool:
    return True


@dataclass(slots=True)
class NotificationLoop(Loop):
    """Reads notifications while a slow model keeps the loop that answers busy: reading never waits for a turn."""

    name = "notifications"

    pace: Pace
    perceiver: PostPerceiver
    awareness: WorkLoop

    @property
    def interval_ms(self) -> float:
        return self.pace.notifications_ms

    async def run(self) -> Outcome:
        if not self.awareness.is_busy:
            return Outcome(ran=False, reason="they are read when it looks for posts to answer")
        read = await self.perceiver.read()
        if isinstance(read, Err):
            return Outcome(ran=False, reason=read.error)
        new = read.data.new
        return Outcome(ran=True, reason=f"{counted(new, 'new notification')} read")


@dataclass(slots=True)
class ExpressionLoop(Loop):
    """Checks whether a thought is due, once `ready` says that the time of the last one is known."""

    name = EXPRESSION_CHECK
    needs_idle = True

    pace: Pace
    expression: ExpressionCycle
    ready: Callable[[], bool] = _at_once

    @property
    def interval_ms(self) -> float:
        return self.pace.expression_check_ms

    async def run(self) -> Outcome:
        if not self.ready():
            wait_s = self.pace.atproto_spacing_ms / 1000
            return Outcome(ran=False, reason="its own feed is still to be read", next_in_s=wait_s)
        return await self.expression.run_if_due()


@dataclass(slots=True)
class SessionLoop(Loop):
    """Renews the session well before it expires; the adapter also recovers on its own.

    A failure is reported once, until the renewal succeeds or fails in another way. An account that its service does not
    let in ends the process. A look costs no request while the session is valid.
    """

    name = "session-refresh"
    interval_ms = 20 * SECOND_MS
    at_start = True
    renewed_before_ms: ClassVar[float] = 15 * MINUTE_MS

    atproto: Atproto
    journal: Journal
    _told: ErrKind | None = field(default=None, init=False)

    async def run(self) -> Outcome:
        margin = self.renewed_before_ms / SECOND_MS + 2 * SESSION_EXPIRY_MARGIN_S
        result = await self.atproto.ensure_session_or_reauth(margin_s=margin)
        if isinstance(result, Err):
            if result.kind == "fatal":
                raise Fatal(f"Bluesky: {result.error}", remedy=ACCOUNT_REMEDY)
            if result.kind != self._told:
                self._told = result.kind
                summary = f"The Bluesky session could not be renewed: {result.error}"
                remedy = _LOGIN_REMEDY if result.kind == "auth" else ""
                await self.journal.record(Entry("error", self.name, summary, line="error", reason=remedy))
            return Outcome(ran=False, reason=result.error)
        self._told = None
        if result.data != "valid":
            await self.journal.record(Entry("life", self.name, f"Bluesky session {result.data}", line="done"))
        return Outcome(ran=True, reason=result.data)


async def warm_up(
    *, feed: OwnFeed, identity: OwnIdentity, expression: ExpressionCycle, journal: Journal, timezone: str = ""
) -> None:
    """Read our own feed once before anything starts.

    It shows what we said, whether our identity post exists, when we last posted, and what repeats an older post.
    """
    read = await feed.read()
    if isinstance(read, Err):
        await journal.record(Entry("life", "start", f"Own feed could not be read: {read.error}", line="warn"))
        await expression.resume()
        return
    own = read.data
    await identity.note_feed(own)
    top_level = [post.created_at for post in own if post.reply is None]
    due = await expression.resume(max(top_level, default=None))
    summary = (
        f"Read {counted(len(own), 'recent post')} of its own; the next is due at {local(due, timezone):%Y-%m-%d %H:%M}"
    )
    await journal.record(Entry("life", "start", summary, line="mem"))
    if pruned := await feed.pruner.prune(own):
        summary = f"Deletes {counted(pruned, 'post')} of its own that only repeat older ones"
        await journal.record(Entry("life", "start", summary, line="info"))
