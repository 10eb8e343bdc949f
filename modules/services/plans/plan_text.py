"""Reads a plan from the body of an issue, writes it exactly as peers do, and adds tasks to it. Pure.

The body may have been edited by its author, a peer or a person. Adding tasks changes no existing byte.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from common.text.markdown import close_code, without_html_comments
from common.text.strings import as_typed, normalized_title
from modules.services.plans.lines import Scan, TaskBlock, escape, escape_line, scan, unescape
from modules.services.plans.types import ACTIVE_TASKS, Plan, Task, TaskStatus, resolve_dependencies

UNCLAIMED = "(empty if unclaimed)"
"""The text that peers write and read for a task without an assignee."""

_STANDING = r"status|assignees?|assigned to|dependenc(?:y|ies)|depends on|blocked by"
_FIELD = re.compile(
    r" {0,3}(?:[-*+][ \t]+)?(?P<mark>[*_]{1,3})?"
    rf"(?P<name>{_STANDING}|estimate|files?|description)"
    r"(?(mark)(?:[:\uff1a](?P=mark)|(?P=mark)[ \t]*[:\uff1a])|[ \t]*[:\uff1a])[ \t]*(?P<value>.*)",
    re.IGNORECASE,
)
_OTHER_FIELD = re.compile(
    r" {0,3}(?:[-*+][ \t]+)?(?P<mark>\*{2,3}|_{2,3})[^*_:\uff1a\n]{1,40}"
    r"(?:[:\uff1a](?P=mark)|(?P=mark)[ \t]*[:\uff1a]).*"
)
_NAMED_BELOW = re.compile(rf"[^\w\n]{{0,12}}({_STANDING})[^\w\n|:\uff1a=]{{0,6}}[|:\uff1a=]", re.IGNORECASE)
_NAMES = dict.fromkeys(("dependency", "depends on", "blocked by"), "dependencies")
_NAMES |= dict.fromkeys(("assignees", "assigned to"), "assignee") | {"file": "files"}
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
    """Return the name of a field in lower case and its text, or None if the line is not a field."""
    found = _FIELD.fullmatch(line)
    return (_name(found["name"]), found["value"].strip()) if found else None


def names_below(line: str) -> str:
    """Return the name of the field that a line gives in an invalid form, as in a table; "" for none."""
    found = _NAMED_BELOW.match(line)
    return _name(found[1]) if found else ""


def _name(text: str) -> str:
    return _NAMES.get(text.lower(), text.lower())


def read_file(line: str, *, listed: bool) -> str | None:
    """Return the path in a line such as "- `a.py`", or None; in a list of files, words may follow it."""
    found = _FILE.fullmatch(line)
    return found[1].strip() or None if found and (listed or not found[2].strip()) else None


def read_bare_file(line: str) -> str | None:
    """Return the path in a line of a list of files without backticks, "" if it has none.

    None if the line does not belong to a list.
    """
    found = _BULLET.fullmatch(line)
    return _path(found[1]) if found else None


def _path(text: str) -> str:
    """Return the path in plain text, with or without a note after it; "" if the text is something else."""
    shown = _LINK.sub(r"\1", text.strip())
    begin, _, rest = shown.partition(" ")
    path = begin.strip("*_`,;:") if begin.startswith(("*", "_", "`")) else begin.rstrip(",;:")
    is_path = bool(path) and (not rest.strip() or "/" in path or "." in path.strip("."))
    return path if is_path and path.lower() not in _NO_FILES else ""


def read_files(text: str) -> tuple[str, ...]:
    """Return the paths in one line, in backticks or separated by commas."""
    named = _QUOTED.findall(text) or [one.partition(" (")[0] for one in _BETWEEN_FILES.split(text)]
    return tuple(path for one in named if (path := one.strip()) and path.lower() not in _NO_FILES)


def read_status(text: str) -> TaskStatus | None:
    """Return the status in a text, or None if it gives none."""
    return _status(text)[0]


def read_assignee(text: str) -> str | None:
    """Return the login in a text, without `@`, or None if there is none."""
    return _assignee(text)[0]


def is_unclear_assignee(text: str) -> bool:
    """Return whether a text is neither a login nor says that nobody has the task; the task then counts as taken."""
    return _assignee(text) == (None, text) and not _says_nobody(text)


def is_contradicted(status: TaskStatus, heading: str) -> bool:
    """Return whether the text before the name of a task in its heading contradicts its status."""
    is_struck = "~~" in heading and status != "completed"
    return is_struck or (status == "pending" and _is_checked(heading))


def write_status(line: str, status: TaskStatus) -> str:
    """Return a status line, without its line end, changed to `status`."""
    start, text = _value(line)
    return _joined(start, status, _status(text)[1])


def write_assignee(line: str, login: str) -> str:
    """Return an assignee line, without its line end, changed to `login`, or to nobody if that is empty."""
    start, text = _value(line)
    return _joined(start, assignee_text(login), _assignee(text)[1])


def assignee_text(login: str | None) -> str:
    """Return the text after `**Assignee:**`."""
    return f"@{login}" if login else UNCLAIMED


def _value(line: str) -> tuple[str, str]:
    """Return the text before the value of a field, without trailing spaces, and the value."""
    found = _FIELD.fullmatch(line)
    if not found:
        raise ValueError(f"no field: {line[:80]!r}")
    return line[: found.start("value")].rstrip(), found["value"].strip()


def _joined(start: str, value: str, rest: str) -> str:
    """Return a line with its new value. Kept text is put in brackets, where it is never read as a value."""
    kept = rest if not rest or rest.startswith(_NOTES) else f"({rest})"
    return f"{start} {value} {kept}".rstrip()


def _apart(text: str) -> tuple[str, str]:
    """Return the part of a value that counts, and the rest from the first bracket or HTML comment on."""
    end = min((place for sign in _NOTES if (place := text.find(sign)) >= 0), default=len(text))
    return text[:end].strip(), text[end:].strip()


def _status(text: str) -> tuple[TaskStatus | None, str]:
    """Return the status and the rest of the text; a status alone in brackets counts too."""
    counts, rest = _apart(text)
    if not counts and not rest.startswith("<!--"):
        return _said(rest.strip("()\uff08\uff09"))[0], text
    status, is_alone = _said(counts)
    return status, rest if is_alone else text


def _said(text: str) -> tuple[TaskStatus | None, bool]:
    """Return the status in a text without notes, and whether the text contains nothing else.

    The status is the first word. What follows may only refer to something, as in "done, see #5", except after a status
    that says somebody works on it. "complete rewrite needed", "done?" and a mark that says the opposite give none.
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
    """Return the words of a text in lower case, without emphasis, boxes, links and pictures; "" if it has none."""
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
    """Return the login, or None, and the rest of the text."""
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
    """Return whether a text without a login has no part that counts, or begins with a word for nobody."""
    counts = _apart(text)[0].strip(_SIGNS + "?")
    return not counts or counts.split()[0].strip(_SIGNS).lower() in _NOBODY


