"""The results of a repository's tests, and how changes weaken its tests."""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from common.redact import Redactor
from modules.runtime.sandbox.policy import Ended
from modules.runtime.sandbox.runner import Sandbox
from modules.services.coding.suite_files import declared_tests
from modules.services.coding.suite_words import suite_lines
from modules.services.coding.suites import SuiteChange, SuiteRun, Suites, SuiteState, read_suites, run_suites
from modules.services.coding.test_output import (
    SuiteOutcome,
    essential_lines,
    failing_tests,
    passed_tests,
    verdict_of,
    verdict_of_report,
)
from tests.modules.services.coding.coding_rig import needs_sandbox

NPM = "npm test --silent"
PASSED = SuiteRun("make test", "passed")
MISSING, EMPTY = SuiteRun("pytest", "missing"), SuiteRun("pytest", "empty")
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


def fails(*names: str, passing: int | None = 2) -> SuiteRun:
    """Return a run of a suite in which these tests fail."""
    return SuiteRun(NPM, "failed", failing=frozenset(names), passing=passing)


def ends(outcome: SuiteOutcome) -> SuiteRun:
    """Return a run of the same suite with this outcome."""
    return SuiteRun(NPM, outcome)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ((), (PASSED,), "passed"),
        ((), (PASSED, MISSING), "passed"),
        ((), (PASSED, EMPTY), "passed"),
        ((), (MISSING,), "unrun"),
        ((), (EMPTY,), "none"),
        ((), (PASSED, fails("a")), "failed"),
        ((MISSING,), (PASSED, MISSING), "passed"),
        ((ends("passed"),), (PASSED, ends("missing")), "failed"),
        ((ends("passed"),), (PASSED, ends("empty")), "failed"),
        ((fails("a"),), (fails("a"),), "failing_before"),
        ((fails("a"),), (fails("a", "b"),), "failed"),
        ((fails("a", "b"),), (fails("b"),), "failing_before"),
        ((fails("a", "b"),), (fails("c"),), "failed"),
        ((fails("a"),), (fails("a"), MISSING), "failing_before"),
        ((fails(),), (fails(),), "failing_before"),
        ((fails("a"),), (fails(),), "failed"),
        ((fails(passing=None),), (ends("crashed"),), "failed"),
        ((fails(),), (fails("a"),), "failing_before"),
        ((fails("a"),), (fails("a", passing=None),), "failed"),
        ((fails("a"),), (fails("a", passing=0),), "failed"),
        *(((fails("a"),), (ends(end),), "failed") for end in ("timeout", "memory", "crashed", "missing", "empty")),
        *(((ends("passed"),), (ends(end),), "failed") for end in ("timeout", "memory", "crashed")),
        ((ends("timeout"),), (ends("timeout"),), "unrun"),
        ((ends("timeout"),), (PASSED, ends("timeout")), "failing_before"),
        ((ends("crashed"),), (ends("passed"),), "passed"),
        ((ends("missing"),), (ends("passed"),), "passed"),
    ],
)
def test_changes_are_judged_by_what_ran_and_by_what_did_not_fail_before(
    before: tuple[SuiteRun, ...], after: tuple[SuiteRun, ...], state: SuiteState
) -> None:
    kept = [Suites({one.command: "" for one in runs}, frozenset(), runs) for runs in (before, after)]
    form = TypeAdapter(Suites)
    was, now = (form.validate_json(form.dump_json(one)) for one in kept)
    assert SuiteChange(was, now).state == state


def test_tests_that_failed_before_and_pass_now_are_named_unless_the_run_tells_no_names() -> None:
    def mended(*after: SuiteRun) -> tuple[str, ...]:
        before, now = (Suites({}, frozenset(), runs) for runs in ((fails("a", "b"),), after))
        return SuiteChange(before, now).mended

    assert mended(fails("b")) == ("a",)
    assert mended(fails(), MISSING) == mended(ends("crashed")) == ()


def test_tests_of_one_name_in_two_classes_are_two() -> None:
    text = "class TestA:\n    def test_it(self): ...\n\nclass TestB:\n    def test_it(self): ...\n\ndef test_it(): ..."
    assert list(declared_tests("test_a.py", text)) == ["TestA.test_it", "TestB.test_it", "test_it"]


