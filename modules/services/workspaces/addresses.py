"""The addresses of workspaces, and the workspaces that a post points to. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.atproto.richtext import detect_urls
from adapters.atproto.types import Notification, Post
from adapters.github.types import Repo

WORKSPACE_PREFIX = "www-lil-intdev-"
"""The beginning of the name of every workspace."""

_ADDRESS = re.compile(
    rf"(?:https?://)?(?:www\.)?github\.com/(?P<owner>[\w-]{{1,39}})/"
    rf"(?P<name>{WORKSPACE_PREFIX}[\w.-]{{1,80}})(?![\w.-]|\u2026)",
    re.ASCII | re.IGNORECASE,
)


def parse_github_workspace_url(url: str) -> Repo | None:
    """Return the workspace of an address in it, or None. The scheme may be missing."""
    found = _ADDRESS.match(url.strip())
    if found is None:
        return None
    name = found["name"].rstrip(".").removesuffix(".git")
    return Repo(found["owner"].lower(), name.lower()) if len(name) > len(WORKSPACE_PREFIX) else None


def extract_workspace_urls(text: str) -> list[Repo]:
    """Return the workspaces that a text points to, each once, in order."""
    return _workspaces(span.value for span in detect_urls(text))


def workspaces_in(post: Notification | Post) -> list[Repo]:
    """Return the workspaces that a post points to: by its links, which are complete, else by its text."""
    return _workspaces(post.links) or extract_workspace_urls(post.text)


def _workspaces(urls: Iterable[str]) -> list[Repo]:
    found = (parse_github_workspace_url(url) for url in urls)
    return list(dict.fromkeys(one for one in found if one))
