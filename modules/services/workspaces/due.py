"""Decides when a workspace is due for planning, and when for a check whether it is finished. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from common.clock import Since
from modules.services.workspaces.watched import WatchedWorkspace

PLAN_SYNTHESIS_COOLDOWN = timedelta(hours=1)
HEALTH_CHECK_COOLDOWN = timedelta(hours=24)
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
