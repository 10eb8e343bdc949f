"""Lets the model review a pull request of a workspace by its changes, where a SOUL was asked to: once for each commit.

Nothing is run for it. What it reads is framed as data, and whether it may approve follows from who wrote that.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo
from common.clock import Clock, local, spoken
from common.errors import Transient
from common.provenance import Provenance
from common.result import Err
from common.text.untrusted import one_line
from modules.lives.github.policy import decision_of, get_effective_peers
from modules.lives.github.respond import LOOP, disposition_of, facts_of
from modules.lives.github.review_policy import MOST_FILES, ShownChanges, changes_of, may_approve
from modules.lives.github.thread_text import format_thread_for_context
from modules.lives.github.types import (
    IssueDisposition,
    IssueThread,
    Known,
    ResponseCode,
    ResponseDecision,
    ReviewTurn,
)
from modules.runtime.llm.types import Importance, Message
from modules.services.agent.framing import Framer
from modules.services.agent.identity.identity import Me
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.skills.skills import Skills
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.inbox.threads import WaitingThread
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES
from modules.services.workspaces.trust import WorkspaceTrust

REVIEW_SKILL = "pr-review"
REVIEW_TOOLS = ("github_submit_review", "github_stay_silent")

_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class PullReviewer:
    """Reads a pull request, and asks the model. `trust` tells whose requests are met, and whose words count."""

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    github: GitHub
    outbox: Outbox
    trust: WorkspaceTrust
    clock: Clock
    rng: random.Random

    async def is_asked(self, waiting: WaitingThread, thread: IssueThread) -> bool:
        """Whether a pull request is to be reviewed: its author, who is not we, is one whose words count there."""
        if waiting.source != "workspace_pr_review" or not thread.issue.is_pull_request:
            return False
        return (await self.trust.accounts(_repo_of(waiting))).covers_besides_us(thread.issue.account)

    async def review(
        self,
        waiting: WaitingThread,
        thread: IssueThread,
        known: Known,
        decision: ResponseDecision,
        importance: Importance,
    ) -> IssueDisposition:
        """Return what the model chose, or why it is not asked.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Transient: GitHub or the model is briefly unable.

        """
        repo = _repo_of(waiting)
        async with self.github.burst():
            pull = await self.github.pulls.get(repo, waiting.number)
            if isinstance(pull, Err):
                raise Transient(pull.error, retry_after=pull.retry_after)
            files = await self.github.pulls.files(repo, waiting.number, limit=MOST_FILES)
            if isinstance(files, Err):
                raise Transient(files.error, retry_after=files.retry_after)
        if known.login.lower() not in {one.lower() for one in pull.data.requested_reviewers}:
            return _silent(ResponseCode.REVIEW_NOT_AWAITED)
        changes = changes_of(files.data, pull.data.changed_files or len(files.data))
        trusted = await self.trust.accounts(repo)
        subject = ReviewTurn(
            waiting,
            thread,
            known.login,
            told=self._approval(may=True) + self._approval(may=False),
            head_sha=pull.data.head.sha,
            may_approve=may_approve(pull.data, thread, changes, known.login, trusted.covers),
        )
        before = await self.outbox.by_target("review", subject.part)
        if any(one.state in ACTIVE_STATES for one in before):
            return _silent(ResponseCode.REVIEW_GIVEN)
        system = await self.prompter.prompt(
            skill=REVIEW_SKILL,
            variables={"repo": waiting.repo, "number": str(waiting.number), "github_username": known.login},
            audience="bluesky",
            session_key=f"github:{waiting.key}",
            query=f"{pull.data.title}\n{pull.data.body}",
            now=self.clock.now(),
            least=Provenance.STRANGER,
        )
        turn_result = await self.turn_runner.run_turn(
            turn=Turn(
                loop=LOOP,
                provenance=Provenance.STRANGER,
                cause_id=waiting.cause_id,
                subject=subject,
                importance=importance,
            ),
            system=system,
            messages=(Message("user", self._words(thread, known, pull.data, changes, subject)),),
            purpose=REVIEW_SKILL,
            tool_choice="required",
            only=REVIEW_TOOLS,
            about=facts_of(waiting, thread, known.login, decision),
        )
        return disposition_of(turn_result, decision)

    def _words(
        self, thread: IssueThread, known: Known, pull: PullRequest, changes: ShownChanges, subject: ReviewTurn
    ) -> str:
        framer = Framer(self.skills, self.rng)
        peers = get_effective_peers(thread, known.login, known.peers)
        text = format_thread_for_context(thread, known.login, peers)

        def framed(kind: str, author: str, words: str) -> str:
            return framer.frame(kind, author=author, uri=pull.html_url, text=words)

        lines = f"{pull.changed_files or 0} files, +{pull.additions or 0} -{pull.deletions or 0}"
        nothing = self.skills.section("github-response", "No Comments")
        return self.skills.render(
            REVIEW_SKILL,
            "Message",
            today=spoken(local(self.clock.now(), self.me.timezone)),
            title=one_line(pull.title, _TITLE_CHARS),
            author=pull.author,
            head=one_line(pull.head.ref, _TITLE_CHARS),
            base=one_line(pull.base.ref, _TITLE_CHARS),
            stats=lines,
            opening=framed("post", f"@{pull.author}", text.opening),
            diff=framed("reading", f"@{pull.author}", changes.text),
            left_out=self.skills.render(REVIEW_SKILL, "Left Out", count=changes.left_out) if changes.left_out else "",
            comments=framed("conversation", "several", text.comments) if text.comments else nothing,
            approval=self._approval(may=subject.may_approve),
        )

    def _approval(self, *, may: bool) -> str:
        return self.skills.section(REVIEW_SKILL, "May Approve" if may else "May Not Approve")


def _repo_of(waiting: WaitingThread) -> Repo:
    owner, _, name = waiting.repo.partition("/")
    return Repo(owner, name)


def _silent(code: ResponseCode) -> IssueDisposition:
    decision = decision_of(code)
    return IssueDisposition("silent", decision.reason, decision.code)
