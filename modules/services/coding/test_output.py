"""What matters of the output of tests: which failed, and the lines that tell why. Pure."""

from __future__ import annotations

import re

from common.text.untrusted import clean

_MOST_LINES, _LINE_CHARS, _LAST_LINES = 14, 200, 8
_FAILED = re.compile(
    r"^\s*(?:(?:FAILED|ERROR)\s+(?P<pytest>\S+).*|not ok \d+ - (?P<tap>.+)|✖ (?P<node>.+?)(?: \([\d.]+ms\))?"
    r"|(?:FAIL|ERROR): (?P<unittest>\S+).*|--- FAIL: (?P<go>\S+).*|test (?P<cargo>\S+) \.\.\. FAILED)$"
)
_TELLING = re.compile(r"^E\s|\b\w*(?:Error|Exception)\b|\b(?:assert|expected|actual|panicked)\b", re.IGNORECASE)
_NO_TEST = frozenset({"failing tests:"})


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
