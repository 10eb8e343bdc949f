"""Selects the issues of a workspace that may go into a plan: by accounts that count, or with a request by one of them.

An issue that was requested only as an issue stays one until somebody who counts asks for its work, whoever opened it.
Nothing that we did ourselves makes the words of a stranger count, and neither does a comment that does not ask for the
work; the model judges what a comment asks for.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import parse_iso
from common.json_lines import json_object
from common.result import ApiResult, Ok, answering
from common.text.github_text import own_words
from common.text.strings import both_ends, quotation
from common.text.untrusted import one_line
from modules.lives.workspaces.policy import is_work
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.verdicts import numbered
from modules.services.commitments.texts import ASKED_AS_ISSUE
from modules.services.skills.questions import ModelQuestion
from modules.services.skills.skills import Skills
from modules.services.workspaces.trust import MOST_PEOPLE, TrustedAccounts, by_login

SKILL = "work-request"
MOST_COMMENTS = 20
"""How many of the newest comments are read."""

_TOKENS = 120
_COMMENT_CHARS = 2_000
_LEAST_QUOTE_CHARS = 2


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """The words that ask for the work, and the index of their comment among those that were read, from 0."""

    comment: int
    quote: str


@dataclass(frozen=True, slots=True)
class WorkRequestReader:
    """Asks the model through `gateway`, with the skill `work-request`."""

    gateway: LLMGateway
    skills: Skills

    async def read(self, comments: Sequence[str]) -> WorkRequest | None:
        """Return the request for the work; None if there is none, or if two answers of the model cannot be read.

        Raises `SoulError`.
        """
        said = [one_line(both_ends("\n".join(own_words(one)), _COMMENT_CHARS), 2 * _COMMENT_CHARS) for one in comments]
        if not any(said):
            return None
        question = ModelQuestion(self.gateway, self.skills, SKILL, _TOKENS)
        found = await question.read("comments", numbered(said), tuple(said), lambda answer: request_in(answer, said))
        return found if isinstance(found, WorkRequest) else None


def request_in(answer: str, said: Sequence[str]) -> WorkRequest | Literal["nobody"] | None:
    """Return what a model's answer says about these comments; None if its quote is not in one of them. Pure."""
    told = json_object(answer[answer.find("{") : answer.rfind("}") + 1]) or {}
    number, quote = str(told.get("comment", "")).strip(), told.get("quote")
    if not number.isdecimal() or int(number) > len(said):
        return None
    place = int(number) - 1
    if place < 0:
        return "nobody"
    words = quotation(quote.strip().rstrip(".!"), said[place]) if isinstance(quote, str) else ""
    return WorkRequest(place, words) if len(words) >= _LEAST_QUOTE_CHARS else None


WORK_LABEL = "work"
"""The label by which somebody whose words count turns an issue by somebody else into work."""
MOST_ASKED_OF = 30
"""How many issues that need such a request are checked for one plan."""

_LOOP = "plan-synthesis"
_Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _Version:
    """The text of an issue as a hash, and the latest time of its last change; None if no change was ever seen."""

    text_hash: str
    changed_at: datetime | None = None
    is_told: bool = False

    def is_later_than(self, moment: str) -> bool:
        """Return whether the text may have changed after that moment."""
        return self.changed_at is not None and parse_iso(moment) < self.changed_at


@dataclass(frozen=True, slots=True)
class _Judged:
    """The comments that were judged, what came of it, and in which version of the issue."""

    comments: tuple[tuple[int, str], ...]
    is_wanted: bool
    version: str


