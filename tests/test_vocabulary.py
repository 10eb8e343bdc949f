"""One thing has one name: the tables of `docs/glossary.md` are held in identifiers, file names and sentences."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePosixPath

import pytest

from tests.project import ROOT

GLOSSARY = "docs/glossary.md"
NOT_HELD = (
    "skills/**",
    "CHANGELOG.md",
    "SOUL.md",
    "docs/names.md",
    "tests/fixtures/home_*/**",
    "town/mind/phrases/**",
    "town/residents/**",
    "tests/test_vocabulary.py",
    GLOSSARY,
)

_CODE = re.compile(r"`([^`]+)`")
_RUN = re.compile(r"\w+")
_ESCAPE = re.compile(r"\\[a-z]")
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Rule:
    """Words, or whole identifiers if `whole`, that do not stand in the files of these patterns."""

    never: frozenset[str]
    instead: str
    names: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    whole: bool = False

    @cached_property
    def _signs(self) -> list[set[str]]:
        return [set(_RUN.findall(one if self.whole else one.lower())) for one in self.never]

    def may_hold(self, path: str, there: AbstractSet[str]) -> bool:
        """Whether a file in which these words stand needs to be read closely."""
        return any(sign <= there for sign in self._signs) and matches(path, (*self.names, *self.sentences))


@dataclass(frozen=True)
class Found:
    path: str
    line: int
    name: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}: say {self.instead}"


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below that heading, without its first two lines."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def patterns(cell: str) -> tuple[str, ...]:
    return ("**",) if cell == "everywhere" else tuple(_CODE.findall(cell))


def rules(page: str) -> list[Rule]:
    """The rules of the first two tables."""
    words = [
        Rule(frozenset(_CODE.findall(never)), word, patterns(names), patterns(sentences))
        for _, word, never, names, sentences in rows(page, "Concepts")
    ]
    return words + [
        Rule(frozenset(_CODE.findall(old)), new, patterns(where), whole=True)
        for _, old, new, where in rows(page, "Renamed")
    ]


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    return re.compile("".join({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}.get(one, re.escape(one)) for one in parts))


def matches(path: str, among: Sequence[str]) -> bool:
    return any(_expression(pattern).fullmatch(path) for pattern in among)


@cache
def words_of(identifier: str) -> frozenset[str]:
    """`_openDoor_s` is `open`, `door` and `s`."""
    return frozenset(_CAPITALS.sub("_", identifier).lower().split("_"))


def identifiers(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Each name that the code gives or uses, with its line."""
    for node in nodes:
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str() as name):
                yield line, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not name.startswith("test_"):  # the name of a test is a sentence
                    yield line, name
            case ast.ImportFrom(module=str() as name):
                yield from ((line, part) for part in name.split("."))
            case ast.alias(name=name, asname=asname):
                yield from ((line, part) for part in (*name.split("."), asname or ""))


def docstrings(nodes: Sequence[ast.AST]) -> set[ast.Constant]:
    return {
        node.value
        for scope in nodes
        if isinstance(scope, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for node in scope.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def sentences(path: str, nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Docstrings of a module, and its strings of several words.

    The strings of a test are left out: they are what people and models say.
    """
    told = docstrings(nodes)
    if not path.startswith("tests/"):
        told |= {node for node in nodes if isinstance(node, ast.Constant) and " " in str(node.value).strip()}
    for node in told:
        yield from ((node.lineno + offset, line) for offset, line in enumerate(str(node.value).splitlines()))


def comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@cache
def _spoken(words: frozenset[str]) -> re.Pattern[str]:
    either = "|".join(map(re.escape, sorted(words)))
    return re.compile(rf"(?<![\w`.-])(?:{either})(?![\w`-])", re.IGNORECASE)


def words_in(text: str) -> set[str]:
    """Each run of letters, digits and underscores, and each word in it; what stands behind an escape begins anew."""
    runs = set(_RUN.findall(_ESCAPE.sub(" ", text)))
    return runs.union(*map(words_of, runs))


def violations(path: str, text: str, held: Sequence[Rule]) -> Iterator[Found]:
    """What in this file the rules forbid."""
    there = words_in(f"{path} {text}")
    if not (held := [rule for rule in held if rule.may_hold(path, there)]):
        return
    named = [(0, part) for part in PurePosixPath(path).parts[:-1]] + [(0, PurePosixPath(path).stem)]
    if path.endswith(".py"):
        nodes = list(ast.walk(ast.parse(text)))
        named += identifiers(nodes)
        said = [*sentences(path, nodes), *comments(text)]
    else:
        said = list(enumerate(text.splitlines(), 1))
    split = [(line, name, words_of(name.replace("-", "_"))) for line, name in named]
    for rule in held:
        if matches(path, rule.names):
            for line, name, words in split:
                if (name in rule.never) if rule.whole else not words.isdisjoint(rule.never):
                    yield Found(path, line, name, rule.instead)
        if matches(path, rule.sentences):
            for line, words_said in said:
                yield from (
                    Found(path, line, one.group().lower(), rule.instead)
                    for one in _spoken(rule.never).finditer(words_said)
                )


PAGE = (ROOT / GLOSSARY).read_text(encoding="utf-8")
RULES = rules(PAGE)
EXCEPTIONS = [(_CODE.findall(what), patterns(where), reason) for what, where, reason in rows(PAGE, "Exceptions")]


def is_excepted(found: Found) -> bool:
    return any(found.name in what and matches(found.path, where) for what, where, _ in EXCEPTIONS)


def _files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    return [
        path for path in listed if path.endswith((".py", ".md", ".toml", ".example")) and not matches(path, NOT_HELD)
    ]


def test_every_word_is_the_glossarys() -> None:
    found = [one for path in _files() for one in violations(path, (ROOT / path).read_text("utf-8"), RULES)]
    assert [str(one) for one in found if not is_excepted(one)] == []
    unused = [
        what for what, where, _ in EXCEPTIONS if not any(o.name in what and matches(o.path, where) for o in found)
    ]
    assert unused == [], "exceptions that nothing needs"


@pytest.mark.parametrize(
    ("path", "source", "names"),
    [
        ("modules/services/outbox/outbox.py", "class Courier: pass", ["Courier", "Courier"]),
        ("modules/services/outbox/x.py", "def at_the_door() -> None: ...", ["at_the_door", "at_the_door"]),
        ("modules/lives/space/x.py", "self.wishes = 1", ["wishes"]),
        ("modules/lives/space/x.py", "def f(openDoor: int) -> None: ...", ["openDoor"]),
        ("modules/lives/space/x.py", "from modules.promise_keeper import f", ["promise_keeper"]),
        ("modules/lives/space/promises.py", "", ["promises"]),
        ("modules/lives/space/x.py", '"""What was promised."""', ["promised"]),
        ("soul/x.py", 'raise ValueError(f"not a wish: {x}")', ["wish"]),
        ("soul/x.py", "x = 1  # the promise", ["promise"]),
        ("docs/x.md", "It frames other people's words.", ["other people's words"]),
        ("soul/x.py", "outdoors = promising = 1", []),
        ("adapters/x.py", "but = 1", ["but"]),
        ("modules/x.py", "this = 'but'", []),
    ],
)
def test_a_word_that_comes_back_is_found(path: str, source: str, names: list[str]) -> None:
    assert [one.name for one in violations(path, source, RULES)] == names


def test_each_exception_has_a_reason() -> None:
    assert [what for what, where, reason in EXCEPTIONS if not (what and where and len(reason) > 10)] == []
