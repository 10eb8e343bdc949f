"""Which issues a plan is for, and which a text only names. Pure.

A plan is for the issues in a line of a task's description that has the form of the skill `plans`: "For #3, #4."
"""

from __future__ import annotations

import re

from modules.services.plans.types import Plan

_NUMBER = re.compile(r"(?<![\w/#&])#(\d{1,9})(?!\w)", re.ASCII)
_LIST = r"#\d{1,9}(?:, #\d{1,9})*"
_HOLE = "{{issues}}"


def numbers_in(text: str) -> tuple[int, ...]:
    """Return the numbers that a text names as `#n`, in order."""
    return tuple(dict.fromkeys(int(found) for found in _NUMBER.findall(text)))


def issues_of(plan: Plan, form: str) -> tuple[int, ...]:
    """Return the issues that a plan is for; `form` is a line as a skill has it, with `{{issues}}` for the numbers."""
    before, _, behind = form.strip().partition(_HOLE)
    line = re.compile(f"{re.escape(before)}{_LIST}{re.escape(behind)}", re.ASCII)
    texts = (text.strip() for task in plan.tasks for text in task.description.splitlines())
    return tuple(sorted({number for text in texts if line.fullmatch(text) for number in numbers_in(text)}))


def names_issue(text: str, number: int) -> bool:
    """Return whether a text names an issue as `#12` or by its address."""
    for mark in (f"#{number}", f"/issues/{number}"):
        begin = text.find(mark)
        while begin >= 0:
            after = text[begin + len(mark) : begin + len(mark) + 1]
            if not after.isdigit():
                return True
            begin = text.find(mark, begin + 1)
    return False
