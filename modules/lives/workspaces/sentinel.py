"""Looks after sentinels, issues that say that a workspace is finished: adopts them, and acts on what happens to them.

The decisions are a table (`modules/services/workspaces/sentinel.py`). A workspace counts as active again once its
sentinel is closed on GitHub, never before, so that a crash in between repeats nothing.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from adapters.github.client import GitHub
from adapters.github.types import Comment, Issue, Repo
from common.clock import Clock, parse_iso
from common.result import ApiResult, Err, Ok, answering
from common.text.markdown import without_html_comments
from modules.lives.workspaces.types import CycleStep, Place, Poll, PolledWorkspace, StepResult
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.skills.skills import Skills
from modules.services.voice_phrases import Phrase
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.health import SKILL
from modules.services.workspaces.sentinel import (
    NO_SENTINEL_FOR,
    SentinelCode,
    SentinelDecision,
    SentinelFacts,
    is_creator_gone,
    is_marked_finished,
    judge_sentinel,
    sentinel_in,
)
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

MOST_OTHERS = 10
"""How many other issues are searched for what people have asked for since."""

_SUMMARY_CHARS = 80
_Seen = tuple[str, bool, tuple[tuple[int, str], ...]]


@dataclass(slots=True)
class SentinelStep(CycleStep):
    """The first step of a cycle. It needs a request for each finished workspace in which something changed.

    `seen_at` returns when the SOUL with a login was last seen; None if unknown.
    """

    github: GitHub
    workspaces: WatchedWorkspaces
    writer: GitHubWriter
    trust: WorkspaceTrust
    turns: ActingTurns
    seen_at: Callable[[str], datetime | None]
    phrase: Phrase
    skills: Skills
    journal: Journal
    clock: Clock
    name = "finished-sentinel"
    place = Place.SENTINEL
    sees_finished = True
    _quiet: dict[str, _Seen] = field(default_factory=dict)

    async def run(self, poll: Poll) -> StepResult:
        """Look at each workspace once. What cannot be read stays as it is."""
        notes = []
        for one in poll.workspaces:
            number = await self._the_one(one)
            note = await self._adopt(one) if number is None else await self._verify(one, number, poll.at)
            notes += [note] if note else []
        return StepResult(note="; ".join(notes))

    async def _the_one(self, one: PolledWorkspace) -> int | None:
        """Return the known sentinel's number. Of two made at the same time the first counts; close ours if second."""
        known, first = one.watched.finished_issue_number, sentinel_in(one.issues)
        if first is None or known is None:
            return known
        for issue in one.issues:
            is_ours = issue.author.lower() == self.github.login.lower()
            if is_ours and is_marked_finished(issue) and issue.state == "open" and issue.number > first.number:
                await self.writer.set_state(
                    one.repo, issue.number, f"second-{_place(one.repo, issue.number)}", "closed"
                )
        if first.number < known:
            self.workspaces.note(one.repo, finished_issue_number=first.number)
        return min(first.number, known)

    async def _adopt(self, one: PolledWorkspace) -> str:
        """Store an open sentinel as that of the workspace, whoever opened it."""
        found = sentinel_in(one.issues)
        if found is None:
            return ""
        self.workspaces.note(one.repo, finished_issue_number=found.number)
        return await self._tell(
            one.repo, "sentinel-adopted", f"is finished, says #{found.number}", f"@{found.author} says so"
        )

    async def _verify(self, one: PolledWorkspace, number: int, now: datetime) -> str:
        repo, place = one.repo, _place(one.repo, number)
        if await self.writer.outbox.waits("issue_update", f"close-sentinel:{place}:"):
            return ""
        sentinel = await self._sentinel(one, number)
        if isinstance(sentinel, Err):
            is_gone = sentinel.kind == "not_found"
            return await self._clear(repo, number, "the issue that said so is gone", now) if is_gone else ""
        others = [issue for issue in one.issues if not is_marked_finished(issue) and issue.number != number]
        looks_after = self._looks_after(sentinel.data, repo, now)
        seen = _seen(sentinel.data, others, looks_after=looks_after)
        if self._quiet.get(place) == seen:
            return ""
        if (facts := (await self._facts(repo, sentinel.data, others, looks_after=looks_after)).or_else(None)) is None:
            return ""
        decision = judge_sentinel(facts)
        if decision.code in {SentinelCode.STANDS, SentinelCode.AGREED}:
            self._quiet[place] = seen
            return ""
        return await self._act(facts, repo, decision, now)

    async def _sentinel(self, one: PolledWorkspace, number: int) -> ApiResult[Issue]:
        found = next((issue for issue in one.issues if issue.number == number), None)
        return Ok(found) if found else await self.github.get_issue(one.repo, number)

    def _looks_after(self, sentinel: Issue, repo: Repo, now: datetime) -> bool:
        if sentinel.author.lower() == self.github.login.lower():
            return True
        gone = is_creator_gone(sentinel, self.seen_at(sentinel.author), now)
        return gone and self.turns.ask_for_turn(f"sentinel:{_place(repo, sentinel.number)}")

    @answering
    async def _facts(
        self, repo: Repo, sentinel: Issue, others: Collection[Issue], *, looks_after: bool
    ) -> ApiResult[SentinelFacts]:
        """Read what the decision needs: no comments if the sentinel is closed, or if another SOUL looks after it."""
        comments: tuple[Comment, ...] = ()
        elsewhere: list[Comment] = []
        if looks_after and sentinel.state == "open":
            made_at = parse_iso(sentinel.created_at)
            touched = [issue for issue in others if parse_iso(issue.updated_at) > made_at]
            comments = (await self.github.list_comments(repo, sentinel.number, since=sentinel.created_at)).or_raise()
            for issue in touched[:MOST_OTHERS]:
                elsewhere += (await self.github.list_comments(repo, issue.number, since=sentinel.created_at)).or_raise()
        return Ok(
            SentinelFacts(
                sentinel=sentinel,
                trusted=await self.trust.whole(repo),
                comments=comments,
                others=tuple(others),
                comments_on_others=elsewhere,
                looks_after=looks_after,
            )
        )

    async def _act(self, facts: SentinelFacts, repo: Repo, decision: SentinelDecision, now: datetime) -> str:
        sentinel = facts.sentinel
        place = _place(repo, sentinel.number)
        match decision.code:
            case SentinelCode.FEEDBACK:
                return await self._reopen_work(repo, sentinel, decision, max(one.id for one in decision.feedback))
            case SentinelCode.SPOKEN_ELSEWHERE:
                ids = [one.id for one in facts.comments_on_others] or [one.number for one in facts.others]
                return await self._reopen_work(repo, sentinel, decision, max(ids))
            case SentinelCode.REOPEN:
                return await self._reopen(repo, sentinel, decision, f"reopen-sentinel:{place}:{sentinel.closed_at}")
            case SentinelCode.CLOSED_BY_PERSON:
                key = f"sentinel-question:{place}:{sentinel.closed_at}"
                if self.turns.ask_for_turn(key):
                    words = self.phrase("github.sentinel_question")
                    await self.writer.comment(repo, sentinel.number, key, words)
                self.workspaces.note(repo, last_health_check_attempt=None)
        return await self._clear(repo, sentinel.number, decision.reason, now)

    async def _reopen(self, repo: Repo, sentinel: Issue, decision: SentinelDecision, key: str) -> str:
        if not self.turns.ask_for_turn(key):
            return ""
        if not (await self.writer.set_state(repo, sentinel.number, key, "open")).is_new:
            return ""
        return await self._tell(
            repo, "sentinel-reopened", f"stays finished: #{sentinel.number} is to be opened again", decision.reason
        )

    async def _reopen_work(self, repo: Repo, sentinel: Issue, decision: SentinelDecision, occasion: int) -> str:
        """Comment on the sentinel and close it; what people said on it becomes an issue first."""
        number, key = sentinel.number, f"{_place(repo, sentinel.number)}:{occasion}"
        if (await self.writer.outbox.standing("issue_update", f"close-sentinel:{key}")).is_decided:
            return ""
        if decision.feedback:
            title, body = self._feedback(number, decision.feedback)
            if not (await self.writer.open_issue(repo, f"sentinel-feedback:{key}", title, body)).is_decided:
                return ""
        words = self.phrase("github.sentinel_reopened_work")
        if not (await self.writer.comment(repo, number, f"sentinel-reopened:{key}", words)).is_decided:
            return ""
        await self.writer.set_state(repo, number, f"close-sentinel:{key}", "closed")
        return await self._tell(repo, "sentinel-closed", f"is not finished: #{number} is to be closed", decision.reason)

    def _feedback(self, number: int, comments: Collection[Comment]) -> tuple[str, str]:
        first = next(iter(without_html_comments(next(iter(comments)).body).strip().splitlines()), "")
        summary = first if len(first) <= _SUMMARY_CHARS else f"{first[: _SUMMARY_CHARS - 1].rstrip()}…"
        told = [
            self.skills.render(SKILL, "Feedback Comment", author=one.author, text=_quoted(one.body)) for one in comments
        ]
        body = self.skills.render(SKILL, "Feedback Body", number=number, comments="\n\n".join(told))
        return self.skills.render(SKILL, "Feedback Title", number=number, summary=summary), body

    async def _clear(self, repo: Repo, number: int, reason: str, now: datetime) -> str:
        """Make the workspace active again, without a new sentinel for a day, so that people can say what they want."""
        until = now + self.clock.real(NO_SENTINEL_FOR)
        self.workspaces.note(repo, finished_issue_number=None, no_sentinel_before=until)
        self._quiet.pop(_place(repo, number), None)
        what = "is not finished any more, and gets no new sentinel for a day"
        return await self._tell(repo, "sentinel-cleared", what, reason)

    async def _tell(self, repo: Repo, act: str, what: str, reason: str) -> str:
        """Record what happened; return it for the line that ends the cycle."""
        summary = f"{repo.full_name} {what}"
        data = {"act": act, "repo": repo.full_name}
        await self.journal.record(Entry("decision", self.name, summary, line="info", reason=reason, data=data))
        return summary


def _seen(sentinel: Issue, others: Collection[Issue], *, looks_after: bool) -> _Seen:
    return sentinel.version, looks_after, tuple((one.number, one.version) for one in others)


def _place(repo: Repo, number: int) -> str:
    return f"{repo.full_name.lower()}#{number}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in without_html_comments(text).strip().splitlines())
