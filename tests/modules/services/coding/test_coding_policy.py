"""When a coding task turns in circles, how a repository tests itself, and which gate a branch does not pass."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from adapters.git.worktree import BranchChanges, TreeChange
from modules.runtime.llm.dialect import ToolAnswer, ToolCall
from modules.services.coding.gates import GateFacts, closed_gate, named_but_unchanged
from modules.services.coding.policy import is_stuck
from modules.services.coding.suite_files import suite_definitions
from modules.services.coding.suites import SuiteRun
from modules.services.coding.types import CodingStep

BRANCH = "task-1-beds"
CHANGES = BranchChanges(
    branch=BRANCH,
    sha="a" * 40,
    commits=1,
    merges=0,
    holds_base=True,
    files=(TreeChange("beds.py", 10),),
    patch="+BEDS = 3",
    stat="1 file changed",
)


def step(name: str, came: str, *, error: bool = False, **said: object) -> CodingStep:
    call = ToolCall("c", name, dict(said))
    return CodingStep(1, "", "", (call,), (ToolAnswer("c", name, came, is_error=error),))


READ, RUN = step("read_file", "x", path="a"), step("run", "failed", command="make")
SILENT = CodingStep(1, "", "hm", (), ())


@pytest.mark.parametrize(
    ("steps", "stuck"),
    [
        ([READ, READ, READ], True),
        ([READ, READ, RUN, READ], False),
        ([READ, RUN] * 2, False),
        ([READ, RUN] * 3, True),
        ([step("edit_file", "not there", error=True, old=str(n)) for n in range(3)], True),
        ([step("edit_file", "", old=str(n)) for n in range(3)], False),
        ([step("run", f"{n} fail", error=True, command="make") for n in range(3)], False),
        ([SILENT] * 3, True),
    ],
)
def test_circles_are_seen(steps: list[CodingStep], *, stuck: bool) -> None:
    assert is_stuck(steps) is stuck


@pytest.mark.parametrize(
    ("names", "texts", "commands"),
    [
        ((), {"package.json": '{"scripts": {"test": "node --test"}}'}, ["npm test --silent"]),
        ((), {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ((), {"package.json": "{"}, []),
        ((), {"Makefile": "all: a\ntest: a\n\ttrue\n"}, ["make test"]),
        ((), {"Makefile": "test := a\nlatest:\n"}, []),
        (("test_beds.py",), {}, ["pytest"]),
        (("beds.py",), {}, []),
        ((), {"Cargo.toml": "", "go.mod": ""}, ["cargo test", "go test ./..."]),
    ],
)
def test_tests_are_found_by_files(names: tuple[str, ...], texts: dict[str, str], commands: list[str]) -> None:
    assert list(suite_definitions(names, texts)) == commands


HIDING = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+a\u202e"
SHUT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("other_branch", {"branch": "main"}, {}),
    ("merge_commits", {"merges": 1}, {}),
    ("merge_commits", {"holds_base": False}, {}),
    ("no_changes", {"commits": 0}, {}),
    ("no_changes", {"files": ()}, {}),
    ("tests_failed", {}, {"broken": [SuiteRun("make test", "failed")]}),
    ("secret", {"patch": "+hunter2"}, {}),
    ("hidden", {"patch": HIDING.format("beds.py")}, {}),
    ("secret", {"patch": "+ok\u2028 hunter2"}, {}),
    ("not_text", {"files": (TreeChange("a.bin", 3, is_binary=True),)}, {}),
    ("not_text", {"files": (TreeChange("away", 3, is_link=True),)}, {}),
    ("not_text", {"files": (TreeChange("inner", None, is_repository=True),)}, {}),
    ("too_large", {"files": (TreeChange("beds.py", 600_000),)}, {}),
    ("too_large", {"files": tuple(TreeChange(f"{n}.py", 1) for n in range(61))}, {}),
]


def closed(changed: dict[str, Any], facts: dict[str, Any]) -> str:
    base = GateFacts(BRANCH, replace(CHANGES, **changed), (), lambda text: "hunter2" in text)
    shut = closed_gate(replace(base, **facts))
    return shut.code if shut else ""


def test_files_that_a_task_names_and_that_did_not_change_are_found() -> None:
    named = ("index.html", "./src/", "*.md", "part.js", "test/a.js")
    left = named_but_unchanged(named, ("src/a/b.js", "README.md", "part.js", "a.js"))
    assert left == ("index.html", "test/a.js")


def test_each_gate_shuts_and_the_first_that_does_is_told() -> None:
    assert closed({}, {}) == closed({"patch": HIDING.format("beds.md")}, {}) == ""
    for code, changed, facts in SHUT:
        assert closed(changed, facts) == code
    for (first, changed, facts), (_, others, more) in itertools.combinations(SHUT, 2):
        if not changed.keys() & others.keys():
            assert closed({**others, **changed}, {**more, **facts}) == first
