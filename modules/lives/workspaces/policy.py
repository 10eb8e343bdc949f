"""Rules of workspaces: the progress of plans, its wording, what is due, and what is tidied up. Pure.

Tidied up are duplicate plans, labels, comments, and issues in which nothing happens.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from adapters.github.types import Account, Issue
from common.clock import Since, doubled, parse_iso, parse_iso_or_none
from common.text.strings import normalized_title
from common.text.untrusted import one_line
from common.wording import counted
from modules.lives.workspaces.types import PlanProgress, Poll
from modules.services.claims.policy import get_claimable_tasks
from modules.services.plans.events import wish_of
from modules.services.plans.plan_text import BODY_MARK, TITLE_MARK
from modules.services.plans.types import (
    ACTIVE_TASKS,
    PLAN_LABEL,
    FoundPlan,
    Plan,
    PlanLabel,
    Task,
    has_docs_tasks,
    names_issue,
    plan_labels,
)
from modules.services.workspaces.sentinel import FINISHED_LABEL
from modules.services.workspaces.trust import TrustedAccounts
from modules.services.workspaces.watched import WatchedWorkspace


def progress_of(plan: Plan) -> PlanProgress:
    """Return the progress of a plan. A task in work without an assignee counts as free or waiting."""
    free = {task.number for task in get_claimable_tasks(plan)}
    counted = Counter(_standing(task, free) for task in plan.tasks)
    return PlanProgress(
        total=len(plan.tasks),
        completed=counted["completed"],
        active=counted["active"],
        blocked=counted["blocked"],
        free=counted["free"],
        waiting=counted["waiting"],
    )


def _standing(task: Task, free: set[int]) -> str:
    if task.status in {"completed", "blocked"}:
        return task.status
    if task.status in ACTIVE_TASKS and task.assignee:
        return "active"
    return "free" if task.number in free else "waiting"


def total_of(plans: Iterable[FoundPlan]) -> PlanProgress:
    """Return the progress of several plans together."""
    each = [progress_of(one.plan) for one in plans]
    return PlanProgress(
        total=sum(one.total for one in each),
        completed=sum(one.completed for one in each),
        active=sum(one.active for one in each),
        blocked=sum(one.blocked for one in each),
        free=sum(one.free for one in each),
        waiting=sum(one.waiting for one in each),
    )


def summary_of(plans: Sequence[FoundPlan]) -> str:
    """Return one line about the plans of all watched workspaces."""
    if not plans:
        return "No plan is open in the workspaces"
    sums = total_of(plans)
    parts = {
        "done": sums.completed,
        "in work": sums.active,
        "blocked": sums.blocked,
        "free": sums.free,
        "waiting for others": sums.waiting,
    }
    how = ", ".join(f"{number} {what}" for what, number in parts.items() if number)
    tasks = f"{counted(sums.total, 'task')}{f': {how}' if how else ''}"
    return f"{counted(len(plans), 'plan')} with {tasks}"


def line_of(poll: Poll, notes: Sequence[str] = ()) -> str:
    """Return the line that ends a cycle: the progress of plans, what else is open, and what the steps did."""
    finished = sum(one.is_finished for one in poll.workspaces)
    parts = [summary_of(poll.plans)]
    if not poll.plans and (others := sum(len(one.issues) for one in poll.unfinished.workspaces)):
        parts.append(f"{counted(others, 'other issue')} open")
    if finished:
        parts.append(f"{finished} of {len(poll.workspaces)} workspaces finished")
    return "; ".join((*parts, *notes))


def plans_to_claim_in(plans: Iterable[FoundPlan]) -> list[FoundPlan]:
    """Return the plans with tasks that anybody may take: those with the fewest first, so that they get done."""
    open_tasks = [(len(get_claimable_tasks(one.plan)), one.key, one) for one in plans]
    return [one for count, _, one in sorted(open_tasks, key=lambda row: row[:2]) if count]


def tasks_to_claim(plan: Plan) -> list[Task]:
    """Return the tasks that anybody may take, those that write AGENTS.md or SCENARIOS.md first."""

    def makes_no_page(task: Task) -> bool:
        pages = has_docs_tasks([task])
        return not (pages.has_agents_md or pages.has_scenarios_md)

    return sorted(get_claimable_tasks(plan), key=lambda task: (makes_no_page(task), task.number))


HANDLED_AFTER = timedelta(hours=24)
STALE_AFTER = timedelta(days=7)
STALE_MEMO_AFTER = timedelta(days=3)
MEMO_LABEL = "memo"

_NOT_TALKED_ABOUT = frozenset({PLAN_LABEL, FINISHED_LABEL})
_KEPT_LABELS = _NOT_TALKED_ABOUT | {"discussion"}
_MOST_CARRIED = 30
_TITLE_CHARS = 120
_SUPERSEDED = f"{PLAN_LABEL}:superseded"
_NO_MENTION = "@\u200b"
_UNREAD = re.compile(r"<!-- soul:unread=([0-9a-f,]{1,400}) -->")


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A plan that another one makes needless, and its uncompleted tasks that the other one lacks."""

    plan: FoundPlan
    kept: FoundPlan
    carried: tuple[Task, ...]


