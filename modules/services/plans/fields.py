"""The fields of a task: what a person or a peer wrote into a line, and how it is written anew. Pure.

What stands in a line beside its value, such as "(until Friday)", is no value; it stays when the value changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from modules.services.plans.types import ACTIVE_TASKS, TaskStatus

UNCLAIMED = "(empty if unclaimed)"
"""What peers write and read where a task has no assignee."""

_FIELD = re.compile(
    r" {0,3}(?:[-*+][ \t]+)?(?P<mark>[*_]{1,3})?"
    r"(?P<name>status|assignee|estimate|dependenc(?:y|ies)|depends on|files?|description)"
    r"(?(mark)(?:[:\uff1a](?P=mark)|(?P=mark)[ \t]*[:\uff1a])|[ \t]*[:\uff1a])[ \t]*(?P<value>.*)",
    re.IGNORECASE,
)
_OTHER_FIELD = re.compile(
    r" {0,3}(?:[-*+][ \t]+)?(?P<mark>\*{2,3}|_{2,3})[^*_:\uff1a\n]{1,40}"
    r"(?:[:\uff1a](?P=mark)|(?P=mark)[ \t]*[:\uff1a]).*"
)
_NAMED_BELOW = re.compile(
    r"[^\w\n]{0,12}(status|assignee|dependenc(?:y|ies)|depends on)[^\w\n|:\uff1a=]{0,6}[|:\uff1a=]", re.IGNORECASE
)
_NAMES = {"dependency": "dependencies", "depends on": "dependencies", "file": "files"}
_FILE = re.compile(r"[ \t]*[-*+][ \t]+`([^`\n]+)`(.*)")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(\S.*)")
_QUOTED = re.compile(r"`([^`\n]+)`")
_BETWEEN_FILES = re.compile(r"[,;]|\s(?:and|&)\s", re.IGNORECASE)
_LOGIN = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,38})")
_SIGNS = "*_~`[]<>.,;:!"
_NOBODY = frozenset(
    {"", "none", "unassigned", "unclaimed", "n/a", "na", "tbd", "-", "\u2013", "\u2014", "nobody", "no response"}
)
_NO_FILES = frozenset({"none", "n/a", "-", "tbd", "_no response_"})
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
    "merged": "completed",
    "blocked": "blocked",
}
_STATUS = re.compile("|".join(word.replace(" ", "[ _-]{1,3}") for word in sorted(_WORDS, key=len, reverse=True)))
_JOINTS = re.compile(r"[ _-]{1,3}")
_MOST_READ_CHARS = 1_000
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\s]{0,300}\)")
_BOX = re.compile(r"\[([ xX])\]")
_CHECK_NAME = re.compile(r":(?:white_|heavy_)?check_mark:", re.IGNORECASE)
_EMOJI_NAME = re.compile(r":[a-z0-9_+-]{1,40}:", re.IGNORECASE)
_CHECKS, _CROSSES = frozenset("✅✔☑✓"), frozenset("❌❎✖✗✘")
_REFERRING = frozenset({"see", "by", "in", "on", "via", "with", "pr", "at"})
_NOTES = ("(", "\uff08", "<!--")


def read_field(line: str) -> tuple[str, str] | None:
    """Return the name of a field in lower case and its text, or None where the line is no field."""
    found = _FIELD.fullmatch(line)
    return (_name(found["name"]), found["value"].strip()) if found else None


def is_other_field(line: str) -> bool:
    """Return whether a line has the form of a field that plans do not know, such as `**Priority:** high`."""
    return _OTHER_FIELD.fullmatch(line) is not None


def names_below(line: str) -> str:
    """Return the name of the field that a line is about in a form that is none, as in a table; "" for none."""
    found = _NAMED_BELOW.match(line)
    return _name(found[1]) if found else ""


def _name(text: str) -> str:
    return _NAMES.get(text.lower(), text.lower())


def read_file(line: str, *, listed: bool) -> str | None:
    """Return the path of a line such as "- `a.py`"; in a list of files words may stand behind it."""
    found = _FILE.fullmatch(line)
    return found[1].strip() or None if found and (listed or not found[2].strip()) else None


def read_bare_file(line: str) -> str | None:
    """Return what a line of a list of files names without backticks: its path, "" where it has none.

    None is a line that belongs to no list.
    """
    found = _BULLET.fullmatch(line)
    return _path(found[1]) if found else None


def _path(text: str) -> str:
    """A path that stands in plain text, with a note behind it or without; "" where the text is another."""
    shown = _LINK.sub(r"\1", text.strip())
    begin, _, rest = shown.partition(" ")
    path = begin.strip("*_`,;:") if begin.startswith(("*", "_", "`")) else begin.rstrip(",;:")
    is_path = bool(path) and (not rest.strip() or "/" in path or "." in path.strip("."))
    return path if is_path and path.lower() not in _NO_FILES else ""


def read_files(text: str) -> tuple[str, ...]:
    """Return the paths that stand in one line, in backticks or between commas."""
    named = _QUOTED.findall(text) or [one.partition(" (")[0] for one in _BETWEEN_FILES.split(text)]
    return tuple(path for one in named if (path := one.strip()) and path.lower() not in _NO_FILES)


def read_status(text: str) -> TaskStatus | None:
    """Return the status that a text names, or None where it is another word."""
    return _status(text)[0]


def read_assignee(text: str) -> str | None:
    """Return the login that a text names, without `@`, or None where it names none."""
    return _assignee(text)[0]


def is_unclear_assignee(text: str) -> bool:
    """Return whether a text is neither a login nor says that a task is nobody's: then it is somebody's."""
    return _assignee(text) == (None, text) and not _says_nobody(text)


def is_contradicted(status: TaskStatus, heading: str) -> bool:
    """Return whether what stands before the name of a task in its heading says the opposite of its status."""
    is_struck = "~~" in heading and status != "completed"
    return is_struck or (status == "pending" and _is_checked(heading))


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
    return line[: found.start("value")].rstrip(), found["value"].strip()


def _joined(start: str, value: str, rest: str) -> str:
    """A line with its new value. What is kept stands in brackets, where it is never read as a value."""
    kept = rest if not rest or rest.startswith(_NOTES) else f"({rest})"
    return f"{start} {value} {kept}".rstrip()


def _apart(text: str) -> tuple[str, str]:
    """The part of a value that counts, and the rest: from the first bracket or HTML comment on."""
    end = min((place for sign in _NOTES if (place := text.find(sign)) >= 0), default=len(text))
    return text[:end].strip(), text[end:].strip()


def _status(text: str) -> tuple[TaskStatus | None, str]:
    """The status, and what else stands there; alone in brackets it is a status too."""
    counts, rest = _apart(text)
    if not counts and not rest.startswith("<!--"):
        return _said(rest.strip("()\uff08\uff09"))[0], text
    status, is_alone = _said(counts)
    return status, rest if is_alone else text


def _said(text: str) -> tuple[TaskStatus | None, bool]:
    """The status that a text without notes names, and whether nothing else stands there.

    It is the first word. What follows may only refer to something, as in "done, see #5"; but who says that a task is
    being worked on may say more. "complete rewrite needed", "done?" and a mark that says the opposite name none.
    """
    shown = _STRUCK.sub(" ", _CHECK_NAME.sub("✅", text[:_MOST_READ_CHARS]))
    is_checked = _is_checked(shown)
    plain = _plain(shown)
    if not plain:
        is_open = _BOX.search(shown) is not None
        return ("completed" if is_checked else "pending" if is_open else None), True
    found = _STATUS.match(plain)
    behind = plain[found.end() :] if found else ""
    if not found or behind[:1].isalnum() or "?" in plain:
        return None, False
    status = _WORDS[_JOINTS.sub(" ", found[0])]
    is_denied = is_checked if status == "pending" else status == "completed" and any(one in _CROSSES for one in shown)
    if is_denied or not (status in ACTIVE_TASKS or _only_refers(behind)):
        return None, False
    return status, not behind.strip()


def _plain(text: str) -> str:
    """The words of a text in lower case, without emphasis, boxes, links and pictures; "" where it has none."""
    shown = unicodedata.normalize("NFKC", _LINK.sub(r"\1", _EMOJI_NAME.sub(" ", _BOX.sub(" ", text)))).lower()
    kept = "".join(" " if _is_picture(sign) else sign for sign in shown)
    return " ".join(kept.split()).strip(_SIGNS + " -\u2013\u2014|") if any(map(str.isalnum, kept)) else ""


def _is_picture(sign: str) -> bool:
    return sign in "*`" or (ord(sign) > ord("~") and unicodedata.category(sign) in {"So", "Sk", "Sm", "Cf", "Mn", "Me"})


def _only_refers(text: str) -> bool:
    words = (word.strip("_.,;:!/-\u2013\u2014") for word in text.split())
    return all(
        not word or word in _REFERRING or word[0] in "@#" or word[0].isdigit() or word.startswith("https:")
        for word in words
    )


def _is_checked(text: str) -> bool:
    return any(sign in _CHECKS for sign in text) or any(box[1] != " " for box in _BOX.finditer(text))


def _assignee(text: str) -> tuple[str | None, str]:
    """The login, and what else stands there."""
    if text == UNCLAIMED:
        return None, ""
    counts, rest = _apart(text)
    words = [(word, unicodedata.normalize("NFKC", word).strip(_SIGNS)) for word in counts.replace(",", " ").split()]
    if counts.strip(_SIGNS).lower() in _NOBODY or counts in _NOBODY:
        return None, rest
    called = [pair for pair in words if pair[1].startswith("@")]
    if not called and words and words[0][1].lower() in _NOBODY:
        return None, text
    for word, bare in called or words:
        if login := _LOGIN.fullmatch(bare):
            return login[1], f"{counts.replace(word, '', 1).strip(' ,')} {rest}".strip()
    return None, text


def _says_nobody(text: str) -> bool:
    """Whether a text without a login holds nothing that counts, or begins with a word for nobody."""
    counts = _apart(text)[0].strip(_SIGNS + "?")
    return not counts or counts.split()[0].strip(_SIGNS).lower() in _NOBODY