def test_tests_that_nobody_ran_did_not_pass() -> None:
    assert SuiteChange(Suites({}, frozenset()), Suites({"make test": ""}, frozenset())).state == "unrun"


def test_what_is_told_says_which_tests_could_not_be_compared_and_which_gave_no_result() -> None:
    runs = (PASSED, MISSING, fails(), SuiteRun("cargo test", "memory"))
    suites = Suites({one.command: "" for one in runs}, frozenset({"a"}), runs)
    keys = [key for key, _ in told_phrases(SuiteChange(suites, suites))]
    expected = ["passed", "still_failing", "unnamed", "missing", "memory"]
    assert keys[:5] == [f"github.tests_{one}" for one in expected]


def told_phrases(change: SuiteChange) -> list[tuple[str, dict[str, object]]]:
    """Return the phrases that describe a change, each with its words."""
    told = list[tuple[str, dict[str, object]]]()

    def note(key: str, /, **words: object) -> str:
        told.append((key, words))
        return key

    list(suite_lines(change, note))
    return told


@pytest.mark.parametrize(
    ("output", "names", "passing"),
    [
        (
            "FAILED tests/test_a.py::test_b[x y] - assert 2 == 3\nERROR c_test.py\n1 failed, 4 passed in 0.1s",
            ["tests/test_a.py::test_b[x y]", "c_test.py"],
            4,
        ),
        ("ERROR    root:beds.py:12 no water\n=== 3 passed in 1.00s ===", [], 3),
        (
            "FAIL: test_three (test_beds.Beds.test_three)\n-----\nRan 3 tests in 0.1s",
            ["test_three (test_beds.Beds.test_three)"],
            3,
        ),
        ("✖ a smaller sign (1.2ms)\nℹ pass 2\n✖ failing tests:\n\n✖ a smaller sign (1.4ms)", ["a smaller sign"], 2),  # noqa: RUF001 - as node writes it
        ("ok 1 - it opens\nnot ok 2 - it closes\nnot ok 3 - later # todo\n# pass 1\n", ["it closes"], 1),
        (
            "--- FAIL: TestBeds (0.00s)\nFAIL\nFAIL\tgarden/beds\t0.003s\nFAIL\tgarden/a [build failed]\nFAIL\n",
            ["TestBeds", "garden/beds", "garden/a"],
            None,
        ),
        (
            "test a::b ... FAILED\ntest src/a.rs - b (line 7) ... FAILED\ntest result: FAILED. 3 passed; 2 failed;",
            ["a::b", "src/a.rs - b"],
            3,
        ),
        (
            "FAIL a.test.js (5.2 s)\n  ● beds\n\n\x1b[1mTests:       \x1b[31m1 failed\x1b[0m, 2 passed, 3 total",
            ["a.test.js", "beds"],
            2,
        ),
        (
            " FAIL  a.test.ts > beds > are three\n      Tests  1 failed | 2 passed (3)",
            ["a.test.ts > beds > are three"],
            2,
        ),
        ("  2 passing (9ms)\n  1 failing\n\n  1) Beds\n       are three:\n", ["Beds"], 2),
        ("no tests ran in 0.01s", [], 0),
        ("make: *** [Makefile:2: test] Error 1", [], None),
    ],
)
def test_failed_tests_are_named_as_each_runner_tells_them_and_those_that_passed_are_counted(
    output: str, names: list[str], passing: int | None
) -> None:
    assert (failing_tests(output), passed_tests(output)) == (names, passing)


