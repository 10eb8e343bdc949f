"""What is said of a task on its plan: through the outbox, once for each cause, with a marker that peers count by."""

from __future__ import annotations

from adapters.github.types import Repo
from common.redact import Redactor
from common.text.github_text import without_mentions
from modules.services.outbox.github_bodies import IssueCommentBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ProposedAction
from modules.services.plans.events import TaskEvent, build_task_event_marker
from modules.services.voice_phrases.store import Phrase


def plain(text: str) -> str:
    """Return text of a plan or of work as it may stand in a comment: it mentions nobody, and hides nothing."""
    return without_mentions(text).replace("<!--", "<!\u200b--")


class TaskComments:
    """Proposes comments in the words of the SOUL."""

    def __init__(self, outbox: Outbox, phrase: Phrase, redactor: Redactor) -> None:
        self._outbox = outbox
        self._phrase = phrase
        self._redactor = redactor

    async def say(self, repo: Repo, issue: int, phrase: str, event: TaskEvent, cause: str, **values: object) -> None:
        """Propose the comment named `phrase` with these values, on the issue that holds the plan."""
        body = IssueCommentBody(**for_workspace(repo), number=issue, body=self.text(phrase, event, **values))
        await self._outbox.submit(ProposedAction(body, once=cause, cause_id=cause))

    def text(self, phrase: str, event: TaskEvent, **values: object) -> str:
        """Return the words named `phrase` with these values, which mention nobody and hold no secret, and a marker."""
        told = {name: plain(self._redactor.text(str(value))) for name, value in values.items()}
        words = self._phrase(phrase, number=event.task, **told)
        return f"{words}\n\n{build_task_event_marker(event.task, event.event, event.attempt, event.about)}"

    async def is_on_its_way(self, cause: str) -> bool:
        """Return whether a comment of this cause is still to be sent, as one that waits for the owner's approval."""
        return any(one.state != "done" for one in await self._outbox.accepted(cause))

    async def said(self, cause: str) -> str:
        """Return the comment of this cause that stands there or is on its way, "" for none; one put off is not."""
        found = await self._outbox.accepted(cause)
        return next((one.body.body for one in found if isinstance(one.body, IssueCommentBody)), "")
