"""A coding task: its limits, its steps, and its end, at a limit or when steps repeat, without the model. Pure.

Tokens are counted like those of the day (`counted`).
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adapters.git.worktree import Worktree
from common.facts import QuestionFacts
from modules.runtime.budget.policy import counted
from modules.runtime.llm.dialect import ToolAnswer, ToolCall, ToolSpec
from modules.services.coding.suites import SUITE_BYTES, SUITE_SECONDS

PURPOSE = "coding"

CodingEndCode = Literal[
    "finished",  # the model says that it is done, and the checks pass
    "blocked",  # the model says why it cannot be done
    "stuck",  # the model repeats itself
    "steps",  # it reached the limit of steps
    "tokens",  # it reached the limit of tokens
    "money",  # it reached the limit of cost
    "time",  # it reached the time limit
    "length",  # the conversation is longer than the model accepts
]


@dataclass(frozen=True, slots=True)
class CodingLimits:
    """The limits of one task; `usd` None: only the day's budget. `network` lets its programs reach the network.

    `suite_seconds` and `suite_bytes` limit the time and the memory of one test run.
    """

    steps: int
    tokens: int
    usd: float | None
    seconds: float
    network: bool = False
    suite_seconds: float = SUITE_SECONDS
    suite_bytes: int = SUITE_BYTES


@dataclass(frozen=True, slots=True)
class CodingStep:
    """A paid answer of the model. `answers` is None until its calls were carried out.

    `usd` is its cost, None if no price is known; `cached_tokens` is the part of `input_tokens` that the service had
    cached.
    """

    number: int
    at: str
    said: str
    calls: tuple[ToolCall, ...]
    answers: tuple[ToolAnswer, ...] | None
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class CodingRoom:
    """The place where a job is done.

    Attributes:
        worktree: the files and their repository; programs that run for the job do not see the repository.
        base: the commit that changes are compared with.
        start: the commit that the job begins at; "" means `base`.
        scratch: the folder that programs see as `/tmp`, for as long as the job lasts.
        is_bound: returns whether a file, by its path from the root, may not be changed.

    """

    worktree: Worktree
    base: str
    scratch: Path
    start: str = ""
    is_bound: Callable[[str], bool] = lambda _: False

    @property
    def tree(self) -> Path:
        """The folder of the files."""
        return self.worktree.tree


@dataclass(frozen=True, slots=True)
class Reporting:
    """How a job reports its findings. Such a job only reads files and runs programs; its changes are discarded.

    Attributes:
        skill: the page with its system prompt.
        specs: its own tools. One of them is `finish`, which ends the job once its `check` finds nothing wrong.
        answer: carries out a call of one of the other tools; it also receives all earlier calls of the job.
        facts: the facts for the service that reads them.

    """

    skill: str
    specs: Sequence[ToolSpec]
    answer: Callable[[ToolCall, Sequence[ToolCall]], ToolAnswer]
    facts: QuestionFacts


@dataclass(frozen=True, slots=True)
class CodingJob:
    """A job for the coding agent.

    Attributes:
        key: the key of the task, as in `claim_key`.
        epoch: the epoch of the claim; another claim starts from the beginning.
        title: the title of the task, for the service that reads facts; `goal` is that of its plan.
        files: the files that the task names.
        message: all that the model reads about the task; text by others is framed.
        is_new: whether the files are as before the first step, so that all steps have to be carried out again.
        check: returns what is wrong with the current files, for the model; "" if nothing is. Called before an end is
            accepted.
        check_found: the same if the model says that all of it existed already; None if that is not possible.
        is_round: whether the work already has a pull request, whose text the model rewrites at the end.
        reporting: set for a job that reports instead of changing files.

    """

    key: str
    epoch: int
    title: str
    files: tuple[str, ...]
    message: str
    is_new: bool
    check: Callable[[], Awaitable[str]]
    goal: str = ""
    check_found: Callable[[], Awaitable[str]] | None = None
    is_round: bool = False
    reporting: Reporting | None = None


@dataclass(frozen=True, slots=True)
class CodingEnd:
    """The end of a job; `text` is the model's summary or reason, for people only after it was cleaned.

    `is_found` says that all of a finished job existed already. `description` says after a round what the whole pull
    request does; "" if the model did not say.
    """

    code: CodingEndCode
    text: str = ""
    is_found: bool = False
    description: str = ""


SAME_AGAIN = 3
"""The number of equal actions with equal results, equal errors, or answers without an action that ends a task."""
PAIRS = 3
"""The number of times that an alternating pair of actions may occur before the task ends."""

_BEGIN_TOKENS, _STEP_TOKENS = 300_000, 60_000


def end_before_step(steps: Sequence[CodingStep], limits: CodingLimits) -> CodingEnd | None:
    """Return the reason to end before the next step, or None."""
    tokens, usd = used(steps)
    reached: dict[CodingEndCode, bool] = {
        "steps": len(steps) >= limits.steps,
        "tokens": tokens >= limits.tokens,
        "money": limits.usd is not None and usd >= limits.usd,
        "stuck": is_stuck(steps),
    }
    return next((CodingEnd(code) for code, is_reached in reached.items() if is_reached), None)


def used(steps: Sequence[CodingStep]) -> tuple[int, float]:
    """Return the tokens and dollars of the steps; dollars only where prices are known."""
    tokens = sum(counted(step.input_tokens, step.cached_tokens) + step.output_tokens for step in steps)
    return tokens, sum(step.usd or 0.0 for step in steps)


def set_aside(steps: Sequence[CodingStep], limits: CodingLimits) -> int:
    """Return how many tokens of the day to reserve before a step: more for the first steps, later enough for one step.

    A task that reaches the end of the day's budget continues on the next day, so it need not fit into what is left.
    """
    tokens, _ = used(steps)
    return min(limits.tokens - tokens, max(_BEGIN_TOKENS - tokens, _STEP_TOKENS))


def is_stuck(steps: Sequence[CodingStep]) -> bool:
    """Return whether the last steps repeat: the same action, the same error, or an alternating pair of actions."""
    prints = [_print(step) for step in steps[-2 * PAIRS :]]
    errors = [_errors(step) for step in steps[-SAME_AGAIN:]]
    last = prints[-SAME_AGAIN:]
    if len(last) == SAME_AGAIN and len(set(last)) == 1:
        return True
    if len(errors) == SAME_AGAIN and errors[0] and len(set(errors)) == 1:
        return True
    return len(prints) == 2 * PAIRS and len(set(prints[::2])) == len(set(prints[1::2])) == 1


def _print(step: CodingStep) -> str:
    """Return the calls of a step and their results, as text that can be compared."""
    done = [(call.name, call.input) for call in step.calls]
    came = [(answer.content, answer.is_error) for answer in step.answers or ()]
    return json.dumps([done, came], sort_keys=True)


def _errors(step: CodingStep) -> tuple[str, ...]:
    answers = step.answers or ()
    return tuple(one.content for one in answers) if all(one.is_error for one in answers) else ()
