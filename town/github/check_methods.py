"""Commit statuses and check runs, GitHub's two forms of test results of a commit: one function for each operation."""

from collections.abc import Iterable

from town.github import bodies
from town.github.bodies import Window
from town.github.git_methods import commit_at, pushing
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.values import Json, Refusal, StoredCheck, StoredRepo, StoredStatus, unprocessable
from town.github.views import moment, node_id

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


async def _create_status(call: GitHubCall) -> Answer:
    writer, repo = pushing(call)
    commit = await commit_at(call, call.path["ref"])
    state = bodies.text(call.body, "state", required=True) or ""
    if state not in STATUS_STATES:
        raise unprocessable("Status", "state", "invalid")
    status = StoredStatus(
        call.network.new_id(),
        commit.sha,
        state,
        bodies.text(call.body, "context") or "default",
        bodies.text(call.body, "description"),
        bodies.text(call.body, "target_url"),
        writer,
        call.network.clock.now(),
    )
    repo.statuses.append(status)
    return Answer({**_status(call, status), "creator": call.views.user(writer)}, 201)


async def _statuses(call: GitHubCall) -> Answer:
    commit, window = await commit_at(call, call.path["ref"]), Window.of(call.query)
    found = [status for status in reversed(call.repo.statuses) if status.sha == commit.sha]
    shown = [{**_status(call, one), "creator": call.views.user(one.creator)} for one in window.cut(found)]
    return Answer(shown, window=window, count=len(found))


async def _combined(call: GitHubCall) -> Answer:
    commit, window = await commit_at(call, call.path["ref"]), Window.of(call.query)
    found = latest(call.repo.statuses, commit.sha)
    url = f"{call.views.base}/repos/{call.repo.full_name}/commits/{commit.sha}"
    body = {
        "state": combined(found),
        "statuses": [_status(call, one) for one in window.cut(found)],
        "sha": commit.sha,
        "total_count": len(found),
        "repository": call.views.repo(call.repo),
        "commit_url": url,
        "url": f"{url}/status",
    }
    return Answer(body, window=window, count=len(found))


def _status(call: GitHubCall, status: StoredStatus) -> Json:
    return {
        "url": f"{call.views.base}/repos/{call.repo.full_name}/statuses/{status.sha}",
        "avatar_url": f"{call.views.base}/avatars/u/{status.creator.id}",
        "id": status.id,
        "node_id": node_id("Status", status.id),
        "state": status.state,
        "description": status.description,
        "target_url": status.target_url,
        "context": status.context,
        "created_at": moment(status.created_at),
        "updated_at": moment(status.created_at),
    }


async def _create_check(call: GitHubCall) -> Answer:
    """Create a check run; only a token of an application may, one that begins with `ghs_`."""
    _, repo = pushing(call)
    if not (call.token and call.token.is_of_app):
        raise Refusal(403, "You must authenticate via a GitHub App.")
    commit = await commit_at(call, bodies.text(call.body, "head_sha", required=True) or "")
    name = bodies.text(call.body, "name", required=True) or ""
    conclusion = bodies.text(call.body, "conclusion")
    state = bodies.text(call.body, "status") or ("completed" if conclusion else "queued")
    if state not in CHECK_STATES or (conclusion is not None and conclusion not in CONCLUSIONS):
        raise unprocessable("CheckRun", "status", "invalid")
    now = call.network.clock.now()
    check = StoredCheck(
        call.network.new_id(), commit.sha, name, state, conclusion, now, now if state == "completed" else None
    )
    repo.checks.append(check)
    return Answer(_check(call, check), 201)


async def _check_runs(call: GitHubCall) -> Answer:
    commit, window = await commit_at(call, call.path["ref"]), Window.of(call.query)
    wanted = call.query.get("check_name", "")
    found = [check for check in call.repo.checks if check.sha == commit.sha and wanted in {"", check.name}]
    body = {"total_count": len(found), "check_runs": [_check(call, one) for one in window.cut(found)]}
    return Answer(body, window=window, count=len(found))


def _check(call: GitHubCall, check: StoredCheck) -> Json:
    url = f"{call.views.base}/repos/{call.repo.full_name}/check-runs/{check.id}"
    page = f"{call.views.base}/{call.repo.full_name}/runs/{check.id}"
    return {
        "id": check.id,
        "node_id": node_id("CheckRun", check.id),
        "head_sha": check.sha,
        "external_id": "",
        "url": url,
        "html_url": page,
        "details_url": page,
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": moment(check.started_at),
        "completed_at": moment(check.completed_at) if check.completed_at else None,
        "output": {
            **dict.fromkeys(("title", "summary", "text")),
            "annotations_count": 0,
            "annotations_url": f"{url}/annotations",
        },
        "name": check.name,
        "check_suite": None,
        "app": None,
        "pull_requests": [],
    }


IN_REPO: dict[str, dict[str, Handler]] = {
    "/statuses/{ref}": {"GET": _statuses, "POST": _create_status},
    "/commits/{ref:path}/statuses": {"GET": _statuses},
    "/commits/{ref:path}/status": {"GET": _combined},
    "/commits/{ref:path}/check-runs": {"GET": _check_runs},
    "/check-runs": {"POST": _create_check},
}
