"""Has the model write a document, and sends a first try back once with what is wrong with it. Keeps nothing."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from adapters.github.types import Repo
from common.facts import QuestionFacts, TurnFacts
from common.text.untrusted import clean, one_line
from modules.lives.tasks.documents.check import (
    DocumentCheck,
    DocumentProblem,
    Requirements,
    document_in,
    judge_document,
)
from modules.lives.tasks.documents.policy import is_document_task
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import ChatResult, Message
from modules.services.plans.docs_tasks import AGENTS_PAGE, SCENARIOS_PAGE
from modules.services.plans.types import Plan, Task
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills

SKILL = "task-document"

_TOKENS = 1_500
_TEMPERATURES = (0.2, 0.6)
_LINE_CHARS, _GOAL_CHARS, _TEXT_CHARS = 200, 600, 2_000
_MOST_TASKS = 20
_NOT_SHOWN: frozenset[DocumentProblem] = frozenset({"Secret", "Too Long", "Cut Off", "Empty", "Goal", "Repeats"})
_FORMS = {AGENTS_PAGE.lower(): "Agents Page", SCENARIOS_PAGE.lower(): "Scenarios Page"}


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """A document that is to be written: where, for which task, among which files, and as it stands ("" if it does not).

    `url` is that of the issue that holds the plan.
    """

    repo: Repo
    url: str
    plan: Plan
    task: Task
    path: str
    files: tuple[str, ...] = ()
    before: str = ""


def _told_of(request: DocumentRequest, required: Requirements) -> dict[str, tuple[str, ...]]:
    return {"path": (request.path,), "goal": (required.goal,), "task": (request.task.title,)}


@dataclass(frozen=True, slots=True)
class Written:
    """A document, or what was wrong with the second try; `text` is "" then."""

    text: str
    problem: DocumentProblem | None = None


@dataclass(frozen=True, slots=True)
class DocumentWriter:
    """Asks the model. `finds_secret` tells whether a text holds one; `rng` draws the boundaries of untrusted text."""

    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    finds_secret: Callable[[str], bool]

    async def write(self, request: DocumentRequest, keep: Callable[[ChatResult], Awaitable[None]]) -> Written:
        """Return the document, or why the second try was no better than the first. `keep` receives each answer.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        required = Requirements(
            request.plan.goal or request.plan.title, _given(request), request.before, self._instructions()
        )
        asked = self._asked(request)
        messages, verdict = [Message("user", asked)], DocumentCheck()
        for temperature in _TEMPERATURES:
            result = await self._ask(request, messages, required, temperature)
            await keep(result)
            text, verdict = self._judged(result, required)
            if verdict.problem is None:
                return Written(text)
            messages = self._sent_back(asked, text, verdict.problem, verdict.missing)
        return Written("", verdict.problem)

    async def _ask(
        self, request: DocumentRequest, messages: Sequence[Message], required: Requirements, temperature: float
    ) -> ChatResult:
        return await self.gateway.chat_with_tools(
            messages,
            system=self.skills.section(SKILL, "System Prompt"),
            max_tokens=_TOKENS,
            temperature=temperature,
            purpose=SKILL,
            importance="commitment",
            facts=TurnFacts(QuestionFacts(SKILL, _told_of(request, required))),
        )

    def _judged(self, result: ChatResult, required: Requirements) -> tuple[str, DocumentCheck]:
        text = document_in(result.text)
        if result.stop_reason == "max_tokens":
            return text, DocumentCheck("Cut Off")
        return text, judge_document(text, required, self.finds_secret)

    def _sent_back(self, asked: str, text: str, problem: DocumentProblem, missing: Sequence[str]) -> list[Message]:
        """What is wrong with the first try, which is shown to the model again unless that would not help."""
        words = self.skills.render(SKILL, "Problems", problem, words=", ".join(missing)).strip()
        again = self.skills.render(SKILL, "Once More", problem=words)
        if problem in _NOT_SHOWN:
            return [Message("user", f"{asked}\n\n{again}")]
        return [Message("user", asked), Message("assistant", text), Message("user", again)]

    def _asked(self, request: DocumentRequest) -> str:
        framer = Framer(self.skills, self.rng)

        def framed(text: str) -> str:
            return framer.frame("reading", author=request.repo.full_name, uri=request.url, text=text)

        before = request.before.strip()
        standing = self.skills.render(SKILL, "Standing", document=framed(before)) if before else ""
        form = _FORMS.get(request.path.rpartition("/")[2].lower(), "Other")
        return self.skills.render(
            SKILL,
            "Message",
            path=one_line(request.path, _LINE_CHARS),
            repo=request.repo.full_name,
            form=self.skills.render(SKILL, "Forms", form, path=one_line(request.path, _LINE_CHARS)),
            plan=framed(_plan_text(request)),
            task=framed(_task_text(request.task)),
            goal=framed(one_line(request.plan.goal or request.plan.title, _GOAL_CHARS)),
            standing=standing or self.skills.section(SKILL, "No Document"),
        )

    def _instructions(self) -> str:
        """Our own words to the model, as they stand in the skill."""
        own = ("System Prompt", "Message", "Once More", "Standing", "No Document")
        return "\n".join(self.skills.section(SKILL, name) for name in own)


def _given(request: DocumentRequest) -> str:
    return f"{_plan_text(request)}\n{_task_text(request.task)}\n{request.url} {request.url.rpartition('/issues/')[0]}"


def _plan_text(request: DocumentRequest) -> str:
    """The plan as the model is shown it: what it is for, its tasks, and which files are in the repository."""
    plan = request.plan
    tasks = [_task_line(task) for task in plan.tasks if not is_document_task(task)][:_MOST_TASKS]
    files = [f"- {one_line(path, _LINE_CHARS)}" for path in request.files]
    parts = (
        f"Title: {one_line(plan.title, _LINE_CHARS)}",
        f"Goal: {one_line(plan.goal, _GOAL_CHARS)}",
        f"Context:\n{clean(plan.context).strip()[:_TEXT_CHARS]}" if plan.context.strip() else "",
        "Tasks of the plan:\n" + ("\n".join(tasks) or "none but documents"),
        "Files in the repository:\n" + ("\n".join(files) or "none"),
    )
    return "\n\n".join(filter(None, parts))


def _task_line(task: Task) -> str:
    files = f" ({one_line(', '.join(task.files), _LINE_CHARS)})" if task.files else ""
    return f"- {one_line(task.title, _LINE_CHARS)}{files}"


def _task_text(task: Task) -> str:
    return f"{one_line(task.title, _LINE_CHARS)}\n\n{clean(task.description).strip()[:_TEXT_CHARS]}"
