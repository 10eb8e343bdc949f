"""Writes the documents that a task asks for, and offers them as a pull request.

Nothing is stored here but what the answers of the model cost. Each act is an intent of the outbox under a name of its
own (`acts`), so that a life that was killed goes on where it ended: a document that was written is not written again,
and no second pull request is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from adapters.github.types import Repo
from common.errors import Transient
from common.result import Err, Ok
from modules.lives.tasks.acts import TaskActs
from modules.lives.tasks.documents.check import MOST_CHARS
from modules.lives.tasks.documents.compose import DocumentRequest, DocumentWriter
from modules.lives.tasks.documents.policy import is_document_task, is_page
from modules.lives.tasks.offering import Offering, TaskStopped, read
from modules.lives.tasks.types import Failed, HeldTask, TaskWorker, WorkResult
from modules.runtime.llm.types import ChatResult
from modules.runtime.scheduler.attention import Attention
from modules.services.coding.trajectory import Trajectories, step_of
from modules.services.outbox.github_bodies import ContentsBody, RefBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.types import ProposedAction
from modules.services.plans.types import Task

NAME = "task-document"

_MOST_FILES, _MOST_FOLDERS = 60, 3


class DocumentActs(TaskActs):
    """The acts for one task that asks for documents, under one claim."""

    __slots__ = ()

    @property
    def files(self) -> str:
        """The documents, as a list in Markdown."""
        return "\n".join(f"- `{path}`" for path in self.task.files)

    def branch(self, name: str, sha: str) -> ProposedAction:
        """Return the branch `name` on the commit `sha`."""
        ref = RefBody(**for_workspace(self.repo), action="create", branch=name, sha=sha, own_commit=True)
        return self.action("branch", ref)

    def document(self, path: str, text: str, *, branch: str, sha: str) -> ProposedAction:
        """Return the document as it is to stand on the branch; `sha` is that of the one it takes the place of."""
        at = for_workspace(self.repo)
        contents = ContentsBody(**at, path=path, content=text, message=self.title, branch=branch, sha=sha)
        return self.action(f"file:{path}", contents)


@dataclass(frozen=True, slots=True)
class DocumentWork(TaskWorker):
    """The work of tasks whose files are Markdown documents that are not there yet, or pages of a workspace.

    Attributes:
        offering: the branch, the pull request, the reviews.
        writer: asks the model for a document, without tools.
        attention: held while the model writes; one mind does one thing at a time.
        store: keeps what each answer of the model cost.

    """

    offering: Offering
    writer: DocumentWriter
    attention: Attention
    store: Trajectories

    def can_do(self, task: Task) -> bool:
        """Return whether a task asks for documents and nothing else."""
        return is_document_task(task)

    async def fits(self, repo: Repo, task: Task) -> bool:
        """Return whether none of the documents stands there, but for pages of a workspace. Raises `Transient`."""
        for path in task.files:
            if is_page(path):
                continue
            found = await self.offering.github.contents.read(repo, path)
            if isinstance(found, Ok) or found.kind == "invalid":
                return False
            if found.kind not in {"not_found", "conflict"}:
                raise Transient(found.error, retry_after=found.retry_after)
        return True

    async def do(self, work: HeldTask) -> WorkResult:
        """Do what is left to do, up to the pull request. What is `Lost` was left as it is.

        It waits for what is on its way, for as long as the caller lets it.

        Raises:
            SoulError: the model cannot be asked, or the process must end.

        """
        try:
            return await self._do(DocumentActs(work))
        except TaskStopped as ended:
            return ended.result

    async def _do(self, acts: DocumentActs) -> WorkResult:
        place = await self.offering.place(acts)
        if place.pull is not None:
            return await self.offering.stands(acts, place.pull, acts.files)
        if place.begun is not None:
            await self.offering.settled(place.begun)
        elif place.is_new:
            head = await self.offering.head(acts, place.repository)
            await self.offering.done(acts, acts.branch(place.branch, head))
        for path in acts.task.files:
            await self._write(acts, path, place.branch)
        body = self.offering.phrase("github.pull_request", **acts.told, count=len(acts.task.files), files=acts.files)
        return await self.offering.opened(
            acts, acts.pull_request(head=place.branch, base=place.base, body=body), acts.files
        )

    async def _write(self, acts: DocumentActs, path: str, branch: str) -> None:
        """Have the document on the branch. One that the model wrote, and that is on its way, is not written again."""
        if row := (await self.offering.outbox.standing("contents", acts.name(f"file:{path}"))).active:
            await self.offering.settled(row)
            return
        stands = await self.offering.github.contents.read(acts.repo, path, ref=branch, max_chars=MOST_CHARS)
        if isinstance(stands, Err) and stands.kind == "invalid":
            raise TaskStopped(Failed("document_unreadable", stands.error, about=path))
        before = None if isinstance(stands, Err) and stands.kind == "not_found" else read(stands)
        if before is not None and before.truncated:
            detail = f"{path} has more than {MOST_CHARS:,} characters"
            raise TaskStopped(Failed("document_too_long", detail, about=path))
        text, sha = (before.text, before.sha) if before else ("", "")
        files = await self._files(acts, branch)
        found = acts.held.found
        request = DocumentRequest(acts.repo, found.issue.html_url, found.plan, acts.task, path, files, text)
        async with self.attention.take(NAME):
            written = await self.writer.write(request, partial(self._keep, acts))
        if not written.text:
            lacks = (written.problem or "").lower().replace(" ", "_")
            raise TaskStopped(Failed("document_unfit", f"{path}: {written.problem}", about=path, lacks=lacks))
        await self.offering.done(acts, acts.document(path, written.text, branch=branch, sha=sha))

    async def _keep(self, acts: DocumentActs, result: ChatResult) -> None:
        """Keep an answer of the model with the steps of the task, for what the task cost."""
        key, epoch = f"{acts.cause}/documents", acts.held.epoch
        number = len(await self.store.steps(key, epoch)) + 1
        await self.store.put(key, epoch, step_of(result, number, self.offering.clock.now(), ()))

    async def _files(self, acts: DocumentActs, branch: str) -> tuple[str, ...]:
        """Return the paths in the root and in a few folders, at most `_MOST_FILES`."""
        root = read(await self.offering.github.contents.list(acts.repo, ref=branch))
        entries = list(root)
        folders = [one for one in root if one.type == "dir" and not one.name.startswith(".")]
        for folder in folders[:_MOST_FOLDERS]:
            inside = read(await self.offering.github.contents.list(acts.repo, folder.path, ref=branch))
            entries += inside
        return tuple(one.path for one in entries if one.type == "file")[:_MOST_FILES]
