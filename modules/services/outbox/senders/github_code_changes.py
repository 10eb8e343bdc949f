"""Sends changes of code to GitHub: branches, files, pull requests, merges, repositories from a template."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

from adapters.github.types import GitCommit, Merge, MergeMethod, Repo, Repository
from common.clock import parse_iso
from common.result import ApiResult, Err, Ok
from modules.services.outbox.github_bodies import (
    BranchUpdateBody,
    ContentsBody,
    MergeBody,
    PullRequestBody,
    RefBody,
    RepositoryBody,
    ReviewRequestBody,
)
from modules.services.outbox.senders.github_looking import (
    CHANGED,
    ChangeSender,
    OvertakenErr,
    folded,
    mark,
    marked,
    repo_of,
    sent,
)
from modules.services.outbox.types import AmbiguousErr, Intent, Sent

CodeChange = PullRequestBody | ReviewRequestBody | MergeBody | RefBody | ContentsBody | RepositoryBody
_NOT_THERE_YET = Err("GitHub accepted the update and does not show it yet", "unknown_outcome")
_PULLS_LOOKED_AT = 20
_MERGE_METHODS: tuple[MergeMethod, ...] = ("squash", "merge", "rebase")
_REFUSED_MERGE = 405
_METHOD_IS_OFF = "not allowed"
"""What GitHub says where a repository, or a rule of it, does not allow a merge method; under 405, as all refusals."""


class CodeChangeSender(ChangeSender[CodeChange]):
    """Sends intents of the kinds `pull_request`, `review_request`, `merge`, `ref`, `contents` and `repository`."""

    bodies = (PullRequestBody, ReviewRequestBody, MergeBody, RefBody, ContentsBody, RepositoryBody)

    async def _look(self, intent: Intent, body: CodeChange, *, departs: bool) -> Sent | None:
        match body:
            case PullRequestBody():
                return await self._look_for_pull(intent, body)
            case ReviewRequestBody() | MergeBody():
                return await self._look_at_pull(body)
            case RefBody(action="delete"):
                return await self._look_for_deleted(body)
            case RefBody():
                return await self._look_for_branch(intent, body, departs=departs)
            case ContentsBody():
                return await self._look_at_file(body)
            case RepositoryBody():
                return await (self._look_for_another(body) if departs else self._look_for_repository(body))

    async def _do(self, intent: Intent, body: CodeChange) -> Sent:
        match body:
            case PullRequestBody():
                return await self._open_pull(intent, body)
            case ReviewRequestBody():
                asked = await self._github.pulls.request_reviewers(repo_of(body), body.number, body.reviewers)
                return sent(asked.or_raise())
            case MergeBody():
                return await self._merge(body)
            case RefBody():
                return await self._change_ref(intent, body)
            case ContentsBody():
                return await self._change_file(body)
            case RepositoryBody():
                return await self._generate(body)

    async def _look_for_pull(self, intent: Intent, body: PullRequestBody) -> Sent | None:
        head = body.head if ":" in body.head else f"{repo_of(body).owner}:{body.head}"
        found = (
            await self._github.pulls.list(repo_of(body), state="all", head=head, base=body.base, limit=_PULLS_LOOKED_AT)
        ).or_raise()
        own = next((one for one in found if mark(intent.id) in one.body), None)
        same = own or next((one for one in found if one.state == "open"), None)
        return sent(same) if same else None

    async def _open_pull(self, intent: Intent, body: PullRequestBody) -> Sent:
        made = await self._github.pulls.create(
            repo_of(body),
            title=body.title,
            body=marked(body.body, intent.id),
            head=body.head,
            base=body.base,
            draft=body.draft,
        )
        return sent(made.or_raise())

    async def _look_at_pull(self, body: ReviewRequestBody | MergeBody) -> Sent | None:
        pull = (await self._github.pulls.get(repo_of(body), body.number)).or_raise()
        if isinstance(body, ReviewRequestBody):
            asked = folded(tuple(one.login for one in pull.requested_reviewers))
            return sent(pull) if folded(body.reviewers) <= asked else None
        if pull.merged:
            return Sent(pull.html_url, "commit", pull.merge_commit_sha)
        if pull.state == "closed":
            OvertakenErr("the pull request was closed", "invalid").or_raise()
        return CHANGED.or_raise() if body.head_sha and body.head_sha != pull.head.sha else None

    async def _merge(self, body: MergeBody) -> Sent:
        """Merge it by the method that is meant, or by the first other one that the repository allows."""
        done = refused = await self._merge_by(body.method, body)
        for method in (one for one in _MERGE_METHODS if one != body.method):
            if not _is_method_off(done):
                break
            done = await self._merge_by(method, body)
        if isinstance(done, Err) and done.status == _REFUSED_MERGE and await self._has_queue(body):
            return await self._enqueue(body)
        sha = (refused if _is_method_off(done) else done).or_raise().sha
        return Sent(f"{self._github.page(repo_of(body))}/pull/{body.number}", "commit", sha)

    async def _enqueue(self, body: MergeBody) -> Sent:
        """Let it join the merge queue, where it may wait already."""
        pulls, repo = self._github.pulls, repo_of(body)
        joined = await pulls.enqueue(repo, body.number, head_sha=body.head_sha)
        if not joined.success and await pulls.queue(repo, body.number) != Ok("in"):
            joined.or_raise()
        return Sent(f"{self._github.page(repo)}/pull/{body.number}", "queue", body.head_sha)

    async def _has_queue(self, body: MergeBody) -> bool:
        """Return whether the base branch has a merge queue; no, where GitHub cannot tell."""
        queue = await self._github.pulls.queue(repo_of(body), body.number)
        return queue.or_else("none") != "none"

    async def _merge_by(self, method: MergeMethod, body: MergeBody) -> ApiResult[Merge]:
        return await self._github.pulls.merge(
            repo_of(body),
            body.number,
            method=method,
            title=body.title,
            message=body.message,
            head_sha=body.head_sha,
        )

    async def _look_for_deleted(self, body: RefBody) -> Sent | None:
        found = (await self._github.refs.get(repo_of(body), body.branch)).or_else(None, "not_found")
        if found is None:
            return Sent(self._tree(body))
        return CHANGED.or_raise() if body.sha and body.sha != found.sha else None

    async def _look_for_branch(self, intent: Intent, body: RefBody, *, departs: bool) -> Sent | None:
        """Look for a branch of ours; without a commit of its own it cannot be told from others' (`AmbiguousErr`)."""
        if departs and not body.own_commit:
            return None
        repo = repo_of(body)
        if (found := (await self._github.refs.get(repo, body.branch)).or_else(None, "not_found")) is None:
            return None
        if not body.own_commit:
            AmbiguousErr("the branch is there, and whose it is cannot be told", "invalid").or_raise()
        commit = (await self._github.refs.commit(repo, found.sha)).or_raise()
        return Sent(self._tree(body), "commit", commit.sha) if mark(intent.id) in commit.message else None

    async def _change_ref(self, intent: Intent, body: RefBody) -> Sent:
        repo = repo_of(body)
        if body.action == "delete":
            (await self._github.refs.delete(repo, body.branch)).or_raise()
            return Sent(self._tree(body))
        sha = (await self._own_commit(intent, body)).sha if body.own_commit else body.sha
        made = (await self._github.refs.create(repo, body.branch, sha)).or_else(None, "conflict")
        if made is None:
            return Err("somebody else has that branch", "invalid").or_raise()
        return Sent(self._tree(body), "commit", made.sha)

    async def _own_commit(self, intent: Intent, body: RefBody) -> GitCommit:
        """Make a commit that changes nothing and names the intent: the same one however often it is asked for."""
        parent = (await self._github.refs.commit(repo_of(body), body.sha)).or_raise()
        login = self._github.login
        made = await self._github.refs.create_empty_commit(
            repo_of(body),
            parent,
            message=mark(intent.id),
            name=login,
            email=f"{login}@users.noreply.github.com",
            date=f"{parse_iso(intent.created_at):%Y-%m-%dT%H:%M:%SZ}",
        )
        return made.or_raise()

    async def _look_at_file(self, body: ContentsBody) -> Sent | None:
        listed = await self._github.contents.list(repo_of(body), body.path, ref=body.branch)
        if (found := listed.or_else(None, "not_found")) is None:
            if body.content is None:
                return Sent(self._tree(body))
            return CHANGED.or_raise() if body.sha else None
        stands = next((one.sha for one in found if one.path == body.path), "")
        if body.content is not None and stands == blob_sha(body.content):
            return Sent(self._tree(body), "file", stands)
        return None if stands == body.sha else CHANGED.or_raise()

    async def _change_file(self, body: ContentsBody) -> Sent:
        repo, files = repo_of(body), self._github.contents
        done = (
            await files.delete(repo, body.path, message=body.message, sha=body.sha, branch=body.branch)
            if body.content is None
            else await files.write(
                repo, body.path, body.content, message=body.message, branch=body.branch, sha=body.sha
            )
        )
        return Sent(self._tree(body), "file", done.or_raise().sha)

    async def _look_for_repository(self, body: RepositoryBody) -> Sent | None:
        found = (await self._github.get_repository(repo_of(body))).or_else(None, "not_found")
        return _made(found) if found else None

    async def _look_for_another(self, body: RepositoryBody) -> None:
        """Look whether there is none of the kind of which an owner has only one: else it must not be made."""
        if not body.only_one:
            return
        listed = (await self._github.repositories.of_organization(repo_of(body).owner)).or_raise()
        if other := next((one for one in listed if one.repo.name.lower().startswith(body.only_one.lower())), None):
            OvertakenErr(f"{other.full_name} is there already", "invalid").or_raise()

    async def _generate(self, body: RepositoryBody) -> Sent:
        owner, _, name = body.template.partition("/")
        template, new = Repo(owner, name), repo_of(body)
        made = await self._github.repositories.generate(
            template, owner=new.owner, name=new.name, description=body.description, private=body.private
        )
        return _made(made.or_raise())

    def _tree(self, body: RefBody | ContentsBody) -> str:
        page = self._github.page(repo_of(body))
        return f"{page}/tree/{quote(body.branch)}" if body.branch else page


