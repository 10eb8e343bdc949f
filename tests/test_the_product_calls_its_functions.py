"""Functions of the product that the product never names are found: what only tests call is proven in vain."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.project import ROOT, product_trees

LOOKED_AT = ("common", "modules", "local_tools", "soul")
"""An adapter offers what its service offers, and the town what its residents need, called or not."""
NAMING = (*LOOKED_AT, "adapters", "town")
CALLED_BY_DECORATOR = ("command", "field_validator", "model_serializer", "model_validator", "callback")
"""What Typer or Pydantic is handed calls the function."""
BY_A_LIBRARY = {
    "format_options": "Click, for the help of a command",
    "get_completions": "prompt_toolkit, while the host types",
    "handle_data": "html.parser",
    "handle_endtag": "html.parser",
    "handle_starttag": "html.parser",
}
BY_OTHER_PROGRAMS = {
    "is_path_safe": "docs/names.md",
    "is_writable_path": "docs/names.md",
    "reload": "docs/names.md, as `reload_skills`",
    "safe_read_file": "docs/names.md",
    "safe_write_file": "docs/names.md",
}


def _is_handed_over(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    called = (node.func for node in function.decorator_list if isinstance(node, ast.Call))
    return any(ast.unparse(one).rpartition(".")[2] in CALLED_BY_DECORATOR for one in called)


def defined_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each function and method with its line, but for what Python or a decorator calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            by_python = node.name.startswith("__") and node.name.endswith("__")
            if not by_python and not _is_handed_over(node):
                yield node.lineno, node.name


def named_in(tree: ast.AST) -> Iterator[str]:
    """Each name that is used; an import counts only where it gives another name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (one.name for one in names if one.asname and one.asname != one.name)
            case _:
                continue


def uncalled(looked_at: dict[str, ast.Module], naming: dict[str, ast.Module]) -> dict[str, str]:
    """The functions of some files by name that no file names, each with its place; both map a path to its tree."""
    named = {name for tree in naming.values() for name in named_in(tree)}
    return {
        name: f"{path}:{line}"
        for path, tree in looked_at.items()
        for line, name in defined_in(tree)
        if name not in named
    }


def test_the_product_names_every_function_that_it_has() -> None:
    found = uncalled(product_trees(*LOOKED_AT), product_trees(*NAMING))
    expected = BY_A_LIBRARY.keys() | BY_OTHER_PROGRAMS.keys()
    assert {name: place for name, place in found.items() if name not in expected} == {}
    assert expected <= found.keys(), "an exception that is none any more"


def test_what_other_programs_call_stands_on_the_page_of_names() -> None:
    page = (ROOT / "docs/names.md").read_text(encoding="utf-8")
    assert all(f":{name}`" in page or f".{name}`" in page for name in BY_OTHER_PROGRAMS)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(): ...", ["f"]),
        ("def f(): ...\nf()", []),
        ("class A:\n    def f(self): ...", ["f"]),
        ("class A:\n    async def f(self): ...\nA().f", []),
        ("class A:\n    def __len__(self): ...", []),
        ("@app.command('f')\ndef f(): ...", []),
        ("@cached\ndef f(): ...", ["f"]),
        ("def f(): ...\nfrom a import f", ["f"]),
        ("def f(): ...\nfrom a import f as g", []),
        ("def f(): ...\n__all__ = ['f']", ["f"]),
    ],
)
def test_a_function_that_is_never_named_is_found(text: str, names: list[str]) -> None:
    assert list(uncalled({"a.py": ast.parse(text)}, {"a.py": ast.parse(text)})) == names
