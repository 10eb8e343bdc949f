"""No branch of the product reads a sentence that was written for people: decisions carry a code for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.project import product_trees

pytestmark = pytest.mark.guard

_PROSE = frozenset({"reason", "error", "summary", "detail", "why", "why_not"})
_SEARCHES = frozenset({"startswith", "endswith", "find", "index", "count", "removeprefix", "removesuffix"})
_MATCHES = frozenset({"search", "match", "fullmatch", "findall", "finditer"})


def _prose_read(tree: ast.AST) -> Iterator[ast.expr]:
    """Every place where such a sentence is compared or searched, also under the name of a variable that holds it."""
    yield from _read_in(tree, frozenset())
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            held = _holders(scope)
            yield from (found for found in _read_in(scope, held) if isinstance(found, ast.Name))


def _read_in(tree: ast.AST, held: frozenset[str]) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                yield from (side for side in (left, *others) if _is_prose(side, held) and not _asks_for_none(node))
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _SEARCHES and _is_prose(value, held):
                yield value
            case ast.Call(func=ast.Attribute(attr=attr), args=arguments) if attr in _MATCHES:
                yield from (argument for argument in arguments if _is_prose(argument, held))
            case ast.Match(subject=subject) if _is_prose(subject, held):
                yield subject


def _is_prose(node: ast.expr, held: frozenset[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in held
    return isinstance(node, ast.Attribute) and node.attr in _PROSE


def _asks_for_none(node: ast.Compare) -> bool:
    return all(isinstance(one, ast.Is | ast.IsNot) for one in node.ops)


def _holders(scope: ast.AST) -> frozenset[str]:
    """The variables of a function to which such a sentence is assigned."""
    names: set[str] = set()
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value) if _is_prose(value, frozenset()):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.NamedExpr(target=ast.Name(id=name), value=value) if _is_prose(value, frozenset()):
                names.add(name)
    return frozenset(names)


def test_no_branch_compares_or_searches_a_sentence() -> None:
    found = [(path, node) for path, tree in product_trees().items() for node in _prose_read(tree)]
    assert [f"{path}:{node.lineno}: {ast.unparse(node)}" for path, node in found] == []


@pytest.mark.parametrize(
    "source",
    [
        "if verdict.reason == 'too soon': pass",
        "if 'is over' in outcome.error: pass",
        "x = said.reason.startswith('no')",
        "match decision.reason:\n    case 'a': pass",
        "if re.search('soon', verdict.reason): pass",
        "if _SOON.fullmatch(outcome.error): pass",
        "def f(one):\n    why = one.reason\n    return why == 'too soon'",
        "def f(one):\n    if (why := one.reason) and 'soon' in why: pass",
    ],
)
def test_such_a_branch_is_found(source: str) -> None:
    assert list(_prose_read(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "if verdict.reason: pass",
        "def f(one):\n    why = one.reason\n    return why or 'none was given'",
        "def f(one):\n    error = one.error\n    return error is None",
        "if verdict.code == 'too_soon': pass",
    ],
)
def test_a_sentence_that_is_only_passed_on_is_no_branch(source: str) -> None:
    assert list(_prose_read(ast.parse(source))) == []
