"""Lets the model review a pull request by its changes, where its review was asked for: once for each commit.

Nothing is run for it, and so no verdict is given, only words. What it reads is framed as data. A pull request of a
workspace whose tests are run for its review is left to the life on tasks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Account, PullRequest
from common.clock import Clock
from common.errors import Transient
from common.importance import Importance
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.github.respond import LOOP, facts_of
from modules.lives.github.thread_text import format_thread_for_context
from modules.lives.github.types import (
    IssueThread,
    KnownParticipants,
    ResponseCode,
    ResponseDecision,
    ReviewTurn,
    review_part,
)
from modules.runtime.llm.types import Message
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.agent.turn_outcome import chosen_in
from modules.services.github_threads.changes import MOST_FILES, ShownChanges, changes_of, of_github
from modules.services.github_threads.threads import ThreadSource, WaitingThread
from modules.services.identity.identity import Me
from modules.services.outbox.outbox import Outbox
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills
from modules.services.work.types import Disposition
from modules.services.workspaces.reviewers import is_reviewed_by_test
from modules.services.workspaces.trust import WorkspaceTrust

REVIEW_SKILL = "pr-review"
REVIEW_TOOLS = ("github_submit_review", "github_stay_silent")

_TITLE_CHARS = 200
_ASKING: frozenset[ThreadSource] = frozenset({"github_notification", "workspace_pr_review"})


@dataclass(frozen=True, slots=True)
class PullReviewer:
    """Reads a pull request, and asks the model. `trust` tells who we are, and whose words count in a workspace."""

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    github: GitHub
    outbox: Outbox
    trust: WorkspaceTrust
    clock: Clock
    rng: random.Random

    async def requested(
        self, waiting: WaitingThread, thread: IssueThread, us: Account, *, in_workspace: bool
    ) -> PullRequest | ResponseCode | None:
        """Return the pull request for which our review is awaited, or why it is not; None where nobody speaks of one.

        Raises `Transient` while GitHub cannot be read.
        """
        if not thread.issue.is_pull_request or not thread.is_open or waiting.source not in _ASKING:
            return None
        pull = (await self.github.pulls.get(waiting.place, waiting.number)).or_wait()
        if not us.id:
            raise Transient("our own account on GitHub cannot be read")
        if us not in pull.requested_reviewers:
            return ResponseCode.REVIEW_NOT_AWAITED if waiting.source == "workspace_pr_review" else None
        if in_workspace and is_reviewed_by_test(pull, await self.trust.accounts(waiting.place)):
            return ResponseCode.REVIEW_BY_TEST
        before = await self.outbox.standing("review", review_part(waiting, pull.head.sha))
        return ResponseCode.REVIEW_GIVEN if before.active else pull

    async def review(
        self,
        waiting: WaitingThread,
        thread: IssueThread,
        known: KnownParticipants,
        decision: ResponseDecision,
        pull: PullRequest,
        *,
        hold: str,
        importance: Importance,
    ) -> Disposition:
        """Return what the model chose; `hold` is why its review must wait for the owner's approval, "" if it need not.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Transient: GitHub or the model is briefly unable.

        """
        repo = waiting.place
        files = (await self.github.pulls.files(repo, waiting.number, limit=MOST_FILES)).or_wait()
        changes = changes_of([*map(of_github, files)], pull.changed_files or len(files))
        subject = ReviewTurn(
            waiting,
            thread,
            known.login,
            hold=hold,
            head_sha=pull.head.sha,
        )
        system = await self.prompter.prompt(
            skill=REVIEW_SKILL,
            variables={"repo": waiting.repo, "number": str(waiting.number), "github_username": known.login},
            audience="bluesky",
            session_key=f"github:{waiting.key}",
            now=self.clock.now(),
            bare=True,
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
            messages=(Message("user", self._words(thread, known, pull, changes)),),
            purpose=REVIEW_SKILL,
            tool_choice="required",
            only=REVIEW_TOOLS,
            about=facts_of(waiting, thread, known.login, decision),
        )
        return chosen_in(turn_result, decision.code, decision.reason)

    def _words(self, thread: IssueThread, known: KnownParticipants, pull: PullRequest, changes: ShownChanges) -> str:
        framer = Framer(self.skills, self.rng)
        text = format_thread_for_context(thread, known.login)

        def framed(kind: str, author: str, words: str) -> str:
            return framer.frame(kind, author=author, uri=pull.html_url, text=words)

        lines = f"{pull.changed_files or 0} files, +{pull.additions or 0} -{pull.deletions or 0}"
        nothing = self.skills.section("github-response", "No Comments")
        return self.skills.render(
            REVIEW_SKILL,
            "Message",
            title=one_line(pull.title, _TITLE_CHARS),
            author=pull.author,
            head=one_line(pull.head.ref, _TITLE_CHARS),
            base=one_line(pull.base.ref, _TITLE_CHARS),
            stats=lines,
            opening=framed("post", f"@{pull.author}", text.opening),
            diff=framed("reading", f"@{pull.author}", changes.text),
            hidden=self.skills.render(REVIEW_SKILL, "Hidden", text=framed("reading", f"@{pull.author}", changes.hidden))
            if changes.hidden
            else "",
            left_out=self.skills.render(REVIEW_SKILL, "Left Out", count=changes.left_out) if changes.left_out else "",
            comments=framed("conversation", "several", text.comments) if text.comments else nothing,
        )
