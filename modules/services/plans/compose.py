"""Asks the model for a plan of what people want built, and for requested work that a plan lacks. Stores nothing.

To find what a plan lacks, the model is given the words of the request that are in no task, and is not asked if there
are none. For each task it quotes the words that ask for it. The quote must be in the request, and not yet in a task: so
neither a model that always finds something nor words in the plan can make a task that nobody asked for.
"""

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.github.types import Repo
from common.constants import LLM_ANSWER_TOKENS
from common.facts import QuestionFacts
from common.provenance import Importance
from common.text.closings import without_handles
from common.text.echo import plain_words, tokenize_with_stemming
from common.text.handles import WORD, is_unspaced
from common.text.markdown import without_html_comments
from common.text.strings import both_ends, normalized_title
from common.text.untrusted import clean, one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import DocsTask, DocsWords, Plan, Task, issues_of, numbers_in, resolve_dependencies
from modules.services.skills.questions import ModelQuestion
from modules.services.skills.skills import Framer, Skills

_SKILL = "plans"


@dataclass(frozen=True, slots=True)
class PlanWords:
    """The checks for a plan that has none, and the tasks that make and update the pages of a repository."""

    verification: tuple[str, ...]
    docs: DocsWords
    updates: DocsWords


def plan_words(skills: Skills, repo: str) -> PlanWords:
    """Return the standard texts of a plan for the repository `owner/name`. Raises `SkillError`."""
    checks = skills.section(_SKILL, "Verification").splitlines()
    docs = DocsWords(_task(skills, "Agents Page", repo), _task(skills, "Scenarios Page", repo))
    updates = DocsWords(_task(skills, "Agents Update", repo), _task(skills, "Scenarios Update", repo))
    return PlanWords(tuple(check.removeprefix("- ").strip() for check in checks if check.strip()), docs, updates)


def issues_taken_up(plan: Plan, skills: Skills) -> tuple[int, ...]:
    """Return the numbers of the issues that a plan says it is for. Raises `SkillError`."""
    return issues_of(plan, skills.section(_SKILL, "For Issues"))


def _task(skills: Skills, section: str, repo: str) -> DocsTask:
    title, description, estimate = (
        skills.render(_SKILL, section, part, repo=repo).strip() for part in ("Title", "Description", "Estimate")
    )
    return DocsTask(title, description, estimate)


SKILL = "plan-synthesis"
TOOL = "plan_create"
MOST_TASKS = 12
MOST_ISSUES = 30
MOST_FILES = 10
TITLE_CHARS, GOAL_CHARS, TEXT_CHARS, FIELD_CHARS = 120, 400, 4_000, 200
"""The most characters of a title, of the goal, of the context or a description, and of any other text of a plan."""

_WORDS = "plans"
_ISSUE_CHARS, _ALL_ISSUES_CHARS = 8_000, 24_000
_MOST_DIGITS = 9
_SAID_CHARS = 500
_TEMPERATURES = (0.0, 0.5)
"""The temperatures of the first and the second try; at 0 the second would only repeat the first."""
_STRINGS = {"type": "array", "items": {"type": "string"}}
_TASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "description": {"type": "string"},
        "estimate": {"type": "string"},
        "dependencies": _STRINGS,
        "files": _STRINGS,
    },
    "required": ["title", "description"],
}
_ISSUE_TASK = {
    **_TASK,
    "properties": {**_TASK["properties"], "issues": {"type": "array", "items": {"type": "integer"}}},
}


def _plan_of(task: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "goal": {"type": "string"},
            "context": {"type": "string"},
            "tasks": {"type": "array", "items": task},
        },
        "required": ["title", "goal", "tasks"],
    }


_OUTSIDE = {
    "type": "object",
    "properties": {"issue": {"type": "integer"}, "answer": {"type": "string"}},
    "required": ["issue", "answer"],
}
_PLAN, _ISSUE_PLAN = _plan_of(_TASK), _plan_of(_ISSUE_TASK)
_ISSUE_PLAN["properties"]["outside"] = {"type": "array", "items": _OUTSIDE}


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A request for a plan: `text` is longer than `title`, `said` are our own words when we committed to it.

    `stands` describes the repository, as `repository_view` returns it.
    """

    repo: Repo
    title: str
    text: str
    said: str = ""
    stands: str = ""


@dataclass(frozen=True, slots=True)
class SourceIssue:
    """An issue whose work goes into a plan, with its full text as its author wrote it."""

    number: int
    title: str
    author: str
    url: str
    body: str
    labels: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Its title, its labels and its body."""
        labels = f"\n[{', '.join(self.labels)}]" if self.labels else ""
        return f"{self.title}{labels}\n\n{self.body}".strip()


