"""The policy on a repository's rules: which files are pages, how a model reads them, and what is asked. Pure.

No word of any language is known here: the model says which pages may hold rules, by name, and what they say.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal, get_args

from adapters.github.types import ContentEntry, Repo, Tree
from common.clock import Since, parse_iso
from common.text.github_text import without_closing_words
from common.text.strings import quotation
from common.text.untrusted import clean, one_line
from modules.services.outbox.bodies import KnownBody
from modules.services.outbox.github_bodies import (
    IssueBody,
    IssueCommentBody,
    IssueUpdateBody,
    PullRequestBody,
    ReviewBody,
)

Welcome = Literal["welcome", "unwelcome", "unclear"]
Rule = Literal["allowed", "conditions", "forbidden", "attack", "none"]
"""The statements of a file about AI agents: allowed, allowed under conditions, forbidden, or nothing clear.

An `attack` asks them to hide something from their owner, to tell secrets or to switch off a check.
"""
ConditionKind = Literal["title", "pull_request", "text", "file"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a repository for an agent's texts there that code can meet.

    Attributes:
        kind: `title` is a marker in each title, `pull_request` a line in the text of each pull request, `text` a line
            in each text, and `file` a line in the file `path` with each pull request.
        text: the marker or line, as it stands in the rules.
        path: the file; "" for the other kinds.

    """

    kind: ConditionKind
    text: str
    path: str = ""

    @property
    def told(self) -> str:
        """The condition for people."""
        return f"{self.path or self.kind.replace('_', ' ')}: {self.text}"


@dataclass(frozen=True, slots=True)
class RuleFound:
    """The kind of rule in a text; in `conditions`, None stands for one that code cannot meet."""

    rule: Rule
    conditions: tuple[Condition | None, ...] = ()


class VerdictCode(StrEnum):
    """The reason why a repository counts as welcoming, unwelcoming or unclear."""

    MEMBER = "member"
    NOTHING_SAID = "nothing-said"
    ALLOWED = "allowed"
    CONDITIONS = "conditions"
    MET = "conditions-met"
    ATTACK = "attack"
    FORBIDDEN = "forbidden"
    PULLS_CLOSED = "pulls-closed"
    UNREAD = "unread"
    OWNER_YES = "owner-yes"
    OWNER_NO = "owner-no"
    ANOTHER = "another"


@dataclass(frozen=True, slots=True)
class RepositoryVerdict:
    """The verdict whether a repository accepts us.

    Attributes:
        code: why.
        path: the file that decided; "" if none did.
        at: when it was found out, ISO-8601 UTC.
        pages: the SHA-256 of the paths and contents of its pages at that time; "" if they were not read.
        pushed_at: the last change of one of its branches, if known, ISO-8601 UTC.
        conditions: what it asks for and code adds to each act there.
        since: when these rules were first found; the owner's yes to a later act covers them.

    """

    code: VerdictCode
    path: str = ""
    at: str = ""
    pages: str = ""
    pushed_at: str = ""
    conditions: tuple[Condition, ...] = ()
    since: str = ""

    @property
    def welcome(self) -> Welcome:
        """The welcome that the code stands for."""
        return _VERDICTS[self.code][0]

    @property
    def reason(self) -> str:
        """The reason, for people."""
        reason = _VERDICTS[self.code][1].format(path=self.path or "a file")
        asked = "; ".join(one.told for one in self.conditions)
        return f"{reason}; added: {asked}" if asked else reason


