"""Reads the result of a test run: outcome, failed tests, count of passed tests, and the lines that explain it. Pure."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from common.text.untrusted import clean
from modules.runtime.sandbox.policy import Ended
from modules.services.coding.python_tests import EMPTY, MISSING

SuiteOutcome = Literal[
    "passed",  # tests ran, and all of them passed
    "failed",  # tests ran, and some failed
    "empty",  # no tests were found, or all were skipped
    "missing",  # the program that runs the tests is not installed
    "timeout",  # the run took too long
    "memory",  # the run used too much memory
    "crashed",  # the test runner ended by itself without a result
]

_MOST_LINES, _LINE_CHARS, _LAST_LINES = 14, 200, 8
_MOST_NAMES, _MOST_CHANGING = 5_000, 2
_COLOUR = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_FAILED = re.compile(
    r"^\s*(?:"
    r"(?:FAILED|ERROR) (?P<pytest>\S+?\.py(?:::.+?)?)(?: - .*)?"
    r"|(?:FAIL|ERROR): (?P<unittest>\S+ \(.+)"
    r"|not ok \d+(?: -)? (?P<tap>(?!.*# (?i:todo|skip)).+)"
    r"|[✖✘✕] (?:\[fail\]: )?(?P<mark>.+)"
    r"|● (?P<jest>.+)"
    r"|FAIL\s+(?P<file>.+)"
    r"|\d{1,5}\) (?P<mocha>.+)"
    r"|--- FAIL: (?P<go>\S+).*"
    r"|test (?P<cargo>\S.*?) \.\.\. FAILED"
    r"|`(?P<target>-.+)`"
    r")$"
)
_CHANGING = re.compile(
    r"(?:\(line \d+\)|\(\d+(?:\.\d+)?\s?m?s\)|\t\d+\.\d+s|\[(?:build|setup) failed\])$|^\[\s{0,9}[\d.]+s\]"
)
"""The parts of a test name that change from run to run: durations and line numbers."""
_HEADINGS = frozenset({"failing tests", "Console", "Test suite failed to run"})
_COUNTS = re.compile(
    r"^(?:[#ℹ] pass (?P<tap>\d+)"  # noqa: RUF001 - the sign of node's reporter
    r"|\s*Tests:?\s.*?(?P<jest>\d+) passed.*"
    r"|\s*(?P<mocha>\d+) passing\b.*"
    r"|test result: .*?(?P<cargo>\d+) passed;.*"
    r"|(?:=+ )?(?:\d+ \w+, )*(?P<pytest>\d+) passed\b.*"
    r"|Ran (?P<unittest>\d+) tests? in .*"
    r"|(?P<none>no tests ran in .*|NO TESTS RAN))$"
)
_PASSED = {
    "pytest": re.compile(r"^(?:=+ )?(?:\d+ \w+, )*[1-9]\d* passed\b.* in [\d.]+s\b"),
    "cargo test": re.compile(r"^test result: ok\. [1-9]\d* passed;"),
    "go test ./...": re.compile(r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)"),
}
"""The line by which each of these commands reports that tests passed."""
_MAKE_ENDED = re.compile(r"^make(?:\[\d+\])?: \*\*\* \[.*\] (?:Error (?P<code>\d+)|.+)$", re.MULTILINE)
_ABORTED = 134
_OF_SIGNALS = range(129, 160)
_TAIL_CHARS = 2_000
_TELLING = re.compile(r"^E\s|\b\w*(?:Error|Exception)\b|\b(?:assert|expected|actual|panicked)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The result of a test run; `output` is the part of its output that is shown."""

    outcome: SuiteOutcome
    output: str
    failing: Collection[str] = ()
    passing: int | None = None


def verdict_of(ended: Ended, code: int, output: str) -> RunVerdict:
    """Return the result of a run by its output and `code`, the exit code as a shell returns it."""
    code = _code_of_recipe(code, output)
    failing, passing = failing_tests(output), passed_tests(output)
    shown = _shown(output) or f"{ended}, {code}"
    outcome: SuiteOutcome
    if ended != "exited":
        outcome = ended if ended in {"timeout", "memory"} else "crashed"
    elif code == MISSING:
        outcome = "missing"
    elif code in _OF_SIGNALS:
        outcome = "crashed"
    elif passing == 0 and (code == 0 or (code == EMPTY and not failing)):
        outcome = "empty"
    else:
        outcome = "failed" if code else "passed"
    return RunVerdict(outcome, shown, failing if code else (), passing)


