"""What a reviewer knows besides the changes: the task, its own earlier review, and what the author said since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from adapters.github.client import GitHub
from adapters.github.line_comments import ReviewComment
from adapters.github.types import Comment, PullRequest, Repo, Review
from common.result import ApiResult, Ok, answering
from common.text.markdown import without_html_comments
from common.text.untrusted import legible
from modules.services.claims.plan_reading import PlanReader
from modules.services.plans.naming import parse_task_branch
from modules.services.plans.render import format_task_markdown
from modules.services.workspaces.pulls import plan_of
from modules.services.workspaces.trust import TrustedAccounts

_MOST_SAID = 3
_HUNK_LINES, _HUNK_CHARS = 8, 1_000


@dataclass(frozen=True, slots=True)
class Background:
    """What is known of a pull request besides its changes.

    Attributes:
        task: the task that it is for as its plan has it, with the goal of the plan; "" if it is for none.
        talk: what was asked about the task on its plan, and what people answered, oldest first.
        planner: who wrote that plan.
        verification: how one sees that the plan is done, a line each.
        earlier: our newest review of it, or None.
        lines: what reviews of it say of lines, that one's among them.
        said: what its author wrote in comments since then, oldest first.

    """

    task: str = ""
    talk: tuple[Comment, ...] = ()
    planner: str = ""
    verification: tuple[str, ...] = ()
    earlier: Review | None = None
    lines: tuple[ReviewComment, ...] = ()
    said: tuple[str, ...] = ()


@answering
async def read_background(
    github: GitHub, plans: PlanReader, trusted: TrustedAccounts, repo: Repo, pull: PullRequest
) -> ApiResult[Background]:
    """Read it from GitHub. The plan counts only if somebody wrote it whose words count."""
    task = (await _task(plans, trusted, repo, pull)).or_raise()
    reviews = (await github.pulls.reviews(repo, pull.number)).or_raise()
    comments = (await github.list_comments(repo, pull.number)).or_raise()
    own = [one for one in reviews if one.author_id == trusted.us.id and one.state != "PENDING"]
    since = own[-1].submitted_at if own else ""
    by_author = (one for one in comments if one.account == pull.account and one.created_at >= since)
    said = [without_html_comments(one.body).strip() for one in by_author]
    known = replace(task, said=tuple(said[-_MOST_SAID:]))
    if not own:
        return Ok(known)
    lines = (await github.pulls.review_comments(repo, pull.number)).or_raise()
    return Ok(replace(known, earlier=own[-1], lines=lines))


@answering
async def _task(plans: PlanReader, trusted: TrustedAccounts, repo: Repo, pull: PullRequest) -> ApiResult[Background]:
    issue, number = plan_of(pull.body), parse_task_branch(pull.head.ref)
    if issue is None or number is None:
        return Ok(Background())
    if (read := (await plans.read(repo, issue)).or_else(None, "not_found")) is None:
        return Ok(Background())
    plan = read.plan if trusted.covers(read.issue.account) else None
    task = plan.task(number) if plan else None
    if plan is None or task is None or not task.title.strip():
        return Ok(Background())
    text = f"{plan.goal}\n\n{format_task_markdown(task)}"
    return Ok(Background(text, read.talk(number), read.issue.author, plan.verification))


def review_text(review: Review, comments: Iterable[ReviewComment]) -> str:
    """Return what a review says, and below that what it says of lines, each with its place and the changes there."""
    own = [one for one in comments if one.review_id == review.id]
    return "\n\n".join((without_html_comments(review.body).strip(), *map(_of_line, own)))


def _of_line(comment: ReviewComment) -> str:
    place = f"{comment.path}:{comment.line}" if comment.line else comment.path
    hunk = [_fitted(legible(line)) for line in comment.hunk.split("\n")[-_HUNK_LINES:]]
    return "\n".join((legible(place), *hunk, comment.body))


def _fitted(line: str) -> str:
    return line if len(line) <= _HUNK_CHARS else f"{line[:_HUNK_CHARS]} […]"
