"""Names the work of going through SCENARIOS.md after a plan, and reads from the plan's comments what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from adapters.github.types import Comment, Repo
from modules.services.work.types import NewWork, WorkItem

SCENARIOS = "scenarios"
"""The kind of the rows: one for each completed plan, `owner/repo#12`."""

_MARK = re.compile(r"<!-- soul:scenarios=(\d{1,4})/(\d{1,4})/(\d{1,4}) -->")


@dataclass(frozen=True, slots=True)
class ScenarioCounts:
    """How many scenarios passed, failed, and could not be tried."""

    passed: int
    failed: int
    untried: int

    @property
    def mark(self) -> str:
        """The mark that ends the comment on the plan; readers do not see it."""
        return f"<!-- soul:scenarios={self.passed}/{self.failed}/{self.untried} -->"


def counts_in(comments: Iterable[Comment]) -> ScenarioCounts | None:
    """Return what the last run for a plan came to; None before one was told. `comments` are of accounts that count."""
    told = [found for one in comments for found in _MARK.findall(one.body)]
    return ScenarioCounts(*map(int, told[-1])) if told else None


@dataclass(frozen=True, slots=True)
class ScenarioPlace:
    """The completed plan in issue `plan`; `sentinel` is the newest sentinel of the workspace, 0 without one."""

    repo: Repo
    plan: int
    sentinel: int = 0

    @property
    def key(self) -> str:
        """The key of its row: `owner/repo#12`."""
        return f"{self.repo.full_name}#{self.plan}".lower()

    @property
    def row(self) -> NewWork:
        """Its row."""
        told = {"owner": self.repo.owner, "repo": self.repo.name, "plan": self.plan, "sentinel": self.sentinel}
        return NewWork(SCENARIOS, self.key, told, importance="commitment")


def scenario_place(item: WorkItem) -> ScenarioPlace:
    """Return what a row is about."""
    told = item.payload
    return ScenarioPlace(Repo(told["owner"], told["repo"]), told["plan"], told["sentinel"])
