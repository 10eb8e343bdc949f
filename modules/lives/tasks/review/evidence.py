"""What the tests of a pull request came to, what of their output matters, and how its changes weaken them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from adapters.github.types import PullFile
from common.text.untrusted import clean
from modules.services.coding.suites import SuiteRun

SuiteState = Literal[
    "passed",  # all of them ran, and passed
    "failed",  # one ran, and failed
    "unrun",  # one could not be run
    "none",  # the repository has none
]
WeakeningCode = Literal[
    "deleted",  # a file of tests is gone
    "fewer",  # a file of tests holds fewer tests or checks
    "skipped",  # tests are left out
    "command",  # how the tests are run is another
]

_MOST_NAMES, _MOST_LINES, _LINE_CHARS, _LAST_LINES = 8, 14, 200, 8
_FAILED = re.compile(
    r"^\s*(?:(?:FAILED|ERROR)\s+(?P<pytest>\S+).*|not ok \d+ - (?P<tap>.+)|✖ (?P<node>.+?)(?: \([\d.]+ms\))?"
    r"|(?:FAIL|ERROR): (?P<unittest>\S+).*|--- FAIL: (?P<go>\S+).*|test (?P<cargo>\S+) \.\.\. FAILED)$"
)
_TELLING = re.compile(r"^E\s|\b\w*(?:Error|Exception)\b|\b(?:assert|expected|actual|panicked)\b", re.IGNORECASE)
_NO_TEST = frozenset({"failing tests:"})
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)test_[^/]+\.py$|_test\.(?:py|go)$|\.(?:test|spec)\.[cm]?[jt]sx?$"
)
_SET_UP = re.compile(r"(?:^|/)(?:pytest\.ini|tox\.ini|conftest\.py|(?:jest|vitest)\.config\.\w+)$")
_CHECK = re.compile(
    r"^\s*(?:(?:async\s+)?def test_|(?:test|it)\b[\w.]*\(|func Test|#\[(?:\w+::)?test\])|\bassert\w*\b|\bexpect\("
)
_SKIP = re.compile(r"\.(?:skip|todo)\(|\bmark\.(?:skip|xfail)|@unittest\.skip|\bt\.Skip|#\[ignore")
_SCRIPT = re.compile(r'"test"\s*:')
_TARGET = re.compile(r"^([\w.-]+)\s*:(?!=)")
_HUNK = re.compile(r"^@@ .*?@@ ?(.*)$")


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """The runs of all tests; `refused` is why they could not be run at all, "" where they could."""

    runs: tuple[SuiteRun, ...] = ()
    refused: str = ""

    @property
    def failed(self) -> tuple[SuiteRun, ...]:
        """Those that ran, and failed."""
        return tuple(one for one in self.runs if not one.passed and not one.is_missing)

    @property
    def missing(self) -> tuple[SuiteRun, ...]:
        """Those of which what runs them is not here."""
        return tuple(one for one in self.runs if one.is_missing)

    @property
    def passed(self) -> tuple[SuiteRun, ...]:
        """Those that ran, and passed."""
        return tuple(one for one in self.runs if one.passed)

    @property
    def state(self) -> SuiteState:
        """What they came to, all together."""
        if self.failed:
            return "failed"
        if self.refused or self.missing:
            return "unrun"
        return "passed" if self.runs else "none"

    @property
    def failing(self) -> tuple[str, ...]:
        """The names of the tests that failed, as far as the output tells them."""
        return tuple(dict.fromkeys(name for run in self.failed for name in failing_tests(run.output)))[:_MOST_NAMES]


@dataclass(frozen=True, slots=True)
class Weakening:
    """What the changes take from the tests, and in which file."""

    code: WeakeningCode
    path: str


def failing_tests(output: str) -> list[str]:
    """Return the names of the tests that an output tells as failed: of pytest, unittest, node, TAP, go or cargo."""
    found = (_FAILED.match(line) for line in clean(output).splitlines())
    names = (next(filter(None, one.groups()), "").strip()[:_LINE_CHARS] for one in found if one)
    return [name for name in dict.fromkeys(names) if name and name not in _NO_TEST]


def essential_lines(output: str) -> str:
    """Return the lines of an output that tell what failed and why; its last lines where none does."""
    lines = [line.rstrip()[:_LINE_CHARS] for line in clean(output).splitlines() if line.strip()]
    telling = [line for line in lines if _FAILED.match(line) or _TELLING.search(line)]
    return "\n".join(list(dict.fromkeys(telling))[:_MOST_LINES] or lines[-_LAST_LINES:])


def weakenings(files: Sequence[PullFile]) -> list[Weakening]:
    """Return what the changes of these files take from the tests."""
    return [Weakening(code, file.path) for file in files for code in _weakened(file)]


def _weakened(file: PullFile) -> Iterator[WeakeningCode]:
    if _SET_UP.search(file.path) or _changes_command(file):
        yield "command"
    if not _TEST_FILE.search(file.path):
        return
    if file.status == "removed":
        yield "deleted"
        return
    lines = [line for line in file.patch.splitlines() if not line.startswith(("+++", "---"))]
    added, gone = ([line[1:] for line in lines if line.startswith(sign)] for sign in "+-")
    if sum(bool(_CHECK.search(line)) for line in gone) > sum(bool(_CHECK.search(line)) for line in added):
        yield "fewer"
    if any(_SKIP.search(line) for line in added):
        yield "skipped"


def _changes_command(file: PullFile) -> bool:
    """Whether another command tests the repository: one that stood there was changed, or is gone."""
    name = file.path.rpartition("/")[2]
    lines = file.patch.splitlines()
    if name == "package.json":
        return any(line.startswith("-") and _SCRIPT.search(line) for line in lines)
    if name in {"pyproject.toml", "setup.cfg"}:
        return any(line.startswith(("+", "-")) and "pytest" in line for line in lines)
    return name in {"Makefile", "makefile", "GNUmakefile"} and _changes_target(lines)


def _changes_target(lines: Sequence[str]) -> bool:
    """Whether a line of the target `test` was changed, or is gone."""
    target = ""
    for line in lines:
        if hunk := _HUNK.match(line):
            opened = _TARGET.match(hunk[1])
            target = opened[1] if opened else ""
            continue
        named = _TARGET.match(line[1:])
        target = named[1] if named else target
        if line.startswith("-") and target == "test":
            return True
    return False