TITLE_MARK = "[PLAN]"
BODY_MARK = "# [PLAN]"

_ITEM = re.compile(r"[-*+][ \t]+\[([ xX])\][ \t]+(\S.*)")


@dataclass(slots=True)
class Header:
    """The fields of a task: the text of each, the last one if repeated; the lines of each; where the header ends.

    `others` are the lines of unknown fields, which belong to the description. `unread` is what could not be read, one
    line each: the texts of fields, entries in the list of files that are not files, and a status or an assignee in the
    text below instead of in a field. `status` is None if it could not be read.
    """

    texts: dict[str, str]
    lines: dict[str, list[int]]
    files: list[str]
    end: int
    others: list[int]
    unread: list[str]
    status: TaskStatus | None = "pending"
    assignee: str | None = None
    has_unclear_assignee: bool = False


def is_plan(body: str, title: str) -> bool:
    """Return whether an issue is a plan, by its title or a heading in its body."""
    return as_typed(title).strip().startswith(TITLE_MARK) or BODY_MARK in as_typed(body)


def parse_plan(body: str, title: str) -> Plan | None:
    """Return the plan in an issue with this body and title, or None if it is not a plan."""
    if not body.strip() or not is_plan(body, title):
        return None
    found = scan(body)
    sections = found.sections
    read = [_task(found, block) for block in found.tasks]
    tasks, warnings = resolve_dependencies([task for task, _ in read])
    return Plan(
        title=as_typed(title).replace(TITLE_MARK, "", 1).strip() or _title_in(found.texts),
        goal=" ".join(_paragraphs(found, sections.get("goal", ()))),
        context="\n".join(_paragraphs(found, sections.get("context", ()))),
        tasks=tasks,
        verification=tuple(_items(found, sections.get("verification", ()))),
        warnings=(*_headings(found), *(line for _, unread in read for line in unread), *warnings),
    )


