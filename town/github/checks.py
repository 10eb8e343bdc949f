"""Evaluates the test results of a commit. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from town.github.values import StoredCheck, StoredRepo, StoredStatus

STATUS_STATES = ("error", "failure", "pending", "success")
CHECK_STATES = ("queued", "in_progress", "completed")
CONCLUSIONS = ("success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required")
_FAILED = {"error", "failure", "cancelled", "timed_out", "action_required"}


def latest(statuses: Iterable[StoredStatus], sha: str) -> list[StoredStatus]:
    """Return the newest status of a commit in each context, sorted by context."""
    newest = {status.context: status for status in statuses if status.sha == sha}
    return [newest[context] for context in sorted(newest)]


def combined(statuses: Iterable[StoredStatus]) -> str:
    """Return `failure` if one of them failed, `success` if all passed and there are any, else `pending`."""
    states = {status.state for status in statuses}
    if states & _FAILED:
        return "failure"
    return "success" if states == {"success"} else "pending"


def is_unstable(repo: StoredRepo, sha: str) -> bool:
    """Return whether a status, or the newest check of some name, failed or is not completed yet."""
    newest: dict[str, StoredCheck] = {check.name: check for check in repo.checks if check.sha == sha}
    by_check = any(check.conclusion is None or check.conclusion in _FAILED for check in newest.values())
    return by_check or any(status.state != "success" for status in latest(repo.statuses, sha))
