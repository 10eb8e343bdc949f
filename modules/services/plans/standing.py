"""Reads what a repository has before a plan is made there: another plan, and the standard pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import iso, parse_iso_or_none
from common.result import ApiResult, Ok, answering
from modules.services.plans.events import Wish, plan_for
from modules.services.plans.types import AGENTS_PAGE, PLAN_LABEL, SCENARIOS_PAGE, names_issue

CLOSED_LATELY = timedelta(days=7)
_MOST_PLANS = 30


@dataclass(frozen=True, slots=True)
class Pages:
    """Which of the standard pages a repository has in its root."""

    has_agents_md: bool = False
    has_scenarios_md: bool = False


@answering
async def standing_plan(github: GitHub, repo: Repo, now: datetime, wish: Wish | None = None) -> ApiResult[Issue | None]:
    """Return the plan that makes another one needless: the oldest open one, or else one closed within a week.

    With a `wish`, only a plan for that wish counts.
    """
    since = now - CLOSED_LATELY
    opened = (await github.list_issues(repo, labels=(PLAN_LABEL,), limit=_MOST_PLANS)).or_raise()
    plans = sorted((one for one in opened if not one.is_pull_request), key=lambda one: one.number)
    if found := plan_for(wish, plans) if wish else next(iter(plans), None):
        return Ok(found)
    closed = (
        await github.list_issues(repo, state="closed", labels=(PLAN_LABEL,), since=iso(since), limit=_MOST_PLANS)
    ).or_raise()
    lately = [one for one in closed if not one.is_pull_request and _closed_since(one, since)]
    newest = sorted(lately, key=lambda one: -one.number)
    return Ok(plan_for(wish, newest) if wish else next(iter(newest), None))


@answering
async def is_planned(github: GitHub, repo: Repo, number: int) -> ApiResult[bool]:
    """Return whether an open plan names an issue, which then stays open until the plan is complete."""
    opened = (await github.list_issues(repo, labels=(PLAN_LABEL,), limit=_MOST_PLANS)).or_raise()
    return Ok(any(names_issue(one.body, number) for one in opened))


async def pages_of(github: GitHub, repo: Repo) -> Pages:
    """Return which pages are in the root; none if it cannot be read, as a task too many does no harm."""
    listed = await github.contents.list(repo)
    names = {entry.name.lower() for entry in listed.data} if isinstance(listed, Ok) else set()
    return Pages(AGENTS_PAGE.lower() in names, SCENARIOS_PAGE.lower() in names)


def _closed_since(issue: Issue, moment: datetime) -> bool:
    closed_at = parse_iso_or_none(issue.closed_at)
    return closed_at is not None and closed_at >= moment
