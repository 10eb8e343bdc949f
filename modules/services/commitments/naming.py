"""Which repository, issue and link a commitment is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.github.types import Repo
from common.schemas import CommitmentType

NO_REPO = "no_workspace_context"
"""The error of a commitment for GitHub that names no repository where there is no other to take."""

_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_LINK = re.compile(r"(?:https?://)?(?:www\.)?github\.com/|\.git/?$|(?<!/)/+$", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w&#])#(\d{1,9})(?![\w;])")
_POST = re.compile(r"at://([^/]+)/app\.bsky\.feed\.post/([^/]+)")


def resolve_repo(params: Mapping[str, Any], default: Repo | None = None) -> Repo | None:
    """The repository that is meant: `repoName` or `repo`, with or without its owner; an explicit `owner` wins.

    What is incomplete is completed from `default`, for example the repository of the active workspace.
    """
    named = next((value for value in (params.get("repoName"), params.get("repo")) if _text(value)), "")
    path = _LINK.sub("", str(named).strip())
    before, _, name = path.rpartition("/")
    owner = _text(params.get("owner")) or before
    if not owner and default is not None and (not name or name.lower() == default.name.lower()):
        return default
    owner = owner or (default.owner if default else "")
    if not (_NAME.fullmatch(owner) and _NAME.fullmatch(name)) or {owner, name} & {".", ".."}:
        return None
    return Repo(owner, name)


def repo_key(params: Mapping[str, Any]) -> str:
    """`owner/name` in lower case, as far as it is known."""
    repo = resolve_repo(params)
    if repo is not None:
        return repo.full_name.lower()
    return (_text(params.get("repoName")) or _text(params.get("repo"))).lower()


def issue_number(params: Mapping[str, Any], *texts: str) -> int | None:
    """The issue that is meant: `issueNumber`, else the first `#N` in `texts`."""
    given = params.get("issueNumber")
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 1:
        return int(given)
    if isinstance(given, str) and given.strip().lstrip("#").isdecimal():
        return int(given.strip().lstrip("#"))
    found = next(filter(None, (_NUMBER.search(text) for text in texts)), None)
    return int(found[1]) if found else None


def extract_fulfillment_url(kind: CommitmentType, result: Mapping[str, Any] | None) -> str:
    """The link to what came of a commitment; "" if there is none."""
    if not result:
        return ""
    match kind:
        case "create_issue":
            issues = result.get("issues")
            first = issues[0] if isinstance(issues, list | tuple) and issues else {}
            return _text(first.get("url")) if isinstance(first, Mapping) else ""
        case "create_plan":
            return _text(result.get("issueUrl"))
        case "comment_issue":
            return _text(result.get("url"))
        case "post_bluesky":
            return web_url(_text(result.get("uri")))


def web_url(uri: str) -> str:
    """Where people read a post of the record `uri`; "" if it is none."""
    post = _POST.fullmatch(uri)
    return f"https://bsky.app/profile/{post[1]}/post/{post[2]}" if post else ""


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
