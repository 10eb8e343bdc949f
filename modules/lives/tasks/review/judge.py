"""Has the model judge a pull request, by its changes and by what its tests came to. What others wrote is framed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from adapters.github.types import LineComment, PullFile, PullRequest, Repo, ReviewEvent
from common.clock import Clock
from common.facts import AgentFacts, ReviewFacts, TurnFacts
from common.text.github_text import without_mentions
from common.text.untrusted import clean, one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Message, ToolSpec
from modules.runtime.scheduler.attention import Attention
from modules.services.agent.prompt.prompter import Prompter
from modules.services.coding.suite_words import outcomes, printed
from modules.services.coding.suites import SuiteChange
from modules.services.coding.test_output import essential_lines
from modules.services.github_threads.changes import ShownChanges
from modules.services.outbox.github_bodies import MOST_LINE_COMMENTS
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills

SKILL = "code-review"
TOOL = "submit_review"

_EVENTS: tuple[ReviewEvent, ...] = get_args(ReviewEvent)
_TOKENS = 1_500
_MOST_FAILING = 8
_TITLE_CHARS, _PATH_CHARS, _OPENING_CHARS, _WORDS_CHARS = 200, 200, 6_000, 6_000
_SECTIONS: dict[str, Literal["Passed", "Failed", "Failing Before", "Unrun", "None"]] = {
    "passed": "Passed",
    "failed": "Failed",
    "failing_before": "Failing Before",
    "unrun": "Unrun",
    "none": "None",
}


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """What is to be judged: a pull request, its files and what is shown of them, what it does to the tests."""

    repo: Repo
    pull: PullRequest
    files: Sequence[PullFile]
    changes: ShownChanges
    tests: SuiteChange


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model says of it."""

    event: ReviewEvent
    words: str
    comments: Sequence[LineComment] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks the model once. `attention` is the SOUL's own, and is held for that call alone."""

    gateway: LLMGateway
    prompter: Prompter
    skills: Skills
    attention: Attention
    clock: Clock
    rng: random.Random
    login: str

    async def judge(self, case: ReviewCase) -> Judgement | None:
        """Return the judgement; None where the model gave none. Raises `SoulError` as the gateway does."""
        repo, pull = case.repo, case.pull
        prompt = await self.prompter.prompt(
            skill=SKILL,
            variables={"repo": repo.full_name, "number": str(pull.number), "github_username": self.login},
            audience="bluesky",
            session_key=f"github:{repo.full_name}#{pull.number}".lower(),
            query=f"{pull.title}\n{pull.body}",
            now=self.clock.now(),
        )
        async with self.attention.take(SKILL):
            result = await self.gateway.chat_with_tools(
                [Message("user", self._message(case))],
                system=prompt.blocks,
                tools=[self._tool()],
                tool_choice="required",
                max_tokens=_TOKENS,
                purpose=SKILL,
                importance="commitment",
                facts=_facts(case, self.login),
            )
        call = next((one for one in result.tool_calls if one.name == TOOL and not one.malformed), None)
        event, said = (call.input.get("event"), call.input.get("body")) if call else (None, None)
        if call is None or event not in _EVENTS or not isinstance(said, str) or not said.strip():
            return None
        return Judgement(cast("ReviewEvent", event), _words(said), _comments(call.input.get("comments")))

    def _tool(self) -> ToolSpec:
        of_line = {"path": {"type": "string"}, "line": {"type": "integer"}, "body": {"type": "string"}}
        comment = {"type": "object", "properties": of_line, "required": [*of_line], "additionalProperties": False}
        properties = {
            "event": {"type": "string", "enum": [*_EVENTS]},
            "body": {"type": "string"},
            "comments": {"type": "array", "items": comment, "maxItems": MOST_LINE_COMMENTS},
        }
        described = self.skills.subsection(SKILL, "Descriptions", TOOL)
        schema = {
            "type": "object",
            "properties": properties,
            "required": ["event", "body"],
            "additionalProperties": False,
        }
        return ToolSpec(TOOL, described, schema)

    def _message(self, case: ReviewCase) -> str:
        framer, pull = Framer(self.skills, self.rng), case.pull

        def framed(text: str) -> str:
            return framer.frame("reading", author=f"@{pull.author}", uri=pull.html_url, text=text)

        tests, left_out = case.tests, case.changes.left_out
        failing = tests.broken or [one for one in tests.after.runs if not one.passed]
        output = printed(replace(one, output=essential_lines(one.output)) for one in failing)
        weakened = "\n".join(one_line(one, _PATH_CHARS) for one in tests.weakened)
        return self.skills.render(
            SKILL,
            "Message",
            title=one_line(pull.title, _TITLE_CHARS),
            author=pull.author,
            head=one_line(pull.head.ref, _TITLE_CHARS),
            base=one_line(pull.base.ref, _TITLE_CHARS),
            stats=f"{pull.changed_files or 0} files, +{pull.additions or 0} -{pull.deletions or 0}",
            opening=framed(pull.body[:_OPENING_CHARS]),
            diff=framed(case.changes.text),
            left_out=self.skills.render(SKILL, "Left Out", count=str(left_out)) if left_out else "",
            tests=self.skills.render(
                SKILL,
                "Tests",
                _SECTIONS[tests.state],
                commands=outcomes(tests.after.runs),
                output=framed(output) if output else "",
            ),
            weakened=self.skills.render(SKILL, "Weakened", changes=framed(weakened)) if weakened else "",
        )


def _words(said: str) -> str:
    return without_mentions(clean(said).strip()[:_WORDS_CHARS])


def _comments(given: object) -> tuple[LineComment, ...]:
    """Return what was said of lines; a line that is no number is 0, which no file has."""
    told = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    return tuple(
        LineComment(str(one.get("path", "")), line if isinstance(line := one.get("line"), int) else 0, words)
        for one in told
        if isinstance(said := one.get("body"), str) and (words := _words(said))
    )


def failing_names(tests: SuiteChange) -> tuple[str, ...]:
    """Return the names of the first tests that fail by what was changed, as far as they are told."""
    return tuple(dict.fromkeys(tests.newly_failing))[:_MOST_FAILING]


def _facts(case: ReviewCase, login: str) -> TurnFacts:
    return TurnFacts(
        ReviewFacts(
            repo=case.repo.full_name,
            number=case.pull.number,
            title=case.pull.title,
            author=case.pull.author,
            files=tuple(one.path for one in case.files),
            tests=case.tests.state,
            commands=tuple(one.command for one in case.tests.after.runs),
            failing=failing_names(case.tests),
            weakened=case.tests.weakened,
        ),
        AgentFacts(login),
    )