@dataclass(frozen=True, slots=True)
class IssuePlan:
    """A plan for issues and, by number, the answer to the author of each issue outside the repository's purpose."""

    plan: Plan
    outside: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanComposer:
    """Asks the model for a plan; `rng` draws the boundaries of untrusted text, `profile` is the SOUL's public one."""

    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    profile: Callable[[], Awaitable[str]]

    async def compose(self, wanted: PlanRequest) -> Plan | None:
        """Return the model's plan; None if it makes none with a task in two tries.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        title = one_line(wanted.title, TITLE_CHARS)
        framer = Framer(self.skills, self.rng)
        framed = framer.frame("post", author="several", uri="", text=wanted.text)
        said = one_line(wanted.said, _SAID_CHARS) or "-"
        repo = wanted.repo.full_name
        stands = self._standing(framer, wanted.repo, wanted.stands)
        asked = self.skills.render(
            SKILL, "From a Commitment", repo=repo, title=title, wanted=framed, said=said, stands=stands
        )
        facts = QuestionFacts("plan", {"title": (title,), "wanted": (wanted.text,)})
        async for called in self._asked(asked, _PLAN, facts, "commitment"):
            if plan := read_plan(called, title=title):
                return plan
        return None

    async def compose_from_issues(
        self, repo: Repo, issues: Sequence[SourceIssue], *, stands: str = ""
    ) -> IssuePlan | None:
        """Return one plan for the work in these issues, without tasks if they contain no work.

        None if the model twice makes no plan, or one that names none of them or names others.

        `stands` describes the repository, as `repository_view` returns it.

        A task names the issues that it is for; issues that no task names are not in the plan. Pass no more issues than
        `fitting` returns.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        framer = Framer(self.skills, self.rng)
        told = [
            self.skills.render(
                SKILL,
                "Issue",
                number=one.number,
                text=framer.frame("post", author=f"@{one.author}", uri=one.url, text=one.text),
            )
            for one in issues
        ]
        asked = self.skills.render(
            SKILL,
            "From Issues",
            repo=repo.full_name,
            issues="\n\n".join(told),
            stands=self._standing(framer, repo, stands),
        )
        texts = tuple(f"#{one.number} {one.title}" for one in issues)
        facts = QuestionFacts("plan", {"title": (repo.name,), "issues": texts})
        known = {one.number for one in issues}
        async for called in self._asked(asked, _ISSUE_PLAN, facts, "own"):
            outside = _outside(called.get("outside"), known)
            if called.get("tasks") == []:
                return IssuePlan(Plan(repo.name), outside)
            tasks = [self._with_issues(one, known) for one in _list(called.get("tasks"))]
            plan = read_plan({**called, "tasks": tasks}, title=repo.name)
            # NOTE(self): the text of an issue may name another one that was not passed in, which must not be closed.
            if plan and (found := set(issues_taken_up(plan, self.skills))) and found <= known:
                return IssuePlan(plan, {number: said for number, said in outside.items() if number not in found})
        return None

    async def ground(self, repo: Repo, draft: Plan, stands: str, importance: Importance) -> Plan | None:
        """Return a plan that was drafted without knowledge of the repository, revised to fit the repository.

        `stands` is what `repository_view` returns. None if the model twice makes no plan with a task.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        framer = Framer(self.skills, self.rng)
        framed = framer.frame("reading", author=repo.full_name, uri="", text=generate_plan_markdown(draft))
        view = self._standing(framer, repo, stands)
        asked = self.skills.render(SKILL, "From a Draft", repo=repo.full_name, draft=framed, stands=view)
        facts = QuestionFacts("plan-draft", {"draft": (_called(draft),)})
        async for called in self._asked(asked, _PLAN, facts, importance):
            if plan := read_plan(called, title=draft.title):
                return replace(plan, context=plan.context or draft.context)
        return None

    async def _asked(
        self, asked: str, schema: dict[str, Any], facts: QuestionFacts, importance: Importance
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the arguments of the model's call, from the first and the second try."""
        profile = await self.profile()
        question = ModelQuestion(
            self.gateway, self.skills, SKILL, LLM_ANSWER_TOKENS, importance, tool=TOOL, schema=schema, profile=profile
        )
        for temperature in _TEMPERATURES:
            yield await question.call(asked, facts, temperature)

    def _standing(self, framer: Framer, repo: Repo, stands: str) -> str:
        """Return the text for the model about the current state of the repository."""
        if not stands.strip():
            return self.skills.section(SKILL, "Nothing Stands").strip()
        framed = framer.frame("reading", author=repo.full_name, uri="", text=stands)
        return self.skills.render(SKILL, "What Stands", text=framed).strip()

    def _with_issues(self, task: object, known: Collection[int]) -> object:
        """Return the task with the known issues that it is for listed at the end of its description.

        These include the issues that its text names.
        """
        told = {"title": task} if isinstance(task, str) else task
        if not isinstance(told, Mapping):
            return task
        text = _text(told.get("description"))
        named = (*map(_number, _list(told.get("issues"))), *numbers_in(f"{_text(told.get('title'))}\n{text}"))
        numbers = [number for number in dict.fromkeys(named) if number in known]
        if not numbers:
            return task
        issues = ", ".join(f"#{number}" for number in numbers)
        line = self.skills.render(_WORDS, "For Issues", issues=issues)
        text = _cut(text, TEXT_CHARS - len(line) - 2)
        return {**told, "description": f"{text}\n\n{line}".strip()}


