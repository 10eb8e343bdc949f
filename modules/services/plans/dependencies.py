"""Which tasks a task waits for, as people and models write it: "Task 1, Task 3", "Tasks 1-3", titles, "none". Pure.

The task itself, or one that waits for it in turn, is dropped with a warning: it would block the task for ever. A task
that is not in the plan, and words that name no task, leave it open what the task waits for: it is unclear, with a
warning.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from modules.services.plans.types import Task

_MOST_PIECES = 100
_MOST_COMPARED = 20_000
_MOST_FOUND = 5_000
_SHORTEST_PART = 2

_NONE = re.compile(r"(?:none|nothing|n/a|no dependencies|no response)(?![\w-])|[-\u2013\u2014]?$", re.IGNORECASE)
_TO = r"[ \t]{0,8}(?:[-\u2013\u2014]|to(?![a-z])|through)[ \t]{0,8}(?:tasks?[ \t-]{0,8})?#?([0-9]{1,9})(?![\w.])"
_NAMED = re.compile(rf"(?<![\w/])(?:tasks?[ \t#-]{{0,8}}|#)([0-9]{{1,9}})(?![0-9])(?:{_TO})?", re.IGNORECASE)
_NUMBER = re.compile(
    rf"()([0-9]{{1,9}})(?=$|[ \t]{{0,8}}[-\u2013\u2014(]|[ \t]{{1,8}}(?:to|through)[ \t])(?:{_TO})?", re.IGNORECASE
)
_NOTE = re.compile(r"\([^()]{0,300}\)")
_NUMBERED = re.compile(r"(?:task[ -]?)?[0-9]{1,9}", re.IGNORECASE)
_COMMAS = re.compile(r"[,;]")
_ANDS = re.compile(r"&|(?<=\s)and(?=\s)", re.IGNORECASE)
_SLASHES = re.compile(r"[/+|]")
_SIGNS = " \t*_`\"'.[]"


def resolve_dependencies(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Return the tasks with their dependencies as `Task N`, and a warning for each that was dropped or is unclear.

    The dependencies that are given are texts of any form. A task with an unclear one is marked as `unclear`.
    """
    resolver = _Resolver(tasks)
    needs = {task.number: resolver.numbers(task) for task in tasks}
    needs = dict(_without_cycles(needs, resolver.warnings))
    resolved = (
        replace(
            task,
            dependencies=tuple(f"Task {one}" for one in needs[task.number]),
            unclear=task.unclear or task.number in resolver.unclear,
        )
        for task in tasks
    )
    return tuple(resolved), tuple(resolver.warnings)


