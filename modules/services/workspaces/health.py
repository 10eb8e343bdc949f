"""Asks the model whether anything in a workspace is clearly unfinished. Stores nothing.

The model gets one tool that only reports what it found; code decides what to do.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adapters.github.types import Repo
from common.facts import QuestionFacts
from common.text.markdown import without_html_comments
from common.text.untrusted import clean, one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.services.skills.questions import ToolQuestion
from modules.services.skills.skills import Framer, Skills
from modules.services.workspaces.sentinel import SUMMARY_CHARS

SKILL = "workspace-health"
TOOL = "workspace_verdict"
MOST_REMAINING = 8
READ_CHARS = 100_000
"""The most characters that are read of a page; `PAGE_CHARS` of them are shown."""
PAGE_CHARS, PLAN_CHARS = 4_000, 3_000

Problem = Literal["No Verdict", "Complete", "Summary", "Remaining", "Contradiction"]
"""The problems of an answer: subsections of `Problems` in the skill."""

_LINE = re.compile(r"^", re.MULTILINE)
_TASK = re.compile(r"^### ", re.MULTILINE)
_TOKENS = 600
_LINE_CHARS = 200
_TEMPERATURES = (0.0, 0.3)
_VERDICT = {
    "type": "object",
    "properties": {
        "complete": {"type": "boolean"},
        "summary": {"type": "string"},
        "remaining": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["complete", "summary", "remaining"],
}


@dataclass(frozen=True, slots=True)
class WorkspacePages:
    """The basis for judging a workspace: its pages, by name, and the bodies of its last closed plans."""

    repo: Repo
    pages: Mapping[str, str]
    closed_plans: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """The verdict whether all is done, a line of at most `SUMMARY_CHARS`, and what remains, one line each."""

    complete: bool
    summary: str
    remaining: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HealthJudge:
    """Asks the model through `gateway`; `rng` draws the boundaries of untrusted text."""

    gateway: LLMGateway
    skills: Skills
    rng: random.Random

    async def judge(self, read: WorkspacePages) -> HealthVerdict | None:
        """Return the verdict, or None if two answers cannot be used. Raises `SoulError`."""
        question = ToolQuestion(self.gateway, self.skills, SKILL, TOOL, _VERDICT, _TOKENS)
        facts = QuestionFacts(SKILL, {"pages": tuple(read.pages.values())})
        asked, problem = self._message(read), ""
        for temperature in _TEMPERATURES:
            verdict = read_verdict(await question.ask(f"{asked}\n\n{problem}".strip(), facts, temperature))
            if isinstance(verdict, HealthVerdict):
                return verdict
            told = self.skills.render(SKILL, "Problems", verdict, most=_MOST.get(verdict, 0)).strip()
            problem = self.skills.render(SKILL, "Once More", problem=told)
        return None

    def _message(self, read: WorkspacePages) -> str:
        framer = Framer(self.skills, self.rng)

        def framed(name: str, text: str) -> str:
            return framer.frame("reading", author=name, uri=read.repo.full_name, text=text)

        def shown(name: str, text: str, most: int, starts: re.Pattern[str], what: str) -> dict[str, str]:
            kept, left = whole_parts(without_html_comments(text), most, starts)
            told = self.skills.render(SKILL, f"Left Out / {what}", count=left).strip() if left else ""
            return {"text": framed(name, kept), "left_out": told}

        pages = [
            self.skills.render(SKILL, "Page", name=name, **shown(name, text, PAGE_CHARS, _LINE, "Lines"))
            for name, text in read.pages.items()
        ]
        plans = [
            self.skills.render(SKILL, "Closed Plan", **shown("plan", text, PLAN_CHARS, _TASK, "Tasks"))
            for text in read.closed_plans
        ]
        return self.skills.render(
            SKILL, "Message", repo=read.repo.full_name, pages="\n\n".join(pages), plans="\n\n".join(plans)
        )


_MOST: Mapping[str, int] = {"Summary": SUMMARY_CHARS, "Remaining": MOST_REMAINING}


def whole_parts(text: str, most: int, starts: re.Pattern[str]) -> tuple[str, int]:
    """Return the leading parts of a text that fit into `most` characters, and how many parts are left out. Pure.

    A part begins where `starts` matches. If not even the first part fits, its first `most` characters are returned.
    """
    if len(text) <= most:
        return text, 0
    places = [found.start() for found in starts.finditer(text) if found.start()]
    end = max((place for place in places if place <= most), default=most)
    return text[:end].rstrip(), sum(place >= end for place in places)


def read_verdict(given: Mapping[str, Any]) -> HealthVerdict | Problem:
    """Return the verdict in a call of the tool, or what is wrong with it; nothing is guessed."""
    if not {"complete", "summary"} <= given.keys():
        return "No Verdict"
    complete, summary, remaining = given["complete"], given["summary"], given.get("remaining", [])
    if not isinstance(complete, bool):
        return "Complete"
    line = clean(summary).strip() if isinstance(summary, str) else ""
    if not line or "\n" in line or len(line) > SUMMARY_CHARS:
        return "Summary"
    if not isinstance(remaining, list) or len(remaining) > MOST_REMAINING:
        return "Remaining"
    lines = tuple(one_line(one, _LINE_CHARS) if isinstance(one, str) else "" for one in remaining)
    if not all(lines):
        return "Remaining"
    return "Contradiction" if complete is bool(lines) else HealthVerdict(complete, line, lines)
