"""What the tests of a repository came to, and what changes take from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.services.coding.suites import SuiteChange, SuiteRun, Suites, SuiteState, read_suites
from modules.services.coding.test_output import essential_lines, failing_tests

PASSED, FAILED = SuiteRun("make test", passed=True), SuiteRun("npm test", passed=False, output="not ok 1 - it adds")
WORSE = SuiteRun("npm test", passed=False, output="not ok 1 - it adds\nnot ok 2 - it takes")
MISSING = SuiteRun("pytest", passed=False, is_missing=True)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ((), (PASSED,), "passed"),
        ((), (PASSED, FAILED, MISSING), "failed"),
        ((FAILED,), (PASSED, FAILED), "failing_before"),
        ((FAILED,), (WORSE,), "failed"),
        ((WORSE,), (FAILED,), "failing_before"),
        ((FAILED,), (FAILED, MISSING), "unrun"),
        ((), (PASSED, MISSING), "unrun"),
    ],
)
def test_one_suite_that_was_broken_or_did_not_run_decides_for_all(
    before: tuple[SuiteRun, ...], after: tuple[SuiteRun, ...], state: SuiteState
) -> None:
    was, now = (Suites({one.command: "" for one in runs}, frozenset(), runs) for runs in (before, after))
    assert SuiteChange(was, now).state == state


def test_tests_that_nobody_ran_did_not_pass() -> None:
    assert SuiteChange(Suites({}, frozenset()), Suites({"make test": ""}, frozenset())).state == "unrun"


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("FAILED test_beds.py::test_three - assert 2 == 3\n1 failed", ["test_beds.py::test_three"]),
        ("FAIL: test_three (test_beds.Beds.test_three)\n-----", ["test_three"]),
        ("✖ a smaller sign is taken away (1.2ms)\n✖ failing tests:\n", ["a smaller sign is taken away"]),
        ("ok 1 - it opens\nnot ok 2 - it closes\n  ---\n", ["it closes"]),
        ("--- FAIL: TestBeds (0.00s)\n", ["TestBeds"]),
        ("test beds::three ... FAILED\ntest beds::two ... ok\n", ["beds::three"]),
    ],
)
def test_failing_tests_are_named_as_each_runner_tells_them(output: str, names: list[str]) -> None:
    assert failing_tests(output) == names


def test_of_a_long_output_those_lines_are_shown_that_tell_what_failed() -> None:
    noise = "\n".join(f"compiling part {number}" for number in range(500))
    told = f"{noise}\nnot ok 2 - it closes\nAssertionError: 2 is not 3\n{noise}"
    assert essential_lines(told) == "not ok 2 - it closes\nAssertionError: 2 is not 3"
    assert "compiling part 499" in essential_lines(noise)
    assert len(essential_lines(noise)) < 400


def npm(test: str, jest: object = None, **scripts: str) -> str:
    """A package.json with these scripts, and what it sets for jest."""
    return json.dumps({"scripts": {"test": test, **scripts}} | ({"jest": jest} if jest else {}))


@pytest.mark.parametrize(
    ("path", "before", "after", "weakened"),
    [
        ("tests/test_beds.py", "def test_wet(): ...", None, ["tests/test_beds.py: test_wet"]),
        ("test/beds.test.js", 'test("a", f);', 'test.skip("a", f);', ["test/beds.test.js: a"]),
        ("test_a.py", "def test_a():\n    assert beds", "def test_a():\n    print(beds)", ["test_a.py"]),
        ("test_a.py", "def test_a():\n    assert 1", "@mark.xfail\ndef test_a():\n    assert 1", ["test_a.py: test_a"]),
        ("test_a.py", "assert 1", "pytestmark = pytest.mark.skip\nassert 1\nassert 2", ["test_a.py"]),
        ("a_test.go", "func TestA(t *T) {", "func TestA(t *T) {\n\tt.Skip()", ["a_test.go"]),
        ("test_a.py", "    assert beds == 3", "    assert beds == 4\n    assert 1", []),
        ("conftest.py", None, "collect_ignore = ['test_b.py']", ["pytest"]),
        ("pyproject.toml", "", '[tool.pytest.ini_options]\naddopts = "--deselect test_b.py::a"', ["pytest"]),
        (".pytest.ini", None, "[pytest]\naddopts = --deselect test_b.py::a", ["pytest"]),
        ("Makefile", "test:\n\tpytest $(ARGS)\n", "ARGS = --deselect x\ntest:\n\tpytest $(ARGS)\n", ["make test"]),
        ("Makefile", "test: unit\nunit:\n\tpytest\n", "test: unit\nunit:\n\ttrue\n", ["make test"]),
        ("Makefile", "test:\n\tpytest\nbuild:\n\tcc\n", "test:\n\tpytest\nbuild:\n\tgcc\n", []),
        ("package.json", npm("npm run unit", unit="jest"), npm("npm run unit", unit="true"), ["npm test --silent"]),
        ("package.json", npm("jest"), npm("jest", jest={"testPathIgnorePatterns": ["b"]}), ["npm test --silent"]),
        ("beds.py", "assert True", None, []),
        ("beds.rs", "#[test]\nfn a() {}", "fn a() {}", ["beds.rs: a"]),
        ("beds.rs", "#[test]\n// Three beds.\nfn a() {}", "", ["beds.rs: a"]),
        (
            "beds.rs",
            "#[cfg(test)]\nmod t {\n#[test]\nfn a() {}",
            "#[cfg(any())]\nmod t {\n#[test]\nfn a() {}",
            ["beds.rs"],
        ),
    ],
)
async def test_what_changes_take_from_the_tests_is_read_from_the_files(
    tmp_path: Path, path: str, before: str | None, after: str | None, weakened: list[str]
) -> None:
    read = list[Suites]()
    for name, text in (("before", before), ("after", after)):
        file = tmp_path / name / path
        file.parent.mkdir(parents=True)
        (tmp_path / name / "test_b.py").touch()
        if text is not None:
            file.write_text(text)
        read.append(Suites.from_json((await read_suites(tmp_path / name)).to_json()))
    assert list(SuiteChange(*read).weakened) == weakened
