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
from modules.services.commitments.params import CommentParams, CommitmentParams, GitHubParams, PostParams
from modules.services.commitments.types import CommitmentRequest, QueuedCommitment

NO_REPO = "no_workspace_context"
"""The error of a commitment for GitHub that names no repository where there is no other to take."""

_TARGET_UNITS = 50
_HASH_CHARS = 16

_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_LINK = re.compile(r"(?:https?://)?(?:www\.)?github\.com/|\.git/?$|(?<!/)/+$", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w&#])#(\d{1,9})(?![\w;])")

WorkKey = tuple[str, str, str]


def resolve_repo(named: str, owner: str = "", default: Repo | None = None) -> Repo | None:
    """The repository that is meant by a name or an address; an explicit `owner` wins.

    What is incomplete is completed from `default`, for example the repository of the active workspace.
    """
    path = _LINK.sub("", named.strip())
    before, _, name = path.rpartition("/")
    owner = owner or before
    if not owner and default is not None and (not name or name.lower() == default.name.lower()):
        return default
    owner = owner or (default.owner if default else "")
    if not (_NAME.fullmatch(owner) and _NAME.fullmatch(name)) or {owner, name} & {".", ".."}:
        return None
    return Repo(owner, name)


def repo_of(params: CommitmentParams, default: Repo | None = None) -> Repo | None:
    """The repository that a commitment is for, else `default`; None for a post."""
    if isinstance(params, PostParams):
        return None
    return resolve_repo(params.repo_name or params.repo, params.owner, default)


def repo_key(params: GitHubParams) -> str:
    """`owner/name` in lower case, as far as it is known."""
    repo = repo_of(params)
    return (repo.full_name if repo else params.repo_name or params.repo).lower()


def number_in(*texts: str) -> int | None:
    """The first issue that is named in `texts` as `#N`."""
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
    return commitment.params.title or commitment.description


def text_of(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """What a commitment will publish, as it was written."""
    match commitment.params:
        case CommentParams(body=body) as params:
            said = body or params.description or params.content
        case PostParams(text=text) as params:
            said = params.content or text or params.description
        case params:
            said = params.description or params.content
    return said or commitment.description


def claim_target(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """What was claimed when the commitment was made, and is claimed again while it is fulfilled."""
    params = commitment.params
    if params.target:
        return params.target
    place = "/" if isinstance(params, PostParams) else f"{params.owner}/{params.repo_name or params.repo}"
    return target_of(place, title_of(commitment))


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
    match commitment.params:
        case CommentParams() as params:
            text, place = text_of(commitment), f"{repo_key(params)}#{params.issue_number or ''}"
        case PostParams():
            text, place = text_of(commitment), ""
        case params:
            text, place = title_of(commitment), repo_key(params)
    return commitment.type, place, normalized_title(text)


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
