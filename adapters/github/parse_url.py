"""Where on GitHub a URL points; one that is cut off ("issues/12…") names nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from adapters.github.texts import is_repo
from adapters.github.types import Repo

Kind = Literal["issue", "pull", "discussion"]
HOSTS = ("github.com", "www.github.com")
_KINDS: dict[str, Kind] = {"issues": "issue", "pull": "pull", "discussions": "discussion"}
_PATH = (
    r"/(?P<owner>[\w-]{1,100})/(?P<name>[\w.-]{1,100})/(?P<kind>issues|pull|discussions)/(?P<number>[1-9]\d{0,9})"
    r"(?!(?!https?://|(?:www\.)?github\.com/)[\w-])(?!\u2026|\.\.)"
)
_URL = re.compile(
    rf"(?:(?P<scheme>https?)://)?(?P<host>(?<![\w.-])[\w.-]{{1,253}}(?::\d{{1,5}})?){_PATH}", re.ASCII | re.IGNORECASE
)
_GLUED = re.compile(rf"(?P<scheme>)(?P<host>(?:www\.)?github\.com){_PATH}", re.ASCII | re.IGNORECASE)
_SPACE = re.compile(r"\s")
_API_NUMBER = re.compile(r"/(?:issues|pulls)/(\d+)/?(?:[?#].*)?")
_BEFORE = re.compile(r"[\w@./:-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class GitHubUrl:
    """An issue, pull request or discussion, by its address; `url` always has a scheme."""

    owner: str
    repo: str
    type: Kind
    number: int
    url: str

    @property
    def place(self) -> Repo:
        """The repository it stands in."""
        return Repo(self.owner, self.repo)

    @property
    def key(self) -> tuple[str, str, Kind, int]:
        """The same for all addresses of the same thing."""
        return self.owner.lower(), self.repo.lower(), self.type, self.number


def parse_github_url(url: str) -> GitHubUrl | None:
    """What a URL points to, or None. A scheme may be missing; what follows the number (`#…`, `/files`) is ignored."""
    found = _URL.match(url.strip())
    return _from_match(found) if found else None


def extract_github_urls(text: str) -> list[GitHubUrl]:
    """All that are named in a text, each thing once, in order; also those that no space parts from the one before."""
    found: list[GitHubUrl | None] = []
    end, known = 0, False
    while match := (_GLUED.match(text, end) if known else None) or _URL.search(text, end):
        start = match.start()
        parted = _SPACE.search(text, end, start) is not None
        glued = match["scheme"] is not None and (start == end or (known and not parted))
        one = _from_match(match) if not start or glued or not _BEFORE.match(text[start - 1]) else None
        found.append(one)
        end, known = match.end(), one is not None
    return _once(found)


def extract_number_from_api_url(url: str) -> int | None:
    """The number at the end of `…/issues/N` or `…/pulls/N`; None for anything else."""
    found = _API_NUMBER.search(url)
    return int(found[1]) if found and found.end() == len(url) else None


def _from_match(found: re.Match[str]) -> GitHubUrl | None:
    owner, name = found["owner"], found["name"]
    if found["host"].lower() not in HOSTS or not is_repo(Repo(owner, name)):
        return None
    url = found[0] if found["scheme"] else f"https://{found[0]}"
    return GitHubUrl(owner, name, _KINDS[found["kind"].lower()], int(found["number"]), url)


def _once(found: Iterable[GitHubUrl | None]) -> list[GitHubUrl]:
    once: dict[tuple[str, str, Kind, int], GitHubUrl] = {}
    for one in found:
        if one:
            once.setdefault(one.key, one)
    return list(once.values())
