"""Rules for threads on GitHub: which are answered, what a comment must not be, how a model reads a thread. Pure."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from adapters.github.types import Account, Comment, Issue, Review, ReviewComment
from common.clock import age, parse_iso_or_none
from common.text.closings import asks
from common.text.github_text import mentioned_logins
from common.text.markdown import without_html_comments
from common.text.strings import both_ends, normalize_post_text
from common.text.untrusted import legible, one_line
from common.wording import counted
from modules.lives.github.types import (
    IssueThread,
    KnownParticipants,
    ResponseCode,
    ResponseDecision,
    ThreadOptions,
    Urgency,
)
from modules.services.rituals.policy import has_memo_mark
from modules.services.workspaces.sentinel import FINISHED_LABEL
from modules.services.workspaces.trust import TrustedAccounts

Written = TypeVar("Written", Comment, Issue)

MOST_REENTRIES = 1
"""How often we re-enter a thread that we left because somebody other than the owner calls us there."""

_KEPT_OPEN = frozenset({FINISHED_LABEL, "plan", "discussion"})
_LATEST = 5
"""How many of the newest comments of a thread that we did not answer are searched for a mention again."""
_MOST_OWN = 3
_MANY = 3
_CROWD = 2
_INTRODUCTION_CHARS = 160
_APP = "[bot]"
_BY_A_SOUL = "<!-- soul:intent="
_INTRODUCES = re.compile(
    r"(?:(?:hi|hello|hey|greetings)\b[^\w\n]{0,3}(?:(?:there|all|everyone|everybody|folks|team)\b[^\w\n]{0,3})?)?"
    r"(?:i\s?(?:am|[\u2019']m)|this\sis|my\sname\sis|(?:let\sme|allow\sme\sto)\sintroduce\smyself)\b",
    re.IGNORECASE,
)


def mentions(text: str, login: str) -> bool:
    """Return whether a text mentions an account, by GitHub's rules."""
    return login.lower() in mentioned_logins(text)


def signed(one: Written, us: Account) -> Written:
    """Return what an account wrote; if it is ours, with our present login, by which the rules know us."""
    return replace(one, author=us.login) if one.account == us else one


def comment_of(review: Review) -> Comment:
    """Return a review as a comment of its thread."""
    at = review.submitted_at
    return Comment(review.id, review.body, review.author, review.html_url, at, at, review.author_id)


def calls_on_lines(comments: Iterable[ReviewComment], login: str) -> list[ReviewComment]:
    """Return the newest comment of each conversation about a line that mentions us, or goes on after our answer.

    Args:
        comments: those on lines of a pull request, oldest first.
        login: our account.

    """
    talks: dict[int, list[ReviewComment]] = {}
    for one in comments:
        talks.setdefault(one.talk, []).append(one)
    return [talk[-1] for talk in talks.values() if _is_called_in(talk, login)]


def _is_called_in(talk: Sequence[ReviewComment], login: str) -> bool:
    own = [place for place, one in enumerate(talk) if one.comment.author.lower() == login.lower()]
    later = talk[own[-1] + 1 :] if own else talk
    answered = bool(own and talk[own[-1]].answers)
    return bool(later) and (answered or _any_mentions((one.comment for one in later), login))


def strip_self_mention(text: str, login: str) -> str:
    """Return a text in which mentions of our own account are replaced by its plain name."""
    own = rf"(?<![A-Za-z0-9_])@({re.escape(login)})(?![A-Za-z0-9_-])"
    return re.sub(own, r"\1", text, flags=re.IGNORECASE) if login else text


def peers_beside(thread: IssueThread, people: TrustedAccounts) -> tuple[str, ...]:
    """Return the logins of our peers, except those that somebody else has in a thread."""
    there = [thread.issue.account, *(one.account for one in thread.comments)]
    taken = {one.login.lower() for one in there if one not in people.peers}
    return tuple(sorted(one.login for one in people.peers if one.login.lower() not in taken))


