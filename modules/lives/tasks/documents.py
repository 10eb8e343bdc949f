"""Says which files are documents, and offers the decision of a ritual run as a document in a pull request."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapters.github.types import Repo
from modules.lives.tasks.offering import Offering, TaskActs, TaskStopped, read
from modules.lives.tasks.types import UNCLAIMED, Deferred, Failed, HeldTask, Opened, Stopped
from modules.services.outbox.github_bodies import ContentsBody, RefBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.plans.types import FoundPlan, Plan, Task
from modules.services.rituals.policy import DECISION_KIND, DECISION_TASK
from modules.services.work.types import Disposition, Handler, WorkItem

_PATH_CHARS = 120
_NAME = re.compile(r"[\w-][\w. -]{0,99}")


def is_document(path: str) -> bool:
    """Return whether a path from the root is that of a Markdown document, in no hidden folder, in plain characters."""
    parts = path.split("/")
    return len(path) <= _PATH_CHARS and path.lower().endswith(".md") and all(_NAME.fullmatch(part) for part in parts)


@dataclass(frozen=True, slots=True)
class DecisionHandler(Handler):
    """Files the decision of a ritual run as a pull request, which is reviewed and merged like all others."""

    kind = DECISION_KIND
    is_cut_off = True

    offering: Offering

    async def handle(self, item: WorkItem) -> Disposition:
        """Offer the file; the merge loop does the rest. Only one SOUL files it, so it needs no claim."""
        told, repo = item.payload, Repo(item.payload["owner"], item.payload["repo"])
        task = Task(DECISION_TASK, told["title"], files=(told["path"],))
        try:
            memo = read(await self.offering.github.get_issue(repo, told["memo"]))
            acts = TaskActs(HeldTask(FoundPlan(repo, memo, Plan(told["title"])), task, UNCLAIMED))
            opened = await self._offered(acts, told["path"], told["text"])
        except TaskStopped as ended:
            match ended.result:
                case Deferred(reason=reason) | Stopped(reason=reason):
                    return Disposition("later", "waits", reason)
                case Failed(detail=detail):
                    return Disposition("undecided", "not-filed", detail)
            return Disposition("silent", "stands", "somebody else has filed it")
        return Disposition("done", "filed", opened.url)

    async def _offered(self, acts: TaskActs, path: str, text: str) -> Opened:
        """Open the pull request with the file, and return it. Raises `TaskStopped`."""
        offering, at, listed = self.offering, for_workspace(acts.repo), f"- `{path}`"
        place = await offering.place(acts)
        if place.pull is not None:
            return await offering.stands(acts, place.pull, listed)
        if place.begun is not None:
            await offering.settled(place.begun)
        elif place.is_new:
            head = await offering.head(acts, place.repository)
            ref = RefBody(**at, action="create", branch=place.branch, sha=head, own_commit=True)
            await offering.done(acts.action("branch", ref))
        contents = ContentsBody(**at, path=path, content=text, message=acts.title, branch=place.branch, sha="")
        await offering.done(acts.action(f"file:{path}", contents))
        body = f"{listed}\n\nPart of #{acts.issue}"
        return await offering.opened(acts, acts.pull_request(head=place.branch, base=place.base, body=body), listed)
