"""Finds the repository that a talk is about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import regex

from modules.lives.space.types import HistoryEntry

_LINK = regex.compile(
    r"(?<![\w.-])(?:www\.)?github\.com[/:]([a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)/([\w.-]{1,100})",
    regex.IGNORECASE | regex.ASCII,
)
_NO_OWNERS = frozenset({
    "about", "apps", "collections", "customer-stories", "enterprise", "events", "explore", "features", "issues",
    "login", "marketplace", "new", "notifications", "orgs", "pricing", "pulls", "search", "security", "settings",
    "site", "sponsors", "stars", "team", "topics", "trending", "users",
})  # fmt: skip


def repo_in(text: str) -> str | None:
    """The last repository that a text links to, as `owner/name`; pages of GitHub itself are none."""
    found = [repo for owner, name in _LINK.findall(text) if (repo := _repo(owner, name))]
    return found[-1] if found else None


def detect_repo(messages: Sequence[HistoryEntry]) -> str | None:
    """The host's newest mention, else the newest of a peer. What we wrote ourselves says nothing new."""
    host = (entry for entry in reversed(messages) if entry.is_host)
    peers = (entry for entry in reversed(messages) if not entry.is_host and not entry.is_me)
    return _newest(host) or _newest(peers)


def _newest(messages: Iterable[HistoryEntry]) -> str | None:
    return next((repo for entry in messages if (repo := repo_in(entry.content))), None)


def _repo(owner: str, name: str) -> str | None:
    bare = name.rstrip(".").removesuffix(".git")
    return f"{owner}/{bare}" if owner.lower() not in _NO_OWNERS and bare.strip(".") else None
