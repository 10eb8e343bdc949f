"""The tools of a turn that answers somebody who need not be the owner: on GitHub, in a direct message, in a room.

A thread on GitHub is commented on once, reviewed or left, a message answered once, or the SOUL stays silent. In a room
the model returns its decision, and the space life carries it out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel

from common.provenance import Provenance
from common.schemas import SPACE_DECISION_TOOL, Impression, SpaceDecision
from common.text.closings import asks
from common.text.graphemes import grapheme_len, leading_sentences, shortened
from common.text.untrusted import clean, one_line
from local_tools.bluesky_turns import AccountName, SilenceInput
from local_tools.github_acting import RepoName
from local_tools.words import OWN_TOOLS, REASON_CHARS, ToolWords, subject_of
from modules.lives.bluesky.reply_check import Scaffold, repeats, reply_problem, sayable, scaffold_of
from modules.lives.github.policy import opens_with_introduction, repeats_own, strip_self_mention
from modules.lives.github.types import IssueTurn, ReviewTurn
from modules.lives.messages.types import MessageTurn
from modules.lives.space.prompting import SpaceTurn
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.outbox.github_bodies import IssueCommentBody, ReactionBody, ReviewBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ProposedAction
from modules.services.skills.skills import SYSTEM_SECTION, Skills
from modules.services.work.types import Disposition

COMMENT_MOST_CHARS = 3_000
"""The longest comment, in graphemes."""

_SKILL = "github-response"
_REVIEW_SKILL = "pr-review"
_TEMPLATES = (SYSTEM_SECTION, "User Message Template", "Source", "Hidden", "No Comments")
_OF_FORM = frozenset({"Repeats", "Loops", "Unfinished"})


class CommentInput(BaseModel):
    """A comment. Without `owner`, `repo` and `issue_number` it is for the thread of this turn."""

    body: str
    owner: AccountName = ""
    repo: RepoName = ""
    issue_number: int = 0
    impression: Impression = ""
    wish: str = ""


class LeaveThreadInput(BaseModel):
    """The end of a conversation: a heart on the thread, or a last comment."""

    closing_type: Literal["like", "message"] = "like"
    reason: str
    closing_message: str = ""


class ReviewInput(BaseModel):
    """A review of the pull request of this turn."""

    body: str


class GitHubTools:
    """The handlers, with their services. `names` are those under which the SOUL could introduce itself."""

    def __init__(self, outbox: Outbox, skills: Skills, names: Sequence[str]) -> None:
        self._outbox = outbox
        self._skills = skills
        self._names = names
        self.words = ToolWords(skills, "github-tools")

    async def comment(self, args: CommentInput, turn: Turn) -> ToolResult:
        subject = subject_of(turn, IssueTurn)
        text, problem = self._checked(args.body, turn)
        sent_back = self._sent_back(_elsewhere(args, subject) or problem, text, subject)
        outcome = Disposition("commented", impression=args.impression, wish=args.wish)
        return sent_back or await self._submit(subject.comment(text), outcome, turn)

    async def leave(self, args: LeaveThreadInput, turn: Turn) -> ToolResult:
        subject, outcome = subject_of(turn, IssueTurn), Disposition("left", reason=one_line(args.reason, REASON_CHARS))
        if args.closing_type == "like":
            return await self._submit(subject.heart(), outcome, turn)
        text, problem = self._checked(args.closing_message, turn)
        return self._sent_back(problem, text, subject) or await self._submit(subject.comment(text), outcome, turn)

    async def review(self, args: ReviewInput, turn: Turn) -> ToolResult:
        subject = subject_of(turn, ReviewTurn)
        text, problem = self._checked(args.body, turn)
        sent_back = self._sent_back(problem, text, subject)
        return sent_back or await self._submit(subject.review(text), Disposition("reviewed"), turn, part=subject.part)

    def _checked(self, body: str, turn: Turn) -> tuple[str, str]:
        """Return the text to send, and why it must not be sent ("" if it may).

        In the second draft of a turn, the sentences that must not be sent are left out, and those beyond the greatest
        length, and an introduction may stay. The owner is answered whatever the form of that draft is.
        """
        subject = subject_of(turn, IssueTurn)
        text = strip_self_mention(clean(body, is_ours=True), subject.login)
        problem = self._problem(text, subject)
        if problem and subject.revision.asked:
            text = sayable(text, self._scaffold(subject), _said(subject))
            text = _cut(text, COMMENT_MOST_CHARS)
            problem = self._problem(text, subject)
            if problem == "Introduction" or (turn.importance == "owner" and problem in _OF_FORM):
                problem = ""
        return text, problem

    def _sent_back(self, problem: str, text: str, subject: IssueTurn) -> ToolResult | None:
        """Return the answer to a text that must not be sent, which ends the turn the second time; None if it may."""
        if not problem:
            return None
        if subject.revision.ask():
            return self.words.error(
                problem, length=grapheme_len(text), most=COMMENT_MOST_CHARS, thread=subject.waiting.key
            )
        return self.words.end("Given Up", Disposition("silent", reason="no comment that may leave, twice"))

    async def _submit(
        self,
        body: IssueCommentBody | ReactionBody | ReviewBody,
        outcome: Disposition,
        turn: Turn,
        *,
        part: str = "",
    ) -> ToolResult:
        hold = turn.hold or subject_of(turn, IssueTurn).hold
        urgent = turn.importance == "owner"
        action = ProposedAction(body, part, cause_id=turn.cause_id, urgent=urgent, hold=hold)
        return self.words.end_by(await self._outbox.submit(action), outcome)

    async def silence(self, args: SilenceInput, turn: Turn) -> ToolResult:
        return self.words.end("Silent", Disposition("silent", reason=one_line(args.reason, REASON_CHARS)))

    def _problem(self, text: str, subject: IssueTurn) -> str:
        """Return why this text must not be sent, a subsection of `Answers`; "" if it may."""
        if not text:
            return "Empty"
        if grapheme_len(text) > COMMENT_MOST_CHARS:
            return "Too Long"
        said = _said(subject)
        if not asks(said[-1]) and opens_with_introduction(text, (*self._names, subject.login)):
            return "Introduction"
        if repeats_own(text, subject.thread, subject.login):
            return "Repeats"
        found = reply_problem(text, said, self._scaffold(subject), may_thank=False, asked=said[-1])
        return "Repeats" if found == "thanks" else (found or "").capitalize()

    def _scaffold(self, subject: IssueTurn) -> Scaffold:
        templates = [self._skills.section(_SKILL, name) for name in _TEMPLATES]
        if isinstance(subject, ReviewTurn):
            templates = [self._skills.section(_REVIEW_SKILL, name) for name in (SYSTEM_SECTION, "Message")]
        return scaffold_of([*templates, self._skills.section("core", "Ground Rules")], [subject.told])


def github_tools(tools: GitHubTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    anyone, tool = Provenance.STRANGER, tools.words.tool
    return (
        tool(
            "github_create_issue_comment",
            CommentInput,
            "github",
            anyone,
            tools.comment,
            subject=IssueTurn,
            given={IssueTurn: frozenset({"owner", "repo", "issue_number"})},
            answers=IssueTurn,
        ),
        tool(
            "github_graceful_exit", LeaveThreadInput, "github", anyone, tools.leave, subject=IssueTurn, closes=IssueTurn
        ),
        tool(
            "github_submit_review", ReviewInput, "github", anyone, tools.review, subject=ReviewTurn, answers=ReviewTurn
        ),
        tool("github_stay_silent", SilenceInput, "github", anyone, tools.silence, subject=IssueTurn, closes=IssueTurn),
    )


def _elsewhere(args: CommentInput, subject: IssueTurn) -> str:
    """Return the name of the answer if a comment is for another thread than that of the turn; else ""."""
    owner, _, repo = subject.waiting.repo.lower().partition("/")
    named = args.repo.lower().removeprefix(f"{owner}/")
    is_here = args.owner.lower() in {"", owner} and named in {"", repo}
    return "" if is_here and args.issue_number in {0, subject.waiting.number} else "Elsewhere"


def _cut(text: str, most: int) -> str:
    """Return as many whole sentences of `text` as fit, else its first words: small models cannot count."""
    return text if grapheme_len(text) <= most else leading_sentences(text, most) or shortened(text, most)


def _said(subject: IssueTurn) -> list[str]:
    return [subject.thread.issue.body, *(one.body for one in subject.thread.comments)]


_MESSAGE_SKILL = "direct-messages"
_MESSAGE_TEMPLATES = (SYSTEM_SECTION, "User Message Template", "Relationship", "Note", "No Conversation")
MESSAGE_MOST_CHARS = 400
"""The longest answer, in graphemes: a message, not an essay."""


class AnswerInput(BaseModel):
    """An answer to the person who wrote."""

    text: str
    impression: Impression = ""
    wish: str = ""


class MessageTools:
    """The handlers, with their services."""

    def __init__(self, outbox: Outbox, skills: Skills) -> None:
        self._outbox = outbox
        self._skills = skills
        self.words = ToolWords(skills, "message-tools")

    async def answer(self, args: AnswerInput, turn: Turn) -> ToolResult:
        subject, text = subject_of(turn, MessageTurn), clean(args.text, is_ours=True)
        problem = self._problem(text, subject)
        if problem and subject.revision.asked:
            text = _cut(sayable(text, self._scaffold(subject), subject.said), MESSAGE_MOST_CHARS)
            problem = self._problem(text, subject)
        if problem:
            if subject.revision.ask():
                return self.words.error(problem, length=grapheme_len(text), most=MESSAGE_MOST_CHARS)
            return self.words.end("Given Up", Disposition("silent", reason="no answer that may leave, twice"))
        action = ProposedAction(subject.burst.answer(text), cause_id=turn.cause_id, hold=turn.hold)
        submitted = await self._outbox.submit(action)
        outcome = Disposition("answered", impression=args.impression, wish=args.wish)
        return self.words.end_by(submitted, outcome)

    async def silence(self, args: SilenceInput, turn: Turn) -> ToolResult:
        return self.words.end("Silent", Disposition("silent", reason=one_line(args.reason, REASON_CHARS)))

    def _problem(self, text: str, subject: MessageTurn) -> str:
        """Return why this text must not be sent, a subsection of `Answers`; "" if it may."""
        if not text:
            return "Empty"
        if grapheme_len(text) > MESSAGE_MOST_CHARS:
            return "Too Long"
        asked = subject.burst.text
        found = reply_problem(text, subject.said, self._scaffold(subject), may_thank=True, asked=asked)
        if found in {"instructions", "person", "unfinished", "loops"}:
            return found.capitalize()
        said = (asked,) if asks(asked) else subject.said
        return "Repeats" if found or any(repeats(text, one) for one in said) else ""

    def _scaffold(self, subject: MessageTurn) -> Scaffold:
        templates = [self._skills.section(_MESSAGE_SKILL, name) for name in _MESSAGE_TEMPLATES]
        return scaffold_of([*templates, self._skills.section("core", "Ground Rules")], [subject.told])


def message_tools(tools: MessageTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    anyone, tool = Provenance.STRANGER, tools.words.tool
    return (
        tool("message_answer", AnswerInput, "social", anyone, tools.answer, subject=MessageTurn, answers=MessageTurn),
        tool("message_silence", SilenceInput, "social", anyone, tools.silence, subject=MessageTurn, closes=MessageTurn),
    )


class SpaceTools:
    """The handler, with its texts."""

    def __init__(self, words: ToolWords) -> None:
        self._words = words

    async def decide(self, args: SpaceDecision, turn: Turn) -> ToolResult:
        if args.should_speak and not (args.message.strip() or args.commitments):
            return self._words.error("No Message")
        noted = self._words.end("Noted", Disposition("decided"))
        return replace(noted, decision=args.model_dump(by_alias=True))


def space_tools(skills: Skills) -> tuple[Tool, ...]:
    """Return the tools of the agent space."""
    words = ToolWords(skills, OWN_TOOLS)
    return (
        words.tool(
            SPACE_DECISION_TOOL,
            SpaceDecision,
            "social",
            Provenance.STRANGER,
            SpaceTools(words).decide,
            page="space_decide",
            subject=SpaceTurn,
            answers=SpaceTurn,
            effect="look",
        ),
    )
