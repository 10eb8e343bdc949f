"""A comment about a task counts as said while it stands or is on its way, and not once it was given up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import get_args

from adapters.github.types import Repo
from common.redact import Redactor
from modules.lives.tasks.documents.compose import DocumentProblem
from modules.lives.tasks.types import TaskProblem
from modules.services.claims.claimer import TaskComments
from modules.services.outbox.rules.rules import GITHUB_CREATIONS_OF_OTHERS
from modules.services.outbox.types import ProposedAction
from modules.services.plans.events import TaskEvent
from modules.services.voice_phrases.phrases import FORMS
from tests.modules.services.outbox.body_values import body_of
from tests.modules.services.outbox.rules.etiquette_outbox import WORKSPACE, open_etiquette_outbox

CAUSE = "task-end:1"


def _words(name: str, /, **_: object) -> str:
    return name


async def test_a_comment_that_the_limits_put_off_until_it_expired_was_not_said_and_is_said_again(
    tmp_path: Path,
) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        comments = TaskComments(etiquette_outbox.outbox, _words, Redactor())
        owner, _, name = WORKSPACE.partition("/")

        async def say() -> None:
            event = TaskEvent(1, "failed", 1)
            await comments.say(Repo(owner, name), 1, "github.task_failed", event, CAUSE)

        for number in range(int(GITHUB_CREATIONS_OF_OTHERS.limit)):
            body = body_of("issue", source="workspace", repo=WORKSPACE)
            await etiquette_outbox.outbox.submit(ProposedAction(body, f"c#{number}"))
        await say()
        await etiquette_outbox.drain(120)
        assert len(etiquette_outbox.sender.departures) == GITHUB_CREATIONS_OF_OTHERS.limit
        assert await comments.said(CAUSE)
        await etiquette_outbox.clock.advance(timedelta(hours=25).total_seconds())
        await etiquette_outbox.outbox.deliver_due()
        assert not await comments.said(CAUSE)
        await say()
        await etiquette_outbox.drain(120)
        assert await comments.said(CAUSE)
        assert len(etiquette_outbox.sender.departures) == GITHUB_CREATIONS_OF_OTHERS.limit + 1


def test_each_reason_why_a_task_was_not_done_has_words_of_its_own() -> None:
    assert {f"task_problem.{one}" for one in get_args(TaskProblem)} == {
        key for key in FORMS if key.startswith("task_problem.")
    }
    assert {f"document_problem.{one.lower().replace(' ', '_')}" for one in get_args(DocumentProblem)} == {
        key for key in FORMS if key.startswith("document_problem.")
    }
