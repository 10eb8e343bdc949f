"""When a conversation is worth another word, and when it is over. Pure: a conversation in, the next one out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from common.constants import (
    CONVERSATION_RETENTION_MS,
    CONVERSATION_STALE_RETENTION_MS,
    RAPID_NOVEL_WORDS,
    RAPID_REPLY_COUNT,
    RAPID_REPLY_WINDOW_MS,
)
from common.result import Decision
from common.text.closings import asks, content_words, is_low_value_closing
from common.text.host_intent import requests
from modules.runtime.record_file import Moment, Record
from modules.services.agent.identity.self_mechanics import SocialMechanics

State = Literal["new", "active", "awaiting_response", "concluded", "stale"]
Source = Literal["notification", "owner_mention", "expression_reply"]
Cause = Literal["none", "concluded", "replies", "depth", "disengaged", "no response"]

_KEPT_REPLIES = 10
_RECENT_POSTS = 4


class Participant(Record):
    """Somebody else in a conversation."""

    did: str
    handle: str
    display_name: str | None = None
    reply_count: int = 0
    first_reply_at: Moment
    last_reply_at: Moment
    seems_disengaged: bool = False


class OurReply(Record):
    """A reply of ours; the newest ten are kept."""

    uri: str
    at: Moment


class Conversation(Record):
    """A thread that we follow.

    `concluded_by_silence`: nobody ended it, it only ran dry. `reengaged_at`: the time of the post that reopened it.
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


@dataclass(frozen=True, slots=True)
class Incoming:
    """A post that reached us: `depth` posts stand above it, `recent_texts` are those right before it, oldest first."""

    did: str
    handle: str
    text: str
    at: datetime
    depth: int = 0
    display_name: str = ""
    recent_texts: Sequence[str] = ()
    is_automated: bool = False


@dataclass(frozen=True, slots=True)
class ConversationDecision(Decision):
    """Whether to answer. If not, `like` asks for a like instead, `conclude` for leaving the thread; both are acts."""

    like: bool = False
    conclude: bool = False


@dataclass(frozen=True, slots=True)
class ConversationAnalysis:
    """Whether a conversation is over by itself; `cause` names the rule."""

    cause: Cause
    reason: str
    thread_depth: int = 0
    participant_count: int = 0
    our_reply_count: int = 0
    active_participants: tuple[str, ...] = ()
    disengaged_participants: tuple[str, ...] = ()

    @property
    def should_conclude(self) -> bool:
        return self.cause != "none"


def judge_incoming(
    conversation: Conversation,
    incoming: Incoming,
    mechanics: SocialMechanics,
    *,
    agent_did: str,
    is_owner: bool,
    has_workspace_context: bool,
    now: datetime,
) -> tuple[ConversationDecision, Conversation]:
    """Whether to answer a post, and the conversation as it stands with it. Asking twice counts once."""
    spoken = with_activity(conversation, incoming)
    if is_owner:
        return _yes("owner interaction"), _reopened(spoken)
    if spoken.state == "concluded":
        back = _comes_back(spoken, incoming, agent_did, unlimited=has_workspace_context)
        if not back:
            reason = f"Conversation concluded: {spoken.conclusion_reason}"
            return ConversationDecision(
                should=False, reason=reason, like=not is_low_value_closing(incoming.text)
            ), spoken
        if not spoken.concluded_by_silence:
            again = spoken.replace(reengagement_count=spoken.reengagement_count + 1, reengaged_at=incoming.at)
            return _yes("Someone re-engaged after conclusion"), _reopened(again)
        spoken = _reopened(spoken)
    if spoken.reengaged_at == incoming.at:
        return _yes("Someone re-engaged after conclusion"), spoken
    if reason := _enough(spoken, incoming, mechanics, agent_did, now):
        return ConversationDecision(should=False, reason=reason, like=True, conclude=True), spoken
    return _yes("Conversation is active"), spoken


def analyze_conversation(
    conversation: Conversation | None, mechanics: SocialMechanics, agent_did: str, now: datetime
) -> ConversationAnalysis:
    """Whether a conversation has run its course, with no new post at hand."""
    if conversation is None:
        return ConversationAnalysis("none", "Unknown conversation")
    others = _others(conversation, agent_did)
    active = tuple(one.handle for one in others if not _is_silent(one, mechanics, now))
    disengaged = tuple(one.handle for one in others if _is_disengaged(one, mechanics, now))
    cause, reason = _course(conversation, mechanics, now)
    if cause == "none" and disengaged and not active:
        cause, reason = "disengaged", "Everyone else has fallen silent"
    return ConversationAnalysis(
        cause=cause,
        reason=reason,
        thread_depth=conversation.thread_depth,
        participant_count=len(conversation.participants),
        our_reply_count=conversation.our_reply_count,
        active_participants=active,
        disengaged_participants=disengaged,
    )


def with_activity(conversation: Conversation, incoming: Incoming) -> Conversation:
    """The conversation after a post of somebody else; the same post twice counts once."""
    before = conversation.participants.get(incoming.did)
    if before and incoming.at <= before.last_reply_at:
        participant = before
    else:
        participant = Participant(
            did=incoming.did,
            handle=incoming.handle,
            display_name=incoming.display_name or (before.display_name if before else None),
            reply_count=(before.reply_count if before else 0) + 1,
            first_reply_at=before.first_reply_at if before else incoming.at,
            last_reply_at=incoming.at,
        )
    return conversation.replace(
        participants={**conversation.participants, incoming.did: participant},
        thread_depth=max(conversation.thread_depth, incoming.depth),
        state="active" if conversation.state in {"awaiting_response", "stale"} else conversation.state,
    )