def peers_in(thread: IssueThread, peers: Collection[str]) -> list[str]:
    """Return the logins of those peers of ours that commented in a thread, as written there."""
    known = _names(peers)
    return list(dict.fromkeys(one.author for one in thread.comments if one.author.lower() in known))


def analyze_issue_thread(
    thread: IssueThread, login: str, options: ThreadOptions, peers: Collection[str]
) -> ResponseDecision:
    """Return whether a thread is to be answered. The first row of the table that applies decides.

    The rows are those of `ResponseCode`, from `CLOSED` on. There is no row for "nothing new since our comment": the
    last comment is ours then.

    Args:
        thread: as it is now.
        login: our account.
        options: what is known about it besides its text.
        peers: logins of the SOULs that we know.

    """
    own = thread.by(login)
    code, urgency = _first_row(thread, login, options, peers)
    reason = _REASONS[code]
    if code is ResponseCode.NEW_COMMENTS:
        reason = reason.format(count=counted(len(thread.later_than(login)), "comment"))
    elif code is ResponseCode.ENOUGH_SAID:
        reason = reason.format(count=len(own))
    return ResponseDecision(code, reason, urgency)


def _first_row(
    thread: IssueThread, login: str, options: ThreadOptions, peers: Collection[str]
) -> tuple[ResponseCode, Urgency]:
    own, later = thread.by(login), thread.later_than(login)
    if not thread.is_open:
        return ResponseCode.CLOSED, "none"
    if options.is_review_requested:
        return ResponseCode.REVIEW_REQUESTED, "medium"
    if own and not later:
        return ResponseCode.OWN_LAST, "none"
    if options.is_owner_request:
        return ResponseCode.OWNER_REQUEST, "high"
    if has_memo_mark(thread.issue.body) and not _has_people(later if own else thread.comments, login, peers):
        return ResponseCode.RITUAL_MEMO, "none"
    return _row_after_own(thread, login, later, peers) if own else _row_without_own(thread, login, options, peers)


def _has_people(comments: Iterable[Comment], login: str, peers: Collection[str]) -> bool:
    """Return whether a person, as far as is known, wrote one of these comments."""
    ours = _names(peers) | {login.lower()}
    return any(
        one.author.lower() not in ours and not is_program(one.author) and _BY_A_SOUL not in one.body for one in comments
    )


def _row_after_own(
    thread: IssueThread, login: str, later: Sequence[Comment], peers: Collection[str]
) -> tuple[ResponseCode, Urgency]:
    if not _has_people(later, login, peers) and not _any_mentions(later, login):
        return ResponseCode.PEERS_ONLY, "none"
    known = _names(peers)
    by_people = [one for one in later if one.author.lower() not in known and not is_program(one.author)]
    if len(thread.by(login)) >= _MOST_OWN and not _any_mentions(by_people, login):
        return ResponseCode.ENOUGH_SAID, "none"
    return ResponseCode.NEW_COMMENTS, "high" if len(later) >= _MANY else "medium"


def _row_without_own(
    thread: IssueThread, login: str, options: ThreadOptions, peers: Collection[str]
) -> tuple[ResponseCode, Urgency]:
    if _any_mentions((*thread.comments[-_LATEST:], *thread.unread), login):
        return ResponseCode.MENTIONED, "high"
    if mentions(thread.issue.body, login):
        known = _names(peers)
        crowded = sum(one.author.lower() in known for one in thread.comments) >= _CROWD
        return ResponseCode.MENTIONED_IN_BODY, "low" if crowded else "high"
    if options.is_workspace_issue:
        return ResponseCode.WORKSPACE_ISSUE, "low"
    return ResponseCode.NOT_ADDRESSED, "none"


