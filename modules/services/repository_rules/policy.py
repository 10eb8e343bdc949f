"""What is kept of a repository: which files are pages, in which pieces a model reads them, what follows. Pure.

Nothing here knows a word of any language: the model says which pages may hold rules, by their names, and what they say.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal

from adapters.github.types import ContentEntry, Repo, Tree
from common.clock import Since, parse_iso
from common.text.untrusted import one_line

Welcome = Literal["welcome", "unwelcome", "unclear"]
Rule = Literal["allowed", "conditions", "forbidden", "none"]
"""What a file says of AI agents: they may, they may under conditions, they may not, or nothing that can be told."""


class VerdictCode(StrEnum):
    """Why a repository counts as welcoming, unwelcoming or unclear."""

    MEMBER = "member"
    NOTHING_SAID = "nothing-said"
    ALLOWED = "allowed"
    CONDITIONS = "conditions"
    FORBIDDEN = "forbidden"
    PULLS_CLOSED = "pulls-closed"
    UNREAD = "unread"
    OWNER_YES = "owner-yes"
    OWNER_NO = "owner-no"
    ANOTHER = "another"


WELCOME_OF: dict[VerdictCode, Welcome] = {
    VerdictCode.MEMBER: "welcome",
    VerdictCode.NOTHING_SAID: "welcome",
    VerdictCode.ALLOWED: "welcome",
    VerdictCode.CONDITIONS: "unclear",
    VerdictCode.FORBIDDEN: "unwelcome",
    VerdictCode.PULLS_CLOSED: "unclear",
    VerdictCode.UNREAD: "unclear",
    VerdictCode.OWNER_YES: "welcome",
    VerdictCode.OWNER_NO: "unwelcome",
    VerdictCode.ANOTHER: "unwelcome",
}


@dataclass(frozen=True, slots=True)
class RepositoryVerdict:
    """Whether a repository wants us.

    Attributes:
        code: why.
        path: the file that decided; "" if none did.
        at: when it was found out, ISO-8601 UTC.
        pages: the SHA-256 of the paths and contents of its pages at that time; "" where they were not looked at.
        pushed_at: when one of its branches had changed last, as far as is known, ISO-8601 UTC.

    """

    code: VerdictCode
    path: str = ""
    at: str = ""
    pages: str = ""
    pushed_at: str = ""

    @property
    def welcome(self) -> Welcome:
        """What follows from the code."""
        return WELCOME_OF[self.code]

    @property
    def reason(self) -> str:
        """The same for people."""
        return _REASONS[self.code].format(path=self.path or "a file")


_REASONS: dict[VerdictCode, str] = {
    VerdictCode.MEMBER: "our account may push there",
    VerdictCode.NOTHING_SAID: "all that it shows was read, and nothing of it is a rule for AI agents",
    VerdictCode.ALLOWED: "{path} allows AI agents",
    VerdictCode.CONDITIONS: "{path} has conditions for AI agents, or is unclear",
    VerdictCode.FORBIDDEN: "{path} does not want AI agents",
    VerdictCode.PULLS_CLOSED: "it takes pull requests from its own people only, or from nobody",
    VerdictCode.UNREAD: "not all that it shows could be read ({path}), so its rules are not known",
    VerdictCode.OWNER_YES: "the owner approved an act there",
    VerdictCode.OWNER_NO: "the owner rejected an act there",
    VerdictCode.ANOTHER: "another repository answers under its name than when it was first seen",
}


DEFAULTS = ".github"
"""The repository whose files GitHub shows for all repositories of its owner that have none of their own."""
MOST_FILES = 40
MOST_CHARS = 60_000
MOST_NAMES = 500
"""So many pages the model is shown by name, those nearest to the root first."""
PIECE_CHARS = 12_000
KEPT_FOR = timedelta(days=30)
"""So long a verdict holds while its pages stay as they are; one that is not clear holds a week."""
UNCLEAR_FOR = timedelta(days=7)

_NAME_CHARS = 200
_PAGES = frozenset(
    {
        *(".md", ".markdown", ".mdx", ".rst", ".txt", ".text", ".adoc", ".asciidoc", ".org", ".html", ".htm", ".rdoc"),
        *(".textile", ".pod", ".wiki", ".pdf"),
    }
)
_TEMPLATES = re.compile(r"(?:issue|pull_request|discussion)_template", re.IGNORECASE)
_FORMS = frozenset({".yml", ".yaml"})


@dataclass(frozen=True, slots=True)
class RulePage:
    """A file that people read, in the repository `place`; `name` is what it is called in questions and reasons."""

    place: Repo
    entry: ContentEntry
    name: str


def pages_of(repo: Repo, place: Repo, tree: Tree) -> list[RulePage]:
    """Return what people read in `place`, which is `repo` itself or holds the pages for all of its owner's."""
    named = (one.path if place == repo else f"{place.full_name}/{one.path}" for one in tree.entries)
    return [RulePage(place, one, name) for one, name in zip(tree.entries, named, strict=True) if _is_page(one)]


