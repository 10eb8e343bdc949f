"""One coding task: what it may take, its steps, and how it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adapters.git.worktree import Worktree
from common.facts import QuestionFacts
from modules.runtime.llm.dialect import ToolAnswer, ToolCall, ToolSpec
from modules.services.coding.suites import SUITE_BYTES, SUITE_SECONDS

PURPOSE = "coding"

CodingEndCode = Literal[
    "finished",  # the model says that it is done, and the tests do not fail
    "blocked",  # the model says why it cannot be done
    "stuck",  # it does the same again and again
    "steps",  # it took as many steps as a task may
    "tokens",  # it used as many tokens
    "money",  # it cost as much
    "time",  # it took as long
    "length",  # what was done so far is longer than the model takes
]


@dataclass(frozen=True, slots=True)
class CodingLimits:
    """What one task may take; `usd` None: as much as the day allows. `network` lets its programs reach the network.

    `suite_seconds` and `suite_bytes` are how long one run of tests may take, and how much memory.
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
    """One answer of the model, paid for. `answers` is None until its calls were carried out.

    `usd` is what it cost, None while no price is known; `cached_tokens` is the part of `input_tokens` that the service
    had kept.
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
    """Where a job is done.

    Attributes:
        worktree: the files, and their repository, which no program that runs for the job sees.
        base: the commit that changes are held against.
        start: the commit that the job begins at, "" where that is `base`.
        scratch: the folder that is `/tmp` to the programs, for as long as the job lasts.
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
    """How a job reports what it finds. Such a job only looks at files and runs programs; its changes are thrown away.

    Attributes:
        skill: the page that holds its system prompt.
        specs: its own tools. One of them is `finish`, which ends the job once its `check` finds nothing wrong.
        answer: carries out a call of another of them; it is also given all earlier calls of the job.
        facts: what the service that reads facts is told.

    """

    skill: str
    specs: Sequence[ToolSpec]
    answer: Callable[[ToolCall, Sequence[ToolCall]], ToolAnswer]
    facts: QuestionFacts


@dataclass(frozen=True, slots=True)
class CodingJob:
    """What is to be coded.

    Attributes:
        key: of the task, as in `claim_key`.
        epoch: of the claim; another claim begins anew.
        title: of the task, for the service that reads facts; `files` are those it names.
        message: all that the model is told of it, what others wrote in frames.
        is_new: the files are as they were before the first step: what was done is done again.
        check: returns what the model is told is wrong as the files are now, "" if nothing is; asked before an end is
            accepted.
        check_found: the same where the model says that all of it was there already; None where that cannot be.
        is_round: the work stands in a pull request already, whose text the model writes anew as it ends.
        reporting: set for a job that reports instead of changing files.

    """

    key: str
    epoch: int
    title: str
    files: tuple[str, ...]
    message: str
    is_new: bool
    check: Callable[[], Awaitable[str]]
    check_found: Callable[[], Awaitable[str]] | None = None
    is_round: bool = False
    reporting: Reporting | None = None


@dataclass(frozen=True, slots=True)
class CodingEnd:
    """How it ended; `text` is the model's summary or reason, for people only after it was cleaned.

    `is_found` says of what is finished that all of it was there already. `description` says after a round what the
    whole pull request does, "" where the model did not say.
    """

    code: CodingEndCode
    text: str = ""
    is_found: bool = False
    description: str = ""
