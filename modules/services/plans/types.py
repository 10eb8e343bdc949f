"""A plan of work in an issue: its tasks, their dependencies, and the issues that it is for. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from adapters.github.types import Issue, Repo
from common.text.strings import create_slug

TaskStatus = Literal["pending", "claimed", "in_progress", "completed", "blocked"]
PlanStatus = Literal["active", "complete", "blocked"]
PlanLabel = Literal["active", "complete", "blocked", "superseded"]

ACTIVE_TASKS: frozenset[TaskStatus] = frozenset({"claimed", "in_progress"})
"""The statuses of a task that somebody works on."""
UNDONE_TASKS: frozenset[TaskStatus] = ACTIVE_TASKS | {"pending", "blocked"}
"""The statuses of a task that is still to be done."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a plan.

    `assignee` is a login without `@`, or None. `dependencies` are `Task N`, as in the plan; `files` are paths. A task
    is `unclear` if a part that decides whether it is free could not be read: then nobody may claim it.
    """

    number: int
    title: str
    status: TaskStatus = "pending"
    assignee: str | None = None
    estimate: str | None = None
    dependencies: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    description: str = ""
    unclear: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """The name by which other tasks depend on it: `Task 3`."""
        return f"Task {self.number}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan.

    A parsed item of `verification` begins with `✓ ` if it is done and with `○ ` if not; one without either is not done.
    `warnings` say what in the text could not be accepted as it is, one line each.
    """

    title: str
    goal: str = ""
    context: str = ""
    tasks: tuple[Task, ...] = ()
    verification: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def status(self) -> PlanStatus:
        """`complete` if all tasks are completed, `blocked` if one is blocked, `active` otherwise."""
        statuses = {task.status for task in self.tasks}
        if statuses == {"completed"}:
            return "complete"
        return "blocked" if "blocked" in statuses else "active"

    def task(self, number: int) -> Task | None:
        """Return the task with this number, or None."""
        return next((task for task in self.tasks if task.number == number), None)


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A change of a task: None leaves a field unchanged, an empty `assignee` removes the assignee."""

    status: TaskStatus | None = None
    assignee: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """The condition for a change: its assignee (in any case; "" is nobody) and status are among these; None is any."""

    assignees: frozenset[str] | None = None
    statuses: frozenset[TaskStatus] | None = None


@dataclass(frozen=True, slots=True)
class BodyUpdate:
    """A body after a change.

    `code` is `changed`; `same` if it says so already; `missing` if there is no such task; `conflict` if the task is not
    as expected. `body` is the given body, except for `changed`.
    """

    body: str
    code: Literal["changed", "same", "missing", "conflict"]


PlanKey = tuple[str, int]
"""The full name of a repository in lower case, and the issue number of a plan."""


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """An open issue that contains a plan."""

    repo: Repo
    issue: Issue
    plan: Plan

    @property
    def number(self) -> int:
        """The number of its issue."""
        return self.issue.number

    @property
    def key(self) -> PlanKey:
        """The key that distinguishes it from the plans of all workspaces."""
        return self.repo.full_name.lower(), self.issue.number


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

    The given dependencies are texts of any form. A task with an unclear one is marked as `unclear`.
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
        """Return the numbers of the other tasks that it depends on, each once, in the order of the text."""
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
        """Yield the tasks in a piece: a reference, a title, or several of these joined by "and"."""
        if number := self._titled(piece):
            yield number
            return
        parts = [part for one in _ANDS.split(piece) if (part := one.strip(_SIGNS))]
        for part in parts[:_MOST_PIECES]:
            yield from self._part(part, task)
        if len(parts) > _MOST_PIECES:
            self._note_unclear(task, parts[_MOST_PIECES])

    def _part(self, part: str, task: Task) -> Iterator[int]:
        """Yield the tasks in a part: references with other words around them, a title, or several joined by a slash."""
        if number := self._titled(part):
            yield number
        elif named := _NUMBER.match(part):
            yield from self._referred(named[2], named[3], part[named.end() :], task)
        elif named_all := list(_NAMED.finditer(part)):
            # NOTE(self): "#12" is the task with this number, or else an issue; "Tasks 2..3" cannot be read in full.
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
        """Return the task with this number or title, as one of several between slashes, or None."""
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
        """Return the task with this title, or None; "Task 1" is always the first task, whatever another is called."""
        return None if _NUMBERED.fullmatch(text) else self._by_title.get(text.lower())

    def _nearest(self, part: str) -> int | None:
        """Return the task with the longest title that contains these words or that they contain, or None."""
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
    """Yield the dependencies without those that close a cycle, visiting tasks from the first; any depth is allowed."""
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


AGENTS_PAGE = "LIL-INTDEV-AGENTS.md"
SCENARIOS_PAGE = "SCENARIOS.md"

LARGE_PLAN = 4
"""The number of tasks, besides those for the pages, from which a plan gets tasks for them."""

_DOCUMENTS = (".md", ".markdown", ".txt", ".rst")
_MAKES = r"\b(?:create|write|update)(?:[ \t]+[^\s]{1,40}){0,3}[ \t]+[`\"'(]?"
_TITLES = {
    AGENTS_PAGE: re.compile(_MAKES + r"lil-intdev-agents(?![\w-])", re.IGNORECASE),
    SCENARIOS_PAGE: re.compile(_MAKES + r"(?:scenarios\.md|(?-i:SCENARIOS))(?!\w)", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class DocsTask:
    """The texts of a task that makes a page."""

    title: str
    description: str
    estimate: str


@dataclass(frozen=True, slots=True)
class DocsWords:
    """The texts of both tasks."""

    agents: DocsTask
    scenarios: DocsTask


@dataclass(frozen=True, slots=True)
class DocsTasks:
    """Which of the pages a task of a plan makes."""

    has_agents_md: bool
    has_scenarios_md: bool


def has_docs_tasks(tasks: Iterable[Task]) -> DocsTasks:
    """Return which pages are among the files of a task, or in its title after "create", "write" or "update"."""
    told = list(tasks)
    return DocsTasks(*(any(_makes(task, page) for task in told) for page in (AGENTS_PAGE, SCENARIOS_PAGE)))


def ensure_docs_tasks(
    plan: Plan, words: DocsWords, *, skip_agents_md: bool = False, skip_scenarios_md: bool = False
) -> Plan:
    """Return a large plan with tasks put first that make missing pages; the other tasks keep their dependencies.

    Skip a page that the repository has. The tasks are numbered from 1. A small plan is returned unchanged.
    """
    if not _is_large(plan):
        return plan
    there = has_docs_tasks(plan.tasks)
    made = []
    if not (skip_agents_md or there.has_agents_md):
        made.append(_task(words.agents, AGENTS_PAGE))
    if not (skip_scenarios_md or there.has_scenarios_md):
        made.append(_task(words.scenarios, SCENARIOS_PAGE))
    counted = [replace(task, number=number) for number, task in enumerate(plan.tasks, 1)]
    resolved, warnings = resolve_dependencies(counted)
    shifted = [replace(task, dependencies=_shifted(task.dependencies, len(made))) for task in resolved]
    tasks = (replace(task, number=number) for number, task in enumerate([*made, *shifted], 1))
    return replace(plan, tasks=tuple(tasks), warnings=(*plan.warnings, *warnings))


def with_docs_updates(plan: Plan, words: DocsWords) -> Plan:
    """Return a large plan with tasks appended that update the pages once all others are done.

    A page that a task of the plan makes or updates already gets none.
    """
    tasks, waits = list(plan.tasks), tuple(task.name for task in plan.tasks)
    for page, word in ((AGENTS_PAGE, words.agents), (SCENARIOS_PAGE, words.scenarios)):
        if _is_large(plan) and not any(_makes(task, page) for task in plan.tasks):
            tasks.append(replace(_task(word, page), number=len(tasks) + 1, dependencies=waits))
    return replace(plan, tasks=tuple(tasks))


def changes_more_than_documents(plan: Plan) -> bool:
    """Return whether a task of the plan changes a file other than a document, or does not name its files."""
    return any(
        not task.files or any(not path.lower().endswith(_DOCUMENTS) for path in task.files) for task in plan.tasks
    )


def _is_large(plan: Plan) -> bool:
    own = [task for task in plan.tasks if not any(_makes(task, page) for page in (AGENTS_PAGE, SCENARIOS_PAGE))]
    return len(own) >= LARGE_PLAN


def _makes(task: Task, page: str) -> bool:
    named = (path.rpartition("/")[2].lower() == page.lower() for path in task.files)
    return any(named) or bool(_TITLES[page].search(task.title))


def _task(words: DocsTask, page: str) -> Task:
    return Task(0, words.title, estimate=words.estimate, files=(page,), description=words.description)


def _shifted(dependencies: Sequence[str], by: int) -> tuple[str, ...]:
    return tuple(f"Task {int(one.removeprefix('Task ')) + by}" for one in dependencies)


_ISSUE_NUMBER = re.compile(r"(?<![\w/#&])#(\d{1,9})(?!\w)", re.ASCII)
_LIST = r"#\d{1,9}(?:, #\d{1,9})*"
_HOLE = "{{issues}}"


def numbers_in(text: str) -> tuple[int, ...]:
    """Return the numbers in a text of the form `#n`, each once, in order."""
    return tuple(dict.fromkeys(int(found) for found in _ISSUE_NUMBER.findall(text)))


def issues_of(plan: Plan, form: str) -> tuple[int, ...]:
    """Return the issues that a plan is for; `form` is the line of a skill, with `{{issues}}` instead of the numbers."""
    before, _, behind = form.strip().partition(_HOLE)
    line = re.compile(f"{re.escape(before)}{_LIST}{re.escape(behind)}", re.ASCII)
    texts = (text.strip() for task in plan.tasks for text in task.description.splitlines())
    return tuple(sorted({number for text in texts if line.fullmatch(text) for number in numbers_in(text)}))


def names_issue(text: str, number: int) -> bool:
    """Return whether a text names an issue as `#12` or by its URL."""
    for mark in (f"#{number}", f"/issues/{number}"):
        begin = text.find(mark)
        while begin >= 0:
            after = text[begin + len(mark) : begin + len(mark) + 1]
            if not after.isdigit():
                return True
            begin = text.find(mark, begin + 1)
    return False


PLAN_LABEL = "plan"
MOST_PLANS = 300
"""The most open plans of a repository that are read; each hundred costs a request."""

_STATUS_LABELS = frozenset(f"{PLAN_LABEL}:{status}" for status in get_args(PlanLabel))


def plan_labels(labels: Sequence[str], status: PlanLabel) -> tuple[str, ...]:
    """Return the labels of a plan's issue with this status; other labels keep their order."""
    others = tuple(label for label in labels if label.lower() not in _STATUS_LABELS)
    marked = others if PLAN_LABEL in (label.lower() for label in others) else (PLAN_LABEL, *others)
    return (*marked, f"{PLAN_LABEL}:{status}")


