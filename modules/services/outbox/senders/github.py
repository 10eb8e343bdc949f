"""Sends acts to GitHub, each at most once: issues, comments, reviews, branches, files, pull requests, merges."""

import hashlib
import re
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

from adapters.github.client import GitHub
from adapters.github.rewriting import rewrite
from adapters.github.types import (
    Comment,
    Issue,
    Merge,
    MergeMethod,
    Repo,
    Repository,
    Review,
    ReviewState,
    fit_title,
    latest_verdicts,
)
from common.result import LASTING, ApiResult, Err, Ok, answering
from common.text.strings import normalized_title
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import (
    AccountFollowBody,
    AssigneeBody,
    BranchUpdateBody,
    CommentDeletionBody,
    ContentsBody,
    IssueBody,
    IssueCommentBody,
    IssueUpdateBody,
    LabelBody,
    MergeBody,
    PullRequestBody,
    ReactionBody,
    RefBody,
    RepositoryBody,
    ReviewBody,
    ReviewRequestBody,
    StarBody,
    body_digest,
)
from modules.services.outbox.senders.github_changes import (
    CHANGED,
    ChangeSender,
    OvertakenErr,
    folded,
    mark,
    marked,
    meant,
    repo_of,
    sent,
)
from modules.services.outbox.types import Intent, Sender, Sent
from modules.services.pinned_names import RepositoryIdentity
from modules.services.plans.plan_text import add_tasks_to_plan_body

WithWords = IssueBody | IssueCommentBody | ReviewBody
Written = Issue | Comment | Review

_LOOKED_AT, _OPEN_LOOKED_AT = 100, 1_000
_STATES: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}
_DUPLICATE = "Duplicate of #{number}"
"""GitHub's own words for marking an issue as the duplicate of another."""
_CLOSED = OvertakenErr("the pull request was closed", "invalid")
_MARK = re.compile(r"(?<!\s)\s*<!-- soul:intent=[0-9a-f]* -->\s*\Z")


