"""The acts by which a pull request of ours is merged, each under a name of its own: what is done, and at which commit.

So the outbox lets none happen twice, and a life that was killed finds what it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.github.types import PullRequest, Repo
from modules.services.outbox.github_bodies import (
    BranchUpdateBody,
    GitHubBody,
    IssueCommentBody,
    IssueUpdateBody,
    MergeBody,
    RefBody,
)
from modules.services.outbox.github_writer import for_workspace, review_requests
from modules.services.outbox.types import ProposedAction
from modules.services.plans.naming import claim_key, parse_task_branch
from modules.services.workspaces.pulls import plan_of


@dataclass(frozen=True, slots=True)
class PullActs:
    """The acts for one pull request as it stood when it was read; `cause` is what all of them have in common.

    `by` is who made it, `name:model`, which the message of a squashed commit keeps.
    """

    repo: Repo
    pull: PullRequest
    cause: str
    by: str = ""

    @property
    def key(self) -> str:
        """The pull request: `owner/repo#12`."""
        return f"{self.repo.full_name}#{self.pull.number}"

    @property
    def task(self) -> int | None:
        """The number of the task that its branch is about; None where it is about none."""
        return parse_task_branch(self.pull.head.ref)

    @property
    def task_cause(self) -> str:
        """What all acts for the task have in common: `owner/repo#12/task-3`."""
        return claim_key(self.repo.owner, self.repo.name, plan_of(self.pull.body) or 0, self.task or 0)

    def merge(self, hold: str = "") -> ProposedAction:
        """Return its merge at the commit that was read; `hold` is why it waits for the owner's approval."""
        title = f"{self.pull.title} (#{self.pull.number})"
        body = MergeBody(
            **for_workspace(self.repo),
            number=self.pull.number,
            title=title,
            message=f"Assisted-by: {self.by}" if self.by else "",
            head_sha=self.pull.head.sha,
        )
        return self._action(body, f"{'asked-' if hold else ''}merge:{self.key}@{self.pull.head.sha}", hold)

    def update_branch(self) -> ProposedAction:
        """Return the merge of its base into its branch, at the commit that was read."""
        number, sha = self.pull.number, self.pull.head.sha
        body = BranchUpdateBody(**for_workspace(self.repo), number=number, head_sha=sha)
        return self._action(body, f"update:{self.key}@{sha}")

    def review_requests(self, reviewers: Sequence[str], *, of: str = "") -> list[ProposedAction]:
        """Return the requests to review it.

        `of` is the commit that those are asked to review who reviewed an earlier one, "" for those asked the first
        time.
        """
        asked, name = review_requests(self.repo, self.pull.number, reviewers), f"{self.key}@{of}" if of else self.key
        return [self._action(one, f"reviewer:{name}:{one.reviewers[0].lower()}") for one in asked]

    def give_back(self, text: str, *, keeps_branch: bool = False) -> tuple[ProposedAction, ...]:
        """Return what takes it back, in this order: what is said on it, its end, and that of its branch."""
        number, name = self.pull.number, f"{'kept' if keeps_branch else 'given-back'}:{self.key}"
        said = IssueCommentBody(**for_workspace(self.repo), number=number, body=text)
        closed = IssueUpdateBody(**for_workspace(self.repo), number=number, state="closed")
        return (
            self._action(said, name),
            self._action(closed, name),
            *(() if keeps_branch else (self.delete_branch(),)),
        )

    def delete_branch(self) -> ProposedAction:
        """Return the deletion of its branch, where nothing was pushed to it since."""
        branch, sha = self.pull.head.ref, self.pull.head.sha
        body = RefBody(**for_workspace(self.repo), action="delete", branch=branch, sha=sha)
        return self._action(body, f"delete:{self.key}@{sha}")

    def _action(self, body: GitHubBody, name: str, hold: str = "") -> ProposedAction:
        return ProposedAction(body, part=name, cause_id=self.cause, hold=hold)
