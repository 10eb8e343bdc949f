"""Pull requests and reviews in the words of GitHub's interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from town.github.git_values import ChangedFile
from town.github.pulls import position_of
from town.github.values import Json, StoredLineComment, StoredPull, StoredRepo, StoredReview
from town.github.views import GitHubViews, association, moment, node_id, reaction_counts


@dataclass(frozen=True, slots=True)
class PullFacts:
    """What is counted for a pull request that is shown by itself; `mergeable` is None while it is not computed."""

    commits: int
    files: Sequence[ChangedFile]
    mergeable: bool | None
    is_unstable: bool = False
    is_behind: bool = False


class PullViews:
    """The views of one repository."""

    def __init__(self, views: GitHubViews, repo: StoredRepo) -> None:
        self._views = views
        self._repo = repo
        self._api = f"{views.base}/repos/{repo.full_name}"
        self._page = f"{views.base}/{repo.full_name}"

    def short(self, pull: StoredPull) -> Json:
        """A pull request in a list."""
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
        """A pull request by itself."""
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
        """A review."""
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
        """A comment on a line."""
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