class GitHubSender(ChangeSender[WithWords]):
    """Sends intents of the kinds `issue`, `issue_comment` and `review`.

    The id of a result is the number or id that GitHub gave.
    """

    bodies = (IssueBody, IssueCommentBody, ReviewBody)

    async def close_duplicates(self, intent: Intent) -> ApiResult[int]:
        """Close issues, or delete comments, that carry the mark of `intent` and are not its result."""
        return meant(await self._closed(intent))

    @answering
    async def _closed(self, intent: Intent) -> ApiResult[int]:
        body, closed = await self._present(intent), 0
        for one in await self._own(body):
            if mark(intent.id) not in one.body or _sent(one).id == intent.result_id:
                continue
            if isinstance(one, Review) or (isinstance(one, Issue) and one.state == "closed"):
                continue
            (await self._close(repo_of(body), intent, one)).or_raise()
            closed += 1
        return Ok(closed)

    async def _close(self, repo: Repo, intent: Intent, one: Issue | Comment) -> ApiResult[Issue] | ApiResult[None]:
        if isinstance(one, Comment) and isinstance(intent.body, IssueCommentBody) and intent.body.line:
            return await self._github.pulls.delete_line_comment(repo, one.id)
        if isinstance(one, Comment):
            return await self._github.delete_comment(repo, one.id)
        github, told = self._github, f"{_DUPLICATE.format(number=intent.issue_number)}\n\n"
        return await rewrite(
            github,
            (repo, one.number),
            lambda: github.get_issue(repo, one.number),
            lambda issue: told + issue.body.removeprefix(told),
            lambda body: github.update_issue(repo, one.number, body=body, state="closed"),
            always=True,
        )

    async def _do(self, intent: Intent, body: WithWords) -> Sent:
        repo, text, github = repo_of(body), marked(body.body, intent.id), self._github
        done: ApiResult[Issue] | ApiResult[Comment] | ApiResult[Review]
        match body:
            case IssueBody():
                if body.only_one and (await open_issue_with(github, repo, body.only_one)).or_raise():
                    OvertakenErr("an open issue there tells it already", "invalid").or_raise()
                made = await github.create_issue(repo, body.title, text, labels=body.labels, assignees=body.assignees)
                return await self._only(repo, body, made.or_raise())
            case ReviewBody():
                done = await github.pulls.create_review(
                    repo, body.number, event=body.event, body=text, commit_id=body.commit_id, comments=body.comments
                )
            case IssueCommentBody(line=0):
                done = await github.create_comment(repo, body.number, text)
            case IssueCommentBody():
                done = await github.pulls.answer_line(repo, body.number, body.line, text)
        return _sent(done.or_raise())

    async def _only(self, repo: Repo, body: IssueBody, made: Issue) -> Sent:
        """Return a new issue as a result; close it and raise if an older open one holds `only_one`, too."""
        found = (await open_issue_with(self._github, repo, body.only_one)).or_else(None) if body.only_one else None
        if found and found.number < made.number:
            text = f"{_DUPLICATE.format(number=found.number)}\n\n{made.body}"
            (await self._github.update_issue(repo, made.number, body=text, state="closed")).or_raise()
            OvertakenErr("an open issue there tells it already", "invalid").or_raise()
        return _sent(made)

    async def _look(self, intent: Intent, body: WithWords, *, departs: bool) -> Sent | None:
        found, mine = await self._own(body), mark(intent.id)
        arrived = next((one for one in found if mine in one.body), None)
        if arrived is None and departs:
            arrived = next((one for one in found if _same(one, body)), None)
        if arrived is None and departs and isinstance(body, ReviewBody):
            pull = (await self._github.get_issue(repo_of(body), body.number)).or_raise()
            if pull.state == "closed":
                _CLOSED.or_raise()
        return _sent(arrived) if arrived else None

    async def _own(self, body: WithWords) -> Sequence[Written]:
        """Return what the SOUL wrote in the repository or thread of an act."""
        repo, github = repo_of(body), self._github
        match body:
            case IssueBody():
                found = await github.list_issues(repo, state="all", creator=github.login, limit=_LOOKED_AT)
                return [one for one in found.or_raise() if not one.is_pull_request]
            case ReviewBody():
                return [one for one in (await github.pulls.reviews(repo, body.number)).or_raise() if self._is_own(one)]
            case IssueCommentBody(line=0):
                return [one for one in (await github.list_comments(repo, body.number)).or_raise() if self._is_own(one)]
            case IssueCommentBody():
                lines = (await github.pulls.review_comments(repo, body.number)).or_raise()
                talk = (one.comment for one in lines if one.answers == body.line)
                return [one for one in talk if self._is_own(one)]

    def _is_own(self, one: Comment | Review) -> bool:
        return one.author.lower() == self._github.login.lower()


@answering
async def open_issue_with(github: GitHub, repo: Repo, text: str) -> ApiResult[Issue | None]:
    """Return the oldest open issue of a repository whose text holds `text`; None if none does.

    If GitHub lists who may push, only issues by those accounts count; otherwise issues by anybody.
    """
    listed = (await github.list_issues(repo, limit=_OPEN_LOOKED_AT)).or_raise()
    found = [one for one in reversed(listed) if text in one.body and not one.is_pull_request]
    pushers = {one.id for one in (await github.repositories.pushers(repo)).or_raise()} if found else set()
    return Ok(next((one for one in found if not pushers or one.author_id in pushers), None))


def _same(one: Written, body: WithWords) -> bool:
    if isinstance(one, Issue) and isinstance(body, IssueBody):
        return one.state == "open" and normalized_title(one.title) == normalized_title(body.title)
    if isinstance(one, Review) and isinstance(body, ReviewBody):
        elsewhere = body.commit_id and body.commit_id != one.commit_id
        return one.state == _STATES[body.event] and not elsewhere and _alike(one, body.body)
    return isinstance(one, Comment) and isinstance(body, IssueCommentBody) and _alike(one, body.body)


def _alike(one: Written, words: str) -> bool:
    return " ".join(_MARK.sub("", one.body).split()) == " ".join(words.split())


def _sent(one: Written) -> Sent:
    if isinstance(one, Issue):
        return Sent(one.html_url, "issue", str(one.number))
    return Sent(one.html_url, "comment", str(one.id))


IssueChange = IssueUpdateBody | LabelBody | AssigneeBody | ReactionBody | CommentDeletionBody


