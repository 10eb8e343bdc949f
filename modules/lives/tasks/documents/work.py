"""Writes the documents that a task asks for, and offers them as a pull request.

Nothing is stored here. Each act is an intent of the outbox under a name of its own (`acts`), so that a life that was
killed goes on where it ended: a document that was written is not written again, and no second pull request is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from adapters.github.client import GitHub
from adapters.github.types import GitRef, PullRequest, Repository
from common.clock import Clock
from common.result import ApiResult, Err
from modules.lives.tasks.documents.acts import DocumentActs
from modules.lives.tasks.documents.check import MOST_CHARS
from modules.lives.tasks.documents.compose import DocumentRequest, DocumentWriter
from modules.lives.tasks.documents.policy import choose_branch, is_document_task
from modules.lives.tasks.types import Blocked, Deferred, Failed, HeldTask, Lost, Opened, TaskWorker, WorkResult
from modules.runtime.scheduler.attention import Attention
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import RefBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.plans.pulls import read_pulls
from modules.services.plans.reviewers import pick_reviewers
from modules.services.plans.types import Task
from modules.services.voice_phrases.store import Phrase
from modules.services.workspaces.trust import WorkspaceTrust

T = TypeVar("T")

NAME = "task-document"

_TRIES = 3
"""So often one act is proposed under one claim, where it fails each time."""
_LOOK_AGAIN_S = 5.0
_LOOKS = 4
"""So often a first commit is looked for, which GitHub may show a little later."""
_MOST_FILES, _MOST_FOLDERS = 60, 3
_NOT_OF_THE_TASK = frozenset({"transient", "unknown_outcome", "auth", "fatal"})
"""Why something could not be read for reasons that lie with GitHub, or with our account."""


class _Ended(Exception):
    """Nothing more is to be done."""

    def __init__(self, result: WorkResult) -> None:
        super().__init__(type(result).__name__)
        self.result = result


@dataclass(frozen=True, slots=True)
class DocumentWork(TaskWorker):
    """The work of tasks whose files are Markdown documents.

    Attributes:
        github: what stands in the repository.
        trust: whose pull requests count there.
        outbox: the only way out.
        writer: asks the model for a document, without tools.
        attention: held while the model writes; one mind does one thing at a time.
        clock: waits for what is on its way.
        phrase: returns operational texts.
        peers: returns the logins of the SOULs that are known, who may be asked for a review.

    """

    github: GitHub
    trust: WorkspaceTrust
    outbox: Outbox
    writer: DocumentWriter
    attention: Attention
    clock: Clock
    phrase: Phrase
    peers: Callable[[], Iterable[str]]

    def can_do(self, task: Task) -> bool:
        """Return whether a task asks for documents and nothing else."""
        return is_document_task(task)

    async def do(self, work: HeldTask) -> WorkResult:
        """Do what is left to do, up to the pull request. What is `Lost` was left as it is.

        It waits for what is on its way, for as long as the caller lets it.

        Raises:
            SoulError: the model cannot be asked, or the process must end.

        """
        try:
            return await self._do(DocumentActs(work))
        except _Ended as ended:
            return ended.result

    async def _do(self, acts: DocumentActs) -> WorkResult:
        base, branch, pull = await self._branch(acts)
        if pull is None:
            for path in acts.task.files:
                await self._write(acts, path, branch)
            done = await self._done(acts, acts.pull_request(head=branch, base=base, phrase=self.phrase))
            number, url = int(done.result_cid or 0), done.result_uri or ""
        else:
            number, url = pull.number, pull.html_url
        await self._ask_for_reviews(acts, number)
        return Opened(url, acts.files)

    async def _branch(self, acts: DocumentActs) -> tuple[str, str, PullRequest | None]:
        """Return the default branch, the branch of the task, and the pull request if ours is open already."""
        repository = _read(await self.github.get_repository(acts.repo))
        base = repository.default_branch
        row = await self._active("ref", acts.name("branch"))
        if row is not None and isinstance(row.body, RefBody):
            await self._settled(row)
            return base, row.body.branch, None
        branches = {one.name for one in _read(await self.github.refs.branches(acts.repo))}
        trusted = await self.trust.accounts(acts.repo)
        pulls = _read(await read_pulls(self.github, acts.repo, acts.issue, trusted))
        made = [one for one in await self.outbox.by_cause(acts.cause) if one.state == "done"]
        own = {one.body.branch for one in made if isinstance(one.body, RefBody)}
        choice = choose_branch(
            acts.task, acts.issue, acts.held.epoch, branches=branches, own=own, pulls=pulls, trusted=trusted
        )
        if choice.code == "left":
            raise _Ended(Lost())
        if choice.code == "create":
            head = await self._head(acts, repository)
            await self._done(acts, acts.branch(choice.branch, head))
        return base, choice.branch, choice.pull

    async def _head(self, acts: DocumentActs, repository: Repository) -> str:
        """Return the last commit of the default branch. Where the repository has none, its first is made before."""
        base = repository.default_branch
        read = await self.github.refs.get(acts.repo, base)
        if not _is_empty(read):
            return _read(read).sha
        refused: _Ended | None = None
        try:
            await self._done(acts, acts.first_commit(repository.description))
        except _Ended as ended:
            # NOTE(self): somebody else may have made another first commit meanwhile.
            refused = ended
        for _ in range(_LOOKS):
            read = await self.github.refs.get(acts.repo, base)
            if refused or not _is_empty(read):
                break
            await self.clock.sleep(_LOOK_AGAIN_S)
        if refused and isinstance(read, Err):
            raise refused
        return _read(read).sha

    async def _write(self, acts: DocumentActs, path: str, branch: str) -> None:
        """Have the document on the branch. One that the model wrote, and that is on its way, is not written again."""
        if (row := await self._active("contents", acts.name(f"file:{path}"))) is not None:
            await self._settled(row)
            return
        read = await self.github.contents.read(acts.repo, path, ref=branch, max_chars=MOST_CHARS)
        if isinstance(read, Err) and read.kind == "invalid":
            raise _Ended(Blocked("document_unreadable", read.error, about=path))
        before = None if isinstance(read, Err) and read.kind == "not_found" else _read(read)
        if before is not None and before.truncated:
            detail = f"{path} has more than {MOST_CHARS:,} characters"
            raise _Ended(Blocked("document_too_long", detail, about=path))
        text, sha = (before.text, before.sha) if before else ("", "")
        files = await self._files(acts, branch)
        found = acts.held.found
        request = DocumentRequest(acts.repo, found.issue.html_url, found.plan, acts.task, path, files, text)
        async with self.attention.take(NAME):
            written = await self.writer.write(request)
        if not written.text:
            lacks = (written.problem or "").lower().replace(" ", "_")
            raise _Ended(Failed("document_unfit", f"{path}: {written.problem}", about=path, lacks=lacks))
        await self._done(acts, acts.document(path, written.text, branch=branch, sha=sha))

    async def _files(self, acts: DocumentActs, branch: str) -> tuple[str, ...]:
        """Return the paths in the root and in a few folders, at most `_MOST_FILES`."""
        root = _read(await self.github.contents.list(acts.repo, ref=branch))
        entries = list(root)
        folders = [one for one in root if one.type == "dir" and not one.name.startswith(".")]
        for folder in folders[:_MOST_FOLDERS]:
            inside = _read(await self.github.contents.list(acts.repo, folder.path, ref=branch))
            entries += inside
        return tuple(one.path for one in entries if one.type == "file")[:_MOST_FILES]

    async def _ask_for_reviews(self, acts: DocumentActs, number: int) -> None:
        """Ask a few peers to review it. Who cannot is left out, and nobody has to be there."""
        key = f"{acts.repo.full_name}#{number}"
        for action in acts.review_requests(number, pick_reviewers(key, self.github.login, self.peers())):
            if not await self.outbox.by_target(action.kind, action.target):
                await self.outbox.submit(action)
        await self.outbox.deliver_due()

    async def _active(self, kind: IntentKind, name: str) -> Intent | None:
        """Return the intent of an act that is done, or may still be."""
        rows = await self.outbox.by_target(kind, name)
        return next((one for one in rows if one.state in ACTIVE_STATES), None)

    async def _done(self, acts: DocumentActs, action: ProposedAction) -> Intent:
        """Return the intent of an act once it is done; propose it where that was not done or came to nothing.

        Raises `_Ended` where the task is not ours any more, and where it cannot be done.
        """
        row = await self._active(action.kind, action.target)
        if row is None:
            tried = await self.outbox.by_target(action.kind, action.target)
            if len(tried) >= _TRIES or any(one.rejected for one in tried):
                raise _Ended(Failed("not_sent", tried[0].error or tried[0].state))
            if not await acts.held.is_ours():
                raise _Ended(Lost())
            submitted = await self.outbox.submit(action)
            if not submitted.accepted:
                raise _Ended(Blocked("not_allowed", submitted.reason))
            row = submitted.intent
        return await self._settled(row)

    async def _settled(self, row: Intent) -> Intent:
        """Let out what is due, and return the intent once it is done.

        Raises `_Ended` where it failed, or waits for the owner's yes: nobody keeps a task for as long as that may take.
        """
        while row.state != "done":
            await self.outbox.deliver_due()
            row = await self.outbox.get(row.id) or row
            if row.state == "held":
                raise _Ended(Blocked("needs_owner", row.error or row.state))
            if row.state in ACTIVE_STATES and row.state != "done":
                await self.clock.sleep(_LOOK_AGAIN_S)
            elif row.state != "done":
                raise _Ended(Failed("not_sent", row.error or row.state))
        return row


def _is_empty(read: ApiResult[GitRef]) -> bool:
    """Whether no branch could be read because there is no commit at all."""
    return isinstance(read, Err) and read.kind == "conflict"


def _read(result: ApiResult[T]) -> T:
    """Return what was read. Raises `_Ended` where it could not be."""
    if isinstance(result, Err):
        if result.kind in _NOT_OF_THE_TASK:
            raise _Ended(Deferred(result.error, result.retry_after))
        raise _Ended(Failed("unreadable", result.error))
    return result.data
