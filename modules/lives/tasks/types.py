"""What a task is to whoever does it, what may come of it, and what does one kind of tasks. Values and protocols."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from adapters.github.types import Comment, PullRequest, Repo
from modules.services.plans.types import FoundPlan, Task

UNCLAIMED = 0
"""The epoch of work that needs no claim."""


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task that is ours for as long as the work on it lasts, under the claim of this `epoch`.

    `tries` are the comments on the plan that tell how earlier attempts failed, oldest first; `talk` are the questions
    that SOULs asked about it on the plan, with what people said since. `left` is the open pull request of a SOUL that
    is gone, whose work is taken up.

    The plan is as it was read before it was claimed. No branch, file or pull request of the work leaves once the lease
    of this epoch is over (`lease_gate`), but for work that nobody else does, whose epoch is `UNCLAIMED`.
    """

    found: FoundPlan
    task: Task
    epoch: int
    tries: tuple[str, ...] = ()
    talk: tuple[Comment, ...] = ()
    left: PullRequest | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A pull request was opened, or stood already: its address, and a summary for the comment on the plan.

    Its branch is that of `get_task_branch_name`, and its body holds `Part of #<issue>`: by these all find it.
    """

    url: str
    summary: str


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """All that the task asks for was there already, and the tests pass: `summary` says why, for the plan."""

    summary: str


TaskProblem = Literal[
    "error",  # the work ended in an error
    "too_slow",  # it was not done in the time that it may take
    "unreadable",  # something that it needs could not be read
    "document_unreadable",  # a document that stands there could not be read as text
    "document_too_long",  # a document that stands there is too long to be written anew
    "document_unfit",  # what the model wrote cannot be offered
    "code_blocked",  # whoever codes says that it cannot be done here
    "code_stuck",  # whoever codes turned in circles
    "code_unfinished",  # it took what one task may take, or what the model takes at once
    "code_tests_failed",  # tests of the repository fail with it
    "code_unfit",  # what was written cannot be pushed
    "not_allowed",  # a rule forbids an act of it
    "not_sent",  # an act of it was refused, or could not leave
]
"""Why a task was not done, as the comment on the plan tells it: the phrase `task_problem.…`."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The task cannot go on before people answer the `question`, which is asked on the plan. It is no failure."""

    question: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The work went wrong, because of the file `about` if it names one. After three failures a task is left alone.

    `lacks` is what is wrong with a document, as the phrase `document_problem.…` tells it. `detail` is for the owner
    alone. `why` says in words of this program alone that nothing could begin.
    """

    problem: TaskProblem
    detail: str = ""
    about: str = field(default="", compare=False)
    lacks: str = field(default="", compare=False)
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Deferred:
    """Nothing came of it, through no fault of the task: no budget, no model, no answer of GitHub.

    It is as it was before, nothing is said of it, and it is tried again after a pause, of `retry_after` seconds at
    least. `reason` is for the owner.
    """

    reason: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The task is not ours any more: the plan is left as it stands."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """An act waits for the owner's approval: the work ended, the claim stays, and it goes on where it was."""

    reason: str


WorkResult = Opened | AlreadyDone | Blocked | Failed | Deferred | Lost | Stopped


class TaskWorker(Protocol):
    """Does one kind of tasks: the place where another kind of work is added to the life.

    The workers are handed to `build_task_life` in a fixed order. A task is done by the first that can, and one that
    none can do is never claimed. `documents/work.py` is one of them.

    When `do` is called, the task is claimed and stands in progress on its plan. The life keeps the claim alive beside
    it, and cancels it where the claim is lost, where the SOUL is paused, after `WORK_LIMIT_S`, and where the program
    ends: what it started must end with it. After a pause, `kill -9` or a restart it is called again for the same task
    under the same claim (`HeldTask.epoch`). So what it makes public is an intent with a name of its own
    (`TaskActs.name`), and it looks for what was paid for already before it pays again.

    It takes the SOUL's attention (`Attention.take`) for a short call of the model only, never for as long as the work
    lasts.
    """

    def can_do(self, task: Task) -> bool:
        """Return whether this is the work for a task, by what the plan says of it. Pure, and without a request."""
        ...

    async def fits(self, repo: Repo, task: Task) -> bool:
        """Return whether this is the work for a task in the repository as it stands; asked where it `can_do` the task.

        Raises `Transient` where the repository cannot be read now.
        """
        return True

    async def do(self, task: HeldTask) -> WorkResult:
        """Do the task up to its pull request, and return what came of it.

        `Opened` ends the claim and leaves the task in progress until the merge; `AlreadyDone` completes it; `Blocked`
        asks on the plan, and nobody claims the task before that is answered; `Failed` is told on the plan, and counts
        as one of three failures; `Deferred` puts it off and counts as none; `Lost` leaves everything as it stands.
        What it raises counts as `Failed`, but for `Transient`, `BudgetExceeded` and `Auth`, which are the same as
        `Deferred`, and `Fatal`, which ends the process.
        """
        ...
