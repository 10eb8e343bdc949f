"""Every word for a model lives in skills: code describes no field of a tool, and answers no call with a sentence.

Read from the syntax trees: the text of a string constant counts, docstrings and what only the terminal shows do not.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

import pytest

from modules.services.skills.contracts import derived
from modules.services.skills.skills import CONTRACTS
from tests.project import ROOT, product_trees

pytestmark = pytest.mark.guard

PRODUCT = ("adapters", "common", "local_tools", "modules", "soul")
ANSWERING = ("local_tools", "modules/services/agent/tools", "modules/services/agent/turn")
"""Where answers of tools are made."""
MOST_WORDS = 4
EXCEPTIONS = {
    "no answer that may leave, twice": "for the journal, in the outcome of a result",
    "the registry offers this tool in turns about direct messages only": "an error of ours: no model reads it",
    "no comment that may leave, twice": "for the journal, in the outcome of a result",
    "the registry offers this tool in turns about GitHub threads only": "an error of ours: no model reads it",
    "the registry offers this tool in turns about reviews only": "an error of ours: no model reads it",
    "the registry offers this tool in thread turns only": "an error of ours: no model reads it",
    "the model chose nothing that works": "for the journal, where no tool ended a turn",
    "two tools have the same name": "an error of ours: no model reads it",
    "waits for the owner's approval:": "for the journal, in the outcome of a result",
    "other people's words were read in this conversation and the owner's newest line does not give this word for word:"
    " approve it, or ask again after /new": "told with what waits for the owner's approval",
}


def described(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
            yield from (word.lineno for word in node.keywords if word.arg in {"description", "title", "examples"})


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            text = node.value.strip()
            if len(text.split()) > MOST_WORDS:
                yield node.lineno, text


def test_no_field_of_a_tool_is_described_in_code() -> None:
    assert [f"{path}:{line}" for path, tree in product_trees(*PRODUCT).items() for line in described(tree)] == []


def test_no_tool_answers_with_a_sentence_that_stands_in_code() -> None:
    found = [(path, line, text) for path, tree in product_trees(*ANSWERING).items() for line, text in sentences(tree)]
    assert [f"{path}:{line}: {text}" for path, line, text in found if text not in EXCEPTIONS] == []
    assert EXCEPTIONS.keys() <= {text for _, _, text in found}


def test_no_public_text_stands_in_code_where_they_are_made() -> None:
    made = product_trees("modules/services/commitments", "adapters/github")
    for path in ("modules/services/commitments/texts.py", "adapters/github/types.py"):
        assert list(sentences(made[path])) == []


def test_both_would_be_found() -> None:
    tree = ast.parse('"""Doc of a module, which is long."""\nx: str = Field(description="What it is.")\n')
    assert [*described(tree)] == [2]
    assert [*sentences(ast.parse('def f():\n    """A docstring."""\n    return f"no such post is in {a}"\n'))] == [
        (3, "no such post is in")
    ]


def test_the_contracts_that_ship_are_those_of_the_pages() -> None:
    skills = ROOT / "skills"
    assert json.loads((skills / CONTRACTS).read_text()) == derived(skills), (
        "run python -m modules.services.skills.contracts skills"
    )
