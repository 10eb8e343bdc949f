"""The page of names tells of nothing that is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.project import ROOT

PAGE = (ROOT / "docs/names.md").read_text(encoding="utf-8")


def _tables() -> dict[str, list[list[str]]]:
    """The rows of each section: name, what it does, where."""
    sections = (part.partition("\n") for part in PAGE.split("\n## ")[1:])
    return {
        title: [
            [cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith("| `")
        ]
        for title, _, text in sections
    }


TABLES = _tables()
PLACES = sorted({row[2].strip("`") for rows in TABLES.values() for row in rows})


def _defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name, body=inner):
                yield prefix + name
                yield from _defined(inner, f"{prefix}{name}.")
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case ast.Assign(targets=targets):
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
            case _:
                continue


@cache
def _names_in(path: str) -> frozenset[str]:
    return frozenset(_defined(ast.parse((ROOT / path).read_text(encoding="utf-8")).body))


@pytest.mark.parametrize("place", PLACES)
def test_what_answers_to_a_name_exists(place: str) -> None:
    path, _, name = place.partition(":")
    assert (ROOT / path).is_file()
    assert not name or name in _names_in(path)
    assert name or path.startswith("skills/")


@pytest.mark.parametrize("title", TABLES)
def test_each_name_stands_once_in_order_and_says_what_it_does(title: str) -> None:
    names = [row[0].strip("`") for row in TABLES[title]]
    assert names
    assert names == sorted(set(names))
    assert all(len(row) == 3 and row[1] for row in TABLES[title])


def test_each_tool_is_offered_under_its_name() -> None:
    files = [*(ROOT / "local_tools").glob("*.py"), ROOT / "common/schemas.py"]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    assert not [row[0] for row in TABLES["Tools"] if row[0].replace("`", '"') not in code]
