"""Runs the tests of a Python repository inside the sandbox, with the Python of that repository.

That Python receives this module as text, so it imports nothing of the project. pytest runs the tests with the options
of the repository; without pytest, unittest does if all test files are written for it. Their output goes to stderr;
stdout gets one line of JSON at the end, with the names of failed tests and the number of passed ones.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

MISSING = 127
EMPTY = 5
_TEST_FILE = re.compile(r"test_\w+\.py|\w+_test\.py")
_FOR_UNITTEST, _FOR_PYTEST = re.compile(r"^[ \t]*(?:import|from) unittest\b", re.MULTILINE), re.compile(r"\bpytest\b")
_SKIPPED = {".git", "node_modules", ".venv", "target"}
_DEEPEST = 50
_MOST_NAMES, _NAME_CHARS = 5_000, 400


class Reported(Protocol):
    """The report of pytest on a test or a test file."""

    failed: bool
    passed: bool
    when: str
    nodeid: str


class PythonReport:
    """The names of the failed tests and the number of passed ones; it serves pytest as a plugin."""

    def __init__(self) -> None:
        self.failed: dict[str, None] = {}
        self.passed = 0

    def pytest_runtest_logreport(self, report: Reported) -> None:
        if report.failed:
            self.failed[report.nodeid] = None
        self.passed += report.passed and report.when == "call"

    def pytest_collectreport(self, report: Reported) -> None:
        if report.failed:
            self.failed[report.nodeid] = None


def run_pytest(pytest_main: Callable[..., int]) -> tuple[int, PythonReport]:
    """Run pytest on all tests: neither a failure nor an unreadable file stops it."""
    report = PythonReport()
    options = ["-q", "-rfE", "--color=no", "--maxfail=0", "--continue-on-collection-errors"]
    cache = Path(tempfile.mkdtemp(), "cache")
    return int(pytest_main([*options, "-o", f"cache_dir={cache}"], plugins=[report])), report


def run_unittest(files: list[Path]) -> tuple[int, PythonReport]:
    """Run unittest in each folder that contains tests, or in the folder above its package."""
    import unittest  # noqa: PLC0415 - needed only here

    suite, report = unittest.TestSuite(), PythonReport()
    for start in sorted({str(_top(file.parent)) for file in files}):
        suite.addTests(unittest.TestLoader().discover(start, pattern="*test*.py"))
    result = unittest.TextTestRunner().run(suite)
    failed = [*(test for test, _ in (*result.failures, *result.errors)), *result.unexpectedSuccesses]
    report.failed = {str(test): None for test in failed}
    report.passed = max(0, result.testsRun - len(failed) - len(result.skipped))
    return (int(bool(failed)) if result.testsRun or failed else EMPTY), report


def main(stdout: int) -> int:
    """Run the tests, report to the file descriptor, and return the code of pytest, or `MISSING` without a runner."""
    sys.argv[0] = "pytest"
    source = Path("src").resolve()
    if source.is_dir() and not (source / "__init__.py").exists():
        sys.path.append(str(source))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(source))))
    try:
        import pytest  # noqa: PLC0415 - it may be missing
    except ImportError:
        files = list(_test_files())
        if not files or not all(is_for_unittest(one.read_text("utf-8", "replace")) for one in files):
            return MISSING
        code, report = run_unittest(files)
    else:
        code, report = run_pytest(pytest.main)
    told = {"passed": report.passed, "failed": [name[:_NAME_CHARS] for name in report.failed][:_MOST_NAMES]}
    with os.fdopen(stdout, "w") as out:
        out.write(json.dumps(told))
    return code


def _test_files() -> Iterator[Path]:
    for folder, folders, names in os.walk("."):
        is_deep = folder.count("/") >= _DEEPEST
        folders[:] = [name for name in folders if name not in _SKIPPED and not is_deep]
        yield from (Path(folder, name) for name in names if _TEST_FILE.fullmatch(name))


def is_for_unittest(text: str) -> bool:
    """Return whether a test file is written for unittest, and needs no pytest."""
    return bool(_FOR_UNITTEST.search(text)) and not _FOR_PYTEST.search(text)


def _top(folder: Path) -> Path:
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


if __name__ == "__main__":
    own_stdout = os.dup(1)
    os.dup2(2, 1)
    sys.exit(main(own_stdout))
