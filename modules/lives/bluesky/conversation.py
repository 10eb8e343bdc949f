"""Conversations: the record of one thread, the events that change it, and when it deserves another reply. Pure.

Only `FollowedThread.after` changes a record: it takes an event and returns the next record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from common.constants import MINUTE_MS
from common.result import Decision
from modules.lives.bluesky.types import (
    CONVERSATION_RETENTION_MS,
    CONVERSATION_STALE_RETENTION_MS,
    Aged,
    Concluded,
    Disengaged,
    Incoming,
    OthersReplied,
    Reopened,
    Replied,
    ThreadEvent,
    ThreadSeen,
)
from modules.runtime.record_file import FileRecord, Moment
from modules.services.identity.self_mechanics import SocialMechanics

RAPID_REPLY_WINDOW_MS = 5 * MINUTE_MS
RAPID_REPLY_COUNT = 2
RAPID_NOVEL_WORDS = 8

State = Literal["new", "active", "awaiting_response", "concluded", "stale"]
Source = Literal["notification", "owner_mention", "expression_reply"]
Cause = Literal["none", "concluded", "replies", "depth", "disengaged", "no response"]
ConversationCode = Literal["owner", "active", "reengaged", "concluded", "replies", "depth", "rapid"]


class Participant(FileRecord):
    """Another account in a conversation."""

    did: str
    handle: str
    display_name: str | None = None
    reply_count: int = 0
    first_reply_at: Moment
    last_reply_at: Moment
    seems_disengaged: bool = False


class OurReply(FileRecord):
    """A reply of ours. An earlier version kept only the newest ten."""

    uri: str
    at: Moment


class FollowedThread(FileRecord):
    """A thread that we follow.

    `concluded_by_silence`: nobody ended it, it only stopped. `reengaged_at`: the time of the post that reopened it.
    `is_project`: it is about shared work, and has higher limits. `read_until`: the newest post by others that was read
    before it was concluded.
    """

    root_uri: str
    root_cid: str | None = None
    root_author_did: str | None = None
    root_author_handle: str | None = None
    first_seen: Moment
    last_checked: Moment
    thread_depth: int = 0
    participants: dict[str, Participant] = Field(default_factory=dict)
    our_reply_count: int = 0
    our_last_reply_at: Moment | None = None
    our_last_reply_uri: str | None = None
    our_replies: tuple[OurReply, ...] = ()
    state: State = "new"
    conclusion_reason: str | None = None
    concluded_at: Moment | None = None
    concluded_by_silence: bool = False
    source: Source = "notification"
    reengagement_count: int = 0
    reengaged_at: Moment | None = None
    is_project: bool = False
    read_until: Moment | None = None

    def is_expired(self, now: datetime) -> bool:
        """Return whether it may be deleted: a week after its end or, if it is stale, 30 days after its last event."""
        if self.state == "concluded":
            return now - (self.concluded_at or self.last_checked) > timedelta(milliseconds=CONVERSATION_RETENTION_MS)
        stale_for = timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS)
        return self.state == "stale" and now - self.last_checked > stale_for

    def after(self, event: ThreadEvent, now: datetime) -> FollowedThread:
        """Return the conversation after an event at `now`."""
        match event:
            case ThreadSeen():
                after = self.replace(
                    root_cid=event.root_cid or self.root_cid,
                    root_author_did=event.root_author_did or self.root_author_did,
                    root_author_handle=event.root_author_handle or self.root_author_handle,
                    last_checked=now,
                    is_project=event.is_project or self.is_project,
                    read_until=(self.state != "concluded" and event.read_until) or self.read_until,
                )
            case OthersReplied(post):
                after = self._after_post(post)
            case Replied(uri, at):
                after = self._after_our_reply(OurReply(uri=uri, at=at))
            case Reopened(reengaged_at):
                after = self._reopened(reengaged_at)
            case Disengaged(handles):
                marked = {
                    did: one.replace(seems_disengaged=one.handle in handles) for did, one in self.participants.items()
                }
                after = self.replace(participants=marked)
            case Concluded(reason, by_silence):
                after = self._concluded(reason, now, by_silence=by_silence)
            case Aged():
                is_old = now - self.last_checked > timedelta(milliseconds=CONVERSATION_RETENTION_MS)
                after = self.replace(state="stale") if is_old and self.state != "concluded" else self
        return after

    def after_all(self, events: Iterable[ThreadEvent], now: datetime) -> FollowedThread:
        """Return the conversation after these events, in this order, at `now`."""
        conversation = self
        for event in events:
            conversation = conversation.after(event, now)
        return conversation

    def _after_post(self, post: Incoming) -> FollowedThread:
        before = self.participants.get(post.did)
        if before and post.at <= before.last_reply_at:
            participant = before
        else:
            participant = Participant(
                did=post.did,
                handle=post.handle,
                display_name=post.display_name or (before.display_name if before else None),
                reply_count=(before.reply_count if before else 0) + 1,
                first_reply_at=before.first_reply_at if before else post.at,
                last_reply_at=post.at,
            )
        return self.replace(
            participants={**self.participants, post.did: participant},
            thread_depth=max(self.thread_depth, post.depth),
            state="active" if self.state in {"awaiting_response", "stale"} else self.state,
        )

    def _after_our_reply(self, reply: OurReply) -> FollowedThread:
        known = self.our_replies
        is_dropped = len(known) < self.our_reply_count and bool(known) and reply.at < known[0].at
        if is_dropped or any(one.uri == reply.uri for one in known):
            return self
        last = max((*known, reply), key=lambda one: one.at)
        return self.replace(
            our_reply_count=self.our_reply_count + 1,
            our_last_reply_at=last.at,
            our_last_reply_uri=last.uri,
            our_replies=(*known, reply),
            state="concluded" if self.state == "concluded" else "awaiting_response",
        )

    def _reopened(self, reengaged_at: datetime | None) -> FollowedThread:
        if self.state != "concluded":
            return self
        after = self.replace(state="active", conclusion_reason=None, concluded_at=None, concluded_by_silence=False)
        if reengaged_at is None:
            return after
        return after.replace(reengagement_count=self.reengagement_count + 1, reengaged_at=reengaged_at)

    def _concluded(self, reason: str, now: datetime, *, by_silence: bool) -> FollowedThread:
        if self.state == "concluded" and (by_silence or not self.concluded_by_silence):
            return self
        return self.replace(
            state="concluded", conclusion_reason=reason, concluded_at=now, concluded_by_silence=by_silence
        )


@dataclass(frozen=True, slots=True)
class ConversationDecision(Decision):
    """Whether to answer, and by which rule (`code`).

    If not, `like` asks for a like instead and `conclude` for leaving the thread; the caller does both.
    """

    code: ConversationCode
    like: bool = False
    conclude: bool = False


@dataclass(frozen=True, slots=True)
class ConversationAnalysis:
    """Whether a conversation ended by itself; `cause` names the rule."""

    cause: Cause
    reason: str
    disengaged_participants: tuple[str, ...] = ()

    @property
    def should_conclude(self) -> bool:
        return self.cause != "none"

    @property
    def by_silence(self) -> bool:
        """Whether nobody ended it, and it only stopped."""
        return self.cause in {"disengaged", "no response"}


def judge_incoming(
    conversation: FollowedThread,
    incoming: Incoming,
    mechanics: SocialMechanics,
    *,
    agent_did: str,
    is_owner: bool,
    now: datetime,
) -> tuple[ConversationDecision, Sequence[Reopened]]:
    """Return whether to answer a post, and the event that reopens the conversation for it, if one does.

    `conversation` includes the post already. A second call after the event was applied decides the same.
    """
    if is_owner:
        return _yes("owner", "owner interaction"), [Reopened()]
    limits = mechanics.in_project if conversation.is_project else mechanics
    reopened = []
    if conversation.state == "concluded":
        if not _comes_back(conversation, incoming, agent_did, unlimited=conversation.is_project):
            reason = f"Conversation concluded: {conversation.conclusion_reason}"
            return _no("concluded", reason, like=not incoming.is_closing), []
        if not conversation.concluded_by_silence:
            return _yes("reengaged", "Someone re-engaged after conclusion"), [Reopened(incoming.at)]
        reopened = [Reopened()]
    if conversation.reengaged_at == incoming.at:
        return _yes("reengaged", "Someone re-engaged after conclusion"), reopened
    refusal = _enough(conversation, incoming, limits, now)
    return _yes("active", "Conversation is active") if refusal is None else refusal, reopened


def analyze_conversation(
    conversation: FollowedThread | None, mechanics: SocialMechanics, agent_did: str, now: datetime
) -> ConversationAnalysis:
    """Return whether a conversation has run its course, without a new post."""
    if conversation is None:
        return ConversationAnalysis("none", "Unknown conversation")
    mechanics = mechanics.in_project if conversation.is_project else mechanics
    others = _others(conversation, agent_did)
    disengaged = tuple(one.handle for one in others if _is_disengaged(one, mechanics, now))
    cause, reason = _course(conversation, mechanics, now)
    if cause == "none" and disengaged and all(_is_silent(one, mechanics, now) for one in others):
        cause, reason = "disengaged", "Everyone else has fallen silent"
    return ConversationAnalysis(cause, reason, disengaged)


def _yes(code: ConversationCode, reason: str) -> ConversationDecision:
    return ConversationDecision(should=True, reason=reason, code=code)


def _no(code: ConversationCode, reason: str, *, like: bool = True, conclude: bool = False) -> ConversationDecision:
    return ConversationDecision(should=False, reason=reason, code=code, like=like, conclude=conclude)


def _comes_back(conversation: FollowedThread, incoming: Incoming, agent_did: str, *, unlimited: bool) -> bool:
    read_until = conversation.read_until or conversation.concluded_at
    is_new = read_until is None or incoming.at > read_until
    welcome = unlimited or conversation.concluded_by_silence or conversation.reengagement_count < 1
    return welcome and is_new and incoming.did != agent_did and not incoming.is_closing


def _enough(
    conversation: FollowedThread, incoming: Incoming, mechanics: SocialMechanics, now: datetime
) -> ConversationDecision | None:
    """Return the refusal if another reply would be too much, else None."""
    if too_long := _too_long(conversation, mechanics):
        return _no(*too_long, conclude=True)
    to_them = conversation.participants[incoming.did].reply_count > RAPID_REPLY_COUNT
    rapid = to_them and mechanics.skip_low_value_acknowledgments and _is_rapid(conversation, now)
    enough_new = RAPID_NOVEL_WORDS if incoming.is_automated else 1
    adds_much = not incoming.is_closing and incoming.new_words >= enough_new
    if rapid and not incoming.asks_us and not adds_much:
        reason = f"{RAPID_REPLY_COUNT} quick replies already, and little new was said"
        return _no("rapid", reason, conclude=True)
    return None


def _course(conversation: FollowedThread, mechanics: SocialMechanics, now: datetime) -> tuple[Cause, str]:
    if conversation.state == "concluded":
        return "concluded", conversation.conclusion_reason or "Already concluded"
    if too_long := _too_long(conversation, mechanics):
        return too_long
    ours = conversation.our_last_reply_at
    timeout = timedelta(milliseconds=mechanics.no_response_timeout_ms)
    if conversation.state == "awaiting_response" and ours is not None and now - ours > timeout:
        return "no response", "No response to our last reply"
    return "none", "Conversation is active"


def _too_long(
    conversation: FollowedThread, mechanics: SocialMechanics
) -> tuple[Literal["replies", "depth"], str] | None:
    count, depth = conversation.our_reply_count, conversation.thread_depth
    if count >= mechanics.max_replies_before_exit:
        return "replies", f"We have replied {count} times (limit {mechanics.max_replies_before_exit})"
    if depth >= mechanics.max_thread_depth:
        return "depth", f"The thread is {depth} posts deep (limit {mechanics.max_thread_depth})"
    return None


def _others(conversation: FollowedThread, agent_did: str) -> list[Participant]:
    return [one for one in conversation.participants.values() if one.did != agent_did]


def _is_silent(one: Participant, mechanics: SocialMechanics, now: datetime) -> bool:
    return now - one.last_reply_at > timedelta(milliseconds=mechanics.silence_threshold_ms)


def _is_disengaged(one: Participant, mechanics: SocialMechanics, now: datetime) -> bool:
    return one.reply_count > 1 and _is_silent(one, mechanics, now)


def _is_rapid(conversation: FollowedThread, now: datetime) -> bool:
    window = timedelta(milliseconds=RAPID_REPLY_WINDOW_MS)
    return sum(now - reply.at < window for reply in conversation.our_replies) >= RAPID_REPLY_COUNT
