"""Every regular expression of the product, and texts that make a bad one slow."""

import ast
import importlib
import itertools
import pkgutil
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import regex

from common.text.patterns import LazyPattern
from tests.project import ROOT, product_trees

PACKAGES = ("adapters", "common", "local_tools", "modules", "soul", "town")

MOST_DEPTH = 4
MOST_OWN = 24

_PATTERNS = (re.Pattern, regex.Pattern)
_ANCHORED = frozenset({"match", "fullmatch"})
_METHODS = _ANCHORED | {"search", "sub", "subn", "split", "findall", "finditer"}
_ALL = _METHODS
_BETWEEN = (".", " ", "\n", ",")
_ENDS = ("", "\0", "\n", " !")
_FRAGMENTS = (
    *("a", "A", "0", " ", "\n", "\t", "\r", "\r\n", ".", "-", "_", "/", ":", "@", "#", "*", "`", "~", "[", "]", "("),
    *(")", "<", ">", "|", "!", "?", ",", ";", "'", '"', "\\", '\\"', "=", "&", "%", "$", "+", "{", "}", "^", "a."),
    *("a-", "a/", "a:", "a@", "a ", "a\n", " a", "a,", "a'", "a b ", "ab1-", "0.", "0)", "0-", "1. ", "- ", "-a"),
    *("@a", "@a ", "@a.", "#a", "#1", "http://", "https://", "https://a", "https://a.b/", "https://a ", "www."),
    *("://", "a.a.", "a-.", "a.b/", "a/b#", "[a](", "](", "[[", "**", "*a*", "__", "~~", "``", "```", "<!--", "-->"),
    *("<a>", "</", "\u00e9", "\u4f60", "\u3042", "\u0e01", "e\u0301", "\u0301", "\u200b", "\u200d", "\ufe0f"),
    *("\u2026", "\u201c", "\U0001f600", "\U0001f468\u200d", "\U0001f1e6", "\u3002", "\u2028", "\x1b[", "\x85"),
    *("\u0600", "\u1100", "\n\n", "\n- ", "\n# ", "\n> ", "{{", "}}", "{ ", '"a"', '"a', "(a", "a)", ". ", "? "),
    *("A.", "you ", "the a "),
)


@dataclass(frozen=True)
class Found:
    """A pattern, where it is in the product, and the methods by which it is used there."""

    where: str
    pattern: Any
    methods: frozenset[str] = _ALL

    def run(self, text: str) -> None:
        """Apply the pattern to `text` in each way in which the product does."""
        if self.methods - _ANCHORED:
            for _ in self.pattern.finditer(text):
                pass
        if "match" in self.methods:
            self.pattern.match(text)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(text)


@cache
def product_patterns() -> tuple[Found, ...]:
    """Return each pattern once: those that modules, classes and containers hold, and those that functions build."""
    found: dict[tuple[str, str, int], Found] = {}
    modules = [(module, _tree(module)) for module in _modules()]
    shared = _uses(tree for _, tree in modules)
    for module, tree in modules:
        own = _uses([tree])
        uses = {name: own.get(name, shared[name]) if name.startswith("_") else shared[name] for name in shared}
        for one in (*_held(module, uses), *_built(module, tree)):
            key = (type(one.pattern).__module__, str(one.pattern.pattern), int(one.pattern.flags))
            methods = found[key].methods | one.methods if key in found else one.methods
            found[key] = Found(one.where, one.pattern, methods)
    return tuple(sorted(found.values(), key=lambda one: one.where))


def _tree(module: ModuleType) -> ast.Module:
    return product_trees()[Path(str(module.__file__)).relative_to(ROOT).as_posix()]


def _uses(trees: Iterable[ast.Module]) -> dict[str, frozenset[str]]:
    """Return by name the methods called on each pattern; one that is passed on counts as used in every way."""
    uses: dict[str, frozenset[str]] = {}
    for tree in trees:
        called: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in _METHODS:
                called.add(id(node.value))
                called.add(id(getattr(node.value, "value", None)))
                name = _name(node.value)
                uses[name] = uses.get(name, frozenset()) | {node.attr}
        for node in ast.walk(tree):
            loaded = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
            if loaded and id(node) not in called and (name := _name(node)).isupper():
                uses[name] = _ALL
    return uses


def _name(node: ast.AST) -> str:
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        root = importlib.import_module(package)
        yield root
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not info.name.endswith("__main__"):
                yield importlib.import_module(info.name)


def _held(module: ModuleType, uses: Mapping[str, frozenset[str]]) -> Iterator[Found]:
    seen: set[int] = set()
    for name, value in vars(module).items():
        if not name.startswith("__"):
            methods = uses.get(name, _ALL)
            for one in _inside(value, f"{module.__name__}.{name}", module.__name__, seen, MOST_DEPTH):
                yield Found(one.where, one.pattern, methods)


