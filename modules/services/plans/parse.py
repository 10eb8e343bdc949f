"""Reads a plan from the body of an issue, as its author, a peer or a person's hand left it. Pure.

A body is never refused for what is in it, and no text makes it slow: each line is looked at a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modules.services.plans.dependencies import resolve_dependencies
from modules.services.plans.fields import read_assignee, read_field, read_file, read_files, read_status
from modules.services.plans.lines import Scan, TaskBlock, scan, unescape
from modules.services.plans.types import Plan, Task, TaskStatus

TITLE_MARK = "[PLAN]"
BODY_MARK = "# [PLAN]"

_ITEM = re.compile(r"[-*+][ \t]+\[([ xX])\][ \t]+(\S.*)")


@dataclass(slots=True)
class Header:
    """The fields of a task: the text of each, the last that stands there; the lines of each; where the header ends."""

    texts: dict[str, str]
    lines: dict[str, list[int]]
    files: list[str]
    end: int


def is_plan(body: str, title: str) -> bool:
    """Return whether an issue is a plan, by its title or a heading in its body."""
    return title.strip().startswith(TITLE_MARK) or BODY_MARK in body


def parse_plan(body: str, title: str) -> Plan | None:
    """Return the plan that an issue with this body and title holds, or None where it is no plan."""
    if not body.strip() or not is_plan(body, title):
        return None
    found = scan(body)
    sections = found.sections
    tasks, warnings = resolve_dependencies([_task(found, block) for block in found.tasks])
    return Plan(
        title=_without_mark(title) or _title_in(found.texts),
        goal=" ".join(_paragraphs(found, sections.get("goal", ()))),
        context="\n".join(_paragraphs(found, sections.get("context", ()))),
        tasks=tasks,
        verification=tuple(_items(found, sections.get("verification", ()))),
        warnings=(*_headings(found), *warnings),
    )


def read_header(found: Scan, block: TaskBlock) -> Header:
    """Return the fields of a task, which stand before its description and before the first line of another kind."""
    header = Header({}, {}, [], block.end)
    listed = False
    for place in range(block.heading + 1, block.end):
        text = found.texts[place]
        if found.code[place]:
            header.end = place
            break
        if not text.strip():
            continue
        named = read_field(text)
        if named and named[0] == "description":
            header.end = place
            break
        if named:
            listed = named[0] == "files"
            header.texts[named[0]] = named[1]
            header.lines.setdefault(named[0], []).append(place)
            if listed:
                header.files += read_files(named[1])
        elif path := read_file(text, listed=listed):
            header.files.append(path)
        else:
            header.end = place
            break
    return header


def status_of(header: Header) -> TaskStatus:
    """Return the status of a task; one without a known word is pending."""
    return read_status(header.texts.get("status", "")) or "pending"


def _task(found: Scan, block: TaskBlock) -> Task:
    header = read_header(found, block)
    needs = header.texts.get("dependencies", "")
    return Task(
        number=block.number,
        title=block.title,
        status=status_of(header),
        assignee=read_assignee(header.texts.get("assignee", "")),
        estimate=header.texts.get("estimate") or None,
        dependencies=(needs,) if needs else (),
        files=tuple(dict.fromkeys(header.files)),
        description=_description(found, header.end, block.end),
    )


def _description(found: Scan, begin: int, end: int) -> str:
    """The text of a task, without the rule that divides it from the next."""
    while end > begin and not found.texts[end - 1].strip():
        end -= 1
    if end > begin and found.texts[end - 1].strip() == "---" and not found.code[end - 1]:
        end -= 1
    lines = [found.texts[place] if found.code[place] else unescape(found.texts[place]) for place in range(begin, end)]
    if lines and (named := read_field(lines[0])) and named[0] == "description":
        lines[0] = named[1]
    first = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join(lines[first:]).rstrip()


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


def _without_mark(title: str) -> str:
    return title.replace(TITLE_MARK, "", 1).strip()


def _title_in(texts: Sequence[str]) -> str:
    heading = next((text.strip() for text in texts if text.strip().startswith(BODY_MARK)), "")
    return heading.removeprefix(BODY_MARK).strip()
