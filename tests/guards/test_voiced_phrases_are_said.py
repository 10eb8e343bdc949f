"""Each operational text that is put into the SOUL's voice is said somewhere."""

from __future__ import annotations

import ast

import pytest

from modules.services.voice_phrases.phrases import VOICED
from tests.project import product_trees

pytestmark = pytest.mark.guard

DEFINED_IN = "modules/services/voice_phrases/phrases.py"


def unsaid(keys: tuple[str, ...]) -> list[str]:
    """Those that no module names, whole or by the group that an f-string begins with."""
    trees = [tree for path, tree in product_trees().items() if path != DEFINED_IN]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    whole = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    begun = {
        first.value
        for node in nodes
        if isinstance(node, ast.JoinedStr) and isinstance(first := node.values[0], ast.Constant)
    }
    return [key for key in keys if key not in whole and f"{key.rpartition('.')[0]}." not in begun]


def test_each_phrase_that_a_voice_can_change_is_said() -> None:
    assert unsaid(tuple(key for group in VOICED for key in group)) == []
    assert unsaid(("github.never_said",)) == ["github.never_said"]
