"""Handles one waiting thread: reads its comments and reviews, decides by rule, else asks the model.

A crash at any point leaves the row waiting; a comment that was accepted before is found and not repeated.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from adapters.atproto.types import Actor
from adapters.github.client import GitHub
from adapters.github.sending import has_moved
from adapters.github.types import Account, Comment, Issue, PullRequest, Review, ReviewComment
from common.errors import Transient
from common.provenance import Importance
from common.result import ApiResult, Err, Ok, answering
from modules.lives.github.engagement import (
    Commented,
    GitHubState,
    LeftThread,
    Reentered,
    StayedSilent,
    ThreadRead,
    Tracked,
)
from modules.lives.github.experiences import impression_of
from modules.lives.github.policy import (
    ANSWERED,
    analyze_issue_thread,
    caller,
    calls_on_lines,
    comment_of,
    decision_of,
    is_closed_on_leaving,
    is_program,
    may_reenter,
    mentions,
    peers_beside,
    signed,
)
from modules.lives.github.respond import PullReviewer, ThreadResponder
from modules.lives.github.types import (
    IssueThread,
    KnownParticipants,
    ResponseCode,
    ResponseDecision,
    ThreadOptions,
)
from modules.services.experiences import IMPRESSED, ExperienceLog, NewExperience
from modules.services.github_threads import THREAD, NewThread, ThreadInbox, WaitingThread, thread_of
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import IssueUpdateBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.own_feed.expressions import NoteInsight
from modules.services.plans.repository import is_planned, page_text
from modules.services.plans.types import AGENTS_PAGE
from modules.services.repository_rules.checking import ForeignRepositories
from modules.services.work.limits import TURN, TURNS_ON_GITHUB, TURNS_PER_REPOSITORY, PersonTurns, TurnLimit, limits_of
from modules.services.work.types import Disposition, Handler, WorkItem
from modules.services.workspaces.sentinel import is_marked_finished
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust


@dataclass(frozen=True, slots=True)
class FoundThread:
    """A thread as it is now, and the conversations about its lines in which somebody calls us."""

    thread: IssueThread
    lines: tuple[NewThread, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads threads from GitHub. What we wrote has our present login, also if we were renamed just now."""

    github: GitHub

    @answering
    async def read(self, waiting: WaitingThread, us: Account) -> ApiResult[FoundThread]:
        """Return the waiting thread, or the waiting conversation about a line."""
        async with self.github.burst():
            issue = signed((await self.github.get_issue(waiting.place, waiting.number)).or_raise(), us)
            if waiting.line:
                return Ok(await self._talk(waiting, issue, us))
            found = (await self.github.list_comments(waiting.place, waiting.number)).or_raise()
            comments = tuple(signed(one, us) for one in found)
            if not issue.is_pull_request:
                return Ok(FoundThread(IssueThread(issue, comments)))
            return Ok(await self._with_reviews(waiting, issue, comments, us))

    async def _on_lines(self, waiting: WaitingThread, us: Account) -> list[ReviewComment]:
        found = (await self.github.pulls.review_comments(waiting.place, waiting.number)).or_raise()
        return [replace(one, comment=signed(one.comment, us)) for one in found]

    async def _talk(self, waiting: WaitingThread, issue: Issue, us: Account) -> FoundThread:
        found = await self._on_lines(waiting, us)
        talk = [one for one in found if waiting.line in {one.comment.id, one.answers}]
        if not talk:
            Err("the comment on the line is gone", "not_found").or_raise()
        return FoundThread(IssueThread(issue, tuple(one.comment for one in talk), talk[0]))

    async def _with_reviews(
        self, waiting: WaitingThread, issue: Issue, comments: tuple[Comment, ...], us: Account
    ) -> FoundThread:
        reviews = (await self.github.pulls.reviews(waiting.place, waiting.number)).or_raise()
        lines, login = await self._on_lines(waiting, us), us.login
        answered = _answered_by_a_round(issue, reviews, us)
        calling = (one for one in reviews if one.id not in answered and one.author_id != us.id)
        said = [*comments, *(comment_of(one) for one in calling if mentions(one.body, login))]
        thread = IssueThread(issue, tuple(sorted(said, key=lambda one: one.created_at)))
        open_lines = [one for one in lines if one.review_id not in answered]
        return FoundThread(thread, tuple(_new(waiting, one) for one in calls_on_lines(open_lines, login)))


