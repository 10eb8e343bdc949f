"""One thread that waits: read it, decide by rule, else ask the model.

A crash at any point leaves the row waiting; a comment that had been accepted before is found and not repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from operator import itemgetter

from adapters.atproto.types import Actor
from adapters.github.client import GitHub
from adapters.github.errors import has_moved
from adapters.github.types import Account, PullRequest, Repo
from common.clock import iso
from common.errors import BudgetExceeded, Fatal, Transient
from common.result import Err
from modules.lives.github.engagement import Commented, Left, Read, Reentered, Tracked
from modules.lives.github.experiences import impression_of
from modules.lives.github.policy import (
    analyze_issue_thread,
    caller,
    decision_of,
    is_closed_on_leaving,
    is_program,
    may_reenter,
    peers_beside,
)
from modules.lives.github.respond import LOOP, ThreadResponder
from modules.lives.github.review import PullReviewer
from modules.lives.github.state import GitHubState
from modules.lives.github.types import (
    IssueAct,
    IssueDisposition,
    IssueThread,
    Known,
    ResponseCode,
    ResponseDecision,
    ThreadOptions,
)
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Importance
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import IMPRESSED, NewExperience
from modules.services.inbox.threads import NewThread, WaitingThread
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import IssueCommentBody, IssueUpdateBody, ReviewBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.policy import full
from modules.services.outbox.rules.rules import (
    TURNS_OF_PEERS,
    TURNS_OF_STRANGERS,
    TURNS_ON_GITHUB,
    TURNS_PER_REPOSITORY,
)
from modules.services.outbox.rules.types import EtiquetteRule
from modules.services.outbox.rules.waits import PersonTurns
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.own_feed.expressions import NoteInsight
from modules.services.plans.standing import is_planned
from modules.services.repository_rules.admission import ForeignRepositories
from modules.services.workspaces.sentinel import is_marked_finished
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust

MOST_TRIES = 3

logger = logging.getLogger(__name__)

_LOOKED_AT = 200
_STRANGERS = "strangers on GitHub"
_ANSWERS: dict[IntentKind, IssueAct] = {"issue_comment": "commented", "reaction": "left", "review": "reviewed"}
_IN_WORDS: tuple[IntentKind, ...] = ("issue_comment", "review")
_ON_ITS_WAY_S = 60.0
_HELD_S = 1_800.0
_SUMMARIES: dict[IssueAct, str] = {
    "commented": "Commented on {}",
    "reviewed": "Reviewed {}",
    "left": "Left {}",
    "silent": "No comment on {}",
    "dropped": "Giving up on {}",
    "later": "{} has to wait",
    "undecided": "Undecided about {}",
}


class ThreadHandler:
    """Handles what led to a thread. At `speed` 10 the pauses are a tenth as long."""

    def __init__(
        self,
        *,
        github: GitHub,
        state: GitHubState,
        responder: ThreadResponder,
        reviewer: PullReviewer,
        outbox: Outbox,
        foreign: ForeignRepositories,
        turns: PersonTurns,
        journal: Journal,
        trust: WorkspaceTrust,
        watched: Callable[[], Collection[str]],
        note_insight: NoteInsight,
        experiences: ExperienceLog,
        speed: float,
    ) -> None:
        self._github = github
        self._state = state
        self._responder = responder
        self._reviewer = reviewer
        self._outbox = outbox
        self._foreign = foreign
        self._turns = turns
        self._journal = journal
        self._trust = trust
        self._watched = watched
        self._note_insight = note_insight
        self._experiences = experiences
        self._speed = speed
        self._tries: dict[str, int] = {}
        self._told_to_wait: set[str] = set()

    def importance_of(self, waiting: WaitingThread) -> Importance:
        """How much what led to a thread matters, before the thread is read."""
        return "owner" if waiting.source == "bluesky_url_owner" else "stranger"

    async def handle(self, waiting: WaitingThread) -> IssueDisposition:
        """Handle what led to a thread, and settle it unless it goes on waiting.

        Raises:
            BudgetExceeded: there is no budget for whoever calls us.
            Fatal: nothing can be done any more.
            Transient: GitHub or the model is briefly unable; the thread goes on waiting.

        """
        self._state.note(waiting.key, Tracked(waiting))
        disposition = await self._done_before(waiting) or await self._disposition_of(waiting)
        if disposition.act == "undecided":
            tries = self._tries[waiting.cause_id] = self._tries.get(waiting.cause_id, 0) + 1
            if tries >= MOST_TRIES:
                disposition = IssueDisposition("dropped", f"{disposition.reason}, {tries} times", disposition.code)
        await self._tell(waiting, disposition)
        if disposition.act in {"commented", "reviewed"}:
            self._state.note(waiting.key, Commented())
            if disposition.act == "commented" and not disposition.held:
                self._note_insight("Commented", f"{waiting.repo}#{waiting.number}", significant=True)
        if disposition.act == "left":
            self._state.note(waiting.key, Left(disposition.reason))
        if disposition.act in {"commented", "reviewed", "left", "silent", "dropped"}:
            await self._state.settle(waiting, "dropped" if disposition.act == "dropped" else "handled", disposition.act)
            await self._mark_read(waiting)
            self._tries.pop(waiting.cause_id, None)
            self._told_to_wait.discard(waiting.cause_id)
        return disposition

    async def _mark_read(self, waiting: WaitingThread) -> None:
        """Mark the notification as read, for whoever looks at the account's page; nothing depends on it."""
        if waiting.notice and isinstance(marked := await self._github.notifications.mark_read(waiting.notice), Err):
            logger.info("%s: %s", waiting.key, marked.error)

    async def _done_before(self, waiting: WaitingThread) -> IssueDisposition | None:
        """What an earlier life did and did not note."""
        found = await self._outbox.by_cause(waiting.cause_id)
        intent = next((one for one in found if one.state in ACTIVE_STATES and one.kind in _ANSWERS), None)
        if intent is None:
            return None
        held = intent.state == "held"
        return IssueDisposition(_ANSWERS[intent.kind], "done before the last restart", intent_id=intent.id, held=held)

    async def _disposition_of(self, waiting: WaitingThread) -> IssueDisposition:
        """One thread that the model rejects, or that trips over a bug of ours, must not stop the others for good."""
        try:
            return await self._decide(waiting)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            return IssueDisposition("undecided", f"{type(error).__name__}: {error}")

    async def _decide(self, waiting: WaitingThread) -> IssueDisposition:
        if (ours := await self._unsent(waiting)) is not None:
            held = ours.state == "held"
            what = "a review" if ours.kind == "review" else "a comment"
            reason = f"{what} of ours waits for the owner's yes" if held else f"{what} of ours is on its way"
            wait_s = (_HELD_S if held else _ON_ITS_WAY_S) / self._speed
            return IssueDisposition("later", reason, intent_id=ours.id, retry_in_s=wait_s)
        thread = await self._read(waiting)
        if isinstance(thread, IssueDisposition):
            return thread
        people = await self._trust.people()
        known = Known(self._github.login, people, peers_beside(thread, people))
        asked = await self._reviewer.requested(waiting, thread, people.us)
        pull = asked if isinstance(asked, PullRequest) else None
        decision = self._judged(waiting, thread, known, is_review_requested=pull is not None)
        if isinstance(asked, ResponseCode) and decision.code is ResponseCode.NOT_ADDRESSED:
            decision = decision_of(asked)
        self._state.note(waiting.key, Read(thread, known.login, is_to_be_answered=decision.responds))
        if not decision.responds:
            return IssueDisposition("silent", decision.reason, decision.code)
        return await self._answer(waiting, thread, known, decision, pull)

    async def _unsent(self, waiting: WaitingThread) -> Intent | None:
        """A comment or a review of ours for the same thread that was accepted and does not stand there yet."""
        for kind in _IN_WORDS:
            for one in await self._outbox.of_kind(kind, _LOOKED_AT):
                body = one.body
                if not isinstance(body, IssueCommentBody | ReviewBody) or one.state not in ACTIVE_STATES - {"done"}:
                    continue
                if f"{body.repo}#{body.number}".lower() == waiting.key:
                    return one
        return None

    async def _read(self, waiting: WaitingThread) -> IssueThread | IssueDisposition:
        """The thread as it stands. Raises `Transient` where it cannot be read now."""
        repo = repo_of(waiting)
        async with self._github.burst():
            issue = await self._github.get_issue(repo, waiting.number)
            if isinstance(issue, Err):
                return await self._moved(waiting) if has_moved(issue) else _unread(issue)
            comments = await self._github.list_comments(repo, waiting.number)
        return _unread(comments) if isinstance(comments, Err) else IssueThread(issue.data, comments.data)

    async def _moved(self, waiting: WaitingThread) -> IssueDisposition:
        """Take the thread in anew where its repository stands now, under the rules and rights of that place."""
        found = await self._github.get_repository(repo_of(waiting))
        if isinstance(found, Err):
            return _unread(found)
        place = found.data.full_name
        if place.lower() == waiting.repo.lower():
            return IssueDisposition("dropped", "it has moved to another repository")
        there = NewThread(
            place, waiting.number, waiting.kind, waiting.source, waiting.at, waiting.reason, uri=waiting.uri
        )
        await self._state.take_in([there])
        return IssueDisposition("dropped", f"the repository is {place} now, and is looked at anew there")

    def _judged(
        self, waiting: WaitingThread, thread: IssueThread, known: Known, *, is_review_requested: bool
    ) -> ResponseDecision:
        if is_marked_finished(thread.issue):
            return decision_of(ResponseCode.FINISHED)
        by_owner = waiting.source == "bluesky_url_owner"
        is_workspace_issue = self._is_in_workspace(waiting) and not thread.issue.is_pull_request
        options = ThreadOptions(
            is_owner_request=by_owner, is_review_requested=is_review_requested, is_workspace_issue=is_workspace_issue
        )
        decision = analyze_issue_thread(thread, known.login, options, known.peers)
        record = self._state.known(waiting.key)
        if not decision.responds or record is None or record.state != "concluded":
            return decision
        left_at = iso(record.concluded_at) if record.concluded_at else None
        if not may_reenter(thread, known.login, left_at, record.reengagement_count, options):
            return decision_of(ResponseCode.CONCLUDED)
        self._state.note(waiting.key, Reentered(by_owner=by_owner))
        return decision

    async def _answer(
        self,
        waiting: WaitingThread,
        thread: IssueThread,
        known: Known,
        decision: ResponseDecision,
        pull: PullRequest | None,
    ) -> IssueDisposition:
        """Answer a thread; with `pull` by a review of it, which counts as a turn of its author."""
        who = pull.account if pull else caller(thread, known.login)
        importance = self._importance(waiting, who, known.people)
        if pull and not self._is_in_workspace(waiting):
            # NOTE(self): GitHub does not tell who asked for the review.
            importance = "stranger"
        if importance != "owner" and (wait := await self._begin_turn(waiting, who, importance)):
            return IssueDisposition("later", full(wait[0]), decision.code, retry_in_s=wait[1])
        hold = ""
        if self._foreign.is_foreign(waiting.repo):
            verdict = await self._foreign.rules.verdict(repo_of(waiting), importance)
            if verdict.welcome == "unwelcome":
                unwelcome = decision_of(ResponseCode.UNWELCOME)
                return IssueDisposition("silent", f"{unwelcome.reason}: {verdict.reason}", unwelcome.code)
            hold = verdict.reason if verdict.welcome == "unclear" else ""
        if pull:
            return await self._reviewer.review(
                waiting,
                thread,
                known,
                decision,
                pull,
                hold=hold,
                importance=importance,
                in_workspace=self._is_in_workspace(waiting),
            )
        disposition = await self._responder.answer_thread(
            waiting, thread, known, decision, hold=hold, importance=importance
        )
        if disposition.act == "silent":
            key, why = waiting.cause_id, disposition.reason
            silence = NewExperience("chose_silence", "github", key, why, uri=waiting.url, trust="stranger")
            await self._experiences.record(silence)
        comment = await self._outbox.get(disposition.intent_id) if disposition.intent_id else None
        if comment and disposition.act == "commented" and disposition.impression and not disposition.held:
            kind = IMPRESSED[disposition.impression]
            await self._experiences.record(impression_of(kind, comment, waiting, thread, known))
        if disposition.act == "left" and not disposition.held and self._is_in_workspace(waiting):
            await self._close_left(waiting, thread, known)
        return disposition

    async def _begin_turn(
        self, waiting: WaitingThread, who: Account, importance: Importance
    ) -> tuple[EtiquetteRule, float] | None:
        """Count a turn for whoever calls and for the repository; return which limit it must wait for, and how long."""
        actor = Actor(f"github:{who.id}", who.login, is_bot=is_program(who.login))
        repo = f"repository:{waiting.repo.lower()}"
        is_stranger = importance == "stranger"
        limits = {actor.did: TURNS_OF_STRANGERS if is_stranger else TURNS_OF_PEERS, repo: (TURNS_PER_REPOSITORY,)}
        if is_stranger:
            limits[_STRANGERS] = (TURNS_ON_GITHUB,)
        await self._turns.recall()
        waits = [wait for name, rules in limits.items() if (wait := self._turns.wait(name, rules))]
        if not waits:
            await self._turns.begin_turn(actor, [name for name in limits if name != actor.did])
        return max(waits, key=itemgetter(1), default=None)

    async def _close_left(self, waiting: WaitingThread, thread: IssueThread, known: Known) -> None:
        """Close an issue of a workspace that we leave, where nobody waits for anything. Once opened again it stays.

        One that an open plan names is left to that plan, and so is any where that cannot be read.
        """
        if not is_closed_on_leaving(thread, known):
            return
        planned = await is_planned(self._github, repo_of(waiting), waiting.number)
        if isinstance(planned, Err) or planned.data:
            return
        about = f"close {waiting.repo}#{waiting.number}"
        body = IssueUpdateBody(
            source="workspace", repo=waiting.repo, number=waiting.number, state="closed", about=about, text=about
        )
        # NOTE(self): a cause of its own, for what was done about a thread is looked up by the thread's.
        cause_id = f"{waiting.cause_id}/close"
        await self._outbox.submit(ProposedAction(body, part=f"workspace:{waiting.key}/left", cause_id=cause_id))

    def _is_in_workspace(self, waiting: WaitingThread) -> bool:
        return waiting.repo.lower() in self._watched()

    def _importance(self, waiting: WaitingThread, who: Account, people: TrustedAccounts) -> Importance:
        if waiting.source == "bluesky_url_owner" or people.is_owner(who):
            return "owner"
        return "mention" if people.is_program(who) else "stranger"

    async def _tell(self, waiting: WaitingThread, disposition: IssueDisposition) -> None:
        """Write to the journal what became of it. That it has to wait is told once, however often it is looked at."""
        if disposition.act == "later":
            if waiting.cause_id in self._told_to_wait:
                return
            self._told_to_wait.add(waiting.cause_id)
        what = "A review of {}" if disposition.act == "reviewed" else "A comment on {}"
        summary = f"{what} waits for your yes" if disposition.held else _SUMMARIES[disposition.act]
        code = disposition.code.value if disposition.code else ""
        await self._journal.record(
            Entry(
                "decision",
                LOOP,
                summary.format(f"{waiting.repo}#{waiting.number}"),
                line="social",
                reason=disposition.reason,
                trigger_uri=waiting.cause_id,
                intent_id=disposition.intent_id,
                data={"act": disposition.act, "code": code, "source": waiting.source, "uri": waiting.uri},
            )
        )


def repo_of(waiting: WaitingThread) -> Repo:
    """Return the repository in which a thread stands."""
    owner, _, name = waiting.repo.partition("/")
    return Repo(owner, name)


def _unread(problem: Err) -> IssueDisposition:
    """What becomes of a thread that is not there for us. Raises `Transient` where it may be later."""
    if problem.kind in {"not_found", "invalid"}:
        return IssueDisposition("dropped", problem.error)
    raise Transient(problem.error, retry_after=problem.retry_after)