def verdict_of_report(ended: Ended, code: int, report: str, output: str) -> RunVerdict:
    """Return the result of a run of `python_tests` by its JSON report; a run without one counts as crashed."""
    shown = _shown(output) or f"{ended}, {code}"
    if ended != "exited":
        return RunVerdict(ended if ended in {"timeout", "memory"} else "crashed", shown)
    if code == MISSING and not report:
        return RunVerdict("missing", shown)
    try:
        told = json.loads(report)
        names, passing = told["failed"], told["passed"]
        failing = [clean(str(name))[: 2 * _LINE_CHARS] for name in names[:_MOST_NAMES]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return RunVerdict("crashed", shown)
    outcomes: dict[int, SuiteOutcome] = {0: "passed" if passing else "empty", 1: "failed", EMPTY: "empty"}
    return RunVerdict(outcomes.get(code, "crashed"), shown, failing, passing if isinstance(passing, int) else None)


def failing_tests(output: str) -> list[str]:
    """Return the names of the tests that failed according to the output.

    Reads the output of pytest, unittest, node, TAP, Jest, Vitest, Mocha, AVA, Go and Cargo. For Go it also returns
    packages, and for Cargo targets, as two of them may have tests of the same name.
    """
    found = (_FAILED.match(line.rstrip()) for line in _lines(output))
    names = dict.fromkeys(name for one in found if one and (name := _lasting(next(filter(None, one.groups()), ""))))
    return list(dict.fromkeys(map(clean, list(names)[:_MOST_NAMES])))


def passed_tests(output: str) -> int | None:
    """Return how many tests passed according to the output; None if it gives no number."""
    found = [one for line in _lines(output) if (one := _COUNTS.match(line.rstrip()))]
    return sum(int(next(filter(str.isdecimal, filter(None, one.groups())), "0")) for one in found) if found else None


def passed_commands(output: str) -> frozenset[str]:
    """Return the commands whose tests ran and passed within another command, such as pytest within `make test`."""
    lines = _lines(output)
    return frozenset(name for name, told in _PASSED.items() if any(map(told.match, lines)))


def essential_lines(output: str) -> str:
    """Return the lines of the output that say what failed and why; its last lines if none does."""
    lines = [line.rstrip()[:_LINE_CHARS] for line in _lines(output) if line.strip()]
    telling = dict.fromkeys(line for line in lines if _FAILED.match(line) or _TELLING.search(line))
    return clean("\n".join(list(telling)[:_MOST_LINES] or lines[-_LAST_LINES:]))


def _code_of_recipe(code: int, output: str) -> int:
    """Return the exit code of the command that `make` ran: make itself always exits with 2 and prints the code."""
    found = _MAKE_ENDED.search(output) if code == 2 else None  # noqa: PLR2004 - the exit code of make
    if found is None:
        return code
    return int(found["code"]) if found["code"] else _ABORTED


def _shown(output: str) -> str:
    """Return the output, shortened to the lines that matter and its end if it is long."""
    text = _bare(output).strip()
    if len(text) <= 2 * _TAIL_CHARS:
        return text
    return f"{essential_lines(text)}\n\n{text[-_TAIL_CHARS:]}"


def _lasting(name: str) -> str:
    """Return the part of a test name that is the same in each run; "" for a heading."""
    name = name[: 2 * _LINE_CHARS].strip(" :")
    for _ in range(_MOST_CHANGING):
        name = _CHANGING.sub("", name).strip(" :")
    return "" if name in _HEADINGS else name[:_LINE_CHARS]


def _lines(output: str) -> list[str]:
    return [line[: 4 * _LINE_CHARS] for line in _bare(output).split("\n")]


def _bare(output: str) -> str:
    return _COLOUR.sub("", output)