_VERDICTS: dict[VerdictCode, tuple[Welcome, str]] = {
    VerdictCode.MEMBER: ("welcome", "our account may push there"),
    VerdictCode.NOTHING_SAID: ("welcome", "all that it shows was read, and nothing of it is a rule for AI agents"),
    VerdictCode.ALLOWED: ("welcome", "{path} allows AI agents"),
    VerdictCode.CONDITIONS: ("unclear", "{path} has conditions for AI agents, or is unclear"),
    VerdictCode.MET: ("welcome", "{path} has conditions for AI agents, which are met"),
    VerdictCode.ATTACK: (
        "unwelcome",
        "{path} attacks AI agents: it asks them to deceive their owner, tell secrets or skip a check",
    ),
    VerdictCode.FORBIDDEN: ("unwelcome", "{path} does not want AI agents"),
    VerdictCode.PULLS_CLOSED: ("unclear", "it takes pull requests from its own people only, or from nobody"),
    VerdictCode.UNREAD: ("unclear", "not all that it shows could be read ({path}), so its rules are not known"),
    VerdictCode.OWNER_YES: ("welcome", "the owner approved an act there"),
    VerdictCode.OWNER_NO: ("unwelcome", "the owner rejected an act there"),
    VerdictCode.ANOTHER: ("unwelcome", "another repository answers under its name than when it was first seen"),
}


DEFAULTS = ".github"
"""The repository whose files GitHub shows for repositories of the same owner that have none of their own."""
MOST_FILES = 40
MOST_CHARS = 60_000
MOST_NAMES = 500
"""The most pages that the model is shown by name, those nearest to the root first."""
PIECE_CHARS = 12_000
KEPT_FOR = timedelta(days=30)
"""The time for which a verdict holds while its pages are unchanged; an unclear one holds a week."""
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
    """A file that people read, in the repository `place`; `name` is its name in questions and reasons."""

    place: Repo
    entry: ContentEntry
    name: str


def pages_of(repo: Repo, place: Repo, tree: Tree) -> list[RulePage]:
    """Return the pages in `place`, which is `repo` itself or holds the pages for all repositories of its owner."""
    named = (one.path if place == repo else f"{place.full_name}/{one.path}" for one in tree.entries)
    return [RulePage(place, one, name) for one, name in zip(tree.entries, named, strict=True) if _is_page(one)]


def nearest(pages: Iterable[RulePage]) -> list[RulePage]:
    """Return the pages nearest to the root, at most `MOST_NAMES`; the folder `.github` counts as the root."""
    return sorted(pages, key=lambda one: (_depth(one.entry.path), one.name))[:MOST_NAMES]


def names_shown(pages: Sequence[RulePage]) -> str:
    """Return the names of the pages, one per line with its number from 1."""
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
    """Yield a text in pieces that a model can read, each under the name of its file, cut between lines if possible."""
    text = text.strip()
    while text:
        end = len(text) if len(text) <= PIECE_CHARS else (text.rfind("\n", 1, PIECE_CHARS) + 1 or PIECE_CHARS)
        yield f"{path}:\n{text[:end].strip()}"
        text = text[end:].strip()


def questions(texts: Sequence[tuple[str, str]]) -> list[tuple[tuple[str, ...], str]]:
    """Return texts, given by path, packed into as few questions as hold them, each with its paths."""
    asked: list[tuple[tuple[str, ...], str]] = []
    for path, text in texts:
        for piece in pieces(path, text):
            if asked and len(asked[-1][1]) + len(piece) <= PIECE_CHARS:
                paths, before = asked.pop()
                asked.append(((*paths, path), f"{before}\n\n{piece}"))
            else:
                asked.append(((path,), piece))
    return asked


def verdict_of(rules: Sequence[tuple[str, RuleFound]]) -> RepositoryVerdict:
    """Return the verdict from what the files say, by path; the strictest rule decides.

    Conditions are met if there are few and code can add each of them. Those that it can add are added in any case.
    """
    for rule in _STRICTEST_FIRST:
        found = [(path, said.conditions or (None,)) for path, said in rules if said.rule == rule]
        if found and rule != "conditions":
            return RepositoryVerdict(VerdictCode(rule), found[0][0])
        if found:
            each = list(dict.fromkeys(one for _, conditions in found for one in conditions))
            is_met = None not in each and len(each) <= MOST_CONDITIONS
            kept = tuple(one for one in each if one)[:MOST_CONDITIONS]
            code = VerdictCode.MET if is_met else VerdictCode.CONDITIONS
            return RepositoryVerdict(code, found[0][0], conditions=kept)
    return RepositoryVerdict(VerdictCode.NOTHING_SAID)


