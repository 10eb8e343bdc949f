"""Asks the model whether anything in a workspace is clearly unfinished, and names gaps and their issues.

The model gets one tool that only reports what it found; code decides what to do.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adapters.github.client import GitHub
from adapters.github.types import Comment, Repo
from common.facts import QuestionFacts
from common.text.markdown import without_html_comments
from common.text.untrusted import clean, one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.outbox.types import ActStanding
from modules.services.skills.questions import ModelQuestion
from modules.services.skills.skills import Framer, Skills
from modules.services.work.types import NewWork
from modules.services.workspaces.sentinel import SUMMARY_CHARS, is_marked_finished
from modules.services.workspaces.trust import WorkspaceTrust

SCENARIOS = "scenarios"
"""The kind of the rows for checking SCENARIOS.md: one for each completed plan."""
MOST_ROUNDS = 2
"""The number of times that gaps become work before a workspace is finished; it restarts if work goes on later."""

_GAPS = "<!-- soul:gaps -->"
_FAILING = re.compile(r"<!-- soul:scenarios-failing=(\d{1,4}) -->")
_MOST_LOOKED_AT = 100


def failing_mark(count: int) -> str:
    """Return the hidden mark that ends a comment about failing scenarios."""
    return f"<!-- soul:scenarios-failing={count} -->"


def failing_in(comments: Iterable[Comment]) -> int | None:
    """Return how many scenarios fail after a plan; None if not told yet. `comments` are of trusted accounts."""
    told = [found for one in comments for found in _FAILING.findall(one.body)]
    return int(told[-1]) if told else None


def scenarios_row(repo: Repo, plan: int) -> NewWork:
    """Return the row for the plan in an issue, as its task 0, which no plan has."""
    payload = {"owner": repo.owner, "repo": repo.name, "issue": plan, "number": 0}
    return NewWork(SCENARIOS, f"{repo.full_name}#{plan}", payload, importance="commitment")


@dataclass(frozen=True, slots=True)
class WorkspaceGaps:
    """Opens issues for gaps."""

    github: GitHub
    writer: GitHubWriter
    trust: WorkspaceTrust

    async def has_round_left(self, repo: Repo) -> bool | None:
        """Return whether another issue may be opened since the workspace was last finished; None if unknown."""
        if (listed := (await self.github.list_issues(repo, state="all", limit=_MOST_LOOKED_AT)).or_else(None)) is None:
            return None
        sentinel = max((one.number for one in listed if is_marked_finished(one)), default=0)
        accounts = await self.trust.accounts(repo)
        told = [one for one in listed if _GAPS in one.body and accounts.covers(one.account)]
        return sum(one.number > sentinel for one in told) < MOST_ROUNDS

    async def opened(self, repo: Repo, occasion: str) -> int | None:
        """Return the number of the issue that a SOUL opened for an occasion, or None. Raises `SoulError`."""
        listed = (await self.github.list_issues(repo, state="all", limit=_MOST_LOOKED_AT)).or_raise()
        accounts = await self.trust.accounts(repo)
        found = (one.number for one in listed if _occasion_mark(occasion) in one.body and accounts.covers(one.account))
        return next(found, None)

    async def open(self, repo: Repo, occasion: str, title: str, body: str) -> ActStanding:
        """Open an issue, once for each occasion."""
        text = f"{body.strip()}\n\n{_occasion_mark(occasion)}\n{_GAPS}"
        return await self.writer.open_issue(repo, f"{gap_key(repo)}{occasion}", title, text)


def _occasion_mark(occasion: str) -> str:
    return f"<!-- soul:gap={occasion} -->"


def gap_key(repo: Repo) -> str:
    """Return the prefix of the keys of all these issues."""
    return f"health:{repo.full_name.lower()}#"


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
        question = ModelQuestion(self.gateway, self.skills, SKILL, _TOKENS, tool=TOOL, schema=_VERDICT)
        facts = QuestionFacts(SKILL, {"pages": tuple(read.pages.values())})
        asked, problem = self._message(read), ""
        for temperature in _TEMPERATURES:
            verdict = read_verdict(await question.call(f"{asked}\n\n{problem}".strip(), facts, temperature))
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
