"""Whether a task may be claimed now, by the rules and gates of the outbox: a claim leaves at once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_bodies import IssueCommentBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.types import ProposedAction
from modules.services.plans.naming import claim_key
from modules.services.plans.types import FoundPlan, Task


@dataclass(slots=True)
class ClaimDoor:
    """Asks of each claim what would become of its comment. `words` returns what that says.

    Why none is made is told the owner once for each plan and kind of reason.
    """

    outbox: Outbox
    etiquette: Etiquette
    journal: Journal
    words: Callable[[Task], str]
    _told: set[tuple[str, int, str]] = field(default_factory=set, init=False)

    async def opens(self, found: FoundPlan, task: Task, *, by_owner: bool) -> bool:
        """Return whether a task may be claimed: whether the comment of its claim may be said.

        What the owner said to take (`by_owner`) needs no other approval.
        """
        body = IssueCommentBody(**for_workspace(found.repo), number=found.number, body=self.words(task))
        key = claim_key(found.repo.owner, found.repo.name, found.number, task.number)
        advice = await self.outbox.advise(ProposedAction(body, part=f"claim:{key}", by_owner=by_owner))
        if advice.code == "admitted":
            return True
        await self.tell_shut(found, task, advice.code, advice.reason)
        return False

    async def count(self) -> None:
        """Count the comment of a claim that was won."""
        await self.etiquette.note_created()

    async def tell_shut(self, found: FoundPlan, task: Task, code: str, reason: str) -> None:
        """Tell the owner why a task is not claimed, once for its plan and that kind of reason."""
        told = (found.repo.full_name, found.number, code)
        if told in self._told:
            return
        self._told.add(told)
        summary = f"{task.name} of {found.repo.full_name}#{found.number} is not claimed"
        data = {"act": "claim-refused", "code": code, "repo": found.repo.full_name}
        uri = found.issue.html_url
        await self.journal.record(
            Entry("decision", "claim", summary, line="warn", reason=reason, trigger_uri=uri, data=data)
        )
