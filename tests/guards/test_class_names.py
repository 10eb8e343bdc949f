"""A class name is defined once in the product: one name says one thing wherever it is read."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests.project import product_trees

pytestmark = pytest.mark.guard


def _defined_twice(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Each class name with more than one definition, and the modules that define it."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_class_name_is_defined_twice() -> None:
    assert _defined_twice(product_trees()) == {}


def test_a_class_name_that_is_defined_twice_is_found() -> None:
    trees = {"a.py": ast.parse("class Plan: ..."), "b.py": ast.parse("class Task:\n    class Plan: ...")}
    assert _defined_twice(trees) == {"Plan": ["a.py", "b.py"]}
