"""Pull requests and reviews: one function for each operation of the API, with GitHub's messages.

The functions wait for Git before they decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from town.github import bodies, pulls
from town.github.check_methods import is_unstable
from town.github.git_methods import pushing, signed, views_of
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.pulls import after_push, position_of
from town.github.repository import ChangedFile, Signature
from town.github.values import (
    GitHubAccount,
    Json,
    Refusal,
    StoredLineComment,
    StoredPull,
    StoredRepo,
    StoredReview,
    not_found,
    unprocessable,
)
from town.github.views import GitHubViews, association, moment, node_id, reaction_counts


@dataclass(frozen=True, slots=True)
class PullFacts:
    """Computed facts for a pull request shown by itself; `mergeable` is None until it is computed."""

    commits: int
    files: Sequence[ChangedFile]
    mergeable: bool | None
    is_unstable: bool = False
    is_behind: bool = False


class PullViews:
    """Renders the pull requests of one repository."""

    def __init__(self, views: GitHubViews, repo: StoredRepo) -> None:
        self._views = views
        self._repo = repo
        self._api = f"{views.base}/repos/{repo.full_name}"
        self._page = f"{views.base}/{repo.full_name}"

    def short(self, pull: StoredPull) -> Json:
        """Return a pull request as shown in a list."""
        issue, url = pull.issue, f"{self._api}/pulls/{pull.number}"
        shown = self._views.issue(self._repo, issue)
        page, issue_url, statuses = shown["html_url"], shown["url"], f"{self._api}/statuses/{pull.head}"
        kept = ("number", "state", "locked", "title", "user", "body", "created_at", "updated_at", "closed_at", "labels")
        more = ("assignee", "assignees", "milestone", "active_lock_reason", "author_association")
        links = {
            "self": url,
            "html": page,
            "issue": issue_url,
            "comments": f"{issue_url}/comments",
            "review_comments": f"{url}/comments",
            "review_comment": f"{self._api}/pulls/comments{{/number}}",
            "commits": f"{url}/commits",
            "statuses": statuses,
        }
        return {
            "url": url,
            "id": issue.id,
            "node_id": node_id("PullRequest", issue.id),
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "issue_url": issue_url,
            **{name: shown[name] for name in (*kept, *more)},
            "merged_at": moment(pull.merged_at) if pull.merged_at else None,
            "merge_commit_sha": pull.merge_commit,
            "requested_reviewers": [self._views.user(account) for account in pull.requested],
            "requested_teams": [],
            "draft": pull.draft,
            "commits_url": f"{url}/commits",
            "review_comments_url": f"{url}/comments",
            "review_comment_url": f"{self._api}/pulls/comments{{/number}}",
            "comments_url": f"{issue_url}/comments",
            "statuses_url": statuses,
            "head": self._end(pull.head_ref, pull.head, pull.fork or self._repo),
            "base": self._end(pull.base_ref, pull.base, self._repo),
            "_links": {name: {"href": href} for name, href in links.items()},
            "auto_merge": None,
        }

    def pull(self, pull: StoredPull, facts: PullFacts) -> Json:
        """Return a pull request as shown by itself."""
        return {
            **self.short(pull),
            "merged": pull.merged_at is not None,
            "mergeable": facts.mergeable,
            "rebaseable": False if pull.is_open else None,
            "mergeable_state": _state(pull, facts),
            "merged_by": self._views.user(pull.merged_by) if pull.merged_by else None,
            "comments": len(pull.issue.comments),
            "review_comments": len(pull.line_comments),
            "maintainer_can_modify": False,
            "commits": facts.commits,
            "additions": sum(file.additions for file in facts.files),
            "deletions": sum(file.deletions for file in facts.files),
            "changed_files": len(facts.files),
        }

    def review(self, pull: StoredPull, review: StoredReview) -> Json:
        """Return a review."""
        page, url = f"{self._page}/pull/{pull.number}", f"{self._api}/pulls/{pull.number}"
        html_url = f"{page}#pullrequestreview-{review.id}"
        shown: Json = {
            "id": review.id,
            "node_id": node_id("PullRequestReview", review.id),
            "user": self._views.user(review.author),
            "body": review.body,
            "state": review.state,
            "html_url": html_url,
            "pull_request_url": url,
            "_links": {"html": {"href": html_url}, "pull_request": {"href": url}},
            "commit_id": review.commit,
            "author_association": association(self._repo, review.author),
        }
        if review.submitted_at:
            shown["submitted_at"] = moment(review.submitted_at)
        return shown

    def line_comment(self, pull: StoredPull, comment: StoredLineComment) -> Json:
        """Return a comment on a line."""
        url, pull_url = f"{self._api}/pulls/comments/{comment.id}", f"{self._api}/pulls/{pull.number}"
        page = f"{self._page}/pull/{pull.number}#discussion_r{comment.id}"
        return {
            "url": url,
            "pull_request_review_id": comment.review_id,
            "id": comment.id,
            "node_id": node_id("PullRequestReviewComment", comment.id),
            "diff_hunk": comment.hunk,
            "path": comment.path,
            "commit_id": comment.commit,
            "original_commit_id": comment.commit,
            **({"in_reply_to_id": comment.in_reply_to} if comment.in_reply_to else {}),
            "user": self._views.user(comment.author),
            "body": comment.body,
            "created_at": moment(comment.created_at),
            "updated_at": moment(comment.created_at),
            "html_url": page,
            "pull_request_url": pull_url,
            "author_association": association(self._repo, comment.author),
            "_links": {"self": {"href": url}, "html": {"href": page}, "pull_request": {"href": pull_url}},
            "reactions": reaction_counts([], f"{url}/reactions"),
            "position": position_of(comment.hunk, comment.line),
            "original_position": position_of(comment.hunk, comment.line),
            "line": comment.line,
            "original_line": comment.line,
            "side": "RIGHT",
            "subject_type": "line",
        }

    def _end(self, ref: str, sha: str, repo: StoredRepo) -> Json:
        owner = repo.owner
        return {
            "label": f"{owner.login}:{ref}",
            "ref": ref,
            "sha": sha,
            "user": self._views.user(owner),
            "repo": self._views.repo(repo),
        }


def _state(pull: StoredPull, facts: PullFacts) -> str:
    if facts.mergeable is None:
        return "unknown"
    if not facts.mergeable:
        return "dirty"
    if pull.draft:
        return "draft"
    if facts.is_behind:
        return "behind"
    return "unstable" if facts.is_unstable else "clean"


QUEUE_WAIT = timedelta(minutes=5)
"""How long a pull request stays in a merge queue before it is merged."""
_HEADS = "refs/heads/"


def _views(call: GitHubCall) -> PullViews:
    return PullViews(call.views, call.repo)


def _pull(call: GitHubCall) -> StoredPull:
    return pulls.find(call.repo, call.path["number"])


async def _alone(call: GitHubCall, pull: StoredPull, *, compute: bool = True) -> Json:
    """Return a pull request as shown by itself; `compute` says whether to compute first if it can be merged."""
    git = call.git
    start = await git.merge_base(pull.base, pull.head)
    files = await git.changes(start, pull.head) if start else []
    commits = await git.count(pull.head, start) if start else 0
    ends = (pull.base, pull.head)
    if compute and pull.is_open and (pull.mergeable is None or pull.mergeable[:2] != ends):
        pull.mergeable = (*ends, await git.merge_tree(*ends) is not None)
    known = pull.is_open and pull.mergeable is not None and pull.mergeable[:2] == ends
    mergeable = pull.mergeable[2] if known and pull.mergeable else None
    facts = PullFacts(commits, files, mergeable, is_unstable(call.repo, pull.head), await _is_behind(call, pull))
    return _views(call).pull(pull, facts)


async def _is_behind(call: GitHubCall, pull: StoredPull) -> bool:
    """Return whether the repository requires up-to-date branches and this one lacks the newest commit of its base."""
    return call.repo.needs_up_to_date and await call.git.merge_base(pull.base, pull.head) != pull.base


async def _list(call: GitHubCall) -> Answer:
    query = call.query
    state, head = query.get("state") or "open", query.get("head", "").rpartition(":")[2]
    found = [
        pull
        for pull in call.repo.pulls.values()
        if state in {"all", pull.issue.state}
        and head in {"", pull.head_ref}
        and query.get("base", "") in {"", pull.base_ref}
    ]
    by_update = query.get("sort") == "updated"
    found.sort(
        key=lambda pull: (pull.issue.updated_at if by_update else pull.issue.created_at, pull.number),
        reverse=query.get("direction", "desc" if not query.get("sort") else "asc") == "desc",
    )
    return call.page(found, _views(call).short)


async def _open(call: GitHubCall) -> Answer:
    writer, repo = call.writer, call.repo
    call.network.check_writable(repo)
    head = (bodies.text(call.body, "head", required=True) or "").removeprefix(f"{repo.owner.login}:")
    base = bodies.text(call.body, "base", required=True) or ""
    refs = await call.git.refs()
    for name, ref in (("base", base), ("head", head)):
        if f"{_HEADS}{ref}" not in refs:
            raise unprocessable("PullRequest", name, "invalid")
    ends = (refs[f"{_HEADS}{base}"], refs[f"{_HEADS}{head}"])
    if await call.git.merge_base(*ends) in {None, ends[1]}:
        message = f"No commits between {base} and {head}"
        raise unprocessable("PullRequest", "base", "custom", message=message)
    opened = pulls.open_pull(
        call.network,
        repo,
        writer,
        title=bodies.text(call.body, "title", required=True) or "",
        body=bodies.text(call.body, "body"),
        refs=(base, head),
        commits=ends,
        draft=call.body.get("draft") is True,
    )
    await call.git.point(f"refs/pull/{opened.number}/head", opened.head)
    return Answer(await _alone(call, opened, compute=False), 201)


async def _get(call: GitHubCall) -> Answer:
    await leave_queue(call)
    return Answer(await _alone(call, _pull(call)))


async def _change(call: GitHubCall) -> Answer:
    pull, base = _pull(call), bodies.text(call.body, "base")
    if base and f"{_HEADS}{base}" not in await call.git.refs():
        raise unprocessable("PullRequest", "base", "invalid")
    call.network.change_issue(
        call.repo,
        pull.issue,
        call.writer,
        title=bodies.text(call.body, "title"),
        body=bodies.text(call.body, "body"),
        state=bodies.state(call.body),
    )
    pulls.change_pull(pull, base_ref=base)
    await after_push(call.network, call.repo, call.writer)
    return Answer(await _alone(call, pull))


async def _files(call: GitHubCall) -> Answer:
    pull, git = _pull(call), call.git
    start = await git.merge_base(pull.base, pull.head)
    files = await git.changes(start, pull.head) if start else []
    views = views_of(call)
    return call.page(files, lambda file: views.file(file, pull.head))


async def _commits(call: GitHubCall) -> Answer:
    pull = _pull(call)
    found = await call.git.commits(pull.head, since=pull.base, oldest_first=True)
    views = views_of(call)
    return call.page(found, views.commit)


# Merging


async def _is_merged(call: GitHubCall) -> Answer:
    if _pull(call).merged_at is None:
        raise not_found()
    return Answer(None, 204)


async def _merge(call: GitHubCall) -> Answer:
    writer, repo = pushing(call)
    pull, method = _pull(call), bodies.text(call.body, "merge_method") or "merge"
    pulls.check_mergeable(repo, pull, method=method, head=bodies.text(call.body, "sha"))
    if await _is_behind(call, pull):
        raise Refusal(405, "Head branch is not up to date with the base branch")
    title, message = (bodies.text(call.body, f"commit_{name}") for name in ("title", "message"))
    commit = await _merge_now(call, pull, writer, method=method, title=title, message=message)
    return Answer({"sha": commit, "merged": True, "message": "Pull Request successfully merged"})


async def leave_queue(call: GitHubCall) -> None:
    """Merge the pull request if its time in the queue is over; if a check failed, only remove it from the queue."""
    pull = _pull(call)
    if pull.queued_at is None or call.network.clock.now() < pull.queued_at + QUEUE_WAIT:
        return
    by, pull.queued_at, pull.queued_by = pull.queued_by, None, None
    if by and not is_unstable(call.repo, pull.head):
        await _merge_now(call, pull, by, method="squash", title=None, message=None)


async def _merge_now(
    call: GitHubCall, pull: StoredPull, writer: GitHubAccount, *, method: str, title: str | None, message: str | None
) -> str:
    """Merge the pull request and return the commit. Raises `Refusal`."""
    git, repo, base, head = call.git, call.repo, pull.base, pull.head
    tree = await git.merge_tree(base, head)
    if tree is None:
        raise Refusal(405, "Pull Request is not mergeable")
    title = title or _merge_title(pull, method, repo.owner.login)
    if message is None:
        message = "" if method == "squash" else pull.issue.title
    parents = [base] if method == "squash" else [base, head]
    author = signed(call, pull.issue.author if method == "squash" else writer)
    site = Signature("GitHub", "noreply@github.com", author.at)
    commit = await git.write_commit(tree, parents, f"{title}\n\n{message}".strip() + "\n", author, site)
    if not await git.set_ref(f"{_HEADS}{pull.base_ref}", commit, old=base):
        raise Refusal(409, "Base branch was modified. Review and try the merge again.")
    pulls.set_merged(call.network, repo, pull, writer, commit)
    await after_push(call.network, repo, writer)
    return commit


def _merge_title(pull: StoredPull, method: str, owner: str) -> str:
    if method == "squash":
        return f"{pull.issue.title} (#{pull.number})"
    return f"Merge pull request #{pull.number} from {owner}/{pull.head_ref}"


async def _update_branch(call: GitHubCall) -> Answer:
    writer, repo = pushing(call)
    pull, expected = _pull(call), bodies.text(call.body, "expected_head_sha")
    base, head = pull.base, pull.head
    if expected and expected != head:
        raise Refusal(422, "expected head sha didn't match current head ref.")
    tree = await call.git.merge_tree(head, base)
    if tree is None:
        raise Refusal(422, "merge conflict between base and head")
    message = f"Merge branch '{pull.base_ref}' into {pull.head_ref}\n"
    commit = await call.git.write_commit(tree, [head, base], message, signed(call, writer))
    if not await call.git.set_ref(f"{_HEADS}{pull.head_ref}", commit, old=head):
        raise Refusal(422, "expected head sha didn't match current head ref.")
    await after_push(call.network, repo, writer)
    url = f"{call.views.base}/repos/{repo.full_name}/pulls/{pull.number}"
    return Answer({"message": "Updating pull request branch.", "url": url}, 202)


# Reviews


async def _reviews(call: GitHubCall) -> Answer:
    pull = _pull(call)
    found = [review for review in pull.reviews if review.state != "PENDING" or review.author == call.viewer]
    return call.page(found, lambda one: _views(call).review(pull, one))


async def _review(call: GitHubCall) -> Answer:
    pull = _pull(call)
    return Answer(_views(call).review(pull, pulls.find_review(pull, call.path["review_id"], call.viewer)))


async def _submit_review(call: GitHubCall) -> Answer:
    writer, pull = call.writer, _pull(call)
    given = call.body.get("comments") or []
    if not isinstance(given, list):
        raise Refusal(422, "Invalid request.\n\nFor 'properties/comments', that is not an array.")
    patches = await _patches(call, pull) if given else {}
    commit = bodies.text(call.body, "commit_id") or pull.head
    review = pulls.submit_review(
        call.network,
        call.repo,
        pull,
        writer,
        event=bodies.text(call.body, "event") or "",
        body=bodies.text(call.body, "body") or "",
        commit=commit,
        has_comments=bool(given),
    )
    try:
        for one in given:
            _comment_line(call, pull, review, one, patches)
    except Refusal:
        pull.reviews.remove(review)
        pull.line_comments = [one for one in pull.line_comments if one.review_id != review.id]
        raise
    if given:
        pulls.tell_review(call.network, call.repo, pull, review)
    return Answer(_views(call).review(pull, review))


async def _finish_review(call: GitHubCall) -> Answer:
    pull = _pull(call)
    review = pulls.find_review(pull, call.path["review_id"], call.writer)
    event = bodies.text(call.body, "event", required=True) or ""
    body = bodies.text(call.body, "body") or ""
    pulls.finish_review(call.network, call.repo, pull, review, event=event, body=body)
    return Answer(_views(call).review(pull, review))


async def _dismiss(call: GitHubCall) -> Answer:
    pull = _pull(call)
    review = pulls.find_review(pull, call.path["review_id"], call.writer)
    bodies.text(call.body, "message", required=True)
    pulls.dismiss(call.network, call.repo, pull, review, call.writer)
    return Answer(_views(call).review(pull, review))


async def _line_comments(call: GitHubCall) -> Answer:
    pull = _pull(call)
    review = call.path.get("review_id")
    found = [comment for comment in pull.line_comments if review in {None, comment.review_id}]
    found.sort(key=lambda one: one.id, reverse=bool(call.query.get("sort")) and call.query.get("direction") == "desc")
    return call.page(found, lambda comment: _views(call).line_comment(pull, comment))


async def _write_line_comment(call: GitHubCall) -> Answer:
    writer, pull = call.writer, _pull(call)
    patches, body = await _patches(call, pull), dict(call.body)
    answered = call.path.get("comment_id", body.get("in_reply_to"))
    if answered is not None:
        above = next((one for one in pull.line_comments if one.id == answered), None)
        if above is None:
            raise not_found()
        body |= {"path": above.path, "line": above.line, "in_reply_to": above.in_reply_to or above.id}
    review = pulls.submit_review(
        call.network, call.repo, pull, writer, event="COMMENT", body="", commit=pull.head, has_comments=True
    )
    try:
        comment = _comment_line(call, pull, review, body, patches)
    except Refusal:
        pull.reviews.remove(review)
        raise
    pulls.tell_review(call.network, call.repo, pull, review)
    return Answer(_views(call).line_comment(pull, comment), 201)


async def _line_comment(call: GitHubCall) -> Answer:
    return Answer(_views(call).line_comment(*pulls.find_line_comment(call.repo, call.path["comment_id"])))


async def _delete_line_comment(call: GitHubCall) -> Answer:
    pulls.delete_line_comment(call.network, call.repo, call.path["comment_id"], call.writer)
    return Answer(None, 204)


def _comment_line(
    call: GitHubCall, pull: StoredPull, review: StoredReview, body: object, patches: Mapping[str, str]
) -> StoredLineComment:
    fields: Json = body if isinstance(body, dict) else {}
    line = fields.get("line", fields.get("position"))
    if not isinstance(line, int):
        raise unprocessable("PullRequestReviewComment", "line", "missing_field")
    return pulls.comment_line(
        call.network,
        call.repo,
        pull,
        call.writer,
        review=review,
        body=bodies.text(fields, "body", required=True) or "",
        place=(bodies.text(fields, "path", required=True) or "", line),
        commit=bodies.text(fields, "commit_id") or review.commit,
        patches=patches,
        in_reply_to=fields.get("in_reply_to"),
    )


async def _patches(call: GitHubCall, pull: StoredPull) -> dict[str, str]:
    start = await call.git.merge_base(pull.base, pull.head)
    return {file.path: file.patch for file in await call.git.changes(start, pull.head)} if start else {}


async def _requested(call: GitHubCall) -> Answer:
    return Answer({"users": [call.views.user(account) for account in _pull(call).requested], "teams": []})


async def _request(call: GitHubCall) -> Answer:
    writer, pull = call.writer, _pull(call)
    pulls.request_reviewers(call.network, call.repo, pull, writer, bodies.names(call.body, "reviewers") or ())
    return Answer(_views(call).short(pull), 201)


async def _unrequest(call: GitHubCall) -> Answer:
    writer, pull = call.writer, _pull(call)
    pulls.drop_reviewers(call.network, call.repo, pull, writer, bodies.names(call.body, "reviewers") or ())
    return Answer(_views(call).short(pull))


_PULL = "/pulls/{number:int}"
_REVIEW = f"{_PULL}/reviews/{{review_id:int}}"
IN_REPO: dict[str, dict[str, Handler]] = {
    "/pulls": {"GET": _list, "POST": _open},
    _PULL: {"GET": _get, "PATCH": _change},
    f"{_PULL}/files": {"GET": _files},
    f"{_PULL}/commits": {"GET": _commits},
    f"{_PULL}/merge": {"GET": _is_merged, "PUT": _merge},
    f"{_PULL}/update-branch": {"PUT": _update_branch},
    f"{_PULL}/reviews": {"GET": _reviews, "POST": _submit_review},
    _REVIEW: {"GET": _review},
    f"{_REVIEW}/events": {"POST": _finish_review},
    f"{_REVIEW}/dismissals": {"PUT": _dismiss},
    f"{_REVIEW}/comments": {"GET": _line_comments},
    f"{_PULL}/comments": {"GET": _line_comments, "POST": _write_line_comment},
    f"{_PULL}/comments/{{comment_id:int}}/replies": {"POST": _write_line_comment},
    "/pulls/comments/{comment_id:int}": {"GET": _line_comment, "DELETE": _delete_line_comment},
    f"{_PULL}/requested_reviewers": {"GET": _requested, "POST": _request, "DELETE": _unrequest},
}