@pytest.mark.parametrize(
    ("ended", "code", "output", "outcome"),
    [
        ("exited", 0, "2 passed in 0.1s", "passed"),
        ("exited", 0, "all is well", "passed"),
        ("exited", 0, "# pass 0", "empty"),
        ("exited", 1, "FAILED test_a.py::test_b", "failed"),
        ("exited", 2, "no tests ran in 0.1s\nmake: *** [Makefile:2: test] Error 5", "empty"),
        ("exited", 2, "make[1]: *** [Makefile:9: unit] Error 127\nmake: *** [Makefile:2: test] Error 2", "missing"),
        ("exited", 2, "make: *** [Makefile:2: test] Segmentation fault (core dumped)", "crashed"),
        ("exited", 127, "sh: 1: vitest: not found", "missing"),
        ("exited", 139, "", "crashed"),
        ("timeout", 137, "1 passed in 0.1s", "timeout"),
        ("memory", 137, "", "memory"),
        ("disk", 137, "", "crashed"),
    ],
)
def test_what_ends_without_a_result_is_no_failed_test(ended: Ended, code: int, output: str, outcome: str) -> None:
    assert verdict_of(ended, code, output).outcome == outcome


@pytest.mark.parametrize("report", ["", "[]", "{}", '{"failed": 3, "passed": 1}', "[" * 100_000])
def test_a_run_of_python_without_a_report_that_can_be_read_crashed(report: str) -> None:
    assert verdict_of_report("exited", 0, report, "").outcome == "crashed"


def write(tree: Path, files: Mapping[str, str]) -> Path:
    """Write these files into a folder, and return it."""
    for path, text in files.items():
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tree


async def run(tree: Path, *, unsafe: bool = False, seconds: float = 60) -> SuiteRun:
    """Run the one suite of a tree, in the sandbox unless `unsafe`."""
    sandbox = Sandbox(redactor=Redactor(), bwrap=None, unsafe=True) if unsafe else Sandbox(redactor=Redactor())
    (ran,) = (await run_suites(tree, sandbox, network=False, seconds=seconds)).runs
    return ran


async def test_suites_speak_english_whatever_the_language_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    ran = await run(write(tmp_path, {"Makefile": "test:\n\t@echo $$LC_ALL; exit 1\n"}), unsafe=True)
    assert ran.outcome == "failed"
    assert "C.UTF-8" in ran.output


UNITTEST = "import unittest\nimport beds\nclass Beds(unittest.TestCase):\n"


@needs_sandbox
async def test_plain_unittest_runs_where_there_is_no_pytest(tmp_path: Path) -> None:
    tests = f"{UNITTEST}    def test_wet(self):\n        self.assertEqual(beds.WET, 1)\n    def test_dry(self): pass\n"
    tree = write(tmp_path, {"src/beds.py": "WET = 2\n", "tests/test_beds.py": tests})
    ran = await run(tree)
    assert (ran.outcome, set(ran.failing), ran.passing) == ("failed", {"test_wet (test_beds.Beds.test_wet)"}, 1)
    write(
        tree,
        {
            "src/beds.py": "WET = 1  # now\n",
            "tests/unit/__init__.py": "",
            "tests/unit/test_more.py": f"{UNITTEST}    pass\n",
        },
    )
    ran = await run(tree)
    assert (ran.outcome, ran.passing) == ("passed", 2)
    write(tree, {"tests/test_more.py": "import pytest\n"})
    assert (await run(tree)).outcome == "missing"


PYTEST = {
    "setup.cfg": "[tool:pytest]\naddopts = -x --lf\n",
    "test_a.py": "import pytest\n@pytest.mark.parametrize('x', ['a - b', 'c'])\ndef test_a(x): assert x == 'c'\n"
    "def test_b(): assert 0\ndef test_c(): print('1 failed'); assert 1\n",
    "test_broken.py": "import nothing_of_that_name\n",
}


def with_pytest(tree: Path) -> Path:
    """Make our own pytest available in a tree, and return the tree."""
    python = write(tree, {".venv/bin/python3": f'#!/bin/sh\nexec {sys.executable} "$@"\n'}) / ".venv/bin/python3"
    python.chmod(0o755)
    return tree


