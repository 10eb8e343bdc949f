"""Changes one task in the body of a plan, and no other byte of it. Pure.

Only the header of the task is changed: similar lines in its description stay. What a person wrote beside a value stays
too. A missing line is inserted below the heading.
"""

from modules.services.plans.lines import Scan, scan
from modules.services.plans.plan_text import Header, assignee_text, read_header, write_assignee, write_status
from modules.services.plans.types import BodyUpdate, Expected, TaskChange


def update_task_in_plan_body(
    body: str, number: int, change: TaskChange, expected: Expected | None = None
) -> BodyUpdate:
    """Return the body after a change of one task, or unchanged if the task is not as `expected`."""
    found = scan(body)
    block = next((task for task in found.tasks if task.number == number), None)
    if block is None:
        return BodyUpdate(body, "missing")
    header = read_header(found, block)
    if expected and not _is_as(expected, header):
        return BodyUpdate(body, "conflict")
    missing = []
    if change.status is not None:
        for place in header.lines.get("status", ()):
            _replace(found, place, write_status(found.texts[place], change.status))
        if "status" not in header.lines and header.status != change.status:
            missing.append(f"**Status:** {change.status}")
    if change.assignee is not None:
        for place in header.lines.get("assignee", ()):
            _replace(found, place, write_assignee(found.texts[place], change.assignee))
        if "assignee" not in header.lines and change.assignee:
            missing.append(f"**Assignee:** {assignee_text(change.assignee)}")
    _insert(found, _under(header, block.heading, missing), missing)
    changed = "".join(found.lines)
    return BodyUpdate(changed, "same" if changed == body else "changed")


def _is_as(expected: Expected, header: Header) -> bool:
    """Return whether a task is as expected; an unclear assignee or status never is."""
    names = None if expected.assignees is None else {one.lower() for one in expected.assignees}
    is_theirs = names is None or (not header.has_unclear_assignee and (header.assignee or "").lower() in names)
    return is_theirs and (expected.statuses is None or header.status in expected.statuses)


def _under(header: Header, heading: int, missing: list[str]) -> int:
    """Return the line after which to insert the missing lines: that of the status if there is one, or the heading."""
    statuses = header.lines.get("status")
    return statuses[0] if statuses and missing else heading


def _replace(found: Scan, place: int, text: str) -> None:
    found.lines[place] = text + _end(found, place)


def _insert(found: Scan, place: int, texts: list[str]) -> None:
    """Insert lines after that line, with its line end; the last line of a body may have none."""
    end = _end(found, place)
    if end:
        found.lines[place + 1 : place + 1] = [text + end for text in texts]
    else:
        found.lines[place] = "\n".join([found.lines[place], *texts])


def _end(found: Scan, place: int) -> str:
    line = found.lines[place]
    return line[len(line.rstrip("\r\n")) :]
