"""Puts the rooms of building together: tasks of plans, their reviews, and their merges."""

from __future__ import annotations

from modules.lives.tasks.code.build import build_code_work
from modules.lives.tasks.documents.build import build_document_work
from modules.lives.tasks.life import TaskLife, build_task_life
from modules.lives.tasks.merge.life import build_merge_loop
from modules.lives.tasks.review.build import build_review_loop, build_revisions
from modules.services.agent.prompt.prompter import Prompter
from modules.services.claims.build import Claims
from modules.services.work.loop import WorkLoop
from soul.composition.services import Services


def build_tasks(services: Services, claims: Claims, prompter: Prompter) -> tuple[TaskLife, tuple[WorkLoop, ...]]:
    """Return the life in which tasks are done, and the loops in which they are done, reviewed and merged."""
    code = build_code_work(services, services.trust)
    workers = (build_document_work(services, services.trust), code)
    revisions = build_revisions(services, claims.reader, code)
    life = build_task_life(services, claims, workers, services.control.write_block_reason, (revisions,))
    loops = (life.loop, build_review_loop(services, prompter), build_merge_loop(services))
    return life, loops if services.github.configured else ()
