"""Who beside the owner is answered in direct messages, when, and whether at all. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from adapters.atproto.types import ConversationStatus
from common.clock import Since, parse_iso
from common.settings import MessagesFrom
from common.text.closings import is_emoji_only, is_low_value_closing
from common.text.injections import gives_orders
from modules.lives.messages.policy import is_too_old
from modules.lives.messages.types import Burst
from modules.services.outbox.rules.types import ReplyAdvice
from modules.services.rights.policy import may_stand_in_prompt
from modules.services.rights.preferences import UNREADABLE_S
from modules.services.rights.types import Preference
from modules.services.work.types import Disposition

QUIET = timedelta(seconds=30)
"""So long nobody wrote in a conversation before it is answered: what comes in a burst gets one answer."""
LONGEST_BURST = timedelta(minutes=3)
"""Who goes on writing is answered after so long all the same."""

_STATE_OF_ADVICE: dict[str, Literal["later", "silent"]] = {"later": "later", "like": "silent", "silence": "silent"}


def is_welcome(messages_from: MessagesFrom, status: ConversationStatus, *, is_peer: bool, is_followed: bool) -> bool:
    """Return whether somebody who is not the owner may have an answer.

    Args:
        messages_from: the owner's setting.
        status: `accepted` where our account took part in the conversation, or took it on; else `request`.
        is_peer: whether they are a listed or a found peer.
        is_followed: whether our account follows them.

    """
    if messages_from == "owner":
        return False
    return messages_from == "all" or status == "accepted" or is_peer or is_followed


def is_ready(burst: Burst, since: Since) -> bool:
    """Return whether a burst may be answered: its author is quiet, or has written for long enough.

    What was taken in before the clock was set back has waited long enough.
    """
    first, last = (since(parse_iso(burst.messages[place].received_at)) for place in (0, -1))
    return last < timedelta() or last >= QUIET or first >= LONGEST_BURST


@dataclass(frozen=True, slots=True)
class AuthorStanding:
    """What is known of whoever wrote a burst, before a model is asked.

    Attributes:
        advice: what the rules of the outbox say of an answer.
        is_muted: whether the owner muted them.
        preference: what they declared about AI; None where it could not be read.
        has_answered: whether an answer of ours stands in the conversation.

    """

    advice: ReplyAdvice
    preference: Preference | None
    is_muted: bool = False
    has_answered: bool = False


def verdict_on(burst: Burst, standing: AuthorStanding, now: datetime) -> Disposition | None:
    """Return what becomes of a burst without a model; None where it is to be answered. The first rule decides."""
    if is_too_old(burst.newest.sent_at, now):
        reason = "it has waited for more than a day; an answer would come too late"
        return Disposition("dropped", "too-late", reason)
    if standing.preference is None and not standing.is_muted:
        return Disposition("later", "preference", "what the author allows could not be read", UNREADABLE_S)
    if silent := _silence(burst, standing):
        return silent
    if standing.advice.act == "free":
        return None
    act, advice = _STATE_OF_ADVICE[standing.advice.act], standing.advice
    return Disposition(act, "etiquette", advice.reason, advice.retry_in_s)


def _silence(burst: Burst, standing: AuthorStanding) -> Disposition | None:
    """Return why there is no answer, whatever the rules of the outbox say; None if there may be one."""
    texts = [message.text for message in burst.messages]
    rules = (
        (standing.is_muted, "muted", "the owner muted the author"),
        (
            not may_stand_in_prompt(standing.preference),
            "preference",
            "the author denies that their words stand in a prompt",
        ),
        (any(map(gives_orders, texts)), "orders", "the message orders us to put our instructions aside"),
        (standing.has_answered and all(map(_only_closes, texts)), "closing", "the message only closes the talk"),
    )
    return next((Disposition("silent", code, reason) for applies, code, reason in rules if applies), None)


def _only_closes(text: str) -> bool:
    return is_low_value_closing(text) or is_emoji_only(text)
