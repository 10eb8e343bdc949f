"""One cycle over the watched workspaces: the steps in their order, over what was read at its beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.errors import Fatal, Transient
from modules.lives.workspaces.types import CycleStep, Poll, StepResult
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What came of a cycle: the poll as its steps left it, and their notes."""

    poll: Poll
    notes: tuple[str, ...] = ()


class Cycle:
    """Runs the steps. Before each that acts it asks again whether the SOUL does something else (`is_idle`)."""

    def __init__(self, steps: Sequence[CycleStep], is_idle: Callable[[], bool], journal: Journal) -> None:
        self._steps = sorted(steps, key=lambda step: step.place)
        self._is_idle = is_idle
        self._journal = journal

    async def run(self, poll: Poll) -> CycleReport:
        """Run each step once, until one ends the cycle. Raises `Fatal` and `Transient` as the steps do."""
        notes: list[str] = []
        for step in self._steps:
            if step.acts and not self._is_idle():
                continue
            result = await self._run_step(step, poll if step.sees_finished else poll.unfinished)
            poll = poll.without(result.closed)
            notes += [result.note] if result.note else []
            if result.ends_cycle:
                break
        return CycleReport(poll, tuple(notes))

    async def _run_step(self, step: CycleStep, poll: Poll) -> StepResult:
        """Run it; what it raises costs this step only, and is told."""
        try:
            return await step.run(poll)
        except (Fatal, Transient):
            raise
        except Exception as error:
            summary = f"{step.name} failed: {type(error).__name__}: {error}"
            await self._journal.record(Entry("error", step.name, summary, line="error"))
            return StepResult()
