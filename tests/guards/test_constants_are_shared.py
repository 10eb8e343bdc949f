"""What stands in common/constants.py is used by two packages or more; a number with one user stands beside it."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import PurePosixPath

import pytest

from common import constants
from tests.project import product_trees

pytestmark = pytest.mark.guard

UNITS = {"SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS"}


def _imported(tree: ast.Module) -> set[str]:
    """Returns the constants that a module takes, by name or through the module `common.constants`."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in froms if node.module == "common.constants" for alias in node.names}
    modules = {
        alias.asname or alias.name
        for node in froms
        if node.module == "common"
        for alias in node.names
        if alias.name == "constants"
    }
    return names | {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }


def test_each_shared_constant_has_users_in_two_packages() -> None:
    users: dict[str, set[PurePosixPath]] = defaultdict(set)
    for path, tree in product_trees().items():
        for name in _imported(tree):
            users[name].add(PurePosixPath(path).parent)
    shared = {name for name in vars(constants) if name.isupper()} - UNITS
    assert {name: sorted(map(str, users[name])) for name in sorted(shared) if len(users[name]) < 2} == {}
