"""Finds out whether somebody else's repository accepts us, before we write anything there, and stores the answer.

The model says which pages may hold rules for AI agents, and which kind of rule a text has. A crash in between costs one
more reading. While GitHub cannot be read nothing is decided, so nothing is said.
"""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, get_args

from adapters.github.client import GitHub
from adapters.github.types import Repo, Repository
from common.clock import Clock, iso
from common.errors import BudgetExceeded, Transient
from common.json_lines import json_object
from common.provenance import Importance
from common.result import Err, Ok, Unable, Undone
from common.text.untrusted import clean
from common.wording import LineKind
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.verdicts import without_quotation_marks
from modules.services.outbox import store
from modules.services.outbox.bodies import KnownBody
from modules.services.outbox.github_bodies import (
    GITHUB_KINDS,
    NOT_IN_A_REPOSITORY,
    GitHubKind,
    OnGitHub,
    PullRequestBody,
)
from modules.services.outbox.rules.policy import held_to, is_ours
from modules.services.outbox.rules.rules import PULLS_PER_REPOSITORY, WELCOME, TrustCircle
from modules.services.outbox.senders.github_changes import repo_of
from modules.services.outbox.types import ProposedAction, Verdict
from modules.services.pinned_names import AnotherRepositoryErr, RepositoryIdentity
from modules.services.repository_rules.policy import (
    DEFAULTS,
    MOST_CHARS,
    MOST_FILES,
    Condition,
    RepositoryVerdict,
    Rule,
    RuleFound,
    RulePage,
    VerdictCode,
    are_same_rules,
    condition_of,
    digest_of,
    is_fresh,
    names_shown,
    nearest,
    pages_of,
    questions,
    verdict_of,
    with_conditions,
)
from modules.services.skills.questions import ModelQuestion
from modules.services.skills.skills import Skills

SKILL = "repository-rules"
PAGES_SKILL = "repository-pages"

_TOKENS = 400
_PAGES_TOKENS = 400
_PAGES_CHARS = 4_000
_ANSWER_CHARS = 3_000
_RULE = re.compile(r'"rule"\s{0,3}:\s{0,3}"(\w{1,20})"')
_PAGES = re.compile(r'"pages"\s{0,3}:\s{0,3}\[([\d,\s]*)\]')
_RULES: Mapping[str, Rule] = {rule: rule for rule in get_args(Rule)}


@dataclass(frozen=True, slots=True)
class RuleReader:
    """Asks the model through `gateway`, with the skills `repository-pages` and `repository-rules`."""

    gateway: LLMGateway
    skills: Skills

    async def choose(self, names: str, importance: Importance) -> frozenset[int] | None:
        """Return the numbers of the pages that may hold rules, by their names; None if two answers cannot be read.

        Raises `SoulError`.
        """
        question = ModelQuestion(self.gateway, self.skills, PAGES_SKILL, _PAGES_TOKENS, importance)
        quoted = f'"{without_quotation_marks(clean(names))}"'
        return await question.read("names", quoted, (names,), pages_in)

    async def read(self, text: str, importance: Importance) -> RuleFound:
        """Return the kind of rule in a text, in any language; `conditions` if two answers cannot be read.

        Raises `SoulError`.
        """
        question = ModelQuestion(self.gateway, self.skills, SKILL, _TOKENS, importance)
        quoted = f'"{without_quotation_marks(clean(text))}"'
        found = await question.read("rules", quoted, (text,), lambda answer: rule_in(answer, text))
        return found or RuleFound("conditions")


def pages_in(answer: str) -> frozenset[int] | None:
    """Return the numbers in a model's answer, or None if it has no list of them."""
    found = _PAGES.search(answer[:_PAGES_CHARS])
    return frozenset(int(one) for one in re.findall(r"\d{1,6}", found[1])) if found else None


def rule_in(answer: str, rules: str) -> RuleFound | None:
    """Return what a model's answer says about the text `rules`, or None if it names no rule."""
    said = answer[:_ANSWER_CHARS]
    found = _RULE.search(said.lower())
    if (rule := _RULES.get(found[1] if found else said.lower().strip(" .\"'`\n"))) is None:
        return None
    told = json_object(said[said.find("{") : said.rfind("}") + 1]) or {}
    asked = told.get("conditions") if rule == "conditions" else None
    return RuleFound(rule, tuple(condition_of(one, rules) for one in asked) if isinstance(asked, list) else ())


LOOP = "repository-rules"

_EMPTY = frozenset({"not_found", "conflict"})
"""GitHub's errors for listing the files of a repository without a commit."""