def read_header(found: Scan, block: TaskBlock) -> Header:
    """Return the fields of a task, which are before its description and the first line of another kind."""
    header = Header({}, {}, [], block.end, [], [])
    listed = is_run = False
    for place in range(block.heading + 1, block.end):
        text = found.texts[place]
        if found.code[place]:
            header.end = place
            break
        if not text.strip():
            is_run = is_run and not header.files
            continue
        named = read_field(text)
        if named and named[0] == "description":
            header.end = place
            break
        if named:
            listed = is_run = named[0] == "files"
            header.texts[named[0]] = named[1]
            header.lines.setdefault(named[0], []).append(place)
            if listed:
                header.files += read_files(named[1])
        elif path := read_file(text, listed=listed):
            header.files.append(path)
        elif is_run and (bare := read_bare_file(text)) is not None:
            header.files += [bare] if bare else []
            header.unread += [] if bare else [f"Files: {text.strip()}"]
        elif _OTHER_FIELD.fullmatch(text) is not None:
            listed = is_run = False
            header.others.append(place)
        else:
            header.end = place
            break
    _read_standing(found, block, header)
    return header


def _read_standing(found: Scan, block: TaskBlock, header: Header) -> None:
    """Read the assignee and the status of a task.

    A task without a status is pending. If a person wrote that it is worked on but names nobody, it counts as taken; if
    the status is as a machine writes it, its former assignee is gone.
    """
    text, named = header.texts.get("status", ""), header.texts.get("assignee", "")
    header.assignee, header.has_unclear_assignee = read_assignee(named), is_unclear_assignee(named)
    is_somebodys = header.assignee is not None or header.has_unclear_assignee
    is_said = bool(without_html_comments(text).strip())
    status = read_status(text) if is_said else "pending"
    is_hidden = status in ACTIVE_TASKS and not is_somebodys and text not in ACTIVE_TASKS
    places = (place for place in range(header.end, block.end) if not found.code[place])
    below = {name: place for place in places if (name := names_below(found.texts[place])) and name not in header.texts}
    if status is None or is_hidden or "status" in below:
        header.status = None
        header.unread.append(f"Status: {text}" if "status" in header.texts else found.texts[below["status"]].strip())
    elif is_contradicted(status, block.before):
        header.status = None
        header.unread.append(found.texts[block.heading].strip())
    else:
        header.status = status
    if header.has_unclear_assignee:
        header.unread.append(f"Assignee: {named}")
    elif "assignee" in below:
        header.has_unclear_assignee = True
        header.unread.append(found.texts[below["assignee"]].strip())
    if "dependencies" in below:
        header.unread.append(found.texts[below["dependencies"]].strip())


def _task(found: Scan, block: TaskBlock) -> tuple[Task, list[str]]:
    """Return a task, and the lines about what could not be read."""
    header = read_header(found, block)
    needs = header.texts.get("dependencies", "")
    task = Task(
        number=block.number,
        title=block.title,
        status=header.status or "pending",
        assignee=header.assignee,
        estimate=header.texts.get("estimate") or None,
        dependencies=(needs,) if needs else (),
        files=tuple(dict.fromkeys(header.files)),
        description=_description(found, header, block.end),
        unclear=bool(header.unread),
    )
    return task, [] if task.status == "completed" else [f"{task.name}: {line}" for line in header.unread]


def _description(found: Scan, header: Header, end: int) -> str:
    """Return the description of a task, without the rule that separates it from the next."""
    begin = header.end
    while end > begin and not found.texts[end - 1].strip():
        end -= 1
    if end > begin and found.texts[end - 1].strip() == "---" and not found.code[end - 1]:
        end -= 1
    lines = [found.texts[place] if found.code[place] else unescape(found.texts[place]) for place in range(begin, end)]
    if lines and (named := read_field(lines[0])) and named[0] == "description":
        lines[0] = named[1]
    first = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join([*(found.texts[place] for place in header.others), *lines[first:]]).rstrip()


def _paragraphs(found: Scan, places: Sequence[int]) -> Iterator[str]:
    for place in places:
        text = found.texts[place].strip()
        if text:
            yield text if found.code[place] else unescape(text)


def _items(found: Scan, places: Sequence[int]) -> Iterator[str]:
    for place in places:
        if not found.code[place] and (item := _ITEM.fullmatch(found.texts[place].strip())):
            yield f"{'○' if item[1] == ' ' else '✓'} {item[2]}"


def _headings(found: Scan) -> Iterator[str]:
    if not (found.tasks or found.outside or found.unread):
        yield "no task: each begins with a heading such as `### Task 1: title`, below `## Tasks`"
    yield from (f"{found.texts[place].strip()}: the number of another task" for place in found.repeated)
    yield from (f"{found.texts[place].strip()}: stands outside of the tasks" for place in found.outside)
    yield from (
        f"{found.texts[place].strip()}: not the heading of a task, as `### Task 1: title` is" for place in found.unread
    )


