"""Reports at the end of a run which tests were left out: one line per reason, with the number of tests."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

_NOT_CHOSEN = pytest.StashKey[Counter[str]]()
_WIRE = "not chosen"


def pytest_configure(config: pytest.Config) -> None:
    nothing: Counter[str] = Counter()
    config.stash[_NOT_CHOSEN] = nothing


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the deselected tests by the mark with which another command runs them."""
    for item in items:
        item.config.stash[_NOT_CHOSEN][_mark(item)] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the counts to the controller, if this process is one of its workers."""
    if hasattr(session.config, "workeroutput"):
        counted = session.config.stash[_NOT_CHOSEN]
        session.config.workeroutput[_WIRE] = dict(counted)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take the counts of a worker; all workers leave out the same tests."""
    if told := getattr(node, "workeroutput", {}).get(_WIRE):
        node.config.stash[_NOT_CHOSEN].clear()
        node.config.stash[_NOT_CHOSEN].update(told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = [f"{count} skipped: {why}" for why, count in _sorted(map(_reason, terminalreporter.getreports("skipped")))]
    about = dict(line.split(":", 1) for line in config.getini("markers") if ":" in line)
    for mark, count in _sorted(config.stash[_NOT_CHOSEN].elements()):
        lines.append(f"{count} not chosen: {mark}{':' + about[mark] if mark in about else ''}")
    if lines:
        terminalreporter.section("what did not run, and why")
        for line in lines:
            terminalreporter.line(line)


def _mark(item: pytest.Item) -> str:
    """Return the mark by which the item was left out, or "not asked for" if none in the expression fits."""
    asked = re.findall(r"\w+", item.config.getoption("markexpr", ""))
    return next((name for name in asked if item.get_closest_marker(name)), "not asked for")


def _reason(report: pytest.TestReport) -> str:
    assert isinstance(report.longrepr, tuple)
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def _sorted(reasons: Iterable[str]) -> list[tuple[str, int]]:
    """Return each reason with its count, the most frequent first."""
    return sorted(Counter(reasons).items(), key=lambda each: (-each[1], each[0]))