def _answered_by_a_round(issue: Issue, reviews: tuple[Review, ...], us: Account) -> set[int]:
    """Return the reviews of our own pull request that request changes: a further round of the work answers these."""
    if issue.account != us:
        return set()
    return {one.id for one in reviews if one.state == "CHANGES_REQUESTED"}


def _new(waiting: WaitingThread, newest: ReviewComment) -> NewThread:
    return NewThread(
        repo=waiting.repo,
        number=waiting.number,
        kind="pull",
        source="github_notification",
        at=newest.comment.created_at,
        reason="mention",
        line=newest.talk,
    )


logger = logging.getLogger(__name__)

_STRANGERS = "strangers on GitHub"
_ANSWERS: dict[IntentKind, str] = {"issue_comment": "commented", "reaction": "left", "review": "reviewed"}
_IN_WORDS: tuple[IntentKind, ...] = ("issue_comment", "review")
_ON_ITS_WAY_S = 60.0
_HELD_S = 1_800.0
_SUMMARIES: dict[str, str] = {
    "commented": "Commented on {}",
    "reviewed": "Reviewed {}",
    "left": "Left {}",
    "silent": "No comment on {}",
    "noted": "Nothing to add to {}",
    "dropped": "Giving up on {}",
    "later": "{} has to wait",
    "undecided": "Undecided about {}",
}