_REASONS: dict[ResponseCode, str] = {
    ResponseCode.FINISHED: "it marks a workspace as finished",
    ResponseCode.CONCLUDED: "we left this thread, and nobody calls us back",
    ResponseCode.UNWELCOME: "the repository does not want AI agents",
    ResponseCode.NOTHING_NEW: "nothing was written since we chose silence",
    ResponseCode.CLOSED: "it is closed",
    ResponseCode.OWN_LAST: "the last comment is ours",
    ResponseCode.OWNER_REQUEST: "the owner asked for it",
    ResponseCode.RITUAL_MEMO: "it is the memo of a ritual, and no person wrote there since",
    ResponseCode.PEERS_ONLY: "only SOULs and programs commented since, and none of them mentions us",
    ResponseCode.ENOUGH_SAID: "we commented {count} times, and nobody asks us for more",
    ResponseCode.NEW_COMMENTS: "{count} that we have not answered",
    ResponseCode.MENTIONED: "a comment mentions us",
    ResponseCode.MENTIONED_IN_BODY: "its first text mentions us",
    ResponseCode.REVIEW_REQUESTED: "our review is asked for",
    ResponseCode.WORKSPACE_ISSUE: "an issue in our workspace",
    ResponseCode.NOT_ADDRESSED: "nobody addresses us",
    ResponseCode.REVIEW_NOT_AWAITED: "our review is not awaited any more",
    ResponseCode.REVIEW_GIVEN: "we reviewed that commit already",
    ResponseCode.REVIEW_BY_TEST: "its review is given once its tests were run",
}


ANSWERED = frozenset({ResponseCode.OWN_LAST, ResponseCode.REVIEW_GIVEN})
"""The codes of threads that contain our answer already: these are `noted`, not `silent`."""


def decision_of(code: ResponseCode) -> ResponseDecision:
    """Return the decision not to answer, with this code and its reason."""
    return ResponseDecision(code, _REASONS[code])


def may_reenter(
    thread: IssueThread, login: str, concluded_at: datetime | None, reentries: int, options: ThreadOptions
) -> bool:
    """Return whether we may re-enter a thread that we left.

    The owner may always call us back; others once, by a mention that we had not read when we left, or by
    requesting our review.
    """
    if options.is_owner_request or concluded_at is None:
        return True
    since = replace(thread, read_until=thread.read_until or concluded_at).unread
    return reentries < MOST_REENTRIES and (options.is_review_requested or _any_mentions(since, login))


def is_closed_on_leaving(thread: IssueThread, known: KnownParticipants) -> bool:
    """Return whether an issue of a workspace is closed when we leave it: a plain one in which no person waits.

    The last comment, or the issue if there is none, must be by a SOUL; an issue that the owner opened stays open.
    """
    issue = thread.issue
    is_plain = not issue.is_pull_request and not {label.lower() for label in issue.labels} & _KEPT_OPEN
    if not is_plain or not thread.is_open or known.people.is_owner(issue.account):
        return False
    last = thread.comments[-1].account if thread.comments else issue.account
    return known.people.is_program(last)


def is_program(login: str) -> bool:
    """Return whether an account belongs to an app, by its name."""
    return login.lower().endswith(_APP)


def caller(thread: IssueThread, login: str, people: TrustedAccounts) -> Account:
    """Return the account that calls for an answer: of those that mention us, else that wrote, the owner or the last.

    What we read before counts only if nothing is new; without comments it is the author.
    """
    later = thread.later_than(login)
    new = [one for one in later if one in thread.unread] or later
    mentioning = [one.account for one in new if mentions(one.body, login)]
    if thread.read_until is None and not thread.by(login) and mentions(thread.issue.body, login):
        mentioning.insert(0, thread.issue.account)
    calling = mentioning or [one.account for one in new] or [thread.issue.account]
    return next(filter(people.is_owner, calling), calling[-1])


def repeats_own(text: str, thread: IssueThread, login: str) -> bool:
    """Return whether we wrote the same words in a thread before, and nobody asks now."""
    words, newest = normalize_post_text(text), thread.comments[-1:]
    is_asked = bool(newest) and asks(newest[0].body)
    return bool(words) and not is_asked and any(words == normalize_post_text(one.body) for one in thread.by(login))