def _inside(value: Any, where: str, module: str, seen: set[int], depth: int) -> Iterator[Found]:
    value = getattr(value, "__wrapped__", value)
    value = value.compiled if isinstance(value, LazyPattern) else value
    value = value if not isinstance(getattr(value, "__self__", None), _PATTERNS) else value.__self__
    if isinstance(value, _PATTERNS):
        if isinstance(value.pattern, str):
            yield Found(where, value)
        return
    if depth == 0 or id(value) in seen or isinstance(value, str | bytes | int | float | ModuleType):
        return
    seen.add(id(value))
    for name, inner in _parts(value, module):
        yield from _inside(inner, f"{where}[{name}]", module, seen, depth - 1)


def _parts(value: Any, module: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, type):
        if value.__module__ == module:
            yield from list(vars(value).items())
    elif isinstance(value, Mapping):
        for key, inner in list(value.items()):
            yield str(key), key
            yield str(key), inner
    elif isinstance(value, tuple | list | set | frozenset):
        yield from ((str(place), inner) for place, inner in enumerate(value))
    elif is_dataclass(value):
        yield from ((field.name, getattr(value, field.name, None)) for field in fields(value))
    elif getattr(value, "__closure__", None) and getattr(value, "__module__", "") == module:
        yield from ((str(place), cell.cell_contents) for place, cell in enumerate(value.__closure__))


def _built(module: ModuleType, tree: ast.Module) -> Iterator[Found]:
    """Yield the patterns in calls of `re` and `regex` inside functions; the letter a stands for a local variable."""
    path = Path(str(module.__file__))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for node in (inner for function in functions for inner in ast.walk(function)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        library = node.func.value
        if not (
            isinstance(library, ast.Name) and library.id in {"re", "regex"} and node.func.attr in {"compile", *_METHODS}
        ):
            continue
        text = _text_of(node.args[0], vars(module))
        if text is None:
            continue
        compiled = vars(module)[library.id].compile(text, _flags(node, vars(module)))
        methods = _ALL if node.func.attr == "compile" else frozenset({node.func.attr})
        yield Found(f"{path.relative_to(ROOT)}:{node.lineno}", compiled, methods)


def _text_of(node: ast.expr, names: Mapping[str, Any]) -> str | None:
    """Return the text of a pattern's expression, or None if it is only a name that a function was given."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(part, names) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (_text_of(side, names) for side in (node.left, node.right))
        return (left or "a") + (right or "a")
    return names[node.id] if isinstance(node, ast.Name) and isinstance(names.get(node.id), str) else None


def _piece(part: ast.expr, names: Mapping[str, Any]) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    inner = part.value if isinstance(part, ast.FormattedValue) else part
    return _text_of(inner, names) or "a"


def _flags(call: ast.Call, names: Mapping[str, Any]) -> int:
    wanted = [word.value for word in call.keywords if word.arg == "flags"]
    if isinstance(call.func, ast.Attribute) and len(call.args) > (2 if call.func.attr != "compile" else 1):
        wanted.append(call.args[-1])
    flags = 0
    for node in (inner for one in wanted for inner in ast.walk(one)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"re", "regex"}:
            flags |= int(getattr(names[node.value.id], node.attr))
        elif isinstance(node, ast.Name) and isinstance(names.get(node.id), int):
            flags |= int(names[node.id])
    return flags


@dataclass(frozen=True)
class Hostile:
    """A text of any length: a beginning, a fragment that is repeated, an end."""

    head: str
    fragment: str
    end: str

    def of(self, chars: int) -> str:
        room = chars - len(self.head) - len(self.end)
        return f"{self.head}{(self.fragment * (room // len(self.fragment) + 1))[:room]}{self.end}"


def literals(pattern: str) -> list[str]:
    """Return the words and signs in the text of a pattern, those in its character classes included."""
    plain = re.sub(r"\\p\{\w+\}|\\[bBAZzdDsSwWX]|\(\?(?:P?<\w+>|<?[=!]|[:>])|\{\d*,?\d*\}", "\0", pattern)
    plain = re.sub(r"\\(.)", r"\1", plain)
    words = re.findall(r"[\w' ./:@#-]{2,24}", plain.replace("\0", "\n"))
    signs = sorted({sign for sign in plain if not sign.isalnum() and sign not in "\0\n "})
    return list(dict.fromkeys([*(word for word in words if word.strip()), *signs]))


def hostile_texts(pattern: str, *, pairs: int) -> Iterator[Hostile]:
    """Yield texts that repeat general fragments, the pattern's own, its words in a row, and up to `pairs` pairs."""
    rng, own = random.Random(len(pattern)), literals(pattern)
    own = own if len(own) <= MOST_OWN else rng.sample(own, MOST_OWN)
    for fragment in dict.fromkeys([*own, *_FRAGMENTS, *(f"{one}a" for one in own)]):
        yield Hostile("", fragment, "\0")
    for word, between in itertools.product(own, _BETWEEN):
        if word[-1].isalnum():
            yield Hostile("", word + between, "\0")
    beside = [*itertools.product(own, own), *itertools.product(own, _FRAGMENTS), *itertools.product(_FRAGMENTS, own)]
    for first, second in rng.sample(beside, min(pairs, len(beside))):
        yield Hostile("", first + second, rng.choice(_ENDS))
        yield Hostile(first, second, rng.choice(_ENDS))
        yield Hostile("", first, second * 9)