@dataclass(kw_only=True)
class ThreadHandler(Handler):
    """Handles waiting threads. `watched` returns the watched workspaces, in lower case."""

    kind = THREAD
    line = "social"

    github: GitHub
    state: GitHubState
    threads: ThreadInbox
    reader: ThreadReader
    responder: ThreadResponder
    reviewer: PullReviewer
    outbox: Outbox
    foreign: ForeignRepositories
    turns: PersonTurns
    trust: WorkspaceTrust
    watched: Callable[[], Collection[str]]
    note_insight: NoteInsight
    experiences: ExperienceLog

    def is_ready(self) -> bool:
        return self.github.enough_for_loops

    async def handle(self, item: WorkItem) -> Disposition:
        waiting = thread_of(item)
        names = await self.foreign.rules.identity.names_of(waiting.place)
        self.state.take_over(waiting, names)
        self.state.note(waiting.talk_key, Tracked(waiting, waiting.url_at(self.github.address)))
        if (ours := await self._unsent(waiting, names)) is not None:
            held = ours.state == "held"
            what = "a review" if ours.kind == "review" else "a comment"
            reason = f"{what} of ours waits for the owner's approval" if held else f"{what} of ours is on its way"
            return Disposition("later", "ours-waits", reason, _HELD_S if held else _ON_ITS_WAY_S, ours.id)
        if waiting.caller and item.outcome == TURN:
            # NOTE(self): a thread that waits for a turn is not read again before it may have one.
            account_id, login, importance = waiting.caller
            waits = await self.turns.must_wait(*_turn(waiting, Account(account_id, login), importance))
            if waits is not None:
                return waits
        people = await self.trust.people()
        thread = await self._read(waiting, people.us)
        if isinstance(thread, Disposition):
            return thread
        if record := self.state.known(waiting.talk_key):
            thread = replace(thread, read_until=record.read_until)
        known = KnownParticipants(people.us.login, people, peers_beside(thread, people))
        in_workspace = self._is_in_workspace(waiting)
        asked = None
        if not waiting.line:
            asked = await self.reviewer.requested(waiting, thread, people.us, in_workspace=in_workspace)
        pull = asked if isinstance(asked, PullRequest) else None
        decision = self._judged(waiting, thread, known, is_review_requested=pull is not None)
        if isinstance(asked, ResponseCode) and decision.code is ResponseCode.NOT_ADDRESSED:
            decision = decision_of(asked)
        self.state.note(waiting.talk_key, ThreadRead(thread, known.login, is_to_be_answered=decision.responds))
        if not decision.responds:
            act = "noted" if decision.code in ANSWERED else "silent"
            return Disposition(act, decision.code, decision.reason)
        return await self._answer(item, thread, known, decision, pull)

    async def _unsent(self, waiting: WaitingThread, names: Sequence[str]) -> Intent | None:
        """Return a comment or review of ours for the same thread that was accepted but not published yet, or None.

        `names` are those of its repository.
        """
        keys = [replace(waiting, repo=name).key for name in names]
        said = [one for key in keys for one in await self.outbox.at_place(_IN_WORDS, key)]
        return next((one for one in said if one.state in ACTIVE_STATES - {"done"}), None)

    async def _read(self, waiting: WaitingThread, us: Account) -> IssueThread | Disposition:
        """Return the thread as it is now, or a disposition if it is gone; add conversations on its lines that call us.

        Raises `Transient` if it cannot be read now.
        """
        found = await self.reader.read(waiting, us)
        if isinstance(found, Err):
            return await self._moved(waiting) if has_moved(found) else _unread(found)
        await self.threads.take_in(found.data.lines)
        return found.data.thread

    async def _moved(self, waiting: WaitingThread) -> Disposition:
        """Add the thread again under the new name of its repository, whose rules and rights then apply."""
        found = await self.github.get_repository(waiting.place)
        if isinstance(found, Err):
            return _unread(found)
        place = found.data.full_name
        if place.lower() == waiting.repo.lower():
            return Disposition("dropped", "moved", "it has moved to another repository")
        there = NewThread(
            place,
            waiting.number,
            waiting.kind,
            waiting.source,
            waiting.at,
            waiting.reason,
            uri=waiting.uri,
            line=waiting.line,
        )
        await self.threads.take_in([there])
        return Disposition("dropped", "moved", f"the repository is {place} now, and is looked at anew there")

    def _judged(
        self, waiting: WaitingThread, thread: IssueThread, known: KnownParticipants, *, is_review_requested: bool
    ) -> ResponseDecision:
        if is_marked_finished(thread.issue):
            return decision_of(ResponseCode.FINISHED)
        by_owner = waiting.source == "bluesky_url_owner"
        is_workspace_issue = self._is_in_workspace(waiting) and not thread.issue.is_pull_request
        options = ThreadOptions(
            is_owner_request=by_owner, is_review_requested=is_review_requested, is_workspace_issue=is_workspace_issue
        )
        decision = analyze_issue_thread(thread, known.login, options, known.peers)
        record = self.state.known(waiting.talk_key)
        if not decision.responds or record is None:
            return decision
        if record.silent_over == thread.digest and not (by_owner or is_review_requested):
            return decision_of(ResponseCode.NOTHING_NEW)
        if record.state != "concluded":
            return decision
        if not may_reenter(thread, known.login, record.concluded_at, record.reengagement_count, options):
            return decision_of(ResponseCode.CONCLUDED)
        self.state.note(waiting.talk_key, Reentered(by_owner=by_owner))
        return decision

    async def _answer(
        self,
        item: WorkItem,
        thread: IssueThread,
        known: KnownParticipants,
        decision: ResponseDecision,
        pull: PullRequest | None,
    ) -> Disposition:
        """Answer a thread; with `pull`, by a review of it, which counts as a turn of its author."""
        waiting = thread_of(item)
        who = pull.account if pull else caller(thread, known.login, known.people)
        importance = self._importance(waiting, who, known.people)
        if pull and not self._is_in_workspace(waiting):
            # NOTE(self): GitHub does not say who requested the review.
            importance = "stranger"
        actor, limits, places = _turn(waiting, who, importance)
        if importance != "owner" and (wait := await self.turns.must_wait(actor, limits, places)):
            await self.threads.note_caller(item, who, importance)
            return wait
        hold = ""
        if self.foreign.is_foreign(waiting.repo):
            verdict = await self.foreign.rules.verdict(waiting.place, importance)
            if verdict.welcome == "unwelcome":
                unwelcome = decision_of(ResponseCode.UNWELCOME)
                return Disposition("silent", unwelcome.code, f"{unwelcome.reason}: {verdict.reason}")
            hold = verdict.reason if verdict.welcome == "unclear" else ""
        if pull:
            async with self.turns.turn(actor, importance, list(places)):
                return await self.reviewer.review(
                    waiting, thread, known, decision, pull, hold=hold, importance=importance
                )
        is_issue = self._is_in_workspace(waiting) and not thread.issue.is_pull_request
        purpose = await page_text(self.github, waiting.place, AGENTS_PAGE) if is_issue else ""
        async with self.turns.turn(actor, importance, list(places)):
            disposition = await self.responder.answer_thread(
                waiting, thread, known, decision, hold=hold, importance=importance, purpose=purpose
            )
        if disposition.act == "silent":
            key, why = waiting.cause_id, disposition.reason
            silence = NewExperience("chose_silence", "github", key, why, uri=thread.issue.html_url, trust="stranger")
            await self.experiences.record(silence)
            self.state.note(waiting.talk_key, StayedSilent(thread))
        comment = await self.outbox.get(disposition.intent_id) if disposition.intent_id else None
        kind = IMPRESSED.get(disposition.impression)
        if comment and kind and disposition.act == "commented" and not disposition.held:
            there = replace(known, people=await self.trust.accounts(waiting.place))
            await self.experiences.record(impression_of(kind, comment, thread, there))
        if disposition.act == "left" and not disposition.held and self._is_in_workspace(waiting):
            await self._close_left(waiting, thread, known)
        return disposition

    async def _close_left(self, waiting: WaitingThread, thread: IssueThread, known: KnownParticipants) -> None:
        """Close an issue of a workspace that we leave, if nobody waits for anything or comments until then.

        One reopened since stays open. An issue that an open plan names is left to that plan, and so is any issue if
        the plans cannot be read.
        """
        if not is_closed_on_leaving(thread, known):
            return
        if (await is_planned(self.github, waiting.place, waiting.number)).or_else("unread"):
            return
        last = max((one.id for one in thread.comments), default=0)
        at = for_workspace(waiting.place)
        body = IssueUpdateBody(**at, number=waiting.number, state="closed", last_comment=last)
        # NOTE(self): a separate cause, because answers in a thread are looked up by the thread's cause.
        cause_id = f"{waiting.cause_id}/close"
        await self.outbox.submit(ProposedAction(body, part=f"workspace:{waiting.key}/left", cause_id=cause_id))

    def _is_in_workspace(self, waiting: WaitingThread) -> bool:
        return waiting.repo.lower() in self.watched()

    def _importance(self, waiting: WaitingThread, who: Account, people: TrustedAccounts) -> Importance:
        if waiting.source == "bluesky_url_owner" or people.is_owner(who):
            return "owner"
        return "mention" if people.is_program(who) else "stranger"

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition | None:
        """Return the disposition of an answer from before a crash; None if no accepted intent is an answer."""
        intent = next((one for one in accepted if one.kind in _ANSWERS), None)
        if intent is None:
            return None
        done = await super().finish(item, [intent])
        return done and replace(done, act=_ANSWERS[intent.kind])

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Store the disposition in the record of the thread, and mark GitHub's notification as read."""
        waiting = thread_of(item)
        if disposition.act in {"commented", "reviewed"}:
            self.state.note(waiting.talk_key, Commented())
        if disposition.act == "commented" and not disposition.held:
            self.note_insight("Commented", f"{waiting.repo}#{waiting.number}", significant=True)
        if disposition.act == "left":
            self.state.note(waiting.talk_key, LeftThread(disposition.reason))
        # NOTE(self): the mark is for people who look at the account's page; nothing depends on it.
        if waiting.notice and isinstance(marked := await self.github.notifications.mark_read(waiting.notice), Err):
            logger.info("%s: %s", waiting.key, marked.error)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        what = "A review of {}" if disposition.act == "reviewed" else "A comment on {}"
        summary = f"{what} waits for your approval" if disposition.held else _SUMMARIES[disposition.act]
        return summary.format(f"{item.payload.get('repo')}#{item.payload.get('number')}")


def _turn(
    waiting: WaitingThread, who: Account, importance: Importance
) -> tuple[Actor, Sequence[TurnLimit], dict[str, Sequence[TurnLimit]]]:
    """Return who takes a turn, their limits, and the places for which it counts, with theirs."""
    actor = Actor(f"github:{who.id}", who.login, is_bot=is_program(who.login))
    places: dict[str, Sequence[TurnLimit]] = {f"repository:{waiting.repo.lower()}": (TURNS_PER_REPOSITORY,)}
    if importance == "stranger":
        places[_STRANGERS] = (TURNS_ON_GITHUB,)
    return actor, limits_of(importance), places


def _unread(problem: Err) -> Disposition:
    """Return the disposition of a thread that does not exist for us. Raises `Transient` if it may be readable later."""
    if problem.kind in {"not_found", "invalid"}:
        return Disposition("dropped", "gone", problem.error)
    raise Transient(problem.error, retry_after=problem.retry_after)