class IssueChangeSender(ChangeSender[IssueChange]):
    """Sends intents of the kinds `issue_update`, `label`, `assignee`, `reaction` and `comment_deletion`.

    The id of a result is the number of the issue.
    """

    bodies = (IssueUpdateBody, LabelBody, AssigneeBody, ReactionBody, CommentDeletionBody)

    async def _look(self, intent: Intent, body: IssueChange, *, departs: bool) -> Sent | None:
        if isinstance(body, ReactionBody | CommentDeletionBody):
            return None  # NOTE(self): repeating a reaction or a deletion changes nothing
        issue = (await self._github.get_issue(repo_of(body), body.number)).or_raise()
        match body:
            case IssueUpdateBody():
                text = _new_text(issue, body)
                done = _is_updated(issue, body, text if isinstance(text, str) else text.or_raise())
                if departs and not done and body.last_comment is not None and await self._is_answered(body):
                    CHANGED.or_raise()
            case LabelBody():
                has = folded(issue.labels)
                done = folded(body.add) <= has and not folded(body.remove) & has
            case AssigneeBody():
                has, leaving = folded(issue.assignees), body.remove.lower()
                done = folded(body.add) <= has and (leaving not in has or has == {leaving})
        return sent(issue) if done else None

    async def _do(self, intent: Intent, body: IssueChange) -> Sent:
        match body:
            case IssueUpdateBody():
                return await self._update(body)
            case LabelBody():
                await self._label(body)
            case AssigneeBody():
                await self._assign(body)
            case ReactionBody():
                (await self._github.add_reaction(repo_of(body), body.number, body.reaction)).or_raise()
            case CommentDeletionBody():
                (await self._github.delete_comment(repo_of(body), body.comment_id)).or_raise()
        return Sent(f"{self._github.page(repo_of(body))}/issues/{body.number}", "issue", str(body.number))

    async def _is_answered(self, body: IssueUpdateBody) -> bool:
        """Return whether somebody else commented after the last comment that was read."""
        comments = (await self._github.list_comments(repo_of(body), body.number)).or_raise()
        login, last = self._github.login.lower(), body.last_comment or 0
        return any(one.id > last and one.author.lower() != login for one in comments)

    async def _update(self, body: IssueUpdateBody) -> Sent:
        github, repo, number = self._github, repo_of(body), body.number
        update = partial(
            github.update_issue,
            repo,
            number,
            title=body.title,
            state=body.state,
            labels=body.labels,
            assignees=body.assignees,
        )
        done = (
            await rewrite(
                github,
                (repo, number),
                lambda: github.get_issue(repo, number),
                lambda issue: _new_text(issue, body),
                lambda text: update(body=text),
                always=True,
            )
            if body.body or body.tasks
            else await update()
        )
        return sent(done.or_raise())

    async def _label(self, body: LabelBody) -> None:
        repo = repo_of(body)
        if body.add:
            (await self._github.add_labels(repo, body.number, body.add)).or_raise()
        for name in body.remove:
            (await self._github.remove_label(repo, body.number, name)).or_raise()

    async def _assign(self, body: AssigneeBody) -> None:
        repo = repo_of(body)
        if body.add:
            added = (await self._github.add_assignees(repo, body.number, body.add)).or_raise()
            if not folded(body.add) <= folded(added.assignees):
                Err("GitHub does not let all of them be assigned", "invalid").or_raise()
        if body.remove:
            (await self._github.remove_assignee(repo, body.number, body.remove)).or_raise()


def _new_text(issue: Issue, body: IssueUpdateBody) -> str | Err:
    """Return the new text of the issue, "" for no change; an error if its text is not as expected."""
    if not body.tasks:
        known = {body.over, body_digest(body.body)}
        return CHANGED if body.over and body_digest(issue.body) not in known else body.body
    text = add_tasks_to_plan_body(issue.body, issue.title, body.tasks)
    if text is None or (text != issue.body and issue.state == "closed"):
        return OvertakenErr("the plan is closed, or takes no more tasks", "invalid")
    return text


