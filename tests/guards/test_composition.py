"""A SOUL is wired once: in few lines, in short functions, and with no callback assigned later.

The page that says where each rule is implemented names code that exists. The tests of a folder are in the folder of the
same name below `tests`.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.project import ROOT, product_trees

pytestmark = pytest.mark.guard


MOST_FILES, MOST_LINES, SCREEN = 5, 800, 60
APP = ROOT / "soul" / "app.py"
COMPOSITION = ROOT / "soul" / "composition"
FILES = [*sorted(path for path in COMPOSITION.glob("*.py") if path.name != "__init__.py"), APP]
LIVES = sorted(path for path in (COMPOSITION / "wiring").glob("*.py") if path.name != "__init__.py")
WIRING = [
    *FILES,
    *LIVES,
    *sorted((ROOT / "modules" / "lives").glob("*/life.py")),
    *sorted((ROOT / "modules").glob("**/build.py")),
    ROOT / "modules" / "services" / "wiring.py",
]
BUILDERS = {"__init__", "__post_init__"}


def late_assignments(source: str) -> list[str]:
    """Return assignments to `on_…` outside a constructor, and to a public attribute of another object anywhere."""
    found: list[str] = []

    def targets(node: ast.stmt) -> list[ast.expr]:
        if isinstance(node, ast.Assign):
            return node.targets
        return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else []

    def look(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            if isinstance(child, ast.stmt):
                for target in [part for whole in targets(child) for part in ast.walk(whole)]:
                    if not isinstance(target, ast.Attribute) or not isinstance(target.ctx, ast.Store):
                        continue
                    own = isinstance(target.value, ast.Name) and target.value.id == "self" and function in BUILDERS
                    if not own and (target.attr.startswith("on_") or not target.attr.startswith("_")):
                        found.append(ast.unparse(target))
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == "setattr":
                found.append(ast.unparse(child))
            look(child, inside)

    look(ast.parse(source), "")
    return found


def test_the_composition_root_is_small() -> None:
    assert len(FILES) <= MOST_FILES, [path.name for path in FILES]
    lines = {path.name: len(path.read_text().splitlines()) for path in FILES}
    assert sum(lines.values()) <= MOST_LINES, lines


@pytest.mark.parametrize("path", WIRING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_function_that_wires_fits_on_a_screen(path: Path) -> None:
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: length for name, length in lengths.items() if length > SCREEN} == {}


def readers_of(name: str, trees: Mapping[str, ast.Module]) -> list[str]:
    """Return the modules that read an attribute of this name."""
    return [
        path
        for path, tree in trees.items()
        if any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(tree))
    ]


def test_only_the_clock_is_told_how_fast_a_life_goes() -> None:
    assert readers_of("soul_speed", product_trees()) == ["common/settings.py", "soul/app.py"]


def test_another_reader_of_the_speed_is_found() -> None:
    assert readers_of("soul_speed", {"here": ast.parse("wait_s = 60 / settings.soul_speed")}) == ["here"]


def test_the_package_file_wires_nothing() -> None:
    tree = ast.parse((COMPOSITION / "__init__.py").read_text())
    assert [type(node) for node in tree.body] == [ast.Expr]


@pytest.mark.parametrize("path", [*FILES, *LIVES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_assigned_after_construction(path: Path) -> None:
    assert late_assignments(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("queue.on_new = loop.wake", ["queue.on_new"]),
        ("def f(a):\n    a.b.on_kept = 1", ["a.b.on_kept"]),
        ("class A:\n    def __init__(self):\n        self.on_new = 1", []),
        ("class A:\n    def __init__(self, b):\n        b.knows = 1", ["b.knows"]),
        ("class A:\n    def later(self):\n        self.on_new = 1", ["self.on_new"]),
        ("class A:\n    def later(self):\n        self._count = 1", []),
        ("x, b.knows = 1, 2", ["b.knows"]),
        ("b.knows: int = 1", ["b.knows"]),
        ("setattr(b, 'on_new', 1)", ["setattr(b, 'on_new', 1)"]),
        ("value = b.on_new", []),
    ],
)
def test_the_check_sees_late_assignments_and_no_others(source: str, found: list[str]) -> None:
    assert late_assignments(source) == found


def test_only_its_own_loop_lets_acts_out_of_the_outbox() -> None:
    trees = product_trees("local_tools", "modules/lives", "modules/runtime", "modules/services", "soul")
    drivers = {
        path
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "deliver_due"
    }
    assert drivers == {"modules/services/outbox/outbox.py"}


PAGE = ROOT / "docs" / "rules.md"
_ROW = re.compile(r"\| \[(?P<names>[^\]]+)\]\((?P<path>[^)]+)\) \|")


_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def missing(text: str) -> list[str]:
    """Return the broken links of a page: missing files and headings, and names that the linked file does not define."""
    found: list[str] = []
    for row in _ROW.finditer(text):
        name, _, heading = row["path"].partition("#")
        path = PAGE.parent / name
        code = path.read_text() if path.is_file() else ""
        headings = [re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in _HEADING.findall(code)]
        code = code if not heading or heading in headings else ""
        names = [name for name in re.findall(r"`(\w+)`", row["names"]) if path.suffix == ".py"]
        absent = [name for name in names if not re.search(rf"^(?:(?:async )?def |class )?{name}\b", code, re.MULTILINE)]
        found += absent if code else [row["path"]]
    return found


def test_each_rule_stands_where_the_page_says() -> None:
    assert missing(PAGE.read_text()) == []


def test_a_rule_that_moved_is_found() -> None:
    well = ("[`elect`](../common/election.py)", "[a claim](plans.md#a-claim)")
    rows = ("[`gone`](../common/election.py)", "[`elect`](../common/moved.py)", "[gone](plans.md#gone)", *well)
    page = "\n".join(f"| {row} |" for row in rows)
    assert missing(page) == ["gone", "../common/moved.py", "plans.md#gone"]


OF_THE_WHOLE = {
    "contract",  # what every service of a kind must do
    "crash",
    "fixtures",
    "github_rig",
    "guards",  # checks of the source, for `make check`
    "interop",
    "model",
    "network",
    "scenarios",
    "security",
}
"""Folders of tests that belong to no single folder of the program."""


def _folders_of_tests() -> set[Path]:
    """Return the folders below `tests` that hold a test, relative to it."""
    return {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}


def test_each_folder_of_tests_is_one_of_the_program() -> None:
    held = [folder for folder in _folders_of_tests() if folder.parts and folder.parts[0] not in OF_THE_WHOLE]
    assert {"adapters/space", "modules/lives/space", "soul/commands"} <= {folder.as_posix() for folder in held}
    assert [folder.as_posix() for folder in sorted(held) if not (ROOT / folder).is_dir()] == []


def test_each_folder_of_the_whole_is_there() -> None:
    assert sorted(name for name in OF_THE_WHOLE if not (ROOT / "tests" / name).is_dir()) == []
