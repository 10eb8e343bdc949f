"""Rules for posts that reach the SOUL on Bluesky: which are answered, how, and in which order. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from adapters.atproto.types import Notification
from common.constants import DAY_MS
from common.result import Decision
from common.text.closings import asks, is_emoji_only, is_low_value_closing, without_emoji, without_handles
from common.text.rights_requests import kind_by_words, may_be_rights_request
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.conversation import ConversationDecision
from modules.lives.bluesky.thread import CircularAnalysis, ThreadAnalysis
from modules.lives.bluesky.types import Pending
from modules.services.outbox.rules.rules import ReplyAdvice
from modules.services.relationships import RECURRING_INTERACTIONS, Relationship
from modules.services.rights.policy import may_reply, may_stand_in_prompt
from modules.services.rights.preferences import UNREADABLE_S

_SHORT_CHARS = 15
_QUOTE_CHARS = 30
_SUBSTANTIVE_CHARS = 50

_SMALL_WORD = r"""
    thanks|thx|ty|thank\ you
  | lol|lmao|haha|heh
  | nice|cool|neat|awesome|great|wow
  | yes|yeah|yep|yup|no|nope|nah
  | okay|ok|k|sure|right
  | same|mood|this|facts|real
  | true|fr|100
"""
_SMALL_WORDS = re.compile(
    rf"(?:{_SMALL_WORD})(?:[\s,.!]+(?:{_SMALL_WORD})|lol|lmao|haha|heh|100)*[\s.!]*",
    re.VERBOSE | re.IGNORECASE,
)

UNKNOWN_CHOICES = "what our account chose not to see could not be read"

_BASE = 50
_RECURRING, _REQUESTS_RANK = 1_000, -10_000

NOTIFICATION_MAX_AGE_MS = DAY_MS
OWNER_MAX_AGE_MS = 7 * DAY_MS

ScreeningCode = Literal[
    "owner",
    "question",
    "direct",
    "quote",
    "substance",
    "borderline",
    "reaction",
    "repost",
    "empty",
    "emoji",
    "acknowledgment",
    "closing",
]
_SENTENCES: Mapping[ScreeningCode, str] = {
    "owner": "owner interaction",
    "question": "question asked",
    "direct": "direct engagement",
    "quote": "substantive quote",
    "substance": "substantive content",
    "borderline": "borderline - use judgment",
    "reaction": "acknowledgment only",
    "repost": "repost without comment",
    "empty": "no text content",
    "emoji": "emoji reaction",
    "acknowledgment": "low-value acknowledgment",
    "closing": "closing or acknowledgment message",
}


@dataclass(frozen=True, slots=True)
class Screening(Decision):
    """Whether a notification deserves a look by the model, and by which rule (`code`)."""

    code: ScreeningCode

    @property
    def deserves_like(self) -> bool:
        """Whether it gets a like instead of an answer: an emoji, thanks or a goodbye."""
        return self.code in {"emoji", "acknowledgment", "closing"}


@dataclass(frozen=True, slots=True)
class PostDecision:
    """What to do about a post (`code`), and why.

    `like` adds a like to leaving the conversation (`conclude`); `later` means in `retry_in_s` seconds.
    """

    code: Literal["answer", "like", "conclude", "skip", "later"]
    reason: str
    like: bool = False
    retry_in_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Prioritized:
    """A notification and its priority; `reason` lists what counted."""

    notification: Notification
    priority: int
    reason: str
    relationship: Relationship | None


def should_respond_to(notification: Notification, owner_did: str, *, skip_acknowledgments: bool = True) -> Screening:
    """Return whether a notification deserves a look by the model; the first rule that applies decides.

    Without `skip_acknowledgments`, thanks and similar words are looked at too (a bare emoji never is).
    """
    return _screen(
        notification, is_owner=notification.author.did == owner_did, skip_acknowledgments=skip_acknowledgments
    )


def plan_case(post_case: PostCase, judged: ConversationDecision) -> PostDecision:
    """Return what to do about a post whose conversation was judged; only `answer` asks a model."""
    if post_case.is_muted:
        return PostDecision("skip", "the owner muted the author")
    is_owner = post_case.is_owner
    if post_case.unseen is None and not is_owner:
        return PostDecision("later", UNKNOWN_CHOICES, retry_in_s=UNREADABLE_S)
    if post_case.unseen and not is_owner:
        return PostDecision("skip", post_case.unseen)
    screening = _screen(post_case.notification, is_owner=is_owner)
    plan = plan_for(judged, screening, post_case.thread, post_case.advice, is_owner=is_owner)
    if plan.code in {"answer", "later"} and (ritual := post_case.ritual) and post_case.keeps_ritual_quiet:
        return PostDecision("like" if ritual.is_ours else "skip", "in a ritual each answers the opening once")
    if plan.code == "answer" and post_case.shares_work and (later := post_case.later):
        return PostDecision("later", later.reason, retry_in_s=later.look_again_s)
    return _against_choices(post_case) or plan if plan.code == "answer" else plan


def _against_choices(post_case: PostCase) -> PostDecision | None:
    """Return what to do if the author allows no answer by a model, or the thread none by us; else None.

    The owner, who runs the SOUL, is always answered.
    """
    preference, notification = post_case.preference, post_case.notification
    if post_case.is_owner:
        return None
    if preference is None:
        return PostDecision("later", "what the author allows could not be read", retry_in_s=UNREADABLE_S)
    if not may_stand_in_prompt(preference):
        return PostDecision("skip", "the author denies that their posts stand in a prompt")
    asked = notification.kind == "mention" or asks(notification.text)
    if not may_reply(preference, asked=asked):
        return PostDecision("skip", "the author denies replies that they did not ask for")
    if post_case.is_closed_to_us:
        return PostDecision("like", "whoever began the thread does not let us reply in it")
    return None


def plan_for(
    judged: ConversationDecision,
    screening: Screening,
    thread: ThreadAnalysis,
    advice: ReplyAdvice,
    *,
    is_owner: bool,
) -> PostDecision:
    """Return what to do about a post whose thread was read; only `answer` asks a model.

    Args:
        judged: what the state of the conversation says.
        screening: what the words of the post deserve; gives the reason for an answer.
        thread: the thread as it was read.
        advice: what the rules of the outbox say about an answer.
        is_owner: whether the owner wrote the post; a circle of thanks does not end a conversation with them.

    """
    circling = thread.circular.suggestion_to_exit and not is_owner
    wanted = judged.should and not circling
    plan = _unwanted(judged, thread.circular, circling=circling)
    if thread.is_answered:
        plan = PostDecision("skip", "it has a reply of ours already")
    elif advice.act == "silence":
        plan = PostDecision("skip", advice.reason)
    elif advice.act == "later" and wanted:
        plan = PostDecision("later", advice.reason, retry_in_s=advice.retry_in_s)
    elif advice.act == "like" and judged.should:
        plan = PostDecision("conclude", advice.reason, like=True)
    elif wanted:
        plan = PostDecision("answer", screening.reason)
    return plan


def _unwanted(judged: ConversationDecision, circular: CircularAnalysis, *, circling: bool) -> PostDecision:
    reason = f"the conversation goes in circles ({circular.pattern})" if judged.should else judged.reason
    if circling or judged.conclude:
        return PostDecision("conclude", reason, like=circling or judged.like)
    return PostDecision("like" if judged.like else "skip", reason)


def prioritize_notifications(
    notifications: Iterable[Notification], owner_did: str, agent_did: str, relationships: Mapping[str, Relationship]
) -> list[Prioritized]:
    """Return the notifications, those with the highest priority first."""
    ranked = [_prioritize(one, owner_did, agent_did, relationships.get(one.author.did)) for one in notifications]
    return sorted(ranked, key=lambda item: -item.priority)


def is_too_late(indexed: datetime, now: datetime, *, by_owner: bool) -> bool:
    """Return whether an answer would come too late; the owner is answered even after some days."""
    return now - indexed >= timedelta(milliseconds=OWNER_MAX_AGE_MS if by_owner else NOTIFICATION_MAX_AGE_MS)


@dataclass(frozen=True, slots=True)
class Queued:
    """A post to handle. Among posts whose turn is the same, the lowest `rank` goes first; a request stands alone."""

    item: Pending
    is_request: bool
    rank: int


def queue_of(
    waiting: Iterable[Pending], owner_did: str, relationships: Mapping[str, Relationship], agent_did: str = ""
) -> list[Queued]:
    """Return one item per person and thread: their newest post there, with their older ones as `earlier`.

    A post that may be a request about its author's own data stands alone, so that a turn looks at it; one of the
    owner's, whose words are orders, only if it plainly is one. Everybody who waits in a thread is answered, each after
    earlier answers were read. Possible requests have the lowest rank, then come recurring authors, then the priority
    decides.
    """
    threads: dict[tuple[str, str, str], list[Pending]] = {}
    for item in sorted(waiting, key=lambda one: one.notification.indexed_at):
        post = item.notification
        is_owner = post.author.did == owner_did
        asks = kind_by_words(post.text) is not None if is_owner else may_be_rights_request(post.text)
        alone = post.uri if asks else ""
        threads.setdefault((post.root.uri, post.author.did, alone), []).append(item)

    def queued(posts: Sequence[Pending], alone: str) -> Queued:
        item = replace(posts[-1], earlier=tuple(one.notification for one in posts[:-1]))
        if alone:
            return Queued(item, is_request=True, rank=_REQUESTS_RANK)
        each = (one.notification for one in posts)
        ranked = [_prioritize(one, owner_did, agent_did, relationships.get(one.author.did)) for one in each]
        recurring = any(one.relationship is not None and one.relationship.is_recurring for one in ranked)
        return Queued(item, is_request=False, rank=-max(one.priority for one in ranked) - recurring * _RECURRING)

    return [queued(posts, alone) for (_, _, alone), posts in threads.items()]


def _screen(notification: Notification, *, is_owner: bool, skip_acknowledgments: bool = True) -> Screening:
    if is_owner:
        return _screened("owner", should=True)
    # NOTE(self): a mention always contains a handle; the other words decide.
    said = without_handles(notification.text) or notification.text.strip()
    if silent := _why_silent(notification.kind, said, skip_acknowledgments=skip_acknowledgments):
        return _screened(silent, should=False)
    return _screened(_why_respond(notification.kind, said), should=True)


def _screened(code: ScreeningCode, *, should: bool) -> Screening:
    return Screening(should=should, reason=_SENTENCES[code], code=code)


def _why_silent(kind: str, text: str, *, skip_acknowledgments: bool) -> ScreeningCode | None:
    short = len(text) < _SHORT_CHARS and not asks(text)
    is_small = skip_acknowledgments and short and _SMALL_WORDS.fullmatch(without_emoji(text)) is not None
    rules: tuple[tuple[bool, ScreeningCode], ...] = (
        (kind in {"like", "follow"}, "reaction"),
        (kind == "repost", "repost"),
        (not text, "empty"),
        (short and is_emoji_only(text), "emoji"),
        (is_small, "acknowledgment"),
        (skip_acknowledgments and is_low_value_closing(text), "closing"),
    )
    return next((code for applies, code in rules if applies), None)


def _why_respond(kind: str, text: str) -> ScreeningCode:
    if asks(text):
        return "question"
    if kind in {"mention", "reply"}:
        return "direct"
    if kind == "quote" and len(text) > _QUOTE_CHARS:
        return "quote"
    return "substance" if len(text) > _SUBSTANTIVE_CHARS else "borderline"


def _prioritize(notification: Notification, owner_did: str, agent_did: str, known: Relationship | None) -> Prioritized:
    ours = f"at://{agent_did}/"
    parent_uri = notification.reply.parent.uri if notification.reply else ""
    to_own = ours in notification.uri or parent_uri.startswith(ours)
    speaks = notification.kind in {"reply", "mention", "quote"}
    # NOTE(self): the post is recorded before it is ranked; it alone makes nobody an acquaintance.
    before = [one for one in known.interactions if one.uri != notification.uri] if known else []
    known = known if before else None
    marks: Sequence[tuple[bool, int, str]] = (
        (to_own and speaks, 50, "response to own content"),
        (notification.kind in {"reply", "mention"}, 30, notification.kind),
        (notification.kind == "quote", 25, "quote"),
        (notification.author.did == owner_did, 50, "owner"),
        (known is not None and known.sentiment == "positive", 15, "positive relationship"),
        (len(before) >= RECURRING_INTERACTIONS, 10, "recurring engager"),
        (known is not None and not known.responded, 20, "never responded to"),
        (known is None, 5, "new person"),
        (not notification.is_read, 10, "unread"),
    )
    counted = [(points, label) for applies, points, label in marks if applies]
    return Prioritized(
        notification=notification,
        priority=_BASE + sum(points for points, _ in counted),
        reason=", ".join(label for _, label in counted),
        relationship=known,
    )
