"""Sends changes of issues to GitHub: their fields, labels, assignees and reactions, and what we take back there."""

from __future__ import annotations

from functools import partial

from adapters.github.rewriting import rewrite
from adapters.github.texts import fit_title
from adapters.github.types import Issue
from common.result import Err
from modules.services.outbox.github_bodies import (
    AssigneeBody,
    CommentDeletionBody,
    IssueUpdateBody,
    LabelBody,
    ReactionBody,
    body_digest,
)
from modules.services.outbox.senders.github_looking import CHANGED, ChangeSender, OvertakenErr, folded, repo_of, sent
from modules.services.outbox.types import Intent, Sent
from modules.services.plans.extend import add_tasks_to_plan_body

IssueChange = IssueUpdateBody | LabelBody | AssigneeBody | ReactionBody | CommentDeletionBody


class IssueChangeSender(ChangeSender[IssueChange]):
    """Sends intents of the kinds `issue_update`, `label`, `assignee`, `reaction` and `comment_deletion`.

    A result's cid is the number of the issue.
    """

    bodies = (IssueUpdateBody, LabelBody, AssigneeBody, ReactionBody, CommentDeletionBody)

    async def _look(self, intent: Intent, body: IssueChange, *, departs: bool) -> Sent | None:
        if isinstance(body, ReactionBody | CommentDeletionBody):
            return None  # NOTE(self): the same reaction again is the same one, and what is gone can go again
        issue = (await self._github.get_issue(repo_of(body), body.number)).or_raise()
        match body:
            case IssueUpdateBody():
                text = _new_text(issue, body)
                done = _is_updated(issue, body, text if isinstance(text, str) else text.or_raise())
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
    """Return what the issue is to say, "" for what it says; an error where its text is not as it was expected."""
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