def _is_updated(issue: Issue, body: IssueUpdateBody, text: str) -> bool:
    wanted = (
        (body.title, fit_title(body.title) == issue.title),
        (text.strip(), body_digest(text) == body_digest(issue.body)),
        (body.state is not None, body.state == issue.state),
        (body.labels is not None, folded(body.labels or ()) == folded(issue.labels)),
        (body.assignees is not None, folded(body.assignees or ()) == folded(issue.assignees)),
    )
    return all(stands for given, stands in wanted if given)


CodeChange = PullRequestBody | ReviewRequestBody | MergeBody | RefBody | ContentsBody | RepositoryBody
_NOT_THERE_YET = Err("GitHub accepted the update and does not show it yet", "unknown_outcome")
_OF_EARLIER = Err("only earlier versions did that", "invalid")
_PULLS_LOOKED_AT = 20
_MERGE_METHODS: tuple[MergeMethod, ...] = ("squash", "merge", "rebase")
_REFUSED_MERGE = 405
_METHOD_IS_OFF = "not allowed"
"""Part of GitHub's message if a repository or a rule of it forbids a merge method; the status is 405 as always."""


class CodeChangeSender(ChangeSender[CodeChange]):
    """Sends intents of the kinds `pull_request`, `review_request`, `merge`, `ref`, `contents` and `repository`."""

    bodies = (PullRequestBody, ReviewRequestBody, MergeBody, RefBody, ContentsBody, RepositoryBody)

    async def _look(self, intent: Intent, body: CodeChange, *, departs: bool) -> Sent | None:
        match body:
            case PullRequestBody():
                return await self._look_for_pull(intent, body)
            case ReviewRequestBody() | MergeBody():
                return await self._look_at_pull(body, departs=departs)
            case RefBody(action="delete"):
                return await self._look_for_deleted(body)
            case RefBody():
                return _OF_EARLIER.or_raise()
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
                return await self._delete_branch(body)
            case ContentsBody():
                return await self._write_file(body)
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

    async def _look_at_pull(self, body: ReviewRequestBody | MergeBody, *, departs: bool) -> Sent | None:
        """Look at the pull request; a merge that departs is refused if somebody asked for changes meanwhile."""
        pull = (await self._github.pulls.get(repo_of(body), body.number)).or_raise()
        if isinstance(body, ReviewRequestBody):
            asked = folded(tuple(one.login for one in pull.requested_reviewers))
            return sent(pull) if folded(body.reviewers) <= asked else None
        if pull.merged:
            return Sent(pull.html_url, "commit", pull.merge_commit_sha)
        if pull.state == "closed":
            _CLOSED.or_raise()
        if body.head_sha and body.head_sha != pull.head.sha:
            CHANGED.or_raise()
        if departs and (by := await self._objector(body)):
            OvertakenErr(f"@{by} asked for changes since it was proposed", "invalid").or_raise()
        return None

    async def _objector(self, body: MergeBody) -> str:
        """Return the login of one of those who may push who asked for changes since it was proposed, or ""."""
        pulls, repositories, repo = self._github.pulls, self._github.repositories, repo_of(body)
        last = latest_verdicts((await pulls.reviews(repo, body.number)).or_raise()).values()
        asking = [one for one in last if one.state == "CHANGES_REQUESTED" and one.id > body.last_review]
        pushers = {one.id for one in (await repositories.pushers(repo)).or_raise()} if asking else set[int]()
        return next((one.author for one in asking if one.author_id in pushers), "")

    async def _merge(self, body: MergeBody) -> Sent:
        """Merge it by the requested method, else by the first other one that is allowed, else by the merge queue."""
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
        """Add the pull request to the merge queue, unless it is in it already."""
        pulls, repo = self._github.pulls, repo_of(body)
        joined = await pulls.enqueue(repo, body.number, head_sha=body.head_sha)
        if not joined.success and await pulls.queue(repo, body.number) != Ok("in"):
            joined.or_raise()
        return Sent(f"{self._github.page(repo)}/pull/{body.number}", "queue", body.head_sha)

    async def _has_queue(self, body: MergeBody) -> bool:
        """Return whether the base branch has a merge queue; False if GitHub will not say."""
        queue = await self._github.pulls.queue(repo_of(body), body.number)
        return queue.or_else("none", *LASTING) != "none"

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

    async def _delete_branch(self, body: RefBody) -> Sent:
        (await self._github.refs.delete(repo_of(body), body.branch)).or_raise()
        return Sent(self._tree(body))

    async def _look_at_file(self, body: ContentsBody) -> Sent | None:
        if not body.is_new_file:
            _OF_EARLIER.or_raise()
        listed = await self._github.contents.list(repo_of(body), body.path)
        found = listed.or_else(None, "not_found") or ()
        stands = next((one.sha for one in found if one.path == body.path), "")
        if stands == blob_sha(body.content):
            return Sent(self._github.page(repo_of(body)), "file", stands)
        return CHANGED.or_raise() if stands else None

    async def _write_file(self, body: ContentsBody) -> Sent:
        repo = repo_of(body)
        done = await self._github.contents.write(repo, body.path, body.content, message=body.message)
        return Sent(self._github.page(repo), "file", done.or_raise().sha)

    async def _look_for_repository(self, body: RepositoryBody) -> Sent | None:
        found = (await self._github.get_repository(repo_of(body))).or_else(None, "not_found")
        return _made(found) if found else None

    async def _look_for_another(self, body: RepositoryBody) -> None:
        """Raise if the repository's owner already has one whose name begins with `only_one`."""
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

    def _tree(self, body: RefBody) -> str:
        return f"{self._github.page(repo_of(body))}/tree/{quote(body.branch)}"


