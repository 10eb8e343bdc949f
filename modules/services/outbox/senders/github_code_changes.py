"""Sends changes of code to GitHub: branches, files, pull requests, merges, repositories from a template."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

from adapters.github.types import GitCommit, Merge, MergeMethod, Repo, Repository
from common.clock import parse_iso
from common.result import ApiResult, Err, Ok, answering
from modules.services.outbox.github_bodies import (
    BranchUpdateBody,
    ContentsBody,
    MergeBody,
    PullRequestBody,
    RefBody,
    RepositoryBody,
    ReviewRequestBody,
)
from modules.services.outbox.senders.github import mark, marked, repo_of
from modules.services.outbox.senders.github_looking import (
    CHANGED,
    ChangeSender,
    Look,
    OvertakenErr,
    folded,
    none_if_missing,
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

    async def _look(self, intent: Intent, body: CodeChange, *, departs: bool) -> Look:
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

    async def _do(self, intent: Intent, body: CodeChange) -> ApiResult[Sent]:
        match body:
            case PullRequestBody():
                return await self._open_pull(intent, body)
            case ReviewRequestBody():
                asked = await self._github.pulls.request_reviewers(repo_of(body), body.number, body.reviewers)
                return asked if isinstance(asked, Err) else Ok(sent(asked.data))
            case MergeBody():
                return await self._merge(body)
            case RefBody():
                return await self._change_ref(intent, body)
            case ContentsBody():
                return await self._change_file(body)
            case RepositoryBody():
                return await self._generate(body)

    @answering
    async def _look_for_pull(self, intent: Intent, body: PullRequestBody) -> Look:
        head = body.head if ":" in body.head else f"{repo_of(body).owner}:{body.head}"
        found = (
            await self._github.pulls.list(repo_of(body), state="all", head=head, base=body.base, limit=_PULLS_LOOKED_AT)
        ).or_raise()
        own = next((one for one in found if mark(intent.id) in one.body), None)
        same = own or next((one for one in found if one.state == "open"), None)
        return Ok(sent(same) if same else None)

    async def _open_pull(self, intent: Intent, body: PullRequestBody) -> ApiResult[Sent]:
        made = await self._github.pulls.create(
            repo_of(body),
            title=body.title,
            body=marked(body.body, intent.id),
            head=body.head,
            base=body.base,
            draft=body.draft,
        )
        return made if isinstance(made, Err) else Ok(sent(made.data))

    @answering
    async def _look_at_pull(self, body: ReviewRequestBody | MergeBody) -> Look:
        read = (await self._github.pulls.get(repo_of(body), body.number)).or_raise()
        pull = read
        if isinstance(body, ReviewRequestBody):
            asked = folded(tuple(one.login for one in pull.requested_reviewers))
            return Ok(sent(pull) if folded(body.reviewers) <= asked else None)
        if pull.merged:
            return Ok(Sent(pull.html_url, "commit", pull.merge_commit_sha))
        if pull.state == "closed":
            return OvertakenErr("the pull request was closed", "invalid")
        return CHANGED if body.head_sha and body.head_sha != pull.head.sha else Ok(None)

    async def _merge(self, body: MergeBody) -> ApiResult[Sent]:
        """Merge it by the method that is meant, or by the first other one that the repository allows."""
        done = refused = await self._merge_by(body.method, body)
        for method in (one for one in _MERGE_METHODS if one != body.method):
            if not _is_method_off(done):
                break
            done = await self._merge_by(method, body)
        if isinstance(done, Err):
            if done.status == _REFUSED_MERGE and await self._has_queue(body):
                return await self._enqueue(body)
            return refused if isinstance(refused, Err) and _is_method_off(done) else done
        return Ok(Sent(f"{self._github.page(repo_of(body))}/pull/{body.number}", "commit", done.data.sha))

    async def _enqueue(self, body: MergeBody) -> ApiResult[Sent]:
        """Let it join the merge queue, where it may wait already."""
        pulls, repo = self._github.pulls, repo_of(body)
        joined = await pulls.enqueue(repo, body.number, head_sha=body.head_sha)
        if isinstance(joined, Err) and await pulls.queue(repo, body.number) != Ok("in"):
            return joined
        return Ok(Sent(f"{self._github.page(repo)}/pull/{body.number}", "queue", body.head_sha))

    async def _has_queue(self, body: MergeBody) -> bool:
        """Return whether the base branch has a merge queue; no, where GitHub cannot tell."""
        queue = await self._github.pulls.queue(repo_of(body), body.number)
        return isinstance(queue, Ok) and queue.data != "none"

    async def _merge_by(self, method: MergeMethod, body: MergeBody) -> ApiResult[Merge]:
        return await self._github.pulls.merge(
            repo_of(body),
            body.number,
            method=method,
            title=body.title,
            message=body.message,
            head_sha=body.head_sha,
        )

    async def _look_for_deleted(self, body: RefBody) -> Look:
        found = await self._github.refs.get(repo_of(body), body.branch)
        if isinstance(found, Err):
            return Ok(Sent(self._tree(body))) if found.kind == "not_found" else found
        return CHANGED if body.sha and body.sha != found.data.sha else Ok(None)

    @answering
    async def _look_for_branch(self, intent: Intent, body: RefBody, *, departs: bool) -> Look:
        """Look for a branch of ours; without a commit of its own it cannot be told from others' (`AmbiguousErr`)."""
        if departs and not body.own_commit:
            return Ok(None)
        repo = repo_of(body)
        found = await self._github.refs.get(repo, body.branch)
        if isinstance(found, Err):
            return none_if_missing(found)
        if not body.own_commit:
            return AmbiguousErr("the branch is there, and whose it is cannot be told", "invalid")
        commit = (await self._github.refs.commit(repo, found.data.sha)).or_raise()
        return Ok(Sent(self._tree(body), "commit", commit.sha) if mark(intent.id) in commit.message else None)

    @answering
    async def _change_ref(self, intent: Intent, body: RefBody) -> ApiResult[Sent]:
        repo = repo_of(body)
        if body.action == "delete":
            gone = await self._github.refs.delete(repo, body.branch)
            return gone if isinstance(gone, Err) else Ok(Sent(self._tree(body)))
        sha = body.sha
        if body.own_commit:
            own = (await self._own_commit(intent, body)).or_raise()
            sha = own.sha
        made = await self._github.refs.create(repo, body.branch, sha)
        if isinstance(made, Err):
            return Err("somebody else has that branch", "invalid") if made.kind == "conflict" else made
        return Ok(Sent(self._tree(body), "commit", made.data.sha))

    @answering
    async def _own_commit(self, intent: Intent, body: RefBody) -> ApiResult[GitCommit]:
        """A commit that changes nothing and names the intent: the same one however often it is asked for."""
        parent = (await self._github.refs.commit(repo_of(body), body.sha)).or_raise()
        login = self._github.login
        return await self._github.refs.create_empty_commit(
            repo_of(body),
            parent,
            message=mark(intent.id),
            name=login,
            email=f"{login}@users.noreply.github.com",
            date=f"{parse_iso(intent.created_at):%Y-%m-%dT%H:%M:%SZ}",
        )

    async def _look_at_file(self, body: ContentsBody) -> Look:
        found = await self._github.contents.list(repo_of(body), body.path, ref=body.branch)
        if isinstance(found, Err):
            missing = none_if_missing(found)
            if isinstance(missing, Err):
                return missing
            if body.content is None:
                return Ok(Sent(self._tree(body)))
            return CHANGED if body.sha else Ok(None)
        stands = next((one.sha for one in found.data if one.path == body.path), "")
        if body.content is not None and stands == blob_sha(body.content):
            return Ok(Sent(self._tree(body), "file", stands))
        return Ok(None) if stands == body.sha else CHANGED

    async def _change_file(self, body: ContentsBody) -> ApiResult[Sent]:
        repo, files = repo_of(body), self._github.contents
        done = (
            await files.delete(repo, body.path, message=body.message, sha=body.sha, branch=body.branch)
            if body.content is None
            else await files.write(
                repo, body.path, body.content, message=body.message, branch=body.branch, sha=body.sha
            )
        )
        return done if isinstance(done, Err) else Ok(Sent(self._tree(body), "file", done.data.sha))

    async def _look_for_repository(self, body: RepositoryBody) -> Look:
        found = await self._github.get_repository(repo_of(body))
        return none_if_missing(found) if isinstance(found, Err) else Ok(_made(found.data))

    @answering
    async def _look_for_another(self, body: RepositoryBody) -> Look:
        """Whether there is none of the kind of which an owner has only one: else it must not be made."""
        if not body.only_one:
            return Ok(None)
        listed = (await self._github.repositories.of_organization(repo_of(body).owner)).or_raise()
        other = next((one for one in listed if one.repo.name.lower().startswith(body.only_one.lower())), None)
        return OvertakenErr(f"{other.full_name} is there already", "invalid") if other else Ok(None)

    async def _generate(self, body: RepositoryBody) -> ApiResult[Sent]:
        owner, _, name = body.template.partition("/")
        template, new = Repo(owner, name), repo_of(body)
        made = await self._github.repositories.generate(
            template, owner=new.owner, name=new.name, description=body.description, private=body.private
        )
        return made if isinstance(made, Err) else Ok(_made(made.data))

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

    @answering
    async def _look(self, intent: Intent, body: BranchUpdateBody, *, departs: bool) -> Look:
        """Look for the merge that an update makes: its first parent is the commit that was updated."""
        repo = repo_of(body)
        read = (await self._github.pulls.get(repo, body.number)).or_raise()
        pull = read
        if pull.state == "closed":
            return OvertakenErr("the pull request was closed", "invalid")
        if pull.head.sha == body.head_sha:
            return Ok(None)
        commit = (await self._github.refs.commit(repo, pull.head.sha)).or_raise()
        is_update = len(commit.parents) > 1 and commit.parents[0] == body.head_sha
        return Ok(Sent(pull.html_url, "commit", pull.head.sha)) if is_update else CHANGED

    @answering
    async def _do(self, intent: Intent, body: BranchUpdateBody) -> ApiResult[Sent]:
        (await self._github.pulls.update_branch(repo_of(body), body.number, head_sha=body.head_sha)).or_raise()
        made = (await self._look(intent, body, departs=False)).or_raise()
        return Ok(made) if made is not None else _NOT_THERE_YET