def _title_in(texts: Sequence[str]) -> str:
    heading = next((text.strip() for text in texts if text.strip().startswith(BODY_MARK)), "")
    return heading.removeprefix(BODY_MARK).strip()


def generate_plan_markdown(plan: Plan) -> str:
    """Return the body of a plan, its lines joined by newlines, without one at the end."""
    tasks = [line for task in plan.tasks for line in (format_task_markdown(task), "", "---", "")]
    return "\n".join(
        [
            f"{BODY_MARK} {_one_line(plan.title)}",
            "",
            "## Goal",
            escape_line(_one_line(plan.goal)),
            "",
            "## Context",
            _context(plan.context),
            "",
            "## Tasks",
            "",
            *tasks,
            "## Verification",
            *(_item(item) for item in plan.verification if item.strip()),
        ]
    )


def format_task_markdown(task: Task) -> str:
    """Return the text of one task, without the rule after it. Raises `ValueError` for a task without a title."""
    if not (title := _one_line(task.title)):
        raise ValueError(f"{task.name} has no title")
    files = [f"- `{path}`" for one in task.files if (path := _one_line(one).replace("`", ""))]
    estimate = _one_line(task.estimate or "")
    return "\n".join(
        [
            f"### {task.name}: {title}",
            f"**Status:** {task.status}",
            f"**Assignee:** {assignee_text(task.assignee)}",
            *([f"**Estimate:** {estimate}"] if estimate else []),
            f"**Dependencies:** {', '.join(task.dependencies) or 'none'}",
            *(["**Files:**", *files] if files else []),
            "",
            "**Description:**",
            _description_text(task.description),
        ]
    )


def _description_text(text: str) -> str:
    """Return a description without leading blank lines and trailing white space, escaped for a plan."""
    lines = _with_unix_newlines(text).split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    return escape(close_code("\n".join(lines[first:]).rstrip()), in_task=True)


def _context(text: str) -> str:
    lines = (line.strip() for line in _with_unix_newlines(text).split("\n"))
    return escape(close_code("\n".join(line for line in lines if line)), in_task=False)


def _item(item: str) -> str:
    text = _one_line(item)
    return f"- [x] {text[1:].lstrip()}" if text.startswith("✓") else f"- [ ] {text.removeprefix('○').lstrip()}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _with_unix_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


MOST_BODY_CHARS = 60_000
"""The most characters that a plan may have; GitHub accepts 65,536."""

_RULE = "---"


def add_tasks_to_plan_body(body: str, title: str, tasks: Sequence[Task]) -> str | None:
    """Return the body with those tasks appended whose titles it lacks, numbered on and without dependencies.

    None if they would not be read back unchanged or would change how the earlier tasks are read, and if the body would
    be longer than `MOST_BODY_CHARS`.
    """
    found, before = scan(body), parse_plan(body, title)
    if before is None or not found.tasks:
        return None
    tasks = _new(before.tasks, tasks)
    if not tasks:
        return body
    place = max(block.end for block in found.tasks)
    added = "".join([*found.lines[:place], *_lines(found, place, tasks), *found.lines[place:]])
    after = parse_plan(added, title)
    if len(added) > MOST_BODY_CHARS or after is None or after.tasks[: len(before.tasks)] != before.tasks:
        return None
    read = [(task.number, task.title, task.status) for task in after.tasks[len(before.tasks) :]]
    as_they_are = read == [(task.number, " ".join(task.title.split()), task.status) for task in tasks]
    same_rest = (after.goal, after.context, after.verification) == (before.goal, before.context, before.verification)
    return added if as_they_are and same_rest else None


def _new(known: Sequence[Task], tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks whose titles no known task has, with the next numbers."""
    titles, first = {normalized_title(one.title) for one in known}, max(one.number for one in known) + 1
    new = [one for one in tasks if normalized_title(one.title) not in titles]
    return [replace(one, number=number, dependencies=()) for number, one in enumerate(new, first)]


def _lines(found: Scan, place: int, tasks: Sequence[Task]) -> list[str]:
    """Return the lines of the tasks, with the line ends of the body and separated by rules and blank lines."""
    end = "\r\n" if found.lines[0].endswith("\r\n") else "\n"
    before = [line.strip() for line in found.texts[max(0, place - 2) : place]]
    lines = [] if found.lines[place - 1].endswith("\n") else [end]
    if _RULE not in before:
        lines += [end, _RULE + end]
    if before[-1:] != [""] or _RULE not in before:
        lines.append(end)
    for task in tasks:
        lines += [f"{line}{end}" for line in (*format_task_markdown(task).split("\n"), "", _RULE, "")]
    return lines
