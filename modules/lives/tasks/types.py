"""Values and protocols for work on a task: the claimed task, the possible results, the worker that does tasks."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from adapters.github.types import Comment, PullRequest
from modules.services.plans.types import FoundPlan, Task

UNCLAIMED = 0
"""The epoch of work that needs no claim."""


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task that we hold while the work on it lasts, under the claim with this `epoch`.

    `tries` are the comments on the plan that report how earlier attempts failed, oldest first, and then what the owner
    rejected of them, with their reasons; `talk` holds the questions that SOULs asked about the task on the plan, with
    what people wrote since. `left` is the open pull request of an inactive SOUL whose work is continued.

    The plan is as it was read before the claim. No branch, file or pull request of the work leaves after the lease of
    this epoch has ended (`lease_gate`), except for work that nobody else does, whose epoch is `UNCLAIMED`.
    """

    found: FoundPlan
    task: Task
    epoch: int
    tries: tuple[str, ...] = ()
    talk: tuple[Comment, ...] = ()
    left: PullRequest | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A pull request that was opened now or earlier: its address, and a summary for the comment on the plan.

    Everybody finds it by its branch, named by `get_task_branch_name`, and by `Part of #<issue>` in its body.
    """

    url: str
    summary: str


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """Everything that the task asks for existed already, and the tests pass; `summary` says why, for the plan."""

    summary: str


TaskProblem = Literal[
    "error",  # the work ended in an error
    "too_slow",  # it exceeded its time limit
    "unreadable",  # something that it needs could not be read
    "code_blocked",  # the coding agent says that it cannot be done here
    "code_stuck",  # the coding agent repeated itself without progress
    "code_unfinished",  # it reached a limit of the task, or of what the model accepts at once
    "code_tests_failed",  # tests of the repository fail with it
    "code_unfit",  # what was written cannot be pushed
    "not_allowed",  # a rule forbids one of its acts
    "not_sent",  # one of its acts was refused, or could not be sent
]
"""Why a task was not done. The comment on the plan words it with the phrase `task_problem.…`."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The task cannot continue until people answer the `question`, which is asked on the plan. It is no failure."""

    question: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The work failed, because of the file `about` if that is set. After three failures a task is left alone.

    `detail` is for the owner only. `why` explains why no work could begin, only in words of this program.
    """

    problem: TaskProblem
    detail: str = ""
    about: str = field(default="", compare=False)
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Deferred:
    """The work had no result, through no fault of the task: no budget, no model, no answer from GitHub.

    The task stays as it was, nothing is posted about it, and it is tried again after a pause of at least `retry_after`
    seconds. `reason` is for the owner.
    """

    reason: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The task is no longer ours; the plan is left as it is."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """An act waits for the owner's approval, or they rejected it: the work ended, and the claim stays for now.

    Once they approve, the work continues from there; if they reject it, the task is left alone.
    """

    reason: str


WorkResult = Opened | AlreadyDone | Blocked | Failed | Deferred | Lost | Stopped


class TaskWorker(Protocol):
    """Does tasks. A task that it cannot do is never claimed.

    When `do` is called, the task is claimed and marked in progress on its plan. The life keeps the claim alive
    meanwhile, and cancels `do` if the claim is lost, if the SOUL is paused, after `WORK_LIMIT_S`, and when the program
    ends: everything that `do` started must end with it. After a pause, `kill -9` or a restart, `do` is called again for
    the same task under the same claim (`HeldTask.epoch`). So whatever it publishes is an intent with a name of its own
    (`TaskActs.name`), and it looks for what was already paid for before it pays again.

    It takes the SOUL's attention (`Attention.take`) only for a short call of the model, never for the whole work.
    """

    def can_do(self, task: Task) -> bool:
        """Return whether this worker does such a task, judging by the plan alone. Pure; sends no request."""
        ...

    async def do(self, task: HeldTask) -> WorkResult:
        """Do the task up to its pull request, and return the result.

        `Opened` ends the claim and leaves the task in progress until the merge; `AlreadyDone` completes it; `Blocked`
        asks on the plan, and nobody claims the task before an answer; `Failed` is reported on the plan, and counts as
        one of three failures; `Deferred` postpones it and does not count; `Lost` leaves everything as it is. An
        exception counts as `Failed`, except that `Transient`, `BudgetExceeded` and `Auth` count as `Deferred`, and
        `Fatal` ends the process.
        """
        ...