def _called(plan: Plan) -> str:
    """Return the arguments of the tool call that would make this plan, as JSON."""
    tasks = [
        {"title": one.title, "description": one.description, "dependencies": one.dependencies, "files": one.files}
        for one in plan.tasks
    ]
    return json.dumps({"title": plan.title, "goal": plan.goal, "context": plan.context, "tasks": tasks})


def fitting(issues: Iterable[SourceIssue]) -> list[SourceIssue]:
    """Return the issues that fit into one plan, oldest first.

    A very long text is cut, and what readers do not see in it is left out.
    """
    chosen: list[SourceIssue] = []
    room = _ALL_ISSUES_CHARS
    for one in sorted(issues, key=lambda issue: issue.number):
        cut = replace(one, body=both_ends(without_html_comments(clean(one.body)), _ISSUE_CHARS))
        if chosen and (len(cut.text) > room or len(chosen) == MOST_ISSUES):
            break
        chosen.append(cut)
        room -= len(cut.text)
    return chosen


def read_plan(given: Mapping[str, Any], *, title: str) -> Plan | None:
    """Return the plan in a call of the tool, ignoring unknown arguments; `title` is used if it has none.

    None if it names no task. Tasks beyond `MOST_TASKS` are left out, and longer texts end in `…`.
    """
    tasks, warnings = resolve_dependencies(_after_files(list(read_tasks(given.get("tasks")))))
    if not tasks:
        return None
    return Plan(
        title=_line(given.get("title"), TITLE_CHARS) or title,
        goal=_line(given.get("goal"), GOAL_CHARS),
        context=_text(given.get("context")),
        tasks=tasks,
        warnings=warnings,
    )


def read_tasks(given: object) -> Iterator[Task]:
    """Yield the tasks that a model names, numbered from 1; a bare text is the title of one."""
    named = [{"title": one} if isinstance(one, str) else one for one in _list(given)]
    told = [one for one in named if isinstance(one, Mapping) and _line(one.get("title"), TITLE_CHARS)]
    for number, one in enumerate(told[:MOST_TASKS], 1):
        yield Task(
            number,
            _line(one.get("title"), TITLE_CHARS),
            estimate=_line(one.get("estimate"), FIELD_CHARS) or None,
            dependencies=tuple(filter(None, (_line(name, FIELD_CHARS) for name in _list(one.get("dependencies"))))),
            files=tuple(filter(None, (_line(path, FIELD_CHARS) for path in _list(one.get("files"))[:MOST_FILES]))),
            description=_text(one.get("description")),
        )


def _after_files(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks with each dependency on a file replaced by the first task that changes it, if another one."""
    by_file: dict[str, Task] = {}
    for task in tasks:
        for path in task.files:
            by_file.setdefault(path.lower(), task)

    def named(text: str, task: Task) -> str:
        other = by_file.get(text.lower())
        return text if other is None or other is task else other.name

    return [replace(task, dependencies=tuple(named(one, task) for one in task.dependencies)) for task in tasks]


def _outside(given: object, known: Collection[int]) -> dict[int, str]:
    """Return the answers to known issues, by number."""
    told = [one for one in _list(given) if isinstance(one, Mapping)]
    answers = [(_number(one.get("issue")), _line(one.get("answer"), _SAID_CHARS)) for one in told]
    return {number: answer for number, answer in answers if number is not None and number in known and answer}


def _list(given: object) -> list[Any]:
    """Return a list unchanged, None as an empty list, and any other value as a list with one element."""
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]


def _number(given: object) -> int | None:
    """Return the number of an issue as a model gives it: 12, "12" or "#12"; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | str):
        return None
    text = str(given).strip().removeprefix("#")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _line(given: object, most: int) -> str:
    is_text = isinstance(given, str | int) and not isinstance(given, bool)
    return _cut(" ".join(clean(str(given), is_ours=True).split()), most) if is_text else ""


def _text(given: object) -> str:
    return _cut(clean(given, is_ours=True), TEXT_CHARS) if isinstance(given, str) else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


_MISSING_TOOL = "plan_missing"
MOST_ADDED = 6