_QUIET: frozenset[GitHubKind] = frozenset({"star", "account_follow", "comment_deletion", "repository"})
ASKED: frozenset[GitHubKind] = frozenset(GITHUB_KINDS) - _QUIET
"""The acts that others there see of us; stars, deletions of our own comments and own repositories do not count."""


class NoSuchRepository(Transient):
    """There is no such repository, or none that we may see."""


@dataclass(frozen=True, slots=True)
class RepositoryRules:
    """Says whether a repository accepts us."""

    identity: RepositoryIdentity
    reader: RuleReader
    database: Database
    journal: Journal
    clock: Clock
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False, compare=False)

    async def verdict(self, repo: Repo, importance: Importance) -> RepositoryVerdict:
        """Return whether a repository accepts us.

        The owner's no is final, under each name of the repository. The owner's yes counts under this name while the
        rules stay as they were, unless they are an attack.
        Concurrent callers wait for the same answer. What was said or found about another repository under the same name
        does not count.

        Raises:
            BudgetExceeded: there is no budget to read its rules.
            NoSuchRepository: it does not exist or is not visible to us.
            Transient: GitHub or the model is briefly unavailable.

        """
        known = await self.identity.check(repo)
        if isinstance(known, AnotherRepositoryErr):
            return RepositoryVerdict(VerdictCode.ANOTHER)
        if isinstance(known, Err):
            unread = NoSuchRepository if known.kind == "not_found" else Transient
            raise unread(known.error, retry_after=known.retry_after)
        since, names = self.identity.since(repo.full_name), await self.identity.names_of(repo)
        said, *elsewhere = await self.database.run(
            lambda rows: [store.said_by_owner(rows, ASKED, name, self.identity.since(name)) for name in names]
        )
        if no := next((one for one in (said, *elsewhere) if one and one.rejected), None):
            return RepositoryVerdict(VerdictCode.OWNER_NO, at=no.created_at)
        async with self._asking:
            before = await self.database.run(lambda connection: _stored(connection, repo.full_name, since))
            kept = before if before and is_fresh(before, self.clock.since) else None
            if kept is None or kept.pushed_at != known.data.pushed_at:
                kept = await self._find_out(repo, known.data, kept, before, importance)
        if said and said.created_at >= kept.since and kept.code is not VerdictCode.ATTACK:
            return replace(kept, code=VerdictCode.OWNER_YES)
        return kept

    async def conditions(self, repo: Repo) -> tuple[Condition, ...]:
        """Return the conditions that were found last, without reading anything again."""
        since = self.identity.since(repo.full_name)
        kept = await self.database.run(lambda connection: _stored(connection, repo.full_name, since))
        return kept.conditions if kept else ()

    async def _find_out(
        self,
        repo: Repo,
        known: Repository,
        kept: RepositoryVerdict | None,
        before: RepositoryVerdict | None,
        importance: Importance,
    ) -> RepositoryVerdict:
        """Find the verdict, store it, and record what is new; `kept` still holds if no page changed.

        `before` is the last verdict, however old. Raises as `verdict` does.
        """
        found = replace(await self._found_out(repo, known, kept, importance), pushed_at=known.pushed_at)
        now = iso(self.clock.now())
        since = before.since if before and are_same_rules(before, found) else now
        found = replace(found, at=found.at or now, since=since)
        await self.database.run(lambda connection: _store(connection, repo.full_name, found))
        if kept and (kept.code, kept.path, kept.conditions) == (found.code, found.path, found.conditions):
            return found
        data = {"repo": repo.full_name, "welcome": found.welcome, "code": found.code.value, "path": found.path}
        summary = f"{repo.full_name} is {found.welcome}"
        line: LineKind | None = "social" if found.conditions or found.welcome != "welcome" else None
        line = "warn" if found.code is VerdictCode.ATTACK else line
        await self.journal.record(Entry("decision", LOOP, summary, line=line, reason=found.reason, data=data))
        return found

    async def _found_out(
        self, repo: Repo, known: Repository, kept: RepositoryVerdict | None, importance: Importance
    ) -> RepositoryVerdict:
        if known.pulls != "all" and not known.can_push:
            return RepositoryVerdict(VerdictCode.PULLS_CLOSED)
        async with self.identity.github.burst():
            pages = await self._pages(repo, known)
        digest = "" if isinstance(pages, RepositoryVerdict) else digest_of(pages)
        if kept and digest and kept.pages == digest and (kept.code is VerdictCode.MEMBER) == known.can_push:
            return kept
        read = pages if isinstance(pages, RepositoryVerdict) else await self._read(repo, pages, importance)
        is_member = known.can_push and read.code is not VerdictCode.ATTACK
        return replace(read, pages=digest, code=VerdictCode.MEMBER if is_member else read.code)

    async def _read(self, repo: Repo, pages: Sequence[RulePage], importance: Importance) -> RepositoryVerdict:
        """Return the verdict from the pages that the model chose by name. Raises as `verdict` does."""
        chosen = await self.reader.choose(names_shown(pages), importance) if len(pages) > 1 else frozenset({1})
        if chosen is None:
            return RepositoryVerdict(VerdictCode.UNREAD, "the list of its pages")
        async with self.identity.github.burst():
            texts = await self._texts([one for number, one in enumerate(pages, start=1) if number in chosen])
        if isinstance(texts, RepositoryVerdict):
            return texts
        rules: list[tuple[str, RuleFound]] = []
        for paths, text in questions(texts):
            rules.append((", ".join(dict.fromkeys(paths)), await self.reader.read(text, importance)))
            if rules[-1][1].rule in {"forbidden", "attack"}:
                break
        return verdict_of(rules)

    async def _texts(self, pages: Sequence[RulePage]) -> Sequence[tuple[str, str]] | RepositoryVerdict:
        """Return names and texts of pages, or a verdict if one cannot be read. Raises `Transient`."""
        if len(pages) > MOST_FILES:
            return RepositoryVerdict(VerdictCode.UNREAD, f"{len(pages)} files")
        texts: list[tuple[str, str]] = []
        left = MOST_CHARS
        for one in pages:
            read = await self.identity.github.contents.read(one.place, one.entry.path, max_chars=left)
            if isinstance(read, Err):
                if read.kind == "not_found":
                    continue
                if read.kind == "transient":
                    raise Transient(read.error, retry_after=read.retry_after)
            if isinstance(read, Err) or read.data.truncated:
                return RepositoryVerdict(VerdictCode.UNREAD, one.name)
            texts.append((one.name, read.data.text))
            left -= len(read.data.text)
        return texts

    async def _pages(self, repo: Repo, known: Repository) -> list[RulePage] | RepositoryVerdict:
        """Return the pages of a repository and of its owner's defaults, or a verdict if GitHub does not list them all.

        Raises `Transient`.
        """
        places = [(repo, known)]
        if repo.name.lower() != DEFAULTS:
            defaults = Repo(repo.owner, DEFAULTS)
            found = await self.identity.github.get_repository(defaults)
            if isinstance(found, Ok):
                places.append((defaults, found.data))
            elif found.kind != "not_found":
                raise Transient(found.error, retry_after=found.retry_after)
        pages: list[RulePage] = []
        for place, there in places:
            listed = await self.identity.github.contents.tree(place, there.default_branch)
            if isinstance(listed, Ok):
                if listed.data.truncated:
                    return RepositoryVerdict(VerdictCode.UNREAD, "more than 100,000 files")
                pages += pages_of(repo, place, listed.data)
            elif listed.kind not in _EMPTY:
                raise Transient(listed.error, retry_after=listed.retry_after)
        return nearest(pages)


