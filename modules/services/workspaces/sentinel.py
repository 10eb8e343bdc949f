"""The sentinel: the issue that says that a workspace is finished, and what is to be done about it. Pure.

Only words of accounts that the caller trusts count: a stranger can neither end work nor restart it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TypeVar

from adapters.github.types import Comment, Issue
from common.clock import parse_iso
from modules.services.rituals.policy import has_memo_mark
from modules.services.workspaces.trust import TrustedAccounts

FINISHED_LABEL = "finished"
"""The label of the issue that ends a workspace; nothing is discussed there."""
SENTINEL_PREFIX = "LIL INTDEV FINISHED:"
"""The beginning of the title of every sentinel."""
SUMMARY_CHARS = 80
NO_SENTINEL_FOR = timedelta(hours=24)
"""The time after a sentinel was closed during which no new one is made."""
CREATOR_GONE = timedelta(hours=48)
"""After this time without a sign of its author, others look after a sentinel."""

_MOST_AGREEMENT_CHARS = 120
_AGREEMENTS = frozenset(
    {
        *("agreed", "agree", "yes", "yep", "yeah", "confirmed", "looks good", "lgtm", "+1", "all done", "done"),
        *("complete", "completed", "finished", "looks complete", "looks finished", "ship it", "sounds good"),
        *("all good", "nothing else", "no more work", "no additional work", "looks great", "nice work", "well done"),
        *("good job", "all set"),
    }
)
_Written = TypeVar("_Written", Comment, Issue)
_MARKS = re.compile(r"[.!?]{1,120}\Z")


class SentinelCode(Enum):
    """The decisions about a sentinel."""

    STANDS = "stands"
    AGREED = "agreed"
    CLEARED = "cleared"
    WORK_ELSEWHERE = "work-elsewhere"
    CLOSED_BY_PERSON = "closed-by-person"
    REOPEN = "reopen"
    FEEDBACK = "feedback"
    SPOKEN_ELSEWHERE = "spoken-elsewhere"


_REASONS: dict[SentinelCode, str] = {
    SentinelCode.STANDS: "the workspace is finished",
    SentinelCode.AGREED: "the workspace is finished, and nobody disagrees",
    SentinelCode.CLEARED: "its author closed it, or nobody knows who did",
    SentinelCode.WORK_ELSEWHERE: "it is closed, and other work is open",
    SentinelCode.CLOSED_BY_PERSON: "a person closed it, and no work is open",
    SentinelCode.REOPEN: "a SOUL that did not make it closed it, and no work is open",
    SentinelCode.FEEDBACK: "comments on it tell of work",
    SentinelCode.SPOKEN_ELSEWHERE: "something was asked for in another issue since",
}


@dataclass(frozen=True, slots=True)
class SentinelDecision:
    """The decision about a sentinel, and its reason; `feedback` are the comments that tell of work, oldest first."""

    code: SentinelCode
    feedback: tuple[Comment, ...] = ()

    @property
    def reason(self) -> str:
        """The reason, for people."""
        return _REASONS[self.code]

    @property
    def is_finished(self) -> bool:
        """Whether the workspace stays finished."""
        return self.code in {SentinelCode.STANDS, SentinelCode.AGREED, SentinelCode.REOPEN}


@dataclass(frozen=True, slots=True)
class SentinelFacts:
    """A sentinel and what was read around it.

    Attributes:
        sentinel: the issue.
        comments: on it, oldest first.
        others: the other open issues of the workspace, without sentinels; pull requests are work too.
        comments_on_others: comments on these, in any order.
        trusted: the accounts whose words count, and which of them are SOULs.
        looks_after: whether we look after it: we made it, or stand in for its author who is gone.

    """

    sentinel: Issue
    trusted: TrustedAccounts
    comments: Sequence[Comment] = ()
    others: Sequence[Issue] = ()
    comments_on_others: Sequence[Comment] = ()
    looks_after: bool = False


def judge_sentinel(facts: SentinelFacts) -> SentinelDecision:
    """Return what is to be done about a sentinel; the first rule that fits decides."""
    if facts.sentinel.state == "closed":
        return SentinelDecision(_closed(facts))
    if not facts.looks_after:
        return SentinelDecision(SentinelCode.STANDS)
    since = parse_iso(facts.sentinel.created_at)
    said = [one for one in _counted(facts, facts.comments, since) if facts.trusted.covers_besides_us(one.account)]
    work = tuple(one for one in said if not is_agreement_comment(one.body))
    if work:
        return SentinelDecision(SentinelCode.FEEDBACK, work)
    agreed_at = max((parse_iso(one.created_at) for one in said), default=since)
    if _spoken_elsewhere(facts, agreed_at):
        return SentinelDecision(SentinelCode.SPOKEN_ELSEWHERE)
    return SentinelDecision(SentinelCode.AGREED if said else SentinelCode.STANDS)


def is_agreement_comment(body: str) -> bool:
    """Return whether a comment only expresses agreement."""
    text = body.strip()
    if len(text) > _MOST_AGREEMENT_CHARS:
        return False
    return _MARKS.sub("", text.lower()).strip() in _AGREEMENTS


def is_marked_finished(issue: Issue) -> bool:
    """Return whether an issue or a pull request has the label of a sentinel."""
    return FINISHED_LABEL in {label.lower() for label in issue.labels}


def sentinel_in(issues: Iterable[Issue]) -> Issue | None:
    """Return the open sentinel with the lowest number, whoever made it; None if there is none."""
    found = (one for one in issues if one.state == "open" and not one.is_pull_request and is_marked_finished(one))
    return min(found, key=lambda one: one.number, default=None)


def is_creator_gone(sentinel: Issue, seen_at: datetime | None, now: datetime) -> bool:
    """Return whether the author of a sentinel gave no sign for two days; `seen_at` is the last one, if known."""
    made_at = parse_iso(sentinel.created_at)
    return now - max(made_at, seen_at or made_at) > CREATOR_GONE


def _closed(facts: SentinelFacts) -> SentinelCode:
    closer, author = facts.sentinel.closer, facts.sentinel.account
    by_person = bool(closer.id) and not facts.trusted.is_program(closer)
    if by_person and not facts.others:
        return SentinelCode.CLOSED_BY_PERSON
    if facts.others:
        return SentinelCode.WORK_ELSEWHERE
    if not closer.id or facts.trusted.why(author) == "us" or closer == author or facts.trusted.why(closer) == "us":
        return SentinelCode.CLEARED
    return SentinelCode.REOPEN


def _spoken_elsewhere(facts: SentinelFacts, since: datetime) -> bool:
    """Return whether a trusted account opened an issue after that time, or a trusted person commented on one.

    A SOUL opens issues for people who asked it elsewhere, so its issues count like theirs; the memo of a ritual asks
    for nothing.
    """
    if any(not facts.trusted.is_program(one.account) for one in _counted(facts, facts.comments_on_others, since)):
        return True
    opened = [one for one in facts.others if not one.is_pull_request]
    return any(
        not (facts.trusted.is_program(one.account) and has_memo_mark(one.body))
        for one in _counted(facts, opened, since)
    )


def _counted(facts: SentinelFacts, written: Iterable[_Written], since: datetime) -> list[_Written]:
    return [one for one in written if facts.trusted.covers(one.account) and parse_iso(one.created_at) >= since]
