"""Puts the rooms of this life together, for whoever composes a SOUL. It has a loop of its own: a task lasts long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.github.client import GitHub
from modules.lives.tasks.door import ClaimDoor
from modules.lives.tasks.execute import Execution
from modules.lives.tasks.handle import TaskHandler
from modules.lives.tasks.types import TaskWorker
from modules.runtime.budget.budget import Budget
from modules.runtime.events import EventBus
from modules.runtime.scheduler.attention import Attention
from modules.services.claims.build import Claims
from modules.services.claims.claim_requests import repo_of
from modules.services.claims.claimer import Claimer
from modules.services.claims.offers import TaskOrders, TaskPlace
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.plans.types import Task
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.work.loop import WorkLoop, WorkServices
from modules.services.work.table import WorkTable
from modules.services.work.types import Handler, Perceiver
from modules.services.workspaces.trust import WorkspaceTrust

TASKS = "tasks"


class TaskServices(WorkServices, Protocol):
    """What the life is built from."""

    github: GitHub
    trust: WorkspaceTrust
    phrases: VoicePhrases
    etiquette: Etiquette
    budget: Budget
    events: EventBus


@dataclass(frozen=True, slots=True)
class HeldTasks(Perceiver):
    """Lets each task that is claimed have a row that waits, so that the work goes on after a restart."""

    claimer: Claimer
    table: WorkTable

    async def perceive(self) -> None:
        """Look at the claims that are held."""
        for lease in await self.claimer.held():
            await self.table.offer(TaskPlace(repo_of(lease), lease.issue, lease.number).row)


@dataclass(frozen=True, slots=True)
class TaskLife:
    """The loop of the life, what can be done in it, and what the owner says of a task."""

    loop: WorkLoop
    orders: TaskOrders
    workers: Sequence[TaskWorker]

    def can_do(self, task: Task) -> bool:
        """Return whether one of the workers can do a task."""
        return any(one.can_do(task) for one in self.workers)


def build_task_life(
    services: TaskServices,
    claims: Claims,
    workers: Sequence[TaskWorker],
    why_paused: Callable[[], str],
    handlers: Sequence[Handler] = (),
) -> TaskLife:
    """Return the life in which tasks are claimed and done by `workers`; `why_paused` as in `TaskHandler`.

    `handlers` handle what else takes long, one after the other with the tasks.
    """
    clock, journal = services.clock, services.journal
    orders = TaskOrders(services.work, services.events.publish)
    phrase = services.phrases.phrase
    handler = TaskHandler(
        claims=claims,
        trust=services.trust,
        workers=workers,
        execution=Execution(claims.claimer, claims.comments, phrase, journal, clock, orders, why_paused),
        orders=orders,
        door=ClaimDoor(services.outbox, services.etiquette, journal, claims.words),
        journal=journal,
        clock=clock,
        publish=services.events.publish,
        why_paused=why_paused,
        why_no_budget=lambda: services.budget.why_not("commitment"),
    )
    loop = WorkLoop(
        name=TASKS,
        social_only=False,
        table=services.work,
        handlers=(handler, *handlers),
        perceivers=(HeldTasks(claims.claimer, services.work),),
        outbox=services.outbox,
        journal=journal,
        # NOTE(self): not that of the SOUL, which a task would keep from everything else for half an hour.
        attention=Attention(),
        clock=clock,
        standing=services.control.standing,
    )
    return TaskLife(loop, orders, workers)
