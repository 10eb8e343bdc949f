"""When a workspace is looked at for work that is to be planned, and when it is judged whether it is finished. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from common.clock import Since
from modules.services.workspaces.watched import WatchedWorkspace

PLAN_SYNTHESIS_COOLDOWN = timedelta(hours=1)
HEALTH_CHECK_COOLDOWN = timedelta(hours=24)
MOST_OPEN_PLANS = 3
"""In a workspace with so many open plans no further one is made."""


def needs_plan_synthesis(workspace: WatchedWorkspace, since: Since) -> bool:
    """Whether a plan may be made there: it is not finished, its plans were read, few are open, and it is time."""
    last = workspace.last_plan_synthesis_attempt
    return (
        workspace.finished_issue_number is None
        and workspace.last_polled is not None
        and len(workspace.active_plan_issues) < MOST_OPEN_PLANS
        and (last is None or since(last) >= PLAN_SYNTHESIS_COOLDOWN)
    )


def get_workspaces_needing_plan_synthesis(
    workspaces: Iterable[WatchedWorkspace], since: Since
) -> list[WatchedWorkspace]:
    """Return those in which a plan may be made, the one that was looked at longest ago first."""
    due = (one for one in workspaces if needs_plan_synthesis(one, since))
    return sorted(due, key=lambda one: (one.last_plan_synthesis_attempt or one.discovered_at, one.discovered_at))


def is_health_check_due(workspace: WatchedWorkspace, since: Since, completed_at: datetime | None = None) -> bool:
    """Whether the work there is to be judged now: a day after the last time, or after a plan was completed since.

    `completed_at` is when the last plan that changed more than documents was completed; None if there is none.
    """
    last = workspace.last_health_check_attempt
    if last is None or since(last) >= HEALTH_CHECK_COOLDOWN:
        return True
    return completed_at is not None and completed_at > last
