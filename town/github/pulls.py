"""The rules of pull requests: who may open, review and merge one, and what follows. No HTTP; one function uses Git.

Pull requests follow their branches, whether those change through the API or by a push.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from town.github.network import GitHubNetwork
from town.github.values import (
    GitHubAccount,
    GitHubEvent,
    Refusal,
    ReviewState,
    StoredLineComment,
    StoredPull,
    StoredRepo,
    StoredReview,
    not_found,
    unprocessable,
)

ReviewEvent = Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
REVIEW_STATES: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}
_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? #(\d{1,9})\b", re.IGNORECASE)


def find(repo: StoredRepo, number: int) -> StoredPull:
    """Return a pull request. Raises `Refusal`."""
    if number not in repo.pulls:
        raise not_found()
    return repo.pulls[number]


def open_pull(
    network: GitHubNetwork,
    repo: StoredRepo,
    author: GitHubAccount,
    *,
    title: str,
    body: str | None,
    refs: tuple[str, str],
    commits: tuple[str, str],
    draft: bool,
    fork: StoredRepo | None = None,
) -> StoredPull:
    """Open a pull request; `refs` and `commits` are those of its base and its head. Raises `Refusal`.

    Its head is in `fork`, if that is given; from a fork anybody may open one.
    """
    base_ref, head_ref = refs
    if any(one.is_open and (one.base_ref, one.head_ref, one.fork) == (*refs, fork) for one in repo.pulls.values()):
        message = f"A pull request already exists for {repo.owner.login}:{head_ref}."
        raise unprocessable("PullRequest", "head", "custom", message=message)
    if not repo.has_pulls or not (fork or network.may_push(repo, author)):
        raise Refusal(403, "Pull request creation is limited on this repository.")
    issue = network.open_issue(repo, author, title=title, body=body, is_pull=True)
    repo.pulls[issue.number] = StoredPull(issue, head_ref, base_ref, commits[1], commits[0], draft, fork=fork)
    network.tell(GitHubEvent("pull_opened", repo.full_name, issue.number, author.login))
    return repo.pulls[issue.number]


def change_pull(pull: StoredPull, *, base_ref: str | None) -> None:
    """Set the base branch of a pull request, while it is open."""
    if base_ref and pull.is_open:
        pull.base_ref = base_ref


# Reviews


def submit_review(
    network: GitHubNetwork,
    repo: StoredRepo,
    pull: StoredPull,
    author: GitHubAccount,
    *,
    event: str,
    body: str,
    commit: str,
    has_comments: bool = False,
) -> StoredReview:
    """Create a review, pending if `event` is "". Raises `Refusal`.

    One with comments on lines is announced only by `tell_review`, so that those whom they mention are notified too.
    """
    network.check_writable(repo)
    _check_event(pull, author, event, is_empty=not body.strip() and not (has_comments and event == "COMMENT"))
    state = REVIEW_STATES[event] if event else "PENDING"
    if state == "PENDING" and any(one.state == "PENDING" and one.author == author for one in pull.reviews):
        raise Refusal(422, "Unprocessable Entity", ("User can only have one pending review",))
    review = StoredReview(network.new_id(), author, state, body, commit, network.clock.now() if event else None)
    pull.reviews.append(review)
    if not has_comments:
        tell_review(network, repo, pull, review)
    return review


def finish_review(
    network: GitHubNetwork, repo: StoredRepo, pull: StoredPull, review: StoredReview, *, event: str, body: str
) -> None:
    """Submit a pending review. Raises `Refusal`."""
    if review.state != "PENDING":
        raise Refusal(422, "Unprocessable Entity", ("Review is already submitted",))
    text = body or review.body
    has_comments = any(one.review_id == review.id for one in pull.line_comments)
    _check_event(pull, review.author, event, is_empty=not text.strip() and not (has_comments and event == "COMMENT"))
    review.state, review.body, review.submitted_at = REVIEW_STATES[event], text, network.clock.now()
    tell_review(network, repo, pull, review)


def find_review(pull: StoredPull, review_id: int, viewer: GitHubAccount | None) -> StoredReview:
    """Return a review that `viewer` may see; only its author sees a pending one. Raises `Refusal`."""
    for review in pull.reviews:
        if review.id == review_id and (review.state != "PENDING" or review.author == viewer):
            return review
    raise not_found()


def dismiss(
    network: GitHubNetwork, repo: StoredRepo, pull: StoredPull, review: StoredReview, by: GitHubAccount
) -> None:
    """Dismiss an approval or a request for changes. Raises `Refusal`."""
    if not network.may_push(repo, by):
        raise Refusal(403, "Resource not accessible by personal access token")
    if review.state not in {"APPROVED", "CHANGES_REQUESTED"}:
        raise Refusal(422, "Unprocessable Entity", ("Can not dismiss a commented pull request review",))
    review.state = "DISMISSED"
    network.touch(repo, pull.issue, by)


def comment_line(
    network: GitHubNetwork,
    repo: StoredRepo,
    pull: StoredPull,
    author: GitHubAccount,
    *,
    review: StoredReview,
    body: str,
    place: tuple[str, int],
    commit: str,
    patches: Mapping[str, str],
    in_reply_to: int | None = None,
) -> StoredLineComment:
    """Write a comment on a line: `place` is its path and its number in the new file. Raises `Refusal`."""
    path, line = place
    if not body.strip():
        raise unprocessable("PullRequestReviewComment", "body", "missing_field")
    if path not in patches:
        raise unprocessable("PullRequestReviewComment", "path", "invalid", message="Path could not be resolved")
    hunk = hunk_of(patches[path], line)
    if not hunk:
        message = "Line could not be resolved"
        raise unprocessable("PullRequestReviewComment", "line", "invalid", message=message)
    now = network.clock.now()
    comment = StoredLineComment(network.new_id(), review.id, author, body, path, line, commit, hunk, now, in_reply_to)
    pull.line_comments.append(comment)
    network.touch(repo, pull.issue, author)
    return comment


def hunk_of(patch: str, line: int) -> str:
    """Return the hunk that holds a line of the new file, down to that line; "" if no hunk does."""
    hunks = re.split(r"^(?=@@ )", patch, flags=re.MULTILINE)
    found = ((hunk, position) for hunk in hunks if (position := position_of(hunk, line)))
    return next(("\n".join(hunk.split("\n")[: position + 1]) for hunk, position in found), "")


def position_of(hunk: str, line: int) -> int:
    """Return how many lines below its head a line of the new file is in a hunk, 0 if it is not there."""
    head = _HUNK.match(hunk)
    number = int(head[1]) - 1 if head else line
    for position, text in enumerate(hunk.rstrip("\n").split("\n")[1:], 1):
        number += text.startswith(("+", " "))
        if number == line and text.startswith(("+", " ")):
            return position
    return 0


_HUNK = re.compile(r"@@ -\d{1,9}(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@")


def request_reviewers(
    network: GitHubNetwork, repo: StoredRepo, pull: StoredPull, by: GitHubAccount, logins: Sequence[str]
) -> None:
    """Request a review from accounts that may push. Raises `Refusal`."""
    if not network.may_push(repo, by) and by != pull.issue.author:
        raise Refusal(403, "Resource not accessible by personal access token")
    asked = []
    for login in logins:
        account = network.find(login)
        if account is not None and account == pull.issue.author:
            raise Refusal(422, "Review cannot be requested from pull request author.")
        if account is None or not network.may_push(repo, account):
            message = "Reviews may only be requested from collaborators. One or more of the users or teams you"
            raise Refusal(422, f"{message} specified is not a collaborator of the {repo.full_name} repository.")
        asked.append(account)
    newly = [account for account in asked if account not in pull.requested]
    pull.requested = list({account.login: account for account in (*pull.requested, *asked)}.values())
    if newly:
        network.notify(repo, pull.issue, by, requested=newly)
    network.touch(repo, pull.issue, by)


def drop_reviewers(
    network: GitHubNetwork, repo: StoredRepo, pull: StoredPull, by: GitHubAccount, logins: Sequence[str]
) -> None:
    """Withdraw requests for a review. Raises `Refusal`."""
    if not network.may_push(repo, by) and by != pull.issue.author:
        raise Refusal(403, "Resource not accessible by personal access token")
    gone = {login.lower() for login in logins}
    pull.requested = [account for account in pull.requested if account.login.lower() not in gone]
    network.touch(repo, pull.issue, by)


def _check_event(pull: StoredPull, author: GitHubAccount, event: str, *, is_empty: bool) -> None:
    if event and event not in REVIEW_STATES:
        raise unprocessable("PullRequestReview", "event", "invalid")
    if event in {"REQUEST_CHANGES", "COMMENT"} and is_empty:
        raise Refusal(422, "Unprocessable Entity", ("Body is required",))
    if event in {"APPROVE", "REQUEST_CHANGES"}:
        verb = "approve" if event == "APPROVE" else "request changes on"
        if author == pull.issue.author:
            raise Refusal(422, "Unprocessable Entity", (f"Can not {verb} your own pull request",))
        if not pull.is_open:
            raise Refusal(422, "Unprocessable Entity", (f"Can not {verb} a closed pull request",))


def tell_review(network: GitHubNetwork, repo: StoredRepo, pull: StoredPull, review: StoredReview) -> None:
    """Notify participants, and those whom the review or its line comments mention; of a pending review nobody."""
    if review.state == "PENDING":
        return
    pull.requested = [account for account in pull.requested if account != review.author]
    pull.issue.updated_at = network.clock.now()
    said = (review.body, *(one.body for one in pull.line_comments if one.review_id == review.id))
    network.notify(repo, pull.issue, review.author, text="\n\n".join(said))
    network.tell(GitHubEvent("pull_reviewed", repo.full_name, pull.number, review.author.login))


def delete_line_comment(network: GitHubNetwork, repo: StoredRepo, comment_id: int, by: GitHubAccount) -> None:
    """Delete a comment on a line; its author may, and whoever may push. Raises `Refusal`."""
    pull, comment = find_line_comment(repo, comment_id)
    if comment.author != by and not network.may_push(repo, by):
        raise Refusal(403, "Resource not accessible by personal access token")
    pull.line_comments.remove(comment)
    network.touch(repo, pull.issue, by)


def find_line_comment(repo: StoredRepo, comment_id: int) -> tuple[StoredPull, StoredLineComment]:
    """Return a comment on a line, and its pull request. Raises `Refusal`."""
    for pull in repo.pulls.values():
        for comment in pull.line_comments:
            if comment.id == comment_id:
                return pull, comment
    raise not_found()


# Merging and changed branches


def check_mergeable(repo: StoredRepo, pull: StoredPull, *, method: str, head: str | None) -> None:
    """Raise `Refusal` if it cannot be merged, whatever it changes; `head` is the head that the caller expects."""
    if method not in {"merge", "squash", "rebase"}:
        raise unprocessable("PullRequest", "merge_method", "invalid")
    if not pull.is_open or pull.merged_at:
        raise Refusal(405, "Pull Request is not mergeable")
    if pull.draft:
        raise Refusal(405, "Pull Request is still a draft")
    if repo.has_merge_queue:
        raise Refusal(405, "Changes must be made through the merge queue")
    if method == "rebase":
        raise Refusal(405, "Rebase merges are not allowed on this repository.")
    if head and head != pull.head:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")


def set_merged(network: GitHubNetwork, repo: StoredRepo, pull: StoredPull, by: GitHubAccount, commit: str) -> None:
    """Mark it as merged by this commit; close the issues that it closes if it went to the default branch."""
    pull.merged_at, pull.merged_by, pull.merge_commit = network.clock.now(), by, commit
    network.set_state(pull.issue, by, "closed")
    pull.issue.state_reason = None
    network.notify(repo, pull.issue, by)
    pull.issue.updated_at = pull.merged_at
    if pull.base_ref == repo.default_branch:
        for number in dict.fromkeys(map(int, _CLOSES.findall(pull.issue.body or ""))):
            issue = repo.issues.get(number)
            if issue and issue.state == "open" and not issue.is_pull:
                network.set_state(issue, by, "closed")
                network.touch(repo, issue, by)
    network.tell(GitHubEvent("pull_merged", repo.full_name, pull.number, by.login))


def follow_refs(
    network: GitHubNetwork, repo: StoredRepo, refs: Mapping[str, str], by: GitHubAccount
) -> list[StoredPull]:
    """Update heads and bases to the branches; close what has lost its branch. Return open ones with a new head."""
    moved = []
    for pull in repo.pulls.values():
        if not pull.is_open:
            continue
        head = pull.head if pull.fork else refs.get(f"refs/heads/{pull.head_ref}")
        base = refs.get(f"refs/heads/{pull.base_ref}")
        pull.base = base or pull.base
        if head is None or base is None:
            network.set_state(pull.issue, by, "closed")
            network.touch(repo, pull.issue, by)
        elif head != pull.head:
            pull.head, pull.queued_at = head, None
            for review in pull.reviews if repo.dismisses_stale else ():
                if review.state == "APPROVED":
                    review.state = "DISMISSED"
            network.touch(repo, pull.issue, by)
            moved.append(pull)
    return moved


_HEADS = "refs/heads/"


async def after_push(network: GitHubNetwork, repo: StoredRepo, by: GitHubAccount) -> None:
    """Update the open pull requests of a repository after its branches changed, and tell listeners.

    One whose commits are now in its base is merged, one whose branch is gone is closed.
    """
    git = network.git(repo)
    refs = await git.refs()
    for pull in [pull for pull in repo.pulls.values() if pull.is_open]:
        base, head = refs.get(f"{_HEADS}{pull.base_ref}"), refs.get(f"{_HEADS}{pull.head_ref}")
        if base and head and base != pull.base and await git.merge_base(base, head) == head and pull.is_open:
            set_merged(network, repo, pull, by, base)
    for pull in follow_refs(network, repo, refs, by):
        await git.point(f"refs/pull/{pull.number}/head", pull.head)
    repo.pushed_at = network.clock.now()
    network.tell(GitHubEvent("pushed", repo.full_name, 0, by.login))
