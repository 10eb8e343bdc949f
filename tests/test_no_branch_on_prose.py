"""No branch of the product reads a sentence that was written for people: decisions carry a code for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import ROOT

_PROSE = frozenset({"reason", "error", "summary", "detail", "why", "why_not"})
_SEARCHES = frozenset({"startswith", "endswith", "find", "index", "count", "removeprefix", "removesuffix"})
_FOLDERS = ("adapters", "common", "local_tools", "modules", "soul", "town")


def _prose_read(tree: ast.AST) -> Iterator[ast.expr]:
    """Every place where such a sentence is compared or searched."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                yield from (side for side in (left, *others) if _is_prose(side))
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _SEARCHES and _is_prose(value):
                yield value
            case ast.Match(subject=subject) if _is_prose(subject):
                yield subject


def _is_prose(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _PROSE


def _sources() -> list[Path]:
    return sorted(path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_branch_compares_or_searches_a_sentence(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [f"{path.name}:{node.lineno}: {ast.unparse(node)}" for node in _prose_read(tree)] == []


@pytest.mark.parametrize(
    "source",
    [
        "if verdict.reason == 'too soon': pass",
        "if 'is over' in outcome.error: pass",
        "x = said.reason.startswith('no')",
        "match decision.reason:\n    case 'a': pass",
    ],
)
def test_such_a_branch_is_found(source: str) -> None:
    assert list(_prose_read(ast.parse(source)))