@pytest.mark.slow
async def test_pytest_runs_once_where_make_runs_it_and_again_only_for_all_names_of_what_fails(tmp_path: Path) -> None:
    sandbox = Sandbox(redactor=Redactor(), bwrap=None, unsafe=True)
    makefile = "test:\n\tpython3 -m pytest test_a.py\n\tpython3 -m pytest test_b.py\n"
    files = {"Makefile": makefile, "test_a.py": "def test_a(): pass\n", "test_b.py": "def test_b(): pass\n"}
    tree = write(with_pytest(tmp_path), files)
    passed = await run_suites(tree, sandbox, network=False)
    assert [(one.command, one.outcome) for one in passed.runs] == [("make test", "passed")]
    write(tree, {name: text.replace("pass", "assert 0") for name, text in files.items() if name != "Makefile"})
    failed = await run_suites(tree, sandbox, network=False)
    assert [one.command for one in failed.runs] == ["make test", "pytest"]
    assert SuiteChange(passed, failed).newly_failing == ("test_a.py::test_a", "test_b.py::test_b")
    write(tree, {"Makefile": "test:\n\t@echo ok\n"})
    assert [one.command for one in (await run_suites(tree, sandbox, network=False)).runs] == ["make test", "pytest"]


@pytest.mark.slow
async def test_pytest_tells_all_names_though_the_repository_stops_at_the_first_failure(tmp_path: Path) -> None:
    tree = write(with_pytest(tmp_path), PYTEST)
    ran = await run(tree, unsafe=True)
    names = {"test_a.py::test_a[a - b]", "test_a.py::test_b", "test_broken.py"}
    assert (ran.outcome, set(ran.failing), ran.passing) == ("failed", names, 2)
    assert "nothing_of_that_name" in ran.output
    assert not (tree / ".pytest_cache").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        ("def test_a(): pass", "passed"),
        ("def hest_a(): pass", "empty"),
        ("import os\ndef test_a(): os._exit(0)", "crashed"),
        ("import os\ndef test_a(): os.abort()", "crashed"),
        ("import pytest\ndef test_a(): pytest.exit('enough')", "crashed"),
        ("import time\ndef test_a(): time.sleep(600)", "timeout"),
    ],
)
async def test_a_run_of_pytest_that_does_not_come_to_its_end_gave_no_result(
    tmp_path: Path, test: str, outcome: str
) -> None:
    tree = write(with_pytest(tmp_path), {"test_a.py": test})
    assert (await run(tree, unsafe=True, seconds=3 if outcome == "timeout" else 60)).outcome == outcome


@needs_sandbox
@needs_node
@pytest.mark.slow
async def test_all_failures_of_a_long_run_are_told_not_only_those_at_its_end(tmp_path: Path) -> None:
    many = "".join(
        f"test('number {n}', () => {{ if ({n} % 2) throw new Error('x'.repeat(200)); }});" for n in range(60)
    )
    files = {"package.json": npm("node --test"), "a.test.js": f"const {{test}} = require('node:test');{many}"}
    ran = await run(write(tmp_path, files))
    assert {f"number {n}" for n in range(1, 60, 2)} <= ran.failing
    assert not {f"number {n}" for n in range(0, 60, 2)} & ran.failing


def test_of_a_long_output_those_lines_are_shown_that_tell_what_failed() -> None:
    noise = "\n".join(f"compiling part {number}" for number in range(500))
    told = f"{noise}\nnot ok 2 - it closes\nAssertionError: 2 is not 3\n{noise}"
    assert essential_lines(told) == "not ok 2 - it closes\nAssertionError: 2 is not 3"
    assert "it closes" in verdict_of("exited", 1, told).output
    assert "compiling part 499" in essential_lines(noise)
    assert len(essential_lines(noise)) < 400


def npm(test: str, jest: object = None, **scripts: str) -> str:
    """Return a package.json with these scripts and these settings of jest."""
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
        ("test/a.js", "describe('a', f);\nexpect(1);", "describe.only('a', f);\nexpect(1);", ["test/a.js"]),
        ("test/a.js", "describe('a', f);\nexpect(1);", "xdescribe('a', f);\nexpect(1);", ["test/a.js"]),
        ("test/a.js", "test('a', f);", "test('a', { skip: true }, f);", ["test/a.js"]),
        ("test_a.py", "    model.fit(beds)", "    model.fit(beds)\n    other.fit(beds)", []),
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
        read.append(await read_suites(tmp_path / name))
    assert list(SuiteChange(*read).weakened) == weakened
