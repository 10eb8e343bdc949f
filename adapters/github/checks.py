"""What is looked at before anything is asked of GitHub. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from adapters.github.types import Repo, is_login, is_path, is_repo, is_sha
from common.clock import parse_iso_or_none
from common.git_names import is_branch_name
from common.result import Err

BODY_LIMIT_CHARS = 65_536
"""How long GitHub lets the text of an issue be."""


def moment_of(since: str) -> datetime | None:
    """A moment in UTC; None for "" and for what is no time."""
    moment = parse_iso_or_none(since)
    return moment.astimezone(UTC) if moment else None


def wrong_place(what: str, repo: Repo, number: int = 1) -> Err | None:
    """Why there cannot be such a repository, or such a number in it."""
    if not is_repo(repo):
        return Err(f"could not {what}: no repository can be called that", kind="invalid")
    return Err(f"could not {what}: there is no number {number}", kind="invalid") if number < 1 else None


def wrong_branch(what: str, *branches: str) -> Err | None:
    """Why a branch cannot be called that."""
    wrong = next((name for name in branches if not is_branch_name(name)), None)
    return None if wrong is None else Err(f"could not {what}: no branch can be called {wrong!r}", kind="invalid")


def wrong_path(what: str, path: str) -> Err | None:
    """Why no file can have that path."""
    return None if is_path(path) else Err(f"could not {what}: no file can have the path {path!r}", kind="invalid")


def wrong_sha(what: str, *shas: str) -> Err | None:
    """Why nothing has such a sha; "" is none."""
    fine = all(is_sha(sha) for sha in shas if sha)
    return None if fine else Err(f"could not {what}: no commit or file has that sha", kind="invalid")


def wrong_login(what: str, *logins: str) -> Err | None:
    """Why no account can be called that."""
    fine = all(map(is_login, logins))
    return None if fine else Err(f"could not {what}: no account can be called that", kind="invalid")


def empty(what: str, name: str, text: str) -> Err | None:
    """Why `text` is too little."""
    return None if text.strip() else Err(f"could not {what}: the {name} is empty", kind="invalid")


def too_long(what: str, body: str) -> Err | None:
    """Why a text that must not be cut cannot be written."""
    if len(body) <= BODY_LIMIT_CHARS:
        return None
    return Err(
        f"could not {what}: the text is longer than the {BODY_LIMIT_CHARS:,} characters that GitHub takes",
        kind="invalid",
    )


def no_time(what: str, since: str, moment: datetime | None) -> Err | None:
    """Why `since` is of no use, where `moment` could not be made of it."""
    return Err(f"could not {what}: {since!r} is no time", kind="invalid") if since and moment is None else None