def _stored(connection: sqlite3.Connection, repo: str, since: str) -> RepositoryVerdict | None:
    """Return the stored verdict on a repository, if it is of `since` or later and known to this version."""
    query = (
        "SELECT code, conditions, path, at, pages, pushed_at, since FROM repository_verdicts WHERE repo = ? AND at >= ?"
    )
    row = connection.execute(query, (repo, since)).fetchone()
    if row is None or row[0] not in {code.value for code in VerdictCode}:
        return None
    code, conditions, path, at, pages, pushed_at, since = map(str, row)
    asked = tuple(Condition(**one) for one in json.loads(conditions))
    return RepositoryVerdict(VerdictCode(code), path, at, pages, pushed_at, asked, since)


def _store(connection: sqlite3.Connection, repo: str, verdict: RepositoryVerdict) -> None:
    """Store the verdict on a repository, replacing the one before."""
    conditions = json.dumps([asdict(one) for one in verdict.conditions])
    connection.execute(
        "INSERT OR REPLACE INTO repository_verdicts (repo, code, path, at, pages, pushed_at, conditions, since)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            repo,
            verdict.code.value,
            verdict.path,
            verdict.at,
            verdict.pages,
            verdict.pushed_at,
            conditions,
            verdict.since,
        ),
    )


ASK_AGAIN_S = 300.0
SAME_REPOSITORY = "same-repository"

_ON_ITS_WAY = frozenset({"held", "pending", "sending"})


