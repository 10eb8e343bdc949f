"""Reads a plan from the body of an issue, as its author, a peer or a person's hand left it. Pure.

A body is never refused for what is in it, and no text makes it slow: each line is looked at a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.text.markdown import without_html_comments
from common.text.strings import as_typed
from modules.services.plans.dependencies import resolve_dependencies
from modules.services.plans.fields import (
    is_contradicted,
    is_other_field,
    is_unclear_assignee,
    names_below,
    read_assignee,
    read_bare_file,
    read_field,
    read_file,
    read_files,
    read_status,
)
from modules.services.plans.lines import Scan, TaskBlock, scan, unescape
from modules.services.plans.types import ACTIVE_TASKS, Plan, Task, TaskStatus

TITLE_MARK = "[PLAN]"
BODY_MARK = "# [PLAN]"

_ITEM = re.compile(r"[-*+][ \t]+\[([ xX])\][ \t]+(\S.*)")


@dataclass(slots=True)
class Header:
    """The fields of a task: the text of each, the last that stands there; the lines of each; where the header ends.

    `others` are the lines of fields that plans do not know, which belong to the description. `unread` is what could not
    be read, a line each: the texts of fields, what the list of files names besides files, and a status or an assignee
    that stands in no field, but in the text that follows. `status` is None where that could not be read.
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
    """Return the plan that an issue with this body and title holds, or None where it is no plan."""
    if not body.strip() or not is_plan(body, title):
        return None
    found = scan(body)
    sections = found.sections
    read = [_task(found, block) for block in found.tasks]
    tasks, warnings = resolve_dependencies([task for task, _ in read])
    return Plan(
        title=_without_mark(title) or _title_in(found.texts),
        goal=" ".join(_paragraphs(found, sections.get("goal", ()))),
        context="\n".join(_paragraphs(found, sections.get("context", ()))),
        tasks=tasks,
        verification=tuple(_items(found, sections.get("verification", ()))),
        warnings=(*_headings(found), *(line for _, unread in read for line in unread), *warnings),
    )


def read_header(found: Scan, block: TaskBlock) -> Header:
    """Return the fields of a task, which stand before its description and before the first line of another kind."""
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
        elif is_other_field(text):
            listed = is_run = False
            header.others.append(place)
        else:
            header.end = place
            break
    _read_standing(found, block, header)
    return header


def _read_standing(found: Scan, block: TaskBlock, header: Header) -> None:
    """Read who has the task, and how far it is.

    A task that says nothing of it is pending. Where a person says that it is worked on, and names nobody, it is
    somebody's all the same; where the status is as a machine writes it, whoever had it is gone.
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
    """A task, and what of it could not be read."""
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
    """The text of a task, without the rule that divides it from the next."""
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
    yield from (f"{found.texts[place].strip()}: the number of another task" for place in found.repeated)
    yield from (f"{found.texts[place].strip()}: stands outside of the tasks" for place in found.outside)
    yield from (
        f"{found.texts[place].strip()}: not the heading of a task, as `### Task 1: title` is" for place in found.unread
    )


def _without_mark(title: str) -> str:
    return as_typed(title).replace(TITLE_MARK, "", 1).strip()


def _title_in(texts: Sequence[str]) -> str:
    heading = next((text.strip() for text in texts if text.strip().startswith(BODY_MARK)), "")
    return heading.removeprefix(BODY_MARK).strip()
