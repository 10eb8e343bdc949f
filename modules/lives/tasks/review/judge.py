"""Has the model judge a pull request, and limits its verdict: it goes no further than the tests allow.

Untrusted text is framed, and programs run on a copy. Nothing is stored between the steps: after a crash the review
starts again.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from adapters.git.diffs import FileDiff, fair_share
from adapters.github.client import GitHub
from adapters.github.types import Comment, LineComment, PullRequest, Repo, Review, ReviewComment, ReviewEvent
from common.clock import Clock
from common.errors import PromptTooLong
from common.facts import AgentFacts, ReviewFacts, TurnFacts
from common.redact import Redactor
from common.result import ApiResult, Ok, answering
from common.text.github_text import without_mentions, without_own_marks
from common.text.markdown import without_html_comments
from common.text.strings import both_ends
from common.text.untrusted import clean, legible, one_line
from modules.lives.tasks.offering import TASK_CHARS, told_talk
from modules.runtime.llm.dialect import Block, ChatResult, Message, PromptBlock, Text, ToolAnswer, ToolCall, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.prompt.prompter import Prompter
from modules.services.claims.claim_requests import PlanReader
from modules.services.coding.hands import RUN, Hands
from modules.services.coding.suite_words import failures, outcomes, printed
from modules.services.coding.suites import SuiteChange, SuiteState
from modules.services.coding.test_output import essential_lines
from modules.services.github_threads import MOST_CHARS, ShownChanges, changes_of
from modules.services.outbox.github_bodies import MOST_LINE_COMMENTS
from modules.services.plans.plan_text import format_task_markdown
from modules.services.plans.types import parse_task_branch, task_of_branch
from modules.services.skills.skills import Framer, Skills
from modules.services.workspaces.trust import TrustedAccounts, plan_of


def event_for(
    asked: ReviewEvent, tests: SuiteState, *, is_weakened: bool, is_whole: bool, is_documents: bool
) -> ReviewEvent:
    """Return the event of a review for which the model asked for `asked`.

    If the changes make tests fail, the review requests changes. Tests that failed before do not prevent an approval. If
    no test gave a result, only documents are approved; if there are no tests, nothing that removed them is; and changes
    that the model saw only in part never are.

    Args:
        asked: by the model.
        tests: their result.
        is_weakened: whether the changes weaken the tests.
        is_whole: whether the model was shown all changes.
        is_documents: whether nothing but documents is changed.

    """
    if tests == "failed":
        return "REQUEST_CHANGES"
    is_tried = {
        "passed": True,
        "failing_before": True,
        "unrun": is_documents,
        "none": not is_weakened,
    }[tests]
    return "COMMENT" if asked == "APPROVE" and not (is_tried and is_whole) else asked


_MOST_SAID = 3
_HUNK_LINES, _HUNK_CHARS = 8, 1_000


@dataclass(frozen=True, slots=True)
class Background:
    """What is known of a pull request besides its changes.

    Attributes:
        task: the task that it is for, as in its plan, with the goal of the plan; "" if it is for none.
        talk: the questions about the task on its plan, and people's answers, oldest first.
        planner: the author of that plan.
        verification: how to verify that the plan is done, one line each.
        earlier: our newest review of it, or None.
        lines: the line comments of all its reviews; empty without an earlier review of ours.
        said: the newest comments of its author since that review, oldest first.

    """

    task: str = ""
    talk: tuple[Comment, ...] = ()
    planner: str = ""
    verification: tuple[str, ...] = ()
    earlier: Review | None = None
    lines: tuple[ReviewComment, ...] = ()
    said: tuple[str, ...] = ()


@answering
async def read_background(
    github: GitHub, plans: PlanReader, trusted: TrustedAccounts, repo: Repo, pull: PullRequest
) -> ApiResult[Background]:
    """Read the background of a pull request from GitHub. The plan counts only if its author is trusted."""
    task = (await _task(plans, trusted, repo, pull)).or_raise()
    reviews = (await github.pulls.reviews(repo, pull.number)).or_raise()
    comments = (await github.list_comments(repo, pull.number)).or_raise()
    own = [one for one in reviews if one.author_id == trusted.us.id and one.state != "PENDING"]
    since = own[-1].submitted_at if own else ""
    by_author = (one for one in comments if one.account == pull.account and one.created_at >= since)
    said = [without_html_comments(one.body).strip() for one in by_author]
    known = replace(task, said=tuple(said[-_MOST_SAID:]))
    if not own:
        return Ok(known)
    lines = (await github.pulls.review_comments(repo, pull.number)).or_raise()
    return Ok(replace(known, earlier=own[-1], lines=lines))


@answering
async def _task(plans: PlanReader, trusted: TrustedAccounts, repo: Repo, pull: PullRequest) -> ApiResult[Background]:
    issue, number = plan_of(pull.body), parse_task_branch(pull.head.ref)
    if issue is None or number is None:
        return Ok(Background())
    if (read := (await plans.read(repo, issue)).or_else(None, "not_found")) is None:
        return Ok(Background())
    plan = read.plan if trusted.covers(read.issue.account) else None
    task = plan.task(task_of_branch(pull.head.ref, plan.tasks) or number) if plan else None
    if plan is None or task is None or not task.title.strip():
        return Ok(Background())
    text = f"{plan.goal}\n\n{format_task_markdown(task)}"
    return Ok(Background(text, read.talk(number), read.issue.author, plan.verification))


def review_text(review: Review, comments: Iterable[ReviewComment]) -> str:
    """Return the text of a review, and below it its line comments, each with its place and the changes there."""
    own = [one for one in comments if one.review_id == review.id]
    return "\n\n".join((without_html_comments(review.body).strip(), *map(_of_line, own)))


def _of_line(comment: ReviewComment) -> str:
    place = f"{comment.path}:{comment.line}" if comment.line else comment.path
    hunk = [_fitted(legible(line)) for line in comment.hunk.split("\n")[-_HUNK_LINES:]]
    return "\n".join((legible(place), *hunk, comment.body))


def _fitted(line: str) -> str:
    return line if len(line) <= _HUNK_CHARS else f"{line[:_HUNK_CHARS]} […]"


@dataclass(frozen=True, slots=True)
class ReviewTools:
    """Carries out the tool calls of a reviewer.

    Attributes:
        reading: the files as committed, in which no program ran.
        running: a copy of them with what they depend on; None if no programs can be run.

    """

    reading: Hands
    running: Hands | None

    def specs(self) -> list[ToolSpec]:
        """Return the tools as the model sees them."""
        return [one for one in self.reading.looking() if self.running or one.name != RUN]

    async def carry_out(self, call: ToolCall, tools: Sequence[ToolSpec]) -> ToolAnswer:
        """Carry out a call of one of `tools`, and return its result. Raises `SoulError` as the sandbox does."""
        hands = self.running if call.name == RUN and self.running else self.reading
        return await hands.carry_out(call, tools)


SKILL = "code-review"
TOOL = "submit_review"

_EVENTS: tuple[ReviewEvent, ...] = get_args(ReviewEvent)
MOST_STEPS = 12
_MOST_SECONDS = 900.0
"""After so many steps or seconds the model gets no more tools to look with: the next answer is the review."""
_ANSWER_TOKENS = 4_000
_LEAST_CHARS = 4_000
"""If the model rejects a prompt with so few characters of the changes as too long, they are not cut further."""
_MOST_FAILING = 8
_SINCE_CHARS = 30_000
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
    """A case to judge: a pull request, its changed files, what it does to the tests, and its background.

    `since` holds the changes since the commit that we reviewed last, if that is another one.
    """

    repo: Repo
    pull: PullRequest
    files: Sequence[FileDiff]
    tests: SuiteChange
    background: Background = field(default_factory=Background)
    since: Sequence[FileDiff] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of the model, and the changes as they were shown to it."""

    event: ReviewEvent
    words: str
    shown: ShownChanges
    comments: Sequence[LineComment] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks the model, step by step. `attention` is the SOUL's own, and is held while the model is asked.

    After `tokens` the model gets no more tools to look with; uncached input and output count. `redactor` finds secrets
    in the changes.
    """

    gateway: LLMGateway
    prompter: Prompter
    skills: Skills
    attention: Attention
    clock: Clock
    rng: random.Random
    github: GitHub
    tokens: int
    redactor: Redactor

    async def judge(self, case: ReviewCase, looks: ReviewTools) -> Judgement | None:
        """Return the judgement; None if the model gave none.

        Raises `SoulError` as the gateway and the sandbox do.
        """
        system = await self._system(case, can_run=looks.running is not None)
        shown = changes_of(case.files, finds_secret=self.redactor.finds)
        messages, used, room = [Message("user", self._message(case, shown))], 0, MOST_CHARS
        steps, until = 0, self.clock.monotonic() + _MOST_SECONDS
        while True:
            steps += 1
            is_last = steps >= MOST_STEPS or used >= self.tokens or self.clock.monotonic() >= until
            tools = [self._tool(), *([] if is_last else looks.specs())]
            try:
                result = await self._ask(case, system, messages, tools)
            except PromptTooLong:
                if len(messages) == 1 and room <= _LEAST_CHARS:
                    raise
                if len(messages) == 1:
                    room = min(room, len(shown.text)) // 2
                    shown = changes_of(case.files, most_chars=room, finds_secret=self.redactor.finds)
                    messages = [Message("user", self._message(case, shown))]
                else:
                    messages, used = messages[:1], self.tokens
                steps -= 1
                continue
            used += result.usage.input_tokens - result.usage.cached_tokens + result.usage.output_tokens
            if judged := next(filter(None, (_judged(one, shown) for one in result.tool_calls)), None):
                return judged
            if is_last:
                return None
            messages += await self._looked(result, looks)

    async def _system(self, case: ReviewCase, *, can_run: bool) -> Sequence[PromptBlock]:
        repo, pull = case.repo, case.pull
        prompt = await self.prompter.prompt(
            skill=SKILL,
            variables={
                "repo": repo.full_name,
                "number": str(pull.number),
                "github_username": self.github.login,
                "can_run": can_run,
            },
            audience="bluesky",
            session_key=f"github:{repo.full_name}#{pull.number}".lower(),
            now=self.clock.now(),
            bare=True,
        )
        return prompt.blocks

    async def _ask(
        self, case: ReviewCase, system: Sequence[PromptBlock], messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> ChatResult:
        async with self.attention.take(SKILL):
            return await self.gateway.chat_with_tools(
                messages,
                system=system,
                tools=tools,
                tool_choice="required",
                max_tokens=_ANSWER_TOKENS,
                purpose=SKILL,
                importance="commitment",
                facts=_facts(case, self.github.login),
            )

    async def _looked(self, result: ChatResult, looks: ReviewTools) -> list[Message]:
        """Carry out the calls of one step, and return the messages with these calls and their results."""
        if not result.tool_calls:
            told = self.skills.section(SKILL, "No Call")
            return [Message("assistant", (Text(result.text or "…"),)), Message("user", told)]
        said: tuple[Block, ...] = (*([Text(result.text)] if result.text else []), *result.tool_calls)
        answers = [await self._answer(call, looks) for call in result.tool_calls]
        return [Message("assistant", said), Message("user", tuple(answers))]

    async def _answer(self, call: ToolCall, looks: ReviewTools) -> ToolAnswer:
        if call.name != TOOL:
            return await looks.carry_out(call, [self._tool(), *looks.specs()])
        return ToolAnswer(call.id, call.name, self.skills.section(SKILL, "No Call"), is_error=True)

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

    def _message(self, case: ReviewCase, shown: ShownChanges) -> str:
        framer, pull, known = Framer(self.skills, self.rng), case.pull, case.background

        def framed(text: str, author: str = pull.author) -> str:
            return framer.frame("reading", author=f"@{author}", uri=pull.html_url, text=text)

        def part(section: str, text: str, author: str = pull.author, **words: str) -> str:
            return self.skills.render(SKILL, section, text=framed(text, author), **words) if text.strip() else ""

        tests, left_out, wrote = case.tests, shown.left_out, ""
        if earlier := known.earlier:
            text = both_ends(review_text(earlier, known.lines), _WORDS_CHARS)
            wrote = part("Earlier Review", text, self.github.login, state=earlier.state, sha=earlier.commit_id)
            wrote += "\n\n" + part("Since", changes_of(case.since, most_chars=_SINCE_CHARS).text)
        failing = [one for one in tests.after.runs if not one.passed]
        broken = printed(replace(one, output=essential_lines(one.output)) for one in tests.broken)
        output = framer.frame("reading", author="tests", uri="", text=broken or failures(failing))
        share = fair_share(map(len, known.said), _WORDS_CHARS)
        weakened = "\n".join(one_line(one, _PATH_CHARS) for one in tests.weakened)
        return self.skills.render(
            SKILL,
            "Message",
            title=one_line(pull.title, _TITLE_CHARS),
            author=pull.author,
            head=one_line(pull.head.ref, _TITLE_CHARS),
            base=one_line(pull.base.ref, _TITLE_CHARS),
            stats=f"files: {pull.changed_files or 0}, +{pull.additions or 0} -{pull.deletions or 0}",
            opening=framed(both_ends(without_own_marks(pull.body), _OPENING_CHARS)),
            task=part("Task", "\n".join((both_ends(known.task, TASK_CHARS), "", *known.verification)), known.planner),
            asked=told_talk(self.skills, framer, known.talk),
            earlier=wrote,
            said=part("Said", "\n\n".join(both_ends(one, share) for one in known.said)),
            diff=framed(shown.text),
            hidden=part("Hidden", both_ends(shown.hidden, _WORDS_CHARS)),
            left_out=self.skills.render(SKILL, "Left Out", count=str(left_out)) if left_out else "",
            tests=self.skills.render(
                SKILL,
                "Tests",
                _SECTIONS[tests.state],
                commands=outcomes(tests.after.runs),
                output=output if failing else "",
            ),
            weakened=self.skills.render(SKILL, "Weakened", changes=framed(weakened)) if weakened else "",
        )


def _judged(call: ToolCall, shown: ShownChanges) -> Judgement | None:
    """Return the judgement that a call submits, or None."""
    event, said = call.input.get("event"), call.input.get("body")
    is_usable = call.name == TOOL and not call.malformed and event in _EVENTS
    if not is_usable or not isinstance(said, str) or not said.strip():
        return None
    return Judgement(cast("ReviewEvent", event), _words(said), shown, _comments(call.input.get("comments")))


def _words(said: str) -> str:
    return without_mentions(clean(said, is_ours=True)[:_WORDS_CHARS])


def _comments(given: object) -> tuple[LineComment, ...]:
    """Return the line comments of a call; a line that is no number becomes 0, which no file has."""
    told = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    return tuple(
        LineComment(str(one.get("path", "")), line if isinstance(line := one.get("line"), int) else 0, words)
        for one in told
        if isinstance(said := one.get("body"), str) and (words := _words(said))
    )


def failing_names(tests: SuiteChange) -> tuple[str, ...]:
    """Return the names of the first tests that fail because of the changes, as far as they are known."""
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
