"""What a commitment is about, and the keys by which two are the same: repository, issue, link, title, target. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping
from datetime import datetime
from itertools import count
from typing import Any

from adapters.atproto.records import web_url
from adapters.github.types import Repo
from common.constants import SECOND_MS
from common.schemas import CommitmentType
from common.text.strings import normalized_title
from common.text.utf16 import u16_slice
from modules.services.commitments.types import CommitmentRequest, QueuedCommitment

NO_REPO = "no_workspace_context"
"""The error of a commitment for GitHub that names no repository where there is no other to take."""

_TARGET_UNITS = 50
_HASH_CHARS = 16

_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_LINK = re.compile(r"(?:https?://)?(?:www\.)?github\.com/|\.git/?$|(?<!/)/+$", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w&#])#(\d{1,9})(?![\w;])")

WorkKey = tuple[str, str, str]


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


def title_of(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """The title of a commitment; the description where there is none."""
    return said(commitment.params, "title") or commitment.description


def said(params: Mapping[str, Any], *names: str) -> str:
    """The first of these parameters that says something, trimmed; "" if none does."""
    for name in names:
        value = params.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def claim_target(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """What was claimed when the commitment was made, and is claimed again while it is fulfilled."""
    if target := said(commitment.params, "target"):
        return target
    owner, name = said(commitment.params, "owner"), said(commitment.params, "repoName", "repo")
    return target_of(f"{owner}/{name}", title_of(commitment))


def target_of(repo: str, title: str) -> str:
    """What a claim names: `<owner/name>#<the first 50 units of the title>`, with `unknown` for a partial repository."""
    owner, _, name = repo.partition("/")
    return f"{repo if owner and name else 'unknown'}#{u16_slice(title, _TARGET_UNITS)}"


def generate_commitment_hash(source_thread_uri: str, description: str) -> str:
    """16 hex digits by which two commitments of one conversation are the same; case and white space do not matter."""
    said = " ".join(description.lower().split())
    return hashlib.sha256(f"{source_thread_uri}:{said}".encode(errors="replace")).hexdigest()[:_HASH_CHARS]


def request_hash(request: CommitmentRequest) -> str:
    """The hash of a request; it ends the id of the commitment that is made of it."""
    return generate_commitment_hash(request.source_thread_uri, request.description)


def free_id(request: CommitmentRequest, now: datetime, taken: Container[str]) -> str:
    """`commitment-<epoch ms>-<hash>`; the same commitment made anew within a millisecond gets the next one."""
    made_ms = int(now.timestamp() * SECOND_MS)
    return next(name for ms in count(made_ms) if (name := f"commitment-{ms}-{request_hash(request)}") not in taken)


def work_key(commitment: QueuedCommitment | CommitmentRequest) -> WorkKey:
    """What a commitment will make, however it was worded: kind, place, and normalized title or words."""
    params = commitment.params
    match commitment.type:
        case "comment_issue":
            text = said(params, "body", "description", "content") or commitment.description
            place = f"{repo_key(params)}#{params.get('issueNumber', '')}"
        case "post_bluesky":
            text, place = said(params, "content", "text", "description") or commitment.description, ""
        case _:
            text, place = title_of(commitment), repo_key(params)
    return commitment.type, place, normalized_title(text)


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