_MISSING_TOKENS = 1_200
_ASKED_CHARS, _DESCRIPTION_CHARS, _TASKS_CHARS, _LEFT_CHARS = 200, 400, 12_000, 600
_MOST_READ = 20
_LEAST_WORDS = 2
_TEMPERATURE = 0.0
_MISSING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "missing": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "asked": {"type": "string"},
                    "title": {"type": "string"},
                    "description": {"type": "string"},
                    "files": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["asked", "title", "description"],
            },
        }
    },
    "required": ["missing"],
}


@dataclass(frozen=True, slots=True)
class MissingTask:
    """A task that a plan lacks; `asked` is the part of the request that asks for it."""

    asked: str
    task: Task


@dataclass(frozen=True, slots=True)
class PlanGaps:
    """Asks the model what a plan lacks; `rng` draws the boundaries of untrusted text."""

    gateway: LLMGateway
    skills: Skills
    rng: random.Random

    async def find(self, repo: Repo, plan: Plan, wanted: str) -> tuple[MissingTask, ...]:
        """Return the tasks that the request `wanted` asks for and the plan lacks, without dependencies.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        left = words_left(plan, wanted)
        if not left:
            return ()
        framer = Framer(self.skills, self.rng)
        listed = "\n".join(f"{task.name}: {task.title}\n{task.description[:_DESCRIPTION_CHARS]}" for task in plan.tasks)
        asked = self.skills.render(
            SKILL,
            "What Is Missing",
            repo=repo.full_name,
            wanted=framer.frame("post", author="your owner", uri="", text=wanted),
            tasks=framer.frame("reading", author="several", uri=repo.full_name, text=listed[:_TASKS_CHARS]),
            left=" ".join(left)[:_LEFT_CHARS],
        )
        texts = tuple(f"{task.title}\n{task.description}" for task in plan.tasks)
        facts = QuestionFacts("plan-missing", {"wanted": (wanted,), "tasks": texts})
        question = ModelQuestion(
            self.gateway,
            self.skills,
            SKILL,
            _MISSING_TOKENS,
            "owner",
            tool=_MISSING_TOOL,
            schema=_MISSING,
            system="Missing Prompt",
            described="Missing Tool",
        )
        return read_missing(await question.call(asked, facts, _TEMPERATURE), plan, wanted)


def words_left(plan: Plan, wanted: str) -> list[str]:
    """Return the meaningful words of the request that are in no task, each once."""
    known = {stem for task in plan.tasks for stem in tokenize_with_stemming(f"{task.title}\n{task.description}")}
    words = dict.fromkeys(plain_words(without_handles(wanted)))
    return [word for word in words if (stems := tokenize_with_stemming(word)) and not known.issuperset(stems)]


def read_missing(given: Mapping[str, Any], plan: Plan, wanted: str) -> tuple[MissingTask, ...]:
    """Return the tasks in the model's call that are requested in `wanted` and missing in the plan."""
    named = given.get("missing")
    found: list[MissingTask] = []
    for asked, task in _named(named if isinstance(named, list) else []):
        known = [*plan.tasks, *(one.task for one in found)]
        if not _stands_in(asked, wanted) or _is_covered(asked, known) or _is_among(task, known):
            continue
        found.append(MissingTask(asked, replace(task, dependencies=())))
        if len(found) == MOST_ADDED:
            break
    return tuple(found)


def _named(given: list[Any]) -> Iterator[tuple[str, Task]]:
    """Yield the tasks that the model names, each with the words that it quotes."""
    for one in given[:_MOST_READ]:
        if not isinstance(one, Mapping) or not isinstance(quoted := one.get("asked"), str):
            continue
        if task := next(read_tasks([one]), None):
            yield one_line(quoted, _ASKED_CHARS), task


def _stands_in(asked: str, wanted: str) -> bool:
    """Return whether the request contains the quoted words in sequence; a single word is not enough.

    In scripts without spaces each sign is compared by itself and counts as half a word.
    """
    words, whole = (WORD.findall(" ".join(plain_words(text))) for text in (asked, without_handles(wanted)))
    size = len(words) - sum(map(is_unspaced, words)) / 2
    is_there = f" {' '.join(words)} " in f" {' '.join(whole)} "
    return size >= _LEAST_WORDS and bool(tokenize_with_stemming(asked)) and is_there


def _is_covered(asked: str, tasks: list[Task]) -> bool:
    """Return whether one task contains all meaningful words of the quote."""
    stems = set(tokenize_with_stemming(asked))
    return any(stems <= set(tokenize_with_stemming(f"{task.title}\n{task.description}")) for task in tasks)


def _is_among(task: Task, tasks: list[Task]) -> bool:
    title = normalized_title(task.title)
    return any(normalized_title(one.title) == title for one in tasks)