def opens_with_introduction(text: str, names: Iterable[str]) -> bool:
    """Return whether a comment begins by introducing us, by one of our `names` or as an agent."""
    opening = text.lstrip("#*_>- \t\n")[:_INTRODUCTION_CHARS]
    found = _INTRODUCES.match(opening)
    if not found:
        return False
    if "introduce" in found[0].lower() or "name" in found[0].lower():
        return True
    after = opening[found.end() :].lower().lstrip(" \t*_`@")
    named = "|".join(re.escape(name.lower().lstrip("@")) for name in names if name)
    if re.match(rf"(?:{named or '(?!)'})(?![\w'\u2019-])", after):
        return True
    return "this" not in found[0].lower() and _IS_AGENT.match(after) is not None


_IS_AGENT = re.compile(r"(?:an?|the|your|one of)\s(?:\w{1,20}\s){0,3}?(?:ai|agent|bot|soul|assistant)\b")


def _names(logins: Iterable[str]) -> set[str]:
    return {login.lower() for login in logins}


def _any_mentions(comments: Iterable[Comment], login: str) -> bool:
    return any(mentions(one.body, login) for one in comments)


MOST_COMMENTS = 15
_MOST_CALLS = 3

_BODY_CHARS = 6_000
_COMMENT_CHARS = 2_000
_PATH_CHARS = 300
_HUNK_CHARS = 3_000
_CUT = "[…]"


@dataclass(frozen=True, slots=True)
class ThreadText:
    """The parts of a thread: its first text and the newest comments.

    `hidden` counts the earlier comments that are left out. `line` shows the file and the changes that the comments are
    about; "" if they are not about a line.
    """

    opening: str
    comments: str
    hidden: int = 0
    line: str = ""


def format_thread_for_context(
    thread: IssueThread, login: str, now: datetime, max_comments: int = MOST_COMMENTS
) -> ThreadText:
    """Return a thread with its newest comments, and those that wait for an answer of ours and mention us.

    Each is shown with its age at `now`, and ours are marked YOU.
    """
    issue, newest = thread.issue, thread.comments[-max_comments:]
    calls = [one for one in thread.later_than(login) if one not in newest and mentions(one.body, login)]
    shown = (*calls[-_MOST_CALLS:], *newest)
    kind = "pull request" if issue.is_pull_request else "issue"
    labels = f", labels: {', '.join(issue.labels)}" if issue.labels else ""
    by = f"by @{issue.author}, age {_age(issue.created_at, now)}"
    heading = f"{issue.title}\n({kind} #{issue.number}, {issue.state}, {by}{labels})"
    return ThreadText(
        opening=f"{heading}\n\n{_fitted(issue.body, _BODY_CHARS)}",
        comments=_lines(shown, login, now, _COMMENT_CHARS),
        hidden=len(thread.comments) - len(shown),
        line=_line(thread.line) if thread.line else "",
    )


def _age(at: str, now: datetime) -> str:
    return age(parse_iso_or_none(at) or now, now)


def _line(on: ReviewComment) -> str:
    """Return the file and the end of the changes, which is the part that the comments are about."""
    hunk = legible(on.hunk)
    shown = hunk if len(hunk) <= _HUNK_CHARS else f"{_CUT} {hunk[-_HUNK_CHARS:]}"
    return f"{one_line(on.path, _PATH_CHARS)}\n{shown}"


def _lines(comments: Sequence[Comment], login: str, now: datetime, most: int) -> str:
    def author(one: Comment) -> str:
        return "YOU" if one.author.lower() == login.lower() else f"@{one.author}"

    return "\n\n".join(f"[{_age(one.created_at, now)}] {author(one)}: {_fitted(one.body, most)}" for one in comments)


def _fitted(text: str, most: int) -> str:
    return both_ends(without_html_comments(text).strip(), most)