def with_our_reply(conversation: Conversation, uri: str, now: datetime) -> Conversation:
    """The conversation after a reply of ours; the same reply twice counts once. What is concluded stays so."""
    if any(reply.uri == uri for reply in conversation.our_replies):
        return conversation
    return conversation.replace(
        our_reply_count=conversation.our_reply_count + 1,
        our_last_reply_at=now,
        our_last_reply_uri=uri,
        our_replies=(*conversation.our_replies, OurReply(uri=uri, at=now))[-_KEPT_REPLIES:],
        state="concluded" if conversation.state == "concluded" else "awaiting_response",
    )


def with_disengaged(conversation: Conversation, handles: Sequence[str]) -> Conversation:
    """The conversation with those marked who seem to have left it."""
    marked = {
        did: one.replace(seems_disengaged=one.handle in handles) for did, one in conversation.participants.items()
    }
    return conversation.replace(participants=marked)


def concluded(conversation: Conversation, reason: str, now: datetime, *, by_silence: bool = False) -> Conversation:
    """The conversation, over. What only ran dry can still be ended on purpose; otherwise the first end stays."""
    if conversation.state == "concluded" and not (conversation.concluded_by_silence and not by_silence):
        return conversation
    return conversation.replace(
        state="concluded", conclusion_reason=reason, concluded_at=now, concluded_by_silence=by_silence
    )


def aged(
    conversation: Conversation, now: datetime, max_age_ms: float = CONVERSATION_RETENTION_MS
) -> Conversation | None:
    """What is left after a time without news: the conversation, stale from `max_age_ms` on, or None to forget it."""
    limit = timedelta(milliseconds=max_age_ms)
    untouched = now - conversation.last_checked
    if conversation.state == "concluded":
        return None if now - (conversation.concluded_at or conversation.last_checked) > limit else conversation
    if conversation.state == "stale":
        return None if untouched > timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS) else conversation
    return conversation.replace(state="stale") if untouched > limit else conversation


def _yes(reason: str) -> ConversationDecision:
    return ConversationDecision(should=True, reason=reason)


def _comes_back(conversation: Conversation, incoming: Incoming, agent_did: str, *, unlimited: bool) -> bool:
    is_new = conversation.concluded_at is None or incoming.at > conversation.concluded_at
    welcome = unlimited or conversation.concluded_by_silence or conversation.reengagement_count < 1
    return welcome and is_new and incoming.did != agent_did and not is_low_value_closing(incoming.text)


def _reopened(conversation: Conversation) -> Conversation:
    if conversation.state != "concluded":
        return conversation
    return conversation.replace(state="active", conclusion_reason=None, concluded_at=None, concluded_by_silence=False)


def _enough(
    conversation: Conversation, incoming: Incoming, mechanics: SocialMechanics, agent_did: str, now: datetime
) -> str:
    """Why another reply would be one too many; "" if it would not."""
    if too_long := _too_long(conversation, mechanics):
        return too_long[1]
    others = [one for one in _others(conversation, agent_did) if one.did != incoming.did]
    fresh = now - incoming.at <= timedelta(milliseconds=mechanics.silence_threshold_ms)
    if not fresh and others and all(_is_disengaged(one, mechanics, now) for one in others):
        return "Everyone else has fallen silent"
    rapid = mechanics.skip_low_value_acknowledgments and _is_rapid(conversation, now)
    if rapid and not _person_asks(incoming) and not _adds_much(incoming):
        return f"{RAPID_REPLY_COUNT} quick replies already, and little new was said"
    return ""


def _course(conversation: Conversation, mechanics: SocialMechanics, now: datetime) -> tuple[Cause, str]:
    if conversation.state == "concluded":
        return "concluded", conversation.conclusion_reason or "Already concluded"
    if too_long := _too_long(conversation, mechanics):
        return too_long
    ours = conversation.our_last_reply_at
    timeout = timedelta(milliseconds=mechanics.no_response_timeout_ms)
    if conversation.state == "awaiting_response" and ours is not None and now - ours > timeout:
        return "no response", "No response to our last reply"
    return "none", "Conversation is active"


def _too_long(conversation: Conversation, mechanics: SocialMechanics) -> tuple[Cause, str] | None:
    count, depth = conversation.our_reply_count, conversation.thread_depth
    if count >= mechanics.max_replies_before_exit:
        return "replies", f"We have replied {count} times (limit {mechanics.max_replies_before_exit})"
    if depth >= mechanics.max_thread_depth:
        return "depth", f"The thread is {depth} posts deep (limit {mechanics.max_thread_depth})"
    return None


def _others(conversation: Conversation, agent_did: str) -> list[Participant]:
    return [one for one in conversation.participants.values() if one.did != agent_did]


def _is_silent(one: Participant, mechanics: SocialMechanics, now: datetime) -> bool:
    return now - one.last_reply_at > timedelta(milliseconds=mechanics.silence_threshold_ms)


def _is_disengaged(one: Participant, mechanics: SocialMechanics, now: datetime) -> bool:
    return one.reply_count > 1 and _is_silent(one, mechanics, now)


def _is_rapid(conversation: Conversation, now: datetime) -> bool:
    window = timedelta(milliseconds=RAPID_REPLY_WINDOW_MS)
    return sum(now - reply.at < window for reply in conversation.our_replies) >= RAPID_REPLY_COUNT


def _person_asks(incoming: Incoming) -> bool:
    """Who asks waits for an answer, however quick the talk is. Programs may ask each other without end."""
    return not incoming.is_automated and (asks(incoming.text) or requests(incoming.text))


def _adds_much(incoming: Incoming) -> bool:
    if is_low_value_closing(incoming.text):
        return False
    known = {word for text in incoming.recent_texts[-_RECENT_POSTS:] for word in content_words(text)}
    return len(set(content_words(incoming.text)) - known) >= RAPID_NOVEL_WORDS
