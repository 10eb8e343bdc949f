"""Files what a ritual decided: one document in its workspace, by a pull request that is reviewed like all others."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.types import Repo
from modules.lives.tasks.documents.compose import DocumentActs, offer_documents
from modules.lives.tasks.offering import Offering, TaskStopped, read
from modules.lives.tasks.types import Deferred, Failed, HeldTask, Stopped
from modules.services.outbox.github_bodies import GitHubBody
from modules.services.outbox.types import ProposedAction
from modules.services.plans.types import FoundPlan, Plan, Task
from modules.services.rituals.policy import DECISION_KIND, DECISION_TASK
from modules.services.work.types import Disposition, Handler, WorkItem


class DecisionActs(DocumentActs):
    """The acts for one decision. One SOUL files it, so that it needs no claim."""

    __slots__ = ()

    @property
    def title(self) -> str:
        return self.task.title

    def action(self, what: str, body: GitHubBody) -> ProposedAction:
        return ProposedAction(body, part=self.name(what), cause_id=self.cause)


@dataclass(frozen=True, slots=True)
class DecisionHandler(Handler):
    """Handles a row for each run of a ritual that decided something, up to the pull request."""

    kind = DECISION_KIND
    is_cut_off = True

    offering: Offering

    async def handle(self, item: WorkItem) -> Disposition:
        """Have the file offered; the life on merges does the rest, as it names an issue."""
        told, repo = item.payload, Repo(item.payload["owner"], item.payload["repo"])
        try:
            memo = read(await self.offering.github.get_issue(repo, told["memo"]))
            task = Task(DECISION_TASK, told["title"], files=(told["path"],))
            acts = DecisionActs(HeldTask(FoundPlan(repo, memo, Plan(told["title"])), task, epoch=1))

            async def write(path: str, branch: str) -> None:
                await self.offering.done(acts.document(path, told["text"], branch=branch, sha=""))

            body = f"{acts.files}\n\nPart of #{memo.number}"
            opened = await offer_documents(self.offering, acts, body, write)
        except TaskStopped as ended:
            match ended.result:
                case Stopped(reason=reason):
                    return Disposition("later", "held", reason, held=True)
                case Deferred(reason=reason, retry_after=retry_after):
                    return Disposition("later", "unable", reason, retry_after or 0.0)
                case Failed(problem=problem, detail=detail):
                    return Disposition("undecided", problem, detail)
                case _:
                    return Disposition("silent", "stands", "somebody else has filed it")
        return Disposition("done", "filed", opened.url)
