"""What the tests of a pull request came to, and what its changes take from them."""

from __future__ import annotations

import pytest

from adapters.github.types import PullFile
from modules.lives.tasks.review.evidence import (
    SuiteOutcome,
    SuiteState,
    essential_lines,
    failing_tests,
    weakenings,
)
from modules.services.coding.suites import SuiteRun

PASSED, FAILED = SuiteRun("make test", passed=True), SuiteRun("npm test", passed=False, output="not ok 1 - it adds")
MISSING = SuiteRun("pytest", passed=False, is_missing=True)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (SuiteOutcome(), "none"),
        (SuiteOutcome((PASSED,)), "passed"),
        (SuiteOutcome((PASSED, FAILED, MISSING)), "failed"),
        (SuiteOutcome((PASSED, MISSING)), "unrun"),
        (SuiteOutcome(refused="there is no sandbox"), "unrun"),
    ],
)
def test_one_suite_that_failed_or_did_not_run_decides_for_all(outcome: SuiteOutcome, state: SuiteState) -> None:
    assert outcome.state == state


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("FAILED test_beds.py::test_three - assert 2 == 3\n1 failed", ["test_beds.py::test_three"]),
        ("FAIL: test_three (test_beds.Beds.test_three)\n-----", ["test_three"]),
        ("✖ a smaller sign is taken away (1.2ms)\n✖ failing tests:\n", ["a smaller sign is taken away"]),
        ("ok 1 - it opens\nnot ok 2 - it closes\n  ---\n", ["it closes"]),
        ("--- FAIL: TestBeds (0.00s)\n", ["TestBeds"]),
        ("test beds::three ... FAILED\ntest beds::two ... ok\n", ["beds::three"]),
        ("Segmentation fault", []),
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


@pytest.mark.parametrize(
    ("file", "codes"),
    [
        (PullFile("tests/test_beds.py", "removed", 0, 9), ["deleted"]),
        (PullFile("test/beds.test.js", "modified", 0, 1, '@@ -1 +1 @@\n-test("a", () => {});'), ["fewer"]),
        (PullFile("test/beds.test.js", "modified", 1, 1, '@@\n-test("a", f);\n+test.skip("a", f);'), ["skipped"]),
        (PullFile("test_a.py", "modified", 1, 1, "@@\n-    assert beds == 3\n+    print(beds)"), ["fewer"]),
        (
            PullFile("test_a.py", "modified", 2, 1, "@@\n-    assert beds == 3\n+    assert beds == 4\n+    assert 1"),
            [],
        ),
        (PullFile("package.json", "modified", 1, 1, '@@\n-  "test": "node --test"\n+  "test": "true"'), ["command"]),
        (PullFile("package.json", "added", 1, 0, '@@ -0,0 +1 @@\n+  "test": "node --test"'), []),
        (PullFile("Makefile", "modified", 1, 1, "@@ -1,2 +1,2 @@\n test:\n-\tpytest\n+\ttrue"), ["command"]),
        (PullFile("Makefile", "modified", 1, 1, "@@ -4,2 +4,2 @@ test: all\n-\tpytest\n+\ttrue"), ["command"]),
        (PullFile("Makefile", "modified", 1, 1, "@@ -1,2 +1,2 @@\n build:\n-\tcc\n+\tgcc"), []),
        (PullFile("conftest.py", "added", 1, 0, "@@\n+collect_ignore = ['test_a.py']"), ["command"]),
        (PullFile("beds.py", "removed", 0, 9, "@@\n-assert True"), []),
    ],
)
def test_what_is_taken_from_the_tests_is_found(file: PullFile, codes: list[str]) -> None:
    assert [one.code for one in weakenings([file])] == codes