_BRANCH_CHARS = 50
_LEGACY_CHARS = 40

_OTHER = re.compile(r"[^a-z0-9]+")
_EPOCH = re.compile(r"-e[0-9]{1,9}\Z")
_TASK_BRANCH = re.compile(r"(?:refs/heads/)?task-([0-9]{1,9})-[^/]*")


def claim_key(owner: str, repo: str, issue: int, number: int) -> str:
    """Return the key of a task among all plans: `owner/repo#12/task-3`."""
    return f"{owner}/{repo}#{issue}/task-{number}"


def get_task_branch_name(number: int, title: str) -> str:
    """Return the name of the branch for a task, at most 50 characters, cut at the end of a word."""
    name = f"task-{number}-{create_slug(title)}"
    if len(name) <= _BRANCH_CHARS:
        return name
    cut = name[:_BRANCH_CHARS]
    whole = cut.rpartition("-")[0]
    return whole if len(whole) > len(f"task-{number}") else cut


def get_task_branch_candidates(number: int, title: str) -> list[str]:
    """Return the possible names of the branch for a task: by the current rule, and by an older one."""
    legacy = _OTHER.sub("-", title.lower()).strip("-")[:_LEGACY_CHARS]
    return list(dict.fromkeys((get_task_branch_name(number, title), f"task-{number}-{legacy}")))


def parse_task_branch(ref: str) -> int | None:
    """Return the number of the task that a branch is for, or None."""
    found = _TASK_BRANCH.fullmatch(ref)
    return int(found[1]) if found else None


def task_of_branch(ref: str, tasks: Iterable[Task]) -> int | None:
    """Return the number of the task that a branch is for, or None: the branch's own, unless only another has its title.

    Such a plan was numbered anew since the branch was made.
    """
    if (number := parse_task_branch(ref)) is None:
        return None
    names = {ref.removeprefix("refs/heads/"), _EPOCH.sub("", ref.removeprefix("refs/heads/"))}
    titled = [one.number for one in tasks if not names.isdisjoint(get_task_branch_candidates(number, one.title))]
    return titled[0] if len(titled) == 1 else number