@dataclass(slots=True)
class WantedIssues:
    """Finds out who asked for what work. The model is asked only once about the same comments."""

    github: GitHub
    reader: WorkRequestReader
    journal: Journal
    _judged: dict[_Key, _Judged] = field(default_factory=dict, init=False)
    _versions: dict[_Key, _Version] = field(default_factory=dict, init=False)

    @answering
    async def of(self, repo: Repo, work: Sequence[Issue], accounts: TrustedAccounts) -> ApiResult[list[Issue]]:
        """Return the issues that may go into a plan.

        Raises:
            SoulError: as the model does.

        """
        wanted = [one for one in work if accounts.covers(one.account) and ASKED_AS_ISSUE not in one.body]
        unasked = [one for one in work if one not in wanted]
        if not unasked:
            return Ok(wanted)
        touched = (await self.touched(repo, accounts)).or_raise()
        numbers = {one.number for one in touched}
        versions = {one.number: self._version_of(repo, one) for one in unasked}
        found = (one for one in unasked if one.number in numbers)
        for one in sorted(found, key=lambda each: self._turn(repo, each))[:MOST_ASKED_OF]:
            wanted += [one] if await self._check_request(repo, one, accounts, versions[one.number]) else []
        return Ok(wanted)

    @answering
    async def touched(self, repo: Repo, accounts: TrustedAccounts) -> ApiResult[list[Issue]]:
        """Return the open issues that have the label for work, or a comment by an account that counts except ours."""
        place = f"repo:{repo.full_name} is:issue is:open"
        labelled = (await self.github.list_issues(repo, labels=(WORK_LABEL,))).or_raise()
        found = {one.number: one for one in labelled if is_work(one)}
        for person in accounts.others()[:MOST_PEOPLE]:
            commented = by_login(await self.github.search.issues(f"{place} commenter:{person.login}"))
            found |= {one.number: one for one in commented if is_work(one)}
        return Ok([found[number] for number in sorted(found)])

    def _turn(self, repo: Repo, issue: Issue) -> int:
        """Return the place of an issue among those that are checked: new and changed ones, wanted ones, all others."""
        known = self._judged.get((repo.full_name.lower(), issue.number))
        return 0 if known is None or known.version != issue.version else 1 if known.is_wanted else 2

    def _version_of(self, repo: Repo, issue: Issue) -> _Version:
        """Return the present version of an issue's text."""
        key, words = (repo.full_name.lower(), issue.number), f"{issue.title}\n{issue.body}"
        text_hash = hashlib.sha256(words.encode(errors="replace")).hexdigest()
        known = self._versions.get(key)
        if known is None or known.text_hash != text_hash:
            # NOTE(self): GitHub reports no edits of a text: one that differs now was edited by `updated_at`.
            known = self._versions[key] = _Version(text_hash, parse_iso(issue.updated_at) if known else None)
        return known

    async def _check_request(self, repo: Repo, issue: Issue, accounts: TrustedAccounts, version: _Version) -> bool:
        if WORK_LABEL in {label.lower() for label in issue.labels}:
            told = (await self.github.labellings(repo, issue.number)).or_raise()
            last = next((one for one in reversed(told) if one.label.lower() == WORK_LABEL and one.is_added), None)
            if last and accounts.covers_besides_us(last.by) and not version.is_later_than(last.at):
                await self._tell(repo, issue, f"@{last.by.login} gave it the label {WORK_LABEL}")
                return True
        comments = (await self.github.list_comments(repo, issue.number)).or_raise()
        counting = [one for one in comments if accounts.covers_besides_us(one.account)]
        said = [one for one in counting if not version.is_later_than(one.updated_at)][-MOST_COMMENTS:]
        if not said and version.changed_at and not version.is_told:
            version.is_told = True
            await self._tell_edited(repo, issue)
        key, words = (repo.full_name.lower(), issue.number), tuple((one.id, one.body) for one in said)
        known = self._judged.get(key)
        if known and known.comments == words:
            self._judged[key] = replace(known, version=issue.version)
            return known.is_wanted
        request = await self.reader.read([one.body for one in said])
        self._judged[key] = _Judged(words, request is not None, issue.version)
        if request:
            await self._tell(repo, issue, f"@{said[request.comment].author} said: “{request.quote}”")
        return request is not None

    async def _tell_edited(self, repo: Repo, issue: Issue) -> None:
        summary = f"{repo.full_name}#{issue.number} by @{issue.author} waits until somebody asks for it again"
        reason = "it was edited after the last word on it by somebody whose words count"
        entry = Entry("decision", _LOOP, summary, line="info", reason=reason, trigger_uri=issue.html_url)
        await self.journal.record(entry)

    async def _tell(self, repo: Repo, issue: Issue, why: str) -> None:
        summary = f"{repo.full_name}#{issue.number} by @{issue.author} may go into a plan"
        entry = Entry("decision", _LOOP, summary, line="info", reason=why, trigger_uri=issue.html_url)
        await self.journal.record(entry)
