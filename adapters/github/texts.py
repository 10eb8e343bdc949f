"""What goes to GitHub, checked and cut to what it takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import TypeVar
from urllib.parse import quote

from adapters.github.types import Repo
from common.constants import GITHUB_BODY_MAX_CHARS
from common.text.markdown import close_code

T = TypeVar("T")
TITLE_MAX_CHARS = 256
PAGE = 100
"""The most that one page of a list holds."""
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FENCE_ROOM = 16
_CUT = "\n\n[…]"


def fit_body(text: str) -> str:
    """At most `GITHUB_BODY_MAX_CHARS` characters; what is cut ends in `[…]`, outside of any code block."""
    if len(text) <= GITHUB_BODY_MAX_CHARS:
        return text
    room = GITHUB_BODY_MAX_CHARS - len(_CUT)
    kept = text[: room - _FENCE_ROOM]
    closed = close_code(kept)
    return (closed if len(closed) <= room else kept) + _CUT


def fit_title(text: str) -> str:
    """One line of at most 256 characters."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_MAX_CHARS else f"{line[: TITLE_MAX_CHARS - 1]}…"


def is_repo(repo: Repo) -> bool:
    """Whether a repository can be called that."""
    return bool(_OWNER.fullmatch(repo.owner) and _NAME.fullmatch(repo.name)) and repo.name not in {".", ".."}


def is_login(login: str) -> bool:
    """Whether an account can be called that; bots end in `[bot]`."""
    return bool(_OWNER.fullmatch(login.removesuffix("[bot]")))


def is_token(token: str) -> bool:
    """Whether this can be sent as a token."""
    return bool(_TOKEN.fullmatch(token))


def is_sha(sha: str) -> bool:
    """Whether it is the full name of a commit or a blob."""
    return bool(_SHA.fullmatch(sha))


def is_path(path: str) -> bool:
    """Whether a file in a repository can have this path, from the root and without a leading slash."""
    return bool(path) and all(part not in {"", ".", "..", ".git"} for part in path.split("/")) and "\0" not in path


def repo_path(repo: Repo) -> str:
    """The address of a repository, from the root of the interface."""
    return f"/repos/{quote(repo.owner, safe='')}/{quote(repo.name, safe='')}"


def in_segments(path: str) -> str:
    """A path of a file for an address: each segment encoded, the slashes kept."""
    return quote(path, safe="/")


def first(limit: int, found: Iterable[T]) -> Iterable[T]:
    """Up to `limit` of them; a page that is not needed is not asked for."""
    return islice(found, limit)