_STRICTEST_FIRST: tuple[Rule, ...] = ("attack", "forbidden", "conditions", "allowed")
MOST_CONDITIONS = 5
_MARKER_CHARS, _LINE_CHARS = 30, 200
_NOT_PLAIN = re.compile(r"[@&<>`\\]|#\d|\]\s*[(:\[]|//|www\.|~~~", re.IGNORECASE)
"""Matches what mentions or links something on GitHub, or is more than text."""
_KINDS: Mapping[str, ConditionKind] = {kind: kind for kind in get_args(ConditionKind)}


def condition_of(given: object, rules: str) -> Condition | None:
    """Return a condition from a model's answer, or None if code cannot meet it.

    It must apply to an AI agent that acts alone, and be one short line of plain text from the `rules` that mentions
    nobody, links nothing and closes no issue; a file must be a document outside hidden folders.
    """
    told = given if isinstance(given, Mapping) and given.get("true") is True else {}
    kind, quoted, path = (str(told.get(name) or "") for name in ("kind", "text", "path"))
    text = quotation(quoted, rules)
    most = _MARKER_CHARS if kind == "title" else _LINE_CHARS
    is_plain = text == one_line(clean(text), most) and not _NOT_PLAIN.search(text)
    before = f"{text} #1"  # NOTE(self): a marker may end in a word that closes the issue that a title names
    if kind not in _KINDS or not is_plain or not text or without_closing_words(before) != before:
        return None
    if kind != "file":
        return Condition(_KINDS[kind], text)
    parts = PurePosixPath(path).parts
    is_document = PurePosixPath(path).suffix.lower() in _PAGES and path == one_line(clean(path), _NAME_CHARS)
    is_inside = not path.startswith("/") and not any(part.startswith(".") for part in parts)
    return Condition("file", text, path) if is_document and is_inside else None


def with_conditions(body: KnownBody, conditions: Sequence[Condition]) -> KnownBody:
    """Return an act with what a repository asks for; a second call changes nothing."""
    if not isinstance(body, PullRequestBody | IssueBody | IssueUpdateBody | IssueCommentBody | ReviewBody):
        return body
    in_pull = isinstance(body, PullRequestBody | IssueUpdateBody)
    changes: dict[str, str] = {}
    if not isinstance(body, IssueCommentBody | ReviewBody) and body.title:
        missing = [one.text for one in conditions if one.kind == "title" and one.text not in body.title]
        changes["title"] = " ".join([*missing, body.title])
    if body.body or isinstance(body, PullRequestBody):
        asked = [one.text for one in conditions if one.kind == "text" or (in_pull and one.kind == "pull_request")]
        missing = [line for line in dict.fromkeys(asked) if line not in body.body.splitlines()]
        changes["body"] = "\n\n".join(filter(None, [body.body, *missing]))
    return body.model_copy(update={name: text for name, text in changes.items() if text != getattr(body, name)})


def are_same_rules(before: RepositoryVerdict, after: RepositoryVerdict) -> bool:
    """Return whether a yes to the earlier verdict covers the later one: same pages, or all met as before."""
    is_all_known = after.code is VerdictCode.MET or before.pages == after.pages
    return (before.code, before.conditions) == (after.code, after.conditions) and is_all_known


def is_fresh(verdict: RepositoryVerdict, since: Since) -> bool:
    """Return whether a verdict is still valid."""
    holds = UNCLEAR_FOR if verdict.welcome == "unclear" else KEPT_FOR
    return since(parse_iso(verdict.at)) < holds
