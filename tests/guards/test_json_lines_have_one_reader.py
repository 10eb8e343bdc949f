"""Lines that hold JSON are split by `common/json_lines.py`: `str.splitlines` splits inside of strings too."""

from __future__ import annotations

import ast

import pytest

from tests.project import product_trees

pytestmark = pytest.mark.guard

_OTHER_LINES = {
    "modules/services/identity/history.py": "lines of SELF.md; its JSON is whole files",
    "modules/services/rights/scrub.py": "lines of logs",
    "town/mind/questions.py": "lines of pages; its JSON is answers of a model",
}


def _splits_json_lines(tree: ast.AST) -> bool:
    """Whether a module that parses JSON, or names a file of JSON lines, splits lines as prose is split."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return "splitlines" in attributes and ("loads" in attributes or any("jsonl" in text for text in strings))


def test_no_module_that_reads_json_splits_lines_as_prose_is_split() -> None:
    found = {path for path, tree in product_trees().items() if _splits_json_lines(tree)}
    assert found - set(_OTHER_LINES) == set()


def test_a_violation_is_found() -> None:
    assert _splits_json_lines(ast.parse("found = [json.loads(line) for line in text.splitlines()]"))
    assert _splits_json_lines(ast.parse("lines = (folder / 'log.jsonl').read_text().splitlines()"))
    assert not _splits_json_lines(ast.parse("lines = page.splitlines()"))
