"""What a run of tests tells: how it ended, which tests failed, how many passed, and the lines that say why. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from common.text.untrusted import clean
from modules.runtime.sandbox.types import Ended
from modules.services.coding.python_tests import EMPTY, MISSING

SuiteOutcome = Literal[
    "passed",  # tests ran, and all of them passed
    "failed",  # tests ran, and some failed
    "empty",  # no tests were found, or all were left out
    "missing",  # what runs the tests is not here
    "timeout",  # they took longer than they may
    "memory",  # they needed more memory than they may use
    "crashed",  # what ran them ended by itself without a result
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
"""What of a name differs from run to run: how long it took, and in which line it stands."""
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
"""How these commands tell that tests passed."""
_MAKE_ENDED = re.compile(r"^make(?:\[\d+\])?: \*\*\* \[.*\] (?:Error (?P<code>\d+)|.+)$", re.MULTILINE)
_ABORTED = 134
_OF_SIGNALS = range(129, 160)
_TAIL_CHARS = 2_000
_TELLING = re.compile(r"^E\s|\b\w*(?:Error|Exception)\b|\b(?:assert|expected|actual|panicked)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What a run came to; `output` is the part of what was written that is shown."""

    outcome: SuiteOutcome
    output: str
    failing: Collection[str] = ()
    passing: int | None = None


def verdict_of(ended: Ended, code: int, output: str) -> RunVerdict:
    """Return what a run came to, by its exit code and by what it wrote; `code` is a shell's."""
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
    """Return what a run of `python_tests` came to, by its report; without one it did not come to its end."""
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
    """Return the names of the tests that an output tells as failed.

    Those of pytest, unittest, node, TAP, Jest, Vitest, Mocha, AVA, Go and Cargo are known; of Go also the packages,
    and of Cargo the targets, as two of them may hold tests of one name.
    """
    found = (_FAILED.match(line.rstrip()) for line in _lines(output))
    names = dict.fromkeys(name for one in found if one and (name := _lasting(next(filter(None, one.groups()), ""))))
    return list(dict.fromkeys(map(clean, list(names)[:_MOST_NAMES])))


def passed_tests(output: str) -> int | None:
    """Return how many tests an output tells as passed; None where it tells no number."""
    found = [one for line in _lines(output) if (one := _COUNTS.match(line.rstrip()))]
    return sum(int(next(filter(str.isdecimal, filter(None, one.groups())), "0")) for one in found) if found else None


def passed_commands(output: str) -> frozenset[str]:
    """Return the commands whose tests ran and passed within another one, such as pytest within `make test`."""
    lines = _lines(output)
    return frozenset(name for name, told in _PASSED.items() if any(map(told.match, lines)))


def essential_lines(output: str) -> str:
    """Return the lines of an output that tell what failed and why; its last lines where none does."""
    lines = [line.rstrip()[:_LINE_CHARS] for line in _lines(output) if line.strip()]
    telling = dict.fromkeys(line for line in lines if _FAILED.match(line) or _TELLING.search(line))
    return clean("\n".join(list(telling)[:_MOST_LINES] or lines[-_LAST_LINES:]))


def _code_of_recipe(code: int, output: str) -> int:
    """The exit code of what `make` ran: it tells that in words, and always ends with 2 itself."""
    found = _MAKE_ENDED.search(output) if code == 2 else None  # noqa: PLR2004 - that of make
    if found is None:
        return code
    return int(found["code"]) if found["code"] else _ABORTED


def _shown(output: str) -> str:
    """An output, or where it is long the lines that matter and its end."""
    text = _bare(output).strip()
    if len(text) <= 2 * _TAIL_CHARS:
        return text
    return f"{essential_lines(text)}\n\n{text[-_TAIL_CHARS:]}"


def _lasting(name: str) -> str:
    """Return what of a name is the same in each run; "" for a heading."""
    name = name[: 2 * _LINE_CHARS].strip(" :")
    for _ in range(_MOST_CHANGING):
        name = _CHANGING.sub("", name).strip(" :")
    return "" if name in _HEADINGS else name[:_LINE_CHARS]


def _lines(output: str) -> list[str]:
    return [line[: 4 * _LINE_CHARS] for line in _bare(output).split("\n")]


def _bare(output: str) -> str:
    return _COLOUR.sub("", output)