def duplicates_among(
    plans: Iterable[FoundPlan], trusted: TrustedAccounts, issues_of: Callable[[Plan], Collection[int]]
) -> list[Duplicate]:
    """Return which of the open plans of one workspace are needless, the oldest first.

    Plans are duplicates if they cover the same issue (`issues_of`), or if neither covers any and both are for the same
    wish or for none. Only plans by trusted accounts count; the one with the most completed and active tasks is kept, of
    equals the oldest. A plan by the owner is never needless.
    """
    kept: list[tuple[FoundPlan, frozenset[int], str]] = []
    found: list[Duplicate] = []
    ours = (one for one in plans if trusted.covers(one.issue.account))
    for one in sorted(ours, key=lambda each: (-_begun(each.plan), each.number)):
        issues, wish = frozenset(issues_of(one.plan)), wish_of(one.issue.body)
        alike = (k for k, theirs, its in kept if issues & theirs or (not issues | theirs and wish == its))
        same = next(alike, None)
        if same is None:
            kept.append((one, issues, wish))
        elif not trusted.is_owner(one.issue.account):
            found.append(Duplicate(one, same, _missing(one.plan, same.plan)))
    return sorted(found, key=lambda each: each.plan.number)


def _begun(plan: Plan) -> int:
    return sum(task.status == "completed" or task.status in ACTIVE_TASKS for task in plan.tasks)


def _missing(plan: Plan, kept: Plan) -> tuple[Task, ...]:
    there = {normalized_title(task.title) for task in kept.tasks}
    left = (task for task in plan.tasks if task.status != "completed" and normalized_title(task.title) not in there)
    return tuple(left)[:_MOST_CARRIED]


def task_lines(tasks: Sequence[Task]) -> str:
    """Return tasks as a Markdown list, a line each, that mentions nobody and contains no mark for machines."""
    titles = (one_line(task.title.replace("<!--", ""), _TITLE_CHARS).replace("@", _NO_MENTION) for task in tasks)
    return "\n".join(f"- [ ] {title}" for title in titles)


def quoted_lines(lines: Sequence[str]) -> str:
    """Return lines as a Markdown quotation that mentions nobody and contains no mark for machines.

    A quoted line is no claim on a task, whatever it says.
    """
    texts = (one_line(line.replace("<!--", ""), _TITLE_CHARS).replace("@", _NO_MENTION) for line in lines)
    return "\n>\n".join(f"> {text}" for text in texts)


def unread_mark(line: str) -> str:
    """Return the mark that identifies a line that could not be read."""
    return hashlib.sha256(line.encode()).hexdigest()[:12]


def unread_marks(comment: str) -> list[str]:
    """Return the marks of all lines that a comment lists as unreadable."""
    return [mark for found in _UNREAD.finditer(comment) for mark in found[1].split(",")]


def label_change(labels: Sequence[str], status: PlanLabel) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the labels to add to and to remove from a plan's issue for this status; None if they are correct."""
    wanted = {label.lower(): label for label in plan_labels(labels, status)}
    has = {label.lower(): label for label in labels}
    add = tuple(label for key, label in wanted.items() if key not in has)
    remove = tuple(label for key, label in has.items() if key not in wanted)
    return (add, remove) if add or remove else None


def may_rest(issue: Issue, trusted: TrustedAccounts, plans: Iterable[FoundPlan]) -> bool:
    """Return whether an open issue may be closed at all because nothing happens in it.

    Plans, pull requests, discussions and sentinels may not, nor may issues that the owner wrote or that an open plan
    names.
    """
    labels = {label.lower() for label in issue.labels}
    if issue.is_pull_request or _is_plan(issue) or labels & _KEPT_LABELS or trusted.is_owner(issue.account):
        return False
    return not any(names_issue(plan.issue.body, issue.number) for plan in plans)


def is_work(issue: Issue) -> bool:
    """Return whether an issue describes work that may go into a plan; a memo does not."""
    is_kept = issue.is_pull_request or issue.title.startswith(TITLE_MARK)
    return not is_kept and (_KEPT_LABELS | {MEMO_LABEL}).isdisjoint(label.lower() for label in issue.labels)


def unplanned(issues: Iterable[Issue], plans: Collection[Issue]) -> list[Issue]:
    """Return the issues that describe work, without those that a plan names.

    A closed plan counts for issues that did not change since, unless another plan took its place.
    """
    return [one for one in issues if is_work(one) and not any(_covers(plan, one) for plan in plans)]