def nearest(pages: Iterable[RulePage]) -> list[RulePage]:
    """Return the pages nearest to the root, at most `MOST_NAMES`; the folder `.github` counts as the root."""
    return sorted(pages, key=lambda one: (_depth(one.entry.path), one.name))[:MOST_NAMES]


def names_shown(pages: Sequence[RulePage]) -> str:
    """Return the names of the pages, each on a line with its number from 1."""
    return "\n".join(f"{number}. {one_line(one.name, _NAME_CHARS)}" for number, one in enumerate(pages, start=1))


def digest_of(pages: Iterable[RulePage]) -> str:
    """Return the SHA-256 of the names and contents of pages, in hexadecimal digits."""
    return hashlib.sha256("\n".join(f"{one.entry.sha} {one.name}" for one in pages).encode()).hexdigest()


def _is_page(one: ContentEntry) -> bool:
    path = PurePosixPath(one.path)
    suffix = path.suffix.lower()
    if one.type == "submodule" or not suffix:
        return not _depth(one.path)
    return suffix in _PAGES or (suffix in _FORMS and _TEMPLATES.fullmatch(path.parent.name) is not None)


def _depth(path: str) -> int:
    return path.removeprefix(".github/").count("/")


def pieces(path: str, text: str) -> Iterator[str]:
    """Return a text in pieces that a model can read, each under the name of its file, cut between lines if possible."""
    text = text.strip()
    while text:
        end = len(text) if len(text) <= PIECE_CHARS else (text.rfind("\n", 1, PIECE_CHARS) + 1 or PIECE_CHARS)
        yield f"{path}:\n{text[:end].strip()}"
        text = text[end:].strip()


def questions(texts: Sequence[tuple[str, str]]) -> list[tuple[tuple[str, ...], str]]:
    """Return what is asked: texts, each by its path, packed into as few questions as hold them, with their paths."""
    asked: list[tuple[tuple[str, ...], str]] = []
    for path, text in texts:
        for piece in pieces(path, text):
            if asked and len(asked[-1][1]) + len(piece) <= PIECE_CHARS:
                paths, before = asked.pop()
                asked.append(((*paths, path), f"{before}\n\n{piece}"))
            else:
                asked.append(((path,), piece))
    return asked


def verdict_of(rules: Sequence[tuple[str, Rule]]) -> tuple[VerdictCode, str]:
    """Return what follows from what the files say, each by its path, and which of them decided: the strictest."""
    codes: dict[Rule, VerdictCode] = {
        "forbidden": VerdictCode.FORBIDDEN,
        "conditions": VerdictCode.CONDITIONS,
        "allowed": VerdictCode.ALLOWED,
    }
    for rule, code in codes.items():
        for path, said in rules:
            if said == rule:
                return code, path
    return VerdictCode.NOTHING_SAID, ""


def is_fresh(verdict: RepositoryVerdict, since: Since) -> bool:
    """Return whether a verdict still holds."""
    holds = UNCLEAR_FOR if verdict.welcome == "unclear" else KEPT_FOR
    return since(parse_iso(verdict.at)) < holds
