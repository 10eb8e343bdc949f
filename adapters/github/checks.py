"""Checks made before a request to GitHub. Each returns an `Err`, or None. Pure."""

from datetime import UTC, datetime

from adapters.github.types import Repo, is_login, is_path, is_repo, is_sha
from common.clock import parse_iso_or_none
from common.git_names import is_branch_name
from common.result import Err

BODY_LIMIT_CHARS = 65_536
"""The longest text of an issue that GitHub accepts."""


def moment_of(since: str) -> datetime | None:
    """Return a moment in UTC; None for "" and for what is not a time."""
    moment = parse_iso_or_none(since)
    return moment.astimezone(UTC) if moment else None


def wrong_place(what: str, repo: Repo, number: int = 1) -> Err | None:
    """Return an `Err` if there cannot be such a repository, or such a number in it."""
    if not is_repo(repo):
        return Err(f"could not {what}: no repository can be called that", kind="invalid")
    return Err(f"could not {what}: there is no number {number}", kind="invalid") if number < 1 else None


def wrong_branch(what: str, *branches: str) -> Err | None:
    """Return an `Err` if a name is not a valid branch name."""
    wrong = next((name for name in branches if not is_branch_name(name)), None)
    return None if wrong is None else Err(f"could not {what}: no branch can be called {wrong!r}", kind="invalid")


def wrong_path(what: str, path: str) -> Err | None:
    """Return an `Err` if no file can have that path."""
    return None if is_path(path) else Err(f"could not {what}: no file can have the path {path!r}", kind="invalid")


def wrong_sha(what: str, *shas: str) -> Err | None:
    """Return an `Err` if a sha is malformed; "" is allowed."""
    fine = all(is_sha(sha) for sha in shas if sha)
    return None if fine else Err(f"could not {what}: no commit or file has that sha", kind="invalid")


def wrong_login(what: str, *logins: str) -> Err | None:
    """Return an `Err` if a name is not a valid account name."""
    fine = all(map(is_login, logins))
    return None if fine else Err(f"could not {what}: no account can be called that", kind="invalid")


def empty(what: str, name: str, text: str) -> Err | None:
    """Return an `Err` if `text` is empty."""
    return None if text.strip() else Err(f"could not {what}: the {name} is empty", kind="invalid")


def too_long(what: str, body: str) -> Err | None:
    """Return an `Err` if a text that must not be cut is too long."""
    if len(body) <= BODY_LIMIT_CHARS:
        return None
    return Err(
        f"could not {what}: the text is longer than the {BODY_LIMIT_CHARS:,} characters that GitHub takes",
        kind="invalid",
    )


def no_time(what: str, since: str, moment: datetime | None) -> Err | None:
    """Return an `Err` if `since` is not a time, so that `moment` is None."""
    return Err(f"could not {what}: {since!r} is no time", kind="invalid") if since and moment is None else None