def happened_after(issue: Issue, moment: datetime | None) -> bool:
    """Return whether an issue changed after a moment; None counts as before everything."""
    return moment is None or parse_iso(issue.updated_at) > moment


def _covers(plan: Issue, issue: Issue) -> bool:
    if not names_issue(plan.body, issue.number):
        return False
    if plan.state == "open":
        return True
    closed_at = parse_iso_or_none(plan.closed_at)
    is_replaced = _SUPERSEDED in {label.lower() for label in plan.labels}
    return not is_replaced and closed_at is not None and closed_at >= parse_iso(issue.updated_at)


def rests_for(issue: Issue, now: datetime) -> timedelta:
    """Return the time since an issue last changed."""
    return now - parse_iso(issue.updated_at)


def stale_after(issue: Issue) -> timedelta:
    """Return how long an issue may rest: a memo less than others."""
    return STALE_MEMO_AFTER if MEMO_LABEL in {label.lower() for label in issue.labels} else STALE_AFTER


@dataclass(frozen=True, slots=True)
class LastWord:
    """The author of the last comment in a version of an issue, or of the issue if it has no comment."""

    version: str
    author: Account
    is_comment: bool


def resting_code(
    issue: Issue, last: LastWord, trusted: TrustedAccounts, rests: timedelta
) -> Literal["handled", "stale"] | None:
    """Return why an issue that has rested for so long may be closed; None if it may not.

    `handled`: our comment is the last word. `stale`: the last word is ours or that of a SOUL that the owner listed; in
    all other cases a person waits for an answer.
    """
    if last.is_comment and trusted.why(last.author) == "us" and rests >= HANDLED_AFTER:
        return "handled"
    return "stale" if trusted.is_program(last.author) and rests >= stale_after(issue) else None


def is_workable(issue: Issue, login: str, now: datetime) -> bool:
    """Return whether the SOUL `login` looks at an open issue: no plan, no sentinel, not its own, and not too old."""
    if issue.author.lower() == login.lower():
        return False
    is_work = not issue.is_pull_request and not {label.lower() for label in issue.labels} & _NOT_TALKED_ABOUT
    return is_work and not _is_plan(issue) and rests_for(issue, now) < STALE_AFTER


def _is_plan(issue: Issue) -> bool:
    return issue.title.startswith(TITLE_MARK) or BODY_MARK in issue.body


PLAN_SYNTHESIS_COOLDOWN = timedelta(hours=1)
HEALTH_CHECK_COOLDOWN = timedelta(hours=24)
_LONGEST_IN_VAIN_S = timedelta(days=1).total_seconds()
MOST_OPEN_PLANS = 3
"""With this many open plans in a workspace no further plan is made."""


def needs_plan_synthesis(workspace: WatchedWorkspace, since: Since) -> bool:
    """Return whether a plan may be made: it is not finished, its plans were read, few are open, and it is time."""
    last = workspace.last_plan_synthesis_attempt
    return (
        workspace.finished_issue_number is None
        and workspace.last_polled is not None
        and len(workspace.active_plan_issues) < MOST_OPEN_PLANS
        and (last is None or since(last) >= PLAN_SYNTHESIS_COOLDOWN)
    )


def is_tried_in_vain(workspace: WatchedWorkspace, issues: str, since: Since) -> bool:
    """Return whether the last try over the open issues with the digest `issues` led to nothing, and the next waits.

    It waits twice as long each time, at most a day.
    """
    last = workspace.last_plan_synthesis_attempt
    if last is None or workspace.in_vain_over != issues:
        return False
    wait_s = doubled(PLAN_SYNTHESIS_COOLDOWN.total_seconds(), workspace.in_vain, _LONGEST_IN_VAIN_S)
    return since(last).total_seconds() < wait_s


def get_workspaces_needing_plan_synthesis(
    workspaces: Iterable[WatchedWorkspace], since: Since
) -> list[WatchedWorkspace]:
    """Return the workspaces in which a plan may be made, the one examined longest ago first."""
    due = (one for one in workspaces if needs_plan_synthesis(one, since))
    return sorted(due, key=lambda one: (one.last_plan_synthesis_attempt or one.discovered_at, one.discovered_at))


def is_health_check_due(workspace: WatchedWorkspace, since: Since, completed_at: datetime | None = None) -> bool:
    """Return whether the work there is due for a check: a day after the last, or if a plan was completed since.

    `completed_at` is when the last plan that changed more than documents was completed, or None.
    """
    last = workspace.last_health_check_attempt
    if last is None or since(last) >= HEALTH_CHECK_COOLDOWN:
        return True
    return completed_at is not None and completed_at > last
