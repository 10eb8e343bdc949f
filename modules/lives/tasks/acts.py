"""The acts by which the work on a task is offered, each under a name of its own: its task, the epoch, what it does.

So the outbox lets none happen twice, and a life that was killed finds what it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.github.types import Repo
from common.text.github_text import without_closing_words, without_mentions
from common.text.untrusted import one_line
from modules.lives.tasks.types import HeldTask
from modules.services.commitments.texts import TITLE_CHARS
from modules.services.outbox.github_bodies import ContentsBody, GitHubBody, OfTask, PullRequestBody
from modules.services.outbox.github_writer import for_workspace, review_requests
from modules.services.outbox.types import ProposedAction
from modules.services.plans.naming import claim_key
from modules.services.plans.types import Task

FIRST_PAGE = "README.md"
"""What the first commit of a repository holds."""

TESTS_PASSED = "<!-- soul:tests=passed -->"
"""What a pull request of ours holds whose tests all ran and passed before it was offered; no reader sees it."""
TESTS_WEAKENED = "<!-- soul:tests=weakened -->"
TESTS_FAILED = "<!-- soul:tests=failed -->"
TESTS_UNRUN = "<!-- soul:tests=unrun -->"

_TITLE_CHARS, _GOAL_CHARS = 120, 600


@dataclass(frozen=True, slots=True)
class TaskActs:
    """The acts for one task under one claim."""

    held: HeldTask

    @property
    def repo(self) -> Repo:
        """Where it is done."""
        return self.held.found.repo

    @property
    def issue(self) -> int:
        """The number of the issue that holds the plan."""
        return self.held.found.number

    @property
    def task(self) -> Task:
        """What is done."""
        return self.held.task

    @property
    def cause(self) -> str:
        """What all acts for the task have in common, under whichever claim: `owner/repo#12/task-3`."""
        return claim_key(self.repo.owner, self.repo.name, self.issue, self.task.number)

    @property
    def title(self) -> str:
        """The title of the pull request and of its commits, which closes no issue by its words."""
        title = one_line(f"task({self.task.number}): {self.task.title}", TITLE_CHARS)
        return without_closing_words(without_mentions(title))

    @property
    def told(self) -> dict[str, str | int]:
        """What the body of a pull request tells of the task and its plan, by the names in the phrases."""
        plan = self.held.found.plan
        return {
            "number": self.task.number,
            "title": without_mentions(one_line(self.task.title, _TITLE_CHARS)),
            "issue": self.issue,
            "plan": without_mentions(one_line(plan.title, _TITLE_CHARS)),
            "goal": without_mentions(one_line(plan.goal, _GOAL_CHARS)),
        }

    def name(self, what: str) -> str:
        """Return the name of an act."""
        return f"{self.cause}@{self.held.epoch}:{what}"

    def first_commit(self, description: str) -> ProposedAction:
        """Return the page with which a repository without a commit begins: its name, and what it says of itself.

        Whichever SOUL makes it, for whichever task, writes the same, so that it stands there once.
        """
        told = without_mentions(one_line(description, _GOAL_CHARS))
        text = "\n\n".join(filter(None, (f"# {self.repo.name}", told))) + "\n"
        contents = ContentsBody(**for_workspace(self.repo), path=FIRST_PAGE, content=text, message=self.title)
        return self.action("first-commit", contents)

    def pull_request(self, *, head: str, base: str, body: str, draft: bool = False) -> ProposedAction:
        """Return the pull request from the branch `head` into `base`; no draft is merged."""
        at = for_workspace(self.repo)
        offered = PullRequestBody(**at, title=self.title, body=body, head=head, base=base, draft=draft)
        return self.action("pull-request", offered)

    def review_requests(self, number: int, reviewers: Sequence[str]) -> list[ProposedAction]:
        """Return the requests to review pull request `number`."""
        asked = review_requests(self.repo, number, reviewers)
        return [self.action(f"reviewer:{one.reviewers[0].lower()}", one) for one in asked]

    def action(self, what: str, body: GitHubBody) -> ProposedAction:
        """Return an act under the name of what it does. What changes code leaves only while the claim holds."""
        if isinstance(body, OfTask):
            body = body.model_copy(update={"task": self.cause, "epoch": self.held.epoch})
        return ProposedAction(body, part=self.name(what), cause_id=self.cause)