class _Resolver:
    """Reads the dependencies of the tasks of one plan."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.warnings: list[str] = []
        self.unclear: set[int] = set()
        self._numbers = sorted(task.number for task in tasks)
        self._known = frozenset(self._numbers)
        longest_first = sorted(tasks, key=lambda task: -len(task.title))
        self._titles = [(task.title.lower(), task.number) for task in longest_first]
        self._by_title = dict(reversed(self._titles))
        self._compared = 0
        self._found = 0

    def numbers(self, task: Task) -> list[int]:
        """Return the numbers of the other tasks that it names, each once, in the order of the text."""
        kept: dict[int, None] = {}
        for text in task.dependencies:
            for found in self._all(text, task):
                self._found += 1
                if self._found > _MOST_FOUND:
                    self.warnings.append(f"{task.name} and those after it wait for more than can be read")
                    self.unclear.add(task.number)
                    return list(kept)
                if found == task.number:
                    self.warnings.append(f"{task.name} waits for itself")
                else:
                    kept[found] = None
        return list(kept)

    def _all(self, text: str, task: Task) -> Iterator[int]:
        plain = text.strip(_SIGNS)
        if _NONE.match(plain) and not _NAMED.search(plain):
            return
        if number := self._titled(plain):
            yield number
            return
        pieces = [piece for one in _COMMAS.split(text) if (piece := one.strip(_SIGNS))]
        for piece in pieces[:_MOST_PIECES]:
            yield from self._piece(piece, task)
        if len(pieces) > _MOST_PIECES:
            self._note_unclear(task, pieces[_MOST_PIECES])

    def _piece(self, piece: str, task: Task) -> Iterator[int]:
        """A reference, a title, or several of these with "and" between them."""
        if number := self._titled(piece):
            yield number
            return
        parts = [part for one in _ANDS.split(piece) if (part := one.strip(_SIGNS))]
        for part in parts[:_MOST_PIECES]:
            yield from self._part(part, task)
        if len(parts) > _MOST_PIECES:
            self._note_unclear(task, parts[_MOST_PIECES])

    def _part(self, part: str, task: Task) -> Iterator[int]:
        """References with other words around them, a title, or several of these with a slash between them."""
        if number := self._titled(part):
            yield number
        elif named := _NUMBER.match(part):
            yield from self._referred(named[2], named[3], part[named.end() :], task)
        elif named_all := list(_NAMED.finditer(part)):
            # NOTE(self): "#12" is the task of this number, or else an issue; nor is "Tasks 2..3" read in full.
            is_issue = any(one[0].startswith("#") and int(one[1]) not in self._known for one in named_all)
            if is_issue or any(map(str.isdigit, _NOTE.sub("", _NAMED.sub("", part)))):
                self._note_unclear(task, part)
                return
            for named in named_all:
                yield from self._referred(named[1], named[2], "", task)
        elif number := self._nearest(part):
            yield number
        else:
            found = [self._among_slashes(one.strip(_SIGNS)) for one in _SLASHES.split(part)]
            yield from (number for number in found if number)
            if not all(found):
                self._note_unclear(task, part)

    def _among_slashes(self, text: str) -> int | None:
        """The task of this number or title, where others stand beside it."""
        return int(text) if text.isascii() and text.isdigit() and int(text) in self._known else self._titled(text)

    def _note_unclear(self, task: Task, part: str) -> None:
        self.unclear.add(task.number)
        self.warnings.append(f"{task.name} waits for {part[:80]!r}, which no task is called")

    def _referred(self, first_text: str, last_text: str | None, behind: str, task: Task) -> Iterator[int]:
        first = int(first_text)
        last = int(last_text or first)
        told = f"{task.name} waits for {first_text}{f'-{last_text}' if last_text else ''}"
        if any(map(str.isdigit, _NOTE.sub("", behind))):
            self._note_unclear(task, f"{first_text}{behind}")
        if not {first, last} <= self._known:
            self.warnings.append(f"{told}, and not all of it is in the plan")
            self.unclear.add(task.number)
        yield from self._numbers[bisect_left(self._numbers, first) : bisect_right(self._numbers, last)]

    def _titled(self, text: str) -> int | None:
        """The task of this title; "Task 1" is the first task, whatever another is called."""
        return None if _NUMBERED.fullmatch(text) else self._by_title.get(text.lower())

    def _nearest(self, part: str) -> int | None:
        """The task with the longest title that holds these words, or that they hold."""
        words = part.lower()
        if len(words) < _SHORTEST_PART:
            return None
        for title, number in self._titles:
            self._compared += 1
            if self._compared > _MOST_COMPARED:
                return None
            if words in title or (len(title) >= _SHORTEST_PART and title in words):
                return number
        return None


def _without_cycles(needs: Mapping[int, Sequence[int]], warnings: list[str]) -> Iterator[tuple[int, list[int]]]:
    """The same without what closes a cycle, as the tasks are visited from the first on; no depth is too much."""
    done: set[int] = set()
    open_tasks: set[int] = set()
    kept: dict[int, list[int]] = {number: [] for number in needs}
    for start in needs:
        if start in done:
            continue
        stack = [(start, iter(needs[start]))]
        open_tasks.add(start)
        while stack:
            number, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                open_tasks.discard(number)
                done.add(number)
            elif following in open_tasks:
                warnings.append(f"Task {number} waits for Task {following}, which waits for it")
            else:
                kept[number].append(following)
                if following not in done:
                    open_tasks.add(following)
                    stack.append((following, iter(needs[following])))
    yield from kept.items()