def _is_method_off(done: ApiResult[Merge]) -> bool:
    """Whether GitHub refused a merge because of its method, so that another one may be tried."""
    return isinstance(done, Err) and done.status == _REFUSED_MERGE and _METHOD_IS_OFF in done.error.lower()


def blob_sha(content: str) -> str:
    """The name under which Git keeps a file."""
    data = content.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _made(repository: Repository) -> Sent:
    return Sent(repository.html_url, "repository", repository.full_name)


class BranchUpdateSender(ChangeSender[BranchUpdateBody]):
    """Sends intents of the kind `branch_update`. A result's id is the commit that the update made."""

    bodies = (BranchUpdateBody,)

    async def _look(self, intent: Intent, body: BranchUpdateBody, *, departs: bool) -> Sent | None:
        """Look for the merge that an update makes: its first parent is the commit that was updated."""
        repo = repo_of(body)
        pull = (await self._github.pulls.get(repo, body.number)).or_raise()
        if pull.state == "closed":
            OvertakenErr("the pull request was closed", "invalid").or_raise()
        if pull.head.sha == body.head_sha:
            return None
        commit = (await self._github.refs.commit(repo, pull.head.sha)).or_raise()
        is_update = len(commit.parents) > 1 and commit.parents[0] == body.head_sha
        return Sent(pull.html_url, "commit", pull.head.sha) if is_update else CHANGED.or_raise()

    async def _do(self, intent: Intent, body: BranchUpdateBody) -> Sent:
        (await self._github.pulls.update_branch(repo_of(body), body.number, head_sha=body.head_sha)).or_raise()
        return await self._look(intent, body, departs=False) or _NOT_THERE_YET.or_raise()
