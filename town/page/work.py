"""What is built together, as the page's JSON: plans as boards, and pull requests with their reviews. Reads only.

A plan is an issue whose title begins with `[PLAN]` or that is labelled `plan`. Of its text only headings of tasks
(`### Task 3: Sow beans`) and their lines `**Status:**` and `**Assignee:**` are read; the rest is the issue's page.
"""

from __future__ import annotations

import re
from typing import Any

from town.github.network import GitHubNetwork
from town.github.values import StoredIssue, StoredPull, StoredRepo

_TASK = re.compile(r"### Task (\d{1,4}): (\S.*)")
_STATES = ("pending", "claimed", "in_progress", "blocked", "completed")
_PLANS_SHOWN = 12
_PULLS_SHOWN = 20
_TEXT_SHOWN = 300

Json = dict[str, Any]


def work(github: GitHubNetwork) -> Json:
    """The plans and the pull requests of all public repositories: the open ones first, of these the newest first."""
    repos = [repo for repo in github.repos() if not repo.private]
    plans = [(repo, issue) for repo in repos for issue in repo.issues.values() if issue and is_plan(issue)]
    plans.sort(key=lambda pair: (pair[1].state == "open", pair[1].id), reverse=True)
    pulls = [(repo, pull) for repo in repos for pull in repo.pulls.values()]
    pulls.sort(key=lambda pair: (pair[1].is_open, pair[1].issue.id), reverse=True)
    return {
        "plans": [_plan(*pair) for pair in plans[:_PLANS_SHOWN]],
        "pulls": [_pull(*pair) for pair in pulls[:_PULLS_SHOWN]],
    }


def is_plan(issue: StoredIssue) -> bool:
    """Whether an issue is a plan."""
    return not issue.is_pull and (
        issue.title.startswith("[PLAN]") or any(label.name.lower() == "plan" for label in issue.labels)
    )


def tasks(body: str) -> list[Json]:
    """The tasks of a plan's text: number, title, state and holder ("" for nobody), as they stand there."""
    found: list[Json] = []
    for line in map(str.strip, body.splitlines()):
        if heading := _TASK.fullmatch(line):
            found.append(
                {"number": int(heading[1]), "title": heading[2][:_TEXT_SHOWN], "state": "pending", "holder": ""}
            )
        elif found and line.startswith("**Status:**"):
            state = line.removeprefix("**Status:**").strip().lower()
            found[-1]["state"] = state if state in _STATES else found[-1]["state"]
        elif found and line.startswith("**Assignee:**"):
            holder = line.removeprefix("**Assignee:**").strip()
            found[-1]["holder"] = holder[1:_TEXT_SHOWN] if holder.startswith("@") else ""
    return found


def _plan(repo: StoredRepo, issue: StoredIssue) -> Json:
    return {
        "repo": repo.full_name,
        "number": issue.number,
        "title": issue.title.removeprefix("[PLAN]").strip(),
        "state": issue.state,
        "by": issue.author.login,
        "tasks": tasks(issue.body or ""),
    }


def _pull(repo: StoredRepo, pull: StoredPull) -> Json:
    """A pull request, with the last word of each of its reviewers."""
    verdicts = {
        review.author.login: review.state
        for review in pull.reviews
        if review.state != "PENDING" and review.author != pull.issue.author
    }
    return {
        "repo": repo.full_name,
        "number": pull.number,
        "title": pull.issue.title,
        "by": pull.issue.author.login,
        "branch": pull.head_ref,
        "state": _state(pull),
        "reviews": [{"by": login, "state": state.lower()} for login, state in verdicts.items()],
        "asked": [account.login for account in pull.requested],
    }


def _state(pull: StoredPull) -> str:
    if pull.merged_at:
        return "merged"
    if not pull.is_open:
        return "closed"
    return "draft" if pull.draft else "open"
