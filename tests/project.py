"""The root folder of this project, and the syntax trees of its product."""

import ast
from functools import cache
from pathlib import Path

from soul.command_line import loading

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("adapters", "common", "local_tools", "modules", "soul", "town")


def product_trees(*folders: str) -> dict[str, ast.Module]:
    """Return the syntax tree of each module in `folders`, or in the whole product, by its path from the root.

    A folder may be nested: `modules/lives/space`. A process parses each module once, so callers must not change a tree.
    """
    starts = tuple(f"{folder}/" for folder in folders or PRODUCT)
    return {path: tree for path, tree in _all_trees().items() if path.startswith(starts)}


@cache
def _all_trees() -> dict[str, ast.Module]:
    with loading():  # four times as fast
        return {
            path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for folder in PRODUCT
            for path in sorted((ROOT / folder).rglob("*.py"))
        }
