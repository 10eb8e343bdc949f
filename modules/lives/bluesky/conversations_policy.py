"""When a conversation is worth another word, and when it is over. Pure: a conversation in, a decision out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from common.constants import MINUTE_MS
from common.result import Decision
from modules.lives.bluesky.conversation import Conversation, Incoming, Participant, Reopened
from modules.services.agent.identity.self_mechanics import SocialMechanics

RAPID_REPLY_WINDOW_MS = 5 * MINUTE_MS
RAPID_REPLY_COUNT = 2
RAPID_NOVEL_WORDS = 8

Cause = Literal["none", "concluded", "replies", "depth", "disengaged", "no response"]
ConversationCode = Literal["owner", "active", "reengaged", "concluded", "replies", "depth", "disengaged", "rapid"]


@dataclass(frozen=True, slots=True)
class ConversationDecision(Decision):
    """Whether to answer, by which rule (`code`).

    If not, `like` asks for a like instead, `conclude` for leaving the thread; both are left to the caller.
    """

    code: ConversationCode
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

    @property
    def by_silence(self) -> bool:
        """Whether nobody ended it: it only ran dry."""
        return self.cause in {"disengaged", "no response"}


def judge_incoming(
    conversation: Conversation,
    incoming: Incoming,
    mechanics: SocialMechanics,
    *,
    agent_did: str,
    is_owner: bool,
    has_workspace_context: bool,
    now: datetime,
) -> tuple[ConversationDecision, Reopened | None]:
    """Return whether to answer a post, and the event that reopens the conversation for it, if one does.

    `conversation` counts the post already; asking twice, with the event applied in between, decides the same.
    """
    if is_owner:
        return _yes("owner", "owner interaction"), Reopened()
    reopened = None
    if conversation.state == "concluded":
        if not _comes_back(conversation, incoming, agent_did, unlimited=has_workspace_context):
            reason = f"Conversation concluded: {conversation.conclusion_reason}"
            return _no("concluded", reason, like=not incoming.is_closing), None
        if not conversation.concluded_by_silence:
            return _yes("reengaged", "Someone re-engaged after conclusion"), Reopened(incoming.at)
        reopened = Reopened()
    if conversation.reengaged_at == incoming.at:
        return _yes("reengaged", "Someone re-engaged after conclusion"), reopened
    refusal = _enough(conversation, incoming, mechanics, agent_did, now)
    return _yes("active", "Conversation is active") if refusal is None else refusal, reopened


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


def _yes(code: ConversationCode, reason: str) -> ConversationDecision:
    return ConversationDecision(should=True, reason=reason, code=code)


def _no(code: ConversationCode, reason: str, *, like: bool = True, conclude: bool = False) -> ConversationDecision:
    return ConversationDecision(should=False, reason=reason, code=code, like=like, conclude=conclude)


def _comes_back(conversation: Conversation, incoming: Incoming, agent_did: str, *, unlimited: bool) -> bool:
    is_new = conversation.concluded_at is None or incoming.at > conversation.concluded_at
    welcome = unlimited or conversation.concluded_by_silence or conversation.reengagement_count < 1
    return welcome and is_new and incoming.did != agent_did and not incoming.is_closing


def _enough(
    conversation: Conversation, incoming: Incoming, mechanics: SocialMechanics, agent_did: str, now: datetime
) -> ConversationDecision | None:
    """Return the refusal if another reply would be one too many, else None."""
    if too_long := _too_long(conversation, mechanics):
        return _no(*too_long, conclude=True)
    others = [one for one in _others(conversation, agent_did) if one.did != incoming.did]
    fresh = now - incoming.at <= timedelta(milliseconds=mechanics.silence_threshold_ms)
    if not fresh and others and all(_is_disengaged(one, mechanics, now) for one in others):
        return _no("disengaged", "Everyone else has fallen silent", conclude=True)
    rapid = mechanics.skip_low_value_acknowledgments and _is_rapid(conversation, now)
    adds_much = not incoming.is_closing and incoming.new_words >= RAPID_NOVEL_WORDS
    if rapid and not incoming.asks_us and not adds_much:
        reason = f"{RAPID_REPLY_COUNT} quick replies already, and little new was said"
        return _no("rapid", reason, conclude=True)
    return None


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


def _too_long(conversation: Conversation, mechanics: SocialMechanics) -> tuple[Literal["replies", "depth"], str] | None:
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