@dataclass(frozen=True, slots=True)
class ForeignRepositories:
    """An `Inquiry` of the outbox about repositories that are neither ours nor the owner's, nor workspaces."""

    rules: RepositoryRules
    github: GitHub
    database: Database
    circle: Callable[[], TrustCircle]

    async def __call__(self, action: ProposedAction) -> Sequence[Verdict]:
        body = action.body
        if not isinstance(body, OnGitHub) or action.kind in NOT_IN_A_REPOSITORY or not self.github.configured:
            return ()
        known = await self.rules.identity.check(repo_of(body), follow=True)
        if isinstance(known, AnotherRepositoryErr):
            return [Verdict(SAME_REPOSITORY, "block", known.error, value=VerdictCode.ANOTHER, instead="silence")]
        repo = known.data.repo if isinstance(known, Ok) else repo_of(body)
        if action.kind not in ASKED or not self.is_foreign(repo.full_name):
            return ()
        said = [await self._welcome(repo, action)]
        if isinstance(body, PullRequestBody) and said[0].says != "block":
            said.append(await self._pulls(repo))
        return said

    def is_foreign(self, place: str) -> bool:
        """Return whether a repository, `owner/name`, is somebody else's, so that its rules are read before an act."""
        return not is_ours(place, self.circle())

    async def file_lines(self, repo: Repo) -> tuple[Condition, ...]:
        """Return the lines that somebody else's repository wants in its files with each pull request.

        Raises as `RepositoryRules.verdict` does.
        """
        if not self.is_foreign(repo.full_name):
            return ()
        found = await self.rules.verdict(repo, "commitment")
        return tuple(one for one in found.conditions if one.kind == "file")

    async def added(self, given: KnownBody, sent: object) -> list[str]:
        """Return the lines added to an act because its repository asks for them, as far as known here."""
        if not isinstance(given, OnGitHub) or not self.is_foreign(given.repo):
            return []
        asked = await self.rules.conditions(repo_of(given))
        before, after = ("\n".join(getattr(one, name, "") for name in ("title", "body")) for one in (given, sent))
        return [one.text for one in asked if one.kind != "file" and one.text in after and one.text not in before]

    async def _welcome(self, repo: Repo, action: ProposedAction) -> Verdict:
        """Return whether the act is accepted there, with the text that the repository asks for."""
        name, by_owner = WELCOME.name, action.by_owner
        try:
            found = await self.rules.verdict(repo, "owner" if by_owner else "commitment")
        except (BudgetExceeded, Transient) as error:
            if by_owner or isinstance(error, NoSuchRepository):
                return Verdict(name, reason="the owner asked for it" if by_owner else f"the act will tell: {error}")
            return _later(name, str(error), error.retry_after)
        body, code = with_conditions(action.body, found.conditions), found.code.value
        if (
            isinstance(body, PullRequestBody)
            and not body.task
            and (files := [one.path for one in found.conditions if one.path])
        ):
            # NOTE(self): only the work on a task adds lines to files.
            reason = f"{found.reason}, but for {', '.join(files)}, which its branch may lack"
            return Verdict(name, "hold", reason, value=code, body=body)
        if by_owner:
            asked = f"; {found.reason}" if body != action.body else ""
            return Verdict(name, reason=f"the owner asked for it{asked}", body=body)
        if found.welcome == "unwelcome":
            reason = f"{repo.full_name}: {found.reason}"
            waits = action.is_for_owner and found.code is VerdictCode.OWNER_NO
            return Verdict(
                name, "hold" if waits else "block", reason, value=code, instead=None if waits else WELCOME.instead
            )
        # NOTE(self): nobody but the owner can tell whether such a line does harm, or is a command to a program.
        is_new = bool(found.conditions) and found.code is not VerdictCode.OWNER_YES
        says: Literal["pass", "hold"] = "hold" if found.welcome == "unclear" or is_new else "pass"
        return Verdict(name, says, found.reason, value=code, body=body)

    async def _pulls(self, repo: Repo) -> Verdict:
        """Return whether another pull request of ours may be opened; waiting ones count too."""
        name = PULLS_PER_REPOSITORY.name
        try:
            if (await self.github.get_repository(repo)).or_raise().can_push:
                return Verdict(name, reason="our account may push there")
            written = (await self.github.list_issues(repo, creator=self.github.login)).or_raise()
        except (Unable, Undone) as unread:
            return _later(name, unread.err.error, unread.err.retry_after)
        is_open = sum(one.is_pull_request for one in written)
        return held_to(PULLS_PER_REPOSITORY, is_open + await self._on_their_way(repo))

    async def _on_their_way(self, repo: Repo) -> int:
        place = repo.full_name.lower()
        made = await self.database.run(lambda rows: store.at_place(rows, ["pull_request"], place))
        return sum(one.state in _ON_ITS_WAY for one in made)


def _later(rule: str, reason: str, retry_after: float | None) -> Verdict:
    return Verdict(rule, "block", reason, instead="later", retry_in_s=retry_after or ASK_AGAIN_S)
