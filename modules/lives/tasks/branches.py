"""On which branch a task is worked on, and whether it is still ours to do. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from adapters.github.types import PullRequest
from modules.services.plans.naming import get_task_branch_candidates, get_task_branch_name, parse_task_branch
from modules.services.plans.types import Task
from modules.services.workspaces.pulls import pulls_for
from modules.services.workspaces.trust import TrustedAccounts

BranchCode = Literal["create", "go_on", "opened", "left"]


@dataclass(frozen=True, slots=True)
class BranchChoice:
    """Where a task is worked on.

    Attributes:
        code: `create` the branch; `go_on` upon it, because we made it; `opened`, because our pull request is open; or
            `left` alone, because of `reason`.
        branch: its name; "" for `left`.
        pull: the pull request that is open.
        reason: a sentence for people.

    """

    code: BranchCode
    branch: str = ""
    pull: PullRequest | None = None
    reason: str = ""


def choose_branch(
    task: Task,
    issue: int,
    epoch: int,
    *,
    branches: Collection[str],
    own: Collection[str],
    pulls: Sequence[PullRequest],
    trusted: TrustedAccounts,
) -> BranchChoice:
    """Return where a task is worked on.

    What somebody else began is never touched: then the branch has the epoch behind its name. A pull request belongs to
    the task by the number in its branch and by the plan that its body names; those of strangers do not count.

    Args:
        task: the task.
        issue: the number of the plan.
        epoch: of our claim.
        branches: the branches of the repository.
        own: those that we made for this task, also under an earlier claim.
        pulls: pull requests of the repository, in any state.
        trusted: whose pull requests count there.

    """
    about = [one for one in pulls_for(issue, pulls, trusted) if parse_task_branch(one.head.ref) == task.number]
    opened = [one for one in about if one.state == "open"]
    if mine := next((one for one in opened if trusted.why(one.account) == "us"), None):
        return BranchChoice("opened", mine.head.ref, mine)
    if other := next((one for one in (*opened, *about) if one.state == "open" or one.merged), None):
        what = "is open" if other.state == "open" else "was merged"
        return BranchChoice("left", reason=f"the pull request #{other.number} for it, by {other.author}, {what}")
    offered = {one.head.ref for one in pulls if trusted.covers(one.account)}
    return _branch_for(task, epoch, branches, {*own} - offered)


def _branch_for(task: Task, epoch: int, branches: Collection[str], usable: Collection[str]) -> BranchChoice:
    """Return a branch of ours that is there, else one that is to be made; `usable` are ours that nothing came of."""
    known = [one for one in get_task_branch_candidates(task.number, task.title) if one in branches]
    if begun := next((one for one in known if one in usable), None):
        return BranchChoice("go_on", begun)
    name = get_task_branch_name(task.number, task.title)
    with_epoch = f"{name}-e{epoch}"
    if with_epoch in branches and with_epoch in usable:
        return BranchChoice("go_on", with_epoch)
    free = next((one for one in (name, with_epoch) if one not in branches), "")
    return BranchChoice("create", free) if free else BranchChoice("left", reason=f"the branch {with_epoch} is taken")
