"""The addresses of workspaces, and the workspaces and repositories that posts point to. Pure."""

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
_REPOSITORY = re.compile(
    r"(?:https?://)?(?:www\.)?github\.com/([\w-]{1,39}/[\w.-]{1,100})(?![\w.-]|\u2026)", re.ASCII | re.IGNORECASE
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


def linked_repository(posts: Iterable[Notification | Post]) -> str:
    """Return, as `owner/name` in lower case, the only repository that posts and their quotes point to; or ""."""
    said = [one for post in posts for one in (post, getattr(post, "quoted", None)) if one]
    urls = (url for one in said for url in one.links or (span.value for span in detect_urls(one.text)))
    found = {named[1].rstrip(".").removesuffix(".git").lower() for url in urls if (named := _REPOSITORY.match(url))}
    return found.pop() if len(found) == 1 else ""


def _workspaces(urls: Iterable[str]) -> list[Repo]:
    found = (parse_github_workspace_url(url) for url in urls)
    return list(dict.fromkeys(one for one in found if one))
