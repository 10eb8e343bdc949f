"""The fields of a task: what a person or a peer wrote into a line, and how it is written anew. Pure.

What stands in a line beside its value, such as "(until Friday)", is no value; it stays when the value changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from modules.services.plans.types import TaskStatus

UNCLAIMED = "(empty if unclaimed)"
"""What peers write and read where a task has no assignee."""

_FIELD = re.compile(
    r" {0,3}(?:[-*+][ \t]+)?\*\*(status|assignee|estimate|dependencies|files|description)"
    r"(?::\*\*|\*\*[ \t]*:)[ \t]*(.*)",
    re.IGNORECASE,
)
_FILE = re.compile(r"[ \t]*[-*+][ \t]+`([^`\n]+)`(.*)")
_QUOTED = re.compile(r"`([^`\n]+)`")
_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,38})")
_SIGNS = "*_~`[]<>.,;:!"
_NOBODY = frozenset({"", "none", "unassigned", "unclaimed", "n/a", "na", "tbd", "-", "\u2013", "\u2014", "nobody"})
_NO_FILES = frozenset({"none", "n/a", "-", "tbd"})
_WORDS: Mapping[str, TaskStatus] = {
    "pending": "pending",
    "todo": "pending",
    "to do": "pending",
    "open": "pending",
    "unclaimed": "pending",
    "not started": "pending",
    "claimed": "claimed",
    "in progress": "in_progress",
    "wip": "in_progress",
    "work in progress": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
    "finished": "completed",
    "✅": "completed",
    "blocked": "blocked",
}
_STATUS = re.compile("|".join(re.escape(word) for word in sorted(_WORDS, key=len, reverse=True)))


def read_field(line: str) -> tuple[str, str] | None:
    """Return the name of a field in lower case and its text, or None where the line is no field."""
    found = _FIELD.fullmatch(line)
    return (found[1].lower(), found[2].strip()) if found else None


def read_file(line: str, *, listed: bool) -> str | None:
    """Return the path of a line such as "- `a.py`"; in a list of files words may stand behind it."""
    found = _FILE.fullmatch(line)
    return found[1].strip() or None if found and (listed or not found[2].strip()) else None


def read_files(text: str) -> tuple[str, ...]:
    """Return the paths that stand in one line, in backticks or between commas."""
    named = _QUOTED.findall(text) or text.split(",")
    return tuple(path for one in named if (path := one.strip()) and path.lower() not in _NO_FILES)


def read_status(text: str) -> TaskStatus | None:
    """Return the status that a text names, or None where it is another word."""
    return _status(text)[0]


def read_assignee(text: str) -> str | None:
    """Return the login that a text names, without `@`, or None where it is nobody's."""
    return _assignee(text)[0]


def write_status(line: str, status: TaskStatus) -> str:
    """Return a status line, without its end, that says `status`."""
    start, text = _value(line)
    return _joined(start, status, _status(text)[1])


def write_assignee(line: str, login: str) -> str:
    """Return an assignee line, without its end, that names `login`, or nobody where it is empty."""
    start, text = _value(line)
    return _joined(start, assignee_text(login), _assignee(text)[1])


def assignee_text(login: str | None) -> str:
    """Return what stands behind `**Assignee:**`."""
    return f"@{login}" if login else UNCLAIMED


def _value(line: str) -> tuple[str, str]:
    """What stands before the value of a field, without spaces at its end, and the value."""
    found = _FIELD.fullmatch(line)
    if not found:
        raise ValueError(f"no field: {line[:80]!r}")
    return line[: found.start(2)].rstrip(), found[2].strip()


def _joined(start: str, value: str, rest: str) -> str:
    """A line with its new value. What is kept stands in brackets, where it is never read as a value."""
    kept = rest if not rest or rest.startswith(("(", "<!--")) else f"({rest})"
    return f"{start} {value} {kept}".rstrip()


def _apart(text: str) -> tuple[str, str]:
    """The part of a value that counts, and the rest: from the first bracket or HTML comment on."""
    end = min((place for sign in ("(", "<!--") if (place := text.find(sign)) >= 0), default=len(text))
    return text[:end].strip(), text[end:].strip()


def _status(text: str) -> tuple[TaskStatus | None, str]:
    """The status, and what else stands there."""
    counts, rest = _apart(text)
    plain = re.sub(r"[\s_-]", " ", counts.lower().strip(_SIGNS + " "))
    plain = re.sub(r" +", " ", plain)
    status = _WORDS.get(plain)
    if status is None:
        found = _STATUS.match(plain)
        behind = plain[found.end() :].lstrip() if found else ""
        # NOTE(self): "done, see #5" is done, and "complete rewrite needed" is not.
        if found and not behind[:1].isalnum():
            return _WORDS[found[0]], text
        return None, text
    return status, rest


def _assignee(text: str) -> tuple[str | None, str]:
    """The login, and what else stands there."""
    if text == UNCLAIMED:
        return None, ""
    counts, rest = _apart(text)
    words = [(word, word.strip(_SIGNS)) for word in counts.replace(",", " ").split()]
    if counts.strip(_SIGNS).lower() in _NOBODY or counts in _NOBODY:
        return None, rest
    called = [pair for pair in words if pair[1].startswith("@")]
    if not called and words and words[0][1].lower() in _NOBODY:
        return None, text
    for word, bare in called or words:
        if login := _LOGIN.fullmatch(bare):
            return login[1], f"{counts.replace(word, '', 1).strip(' ,')} {rest}".strip()
    return None, text