def _is_method_off(done: ApiResult[Merge]) -> bool:
    """Return whether GitHub refused a merge because of its method, so that another one may be tried."""
    return isinstance(done, Err) and done.status == _REFUSED_MERGE and _METHOD_IS_OFF in done.error.lower()


def blob_sha(content: str) -> str:
    """Return the hash of a file in Git, in hexadecimal digits."""
    data = content.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _made(repository: Repository) -> Sent:
    return Sent(repository.html_url, "repository", repository.full_name)


class BranchUpdateSender(ChangeSender[BranchUpdateBody]):
    """Sends intents of the kind `branch_update`. The id of a result is the commit that the update made."""

    bodies = (BranchUpdateBody,)

    async def _look(self, intent: Intent, body: BranchUpdateBody, *, departs: bool) -> Sent | None:
        """Look for the merge commit of an update: its first parent is the commit that was updated."""
        repo = repo_of(body)
        pull = (await self._github.pulls.get(repo, body.number)).or_raise()
        if pull.state == "closed":
            _CLOSED.or_raise()
        if pull.head.sha == body.head_sha:
            return None
        commit = (await self._github.refs.commit(repo, pull.head.sha)).or_raise()
        is_update = len(commit.parents) > 1 and commit.parents[0] == body.head_sha
        return Sent(pull.html_url, "commit", pull.head.sha) if is_update else CHANGED.or_raise()

    async def _do(self, intent: Intent, body: BranchUpdateBody) -> Sent:
        (await self._github.pulls.update_branch(repo_of(body), body.number, head_sha=body.head_sha)).or_raise()
        return await self._look(intent, body, departs=False) or _NOT_THERE_YET.or_raise()


class LikingSender(ChangeSender[StarBody | AccountFollowBody]):
    """Sends intents of the kinds `star` and `account_follow`, which change nothing if repeated."""

    bodies = (StarBody, AccountFollowBody)

    async def _look(self, intent: Intent, body: StarBody | AccountFollowBody, *, departs: bool) -> None:
        return None

    async def _do(self, intent: Intent, body: StarBody | AccountFollowBody) -> Sent:
        repo = repo_of(body)
        if isinstance(body, StarBody):
            done, url = await self._github.repositories.star(repo), self._github.page(repo)
        else:
            done, url = await self._github.accounts.follow(body.login), f"{self._github.address}/{body.login}"
        done.or_raise()
        return Sent(url)


def github_senders(identity: RepositoryIdentity) -> dict[IntentKind, Sender]:
    """Return the senders by kind of intent, except pushes."""
    kinds = (GitHubSender, IssueChangeSender, CodeChangeSender, BranchUpdateSender, LikingSender)
    return {body.kind: sender for sender in (kind(identity) for kind in kinds) for body in sender.bodies}
