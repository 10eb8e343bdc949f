"""Rules of direct messages: what the owner asks for, who else is answered and when, and how drafts are shown. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Literal

from adapters.atproto.convert import MESSAGE_MAX_BYTES
from adapters.atproto.messages import MESSAGE_MAX_GRAPHEMES
from adapters.atproto.types import ConversationStatus
from common.clock import Since, from_local, local, parse_iso
from common.settings import MessagesFrom
from common.text.closings import is_emoji_only, is_low_value_closing
from common.text.graphemes import truncate_graphemes
from common.text.injections import gives_orders
from common.text.untrusted import clean
from modules.lives.messages.types import Burst, DraftAnswer, ToldDrafts
from modules.runtime.scheduler.policy import is_quiet_hours
from modules.services.explanation.drafts import Draft
from modules.services.outbox.approval import read_answer
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.rules.rules import ReplyAdvice
from modules.services.outbox.types import Intent
from modules.services.rights.policy import Preference, may_stand_in_prompt
from modules.services.rights.preferences import UNREADABLE_S
from modules.services.rights.records import MOST_PLACES, NamingFile, places_text
from modules.services.work.types import Disposition

MOST_PARTS = 5
MOST_DRAFTS = 9
NO_BUDGET = "budget"
NO_MODEL = "model"
"""The causes, followed by the day, of the notice to the owner that a message waits for the budget or the model."""
OLDEST = timedelta(days=1)
"""The age from which a message is left unanswered."""

_MOST = MESSAGE_MAX_GRAPHEMES - 10
_ELLIPSIS = "…"


def is_command(text: str) -> bool:
    """Return whether a message is a command of the terminal, such as `/status`."""
    return text.lstrip().startswith("/")


def is_too_old(sent_at: str, now: datetime) -> bool:
    """Return whether a message is so old that no answer is expected any more."""
    return now - parse_iso(sent_at) > OLDEST


def quiet_until(now: datetime, hours: tuple[int, int] | None, timezone: str) -> datetime | None:
    """Return when the present quiet hours end; None if it is not quiet at `now`. Equal hours mean no quiet hours."""
    here = local(now, timezone)
    if hours is None or not is_quiet_hours(here.hour, *hours):
        return None
    end = datetime.combine(here.date(), time(hours[1]))
    return from_local(end if here.hour < hours[1] else end + timedelta(days=1), timezone)


def told_before(rev: str, told: Sequence[Intent]) -> ToldDrafts:
    """Return the drafts that the owner had last been told about when the message with this revision was written.

    `told` are the direct messages that told the owner about drafts, newest first.
    """
    for one in told:
        if one.state == "done" and one.made("message") < rev and isinstance(one.body, DirectMessageBody):
            return ToldDrafts(one.body.drafts[:MOST_DRAFTS], at=one.created_at, rev=one.made("message"))
    return ToldDrafts()


def is_latest(told: ToldDrafts, rev: str, said: Sequence[Intent]) -> bool:
    """Return whether none of our direct messages in `said` came between `told` and the message with this revision."""
    return not any(one.state == "done" and told.rev < one.made("message") < rev for one in said)


def read_draft_answer(text: str, told: ToldDrafts, waiting: Mapping[str, int]) -> DraftAnswer | None:
    """Return the owner's yes or no to drafts; None if the text is no such answer.

    It counts only with numbers of drafts, with "all" if drafts were told before, or alone directly after that.
    `waiting` are the numbers of all drafts that still wait for approval, by their ids.
    """
    found = read_answer(text)
    if found is None:
        return None
    is_yes, which, reason = found
    named, open_ids = set(map(int, re.findall("[0-9]+", which))), tuple(one for one in told.ids if one in waiting)
    meant = tuple(one for one, number in waiting.items() if number in named)
    if not meant and (not open_ids or not (which or told.is_latest)):
        return None
    if not named:
        return DraftAnswer(is_yes, open_ids if which or len(open_ids) == 1 else (), reason)
    return DraftAnswer(is_yes, meant if len(meant) == len(named) else (), reason)


def shown_whole(drafts: Sequence[Draft], waiting: int) -> Sequence[Draft]:
    """Return as many of the first drafts as one message shows whole; `waiting` are to be told in all."""
    counts = range(min(len(drafts), MOST_DRAFTS), 0, -1)
    return drafts[: next((count for count in counts if _fits(drafts_text(drafts[:count], waiting - count))), 0)]


def drafts_text(drafts: Sequence[Draft], more: int) -> str:
    """Return the message that tells the owner what waits for approval and why; `more` drafts are not listed."""
    lines = [
        clean(f"{one.number}  {one.words.with_theirs}" + (f" ({one.reason})" if one.reason else "")) for one in drafts
    ]
    one = len(drafts) == 1
    head = "This waits for your approval:" if one and not more else "These wait for your approval:"
    first = drafts[0].number
    all_of = '"yes all" for these' if more else '"yes all"'
    how = 'Answer "yes" or "no".' if one else f'Answer "yes {first}", "no {first}" or {all_of}.'
    rest = [f"and {more} more: /drafts lists them"] if more else []
    return "\n".join([head, *lines, *rest, how])


def too_long_text(draft: Draft) -> str:
    """Return the message that tells the owner of a draft which one message cannot show."""
    told = f"Draft {draft.number} ({draft.words.what}) waits for your approval and is too long for a message."
    return clean(f'{told} Read it in the terminal (/drafts), then answer "yes {draft.number}" or "no {draft.number}".')


def left_text(places: Sequence[NamingFile], days: str) -> str:
    """Return the message to the owner about files and records that name somebody who was forgotten on these days."""
    left = "Their name still stands in these places, of which you can edit the files"
    told = (places_text(places, most) for most in range(MOST_PLACES, -1, -1))
    texts = [f"Somebody was forgotten ({days}). {left}: {one}" for one in told]
    return next(filter(_fits, texts), texts[-1])


def split_text(text: str) -> tuple[str, ...]:
    """Split a text into messages, none too long, at most `MOST_PARTS`; lines and words stay whole where possible."""
    parts = list(_parts(text.strip()))
    if len(parts) <= MOST_PARTS:
        return tuple(parts)
    last = truncate_graphemes(parts[MOST_PARTS - 1], MESSAGE_MAX_GRAPHEMES - 2)
    return (*parts[: MOST_PARTS - 1], f"{last} {_ELLIPSIS}")


def _parts(text: str) -> Iterator[str]:
    while text:
        head = _fitting(text)
        if len(head) < len(text):
            cuts = (head.rfind(space) for space in "\n ")
            head = head[: next((cut for cut in cuts if cut > len(head) // 2), len(head))]
        if head.strip():
            yield head.strip()
        text = text[len(head) :].lstrip()


def _fits(text: str) -> bool:
    return truncate_graphemes(text, _MOST) == text == _fitting(text)


def _fitting(text: str) -> str:
    """Return the longest beginning of a text that fits into one message; one character that is too long is cut."""
    head = truncate_graphemes(text, MESSAGE_MAX_GRAPHEMES)
    while len(head.encode()) > MESSAGE_MAX_BYTES - len(_ELLIPSIS.encode()) - 1:
        head = head[: len(head) * 3 // 4]
    return head


QUIET = timedelta(seconds=30)
"""How long a conversation must be quiet before it is answered, so that a burst gets one answer."""
LONGEST_BURST = timedelta(minutes=3)
"""After this time somebody is answered even if they go on writing."""

_STATE_OF_ADVICE: dict[str, Literal["later", "silent"]] = {"later": "later", "like": "silent", "silence": "silent"}


def is_welcome(messages_from: MessagesFrom, status: ConversationStatus, *, is_peer: bool, is_followed: bool) -> bool:
    """Return whether somebody who is not the owner may get an answer.

    Args:
        messages_from: the owner's setting.
        status: `accepted` if our account took part in the conversation or accepted it; else `request`.
        is_peer: whether they are a listed or a found peer.
        is_followed: whether our account follows them.

    """
    if messages_from == "owner":
        return False
    return messages_from == "all" or status == "accepted" or is_peer or is_followed


def is_ready(burst: Burst, since: Since) -> bool:
    """Return whether a burst may be answered: its author is quiet, or has written for long enough.

    A burst that was received before the clock was set back has waited long enough.
    """
    first, last = (since(parse_iso(burst.messages[place].received_at)) for place in (0, -1))
    return last < timedelta() or last >= QUIET or first >= LONGEST_BURST


@dataclass(frozen=True, slots=True)
class AuthorStanding:
    """What is known about the author of a burst before a model is asked.

    Attributes:
        advice: what the rules of the outbox say about an answer.
        is_muted: whether the owner muted them.
        preference: what they declared about AI; None if it could not be read.
        has_answered: whether the conversation contains an answer of ours.

    """

    advice: ReplyAdvice
    preference: Preference | None
    is_muted: bool = False
    has_answered: bool = False


def verdict_on(burst: Burst, standing: AuthorStanding, now: datetime) -> Disposition | None:
    """Return the disposition of a burst by rule; None if the model may answer it. The first rule decides."""
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
