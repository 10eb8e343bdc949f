"""Which files of a repository may have rules for AI agents, in which pieces a model reads them, what follows. Pure.

Nothing here knows a word of any language: what a file says is the model's to read, and what could not be read is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from adapters.github.types import ContentEntry
from common.clock import Since, parse_iso
from modules.services.repository_rules.types import RepositoryVerdict, Rule, VerdictCode

FOLDERS = ("", ".github", "docs")
"""Where such files stand: the root, and two folders where there are any, with the folders of templates in them."""
DEFAULTS = ".github"
"""The repository whose files GitHub shows for all repositories of its owner that have none of their own."""
MOST_FILES = 40
MOST_CHARS = 60_000
PIECE_CHARS = 12_000
KEPT_FOR = timedelta(days=30)
"""So long a verdict holds; one that is not clear holds a week."""
UNCLEAR_FOR = timedelta(days=7)

_TEMPLATES = re.compile(r"(?:issue|pull_request|discussion)_template", re.IGNORECASE)
_FORM = re.compile(r".+\.ya?ml", re.DOTALL | re.IGNORECASE)
# NOTE(self): what is no file of a program counts as a page, whatever it is called: a page of an unknown form is read,
# or the owner is asked.
_OF_PROGRAMS = re.compile(
    r".*\.(?:[\w-]*(?:ignore|rc|attributes|modules|config|keep|version|mailmap|env|profile)"
    r"|ya?ml|toml|json[c5l]?|xml|cfg|conf|ini|properties|lock|sum|mod|work|gradle|cmake|in|am|ac|m4|mk|nix|bzl|bazel"
    r"|pyi?|pyx|ipynb|rb|gemspec|rake|[cm]?[jt]sx?|vue|svelte|s?css|less|rs|go|java|kts?|scala|sbt|clj[sc]?|swift|dart"
    r"|cs|fs|vb|csproj|sln|props|targets|c|h|cc|cpp|cxx|hh|hpp|mm?|zig|hs|cabal|ml|mli|exs?|erl|php|pl|pm|r|jl|lua|el"
    r"|sh|bash|zsh|fish|ps1|bat|cmd|sql|proto|graphql|tf|csv|tsv|parquet|diff|patch|map|snap|asc|sig|pem"
    r"|png|jpe?g|gif|svg|ico|webp|avif|mp[34]|webm|mov|wav|ogg|woff2?|ttf|otf|zip|t?gz|bz2|xz|jar|whl|wasm|exe|dll|so)"
    r"|(?:make|docker|gem|rake|jenkins|proc|vagrant|brew|pip|just)file|configure|gradlew|mvnw|cmakelists\.txt"
    r"|requirements(?:[-_]\w+)?\.txt",
    re.DOTALL | re.IGNORECASE,
)
# NOTE(self): by convention these tell of the past, or what the law says, and they are the longest of all.
_RECORD = re.compile(
    r"(?:licen[cs]e|copying|notice|patents|authors|contributors|change[-_ ]?log|changes|history|news|releases"
    r"|release[-_ ]?notes)(?:\.[a-z]+)?",
    re.IGNORECASE,
)
# NOTE(self): a floor and no more: of `docs`, which may be a whole book, a page under another name is not read.
_NAMED = re.compile(
    r"read_?me|contribut|conduct|polic(?:y|ies)|guideline|richtlinie"
    r"|(?<![^\W_])(?:ai|ki|llms?|genai|agents?|bots?|rules?|claude|gemini|copilot)(?![^\W_])",
    re.IGNORECASE,
)


def template_folders(listed: Iterable[ContentEntry]) -> list[str]:
    """Return the folders with templates for what people write, among what a folder holds."""
    return [one.path for one in listed if one.type == "dir" and _TEMPLATES.fullmatch(one.name)]


def files_to_read(listed: Iterable[ContentEntry]) -> list[ContentEntry]:
    """Return the files in which something may stand on how to take part, those that most likely do first.

    These are all but the files of programs and records of the past. Of `docs`, which may be a whole book, only those
    that are named for it, and templates. A folder that stands elsewhere (a submodule) is among them if it matters.
    """
    return sorted((one for one in listed if _is_read(one)), key=lambda one: (not _NAMED.search(one.name), one.path))


def _is_read(one: ContentEntry) -> bool:
    folder = one.path.rpartition("/")[0]
    is_named = _NAMED.search(one.name) is not None
    if one.type == "dir":
        return False
    if one.type == "submodule":
        return is_named or one.path.lower() in FOLDERS
    if _TEMPLATES.fullmatch(folder.rpartition("/")[2]) and _FORM.fullmatch(one.name):
        return True
    if _OF_PROGRAMS.fullmatch(one.name) or _RECORD.fullmatch(one.name):
        return False
    return is_named or folder != "docs"


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
