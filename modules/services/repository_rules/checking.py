"""Finds out whether a repository of somebody else wants us, before the first word there, and keeps the answer.

A crash in between costs one more reading. While GitHub cannot be read nothing is decided, so nothing is said.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from adapters.github.types import Repo, Repository
from common.clock import Clock, iso
from common.errors import Transient
from common.importance import Importance
from common.line_kind import LineKind
from common.result import Err, Ok
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox import store as outbox_rows
from modules.services.outbox.github_bodies import GITHUB_KINDS, GitHubKind
from modules.services.outbox.repository_identity import AnotherRepositoryErr, RepositoryIdentity
from modules.services.repository_rules.policy import (
    DEFAULTS,
    MOST_CHARS,
    MOST_FILES,
    RulePage,
    digest_of,
    is_fresh,
    names_shown,
    nearest,
    pages_of,
    questions,
    verdict_of,
)
from modules.services.repository_rules.reader import RuleReader
from modules.services.repository_rules.types import RepositoryVerdict, Rule, VerdictCode

LOOP = "repository-rules"

_EMPTY = frozenset({"not_found", "conflict"})
"""How GitHub answers who lists the files of a repository without a commit."""

_QUIET: frozenset[GitHubKind] = frozenset({"star", "account_follow", "comment_deletion", "repository"})
ASKED: frozenset[GitHubKind] = frozenset(GITHUB_KINDS) - _QUIET
"""What others there see of us; a star, what takes our own words back, and a repository of our own are none of it."""


class NoSuchRepository(Transient):
    """There is no such repository, or none that we may see."""


@dataclass(frozen=True, slots=True)
class RepositoryRules:
    """Says of a repository whether it wants us."""

    identity: RepositoryIdentity
    reader: RuleReader
    database: Database
    journal: Journal
    clock: Clock
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False, compare=False)

    async def verdict(self, repo: Repo, importance: Importance) -> RepositoryVerdict:
        """Return whether a repository wants us. The owner's own word on an act there goes before everything else.

        Whoever asks while it is being found out waits for that answer. What was said or found out of another
        repository under the same name does not count.

        Raises:
            BudgetExceeded: there is no budget to read its rules.
            NoSuchRepository: it is not there.
            Transient: GitHub or the model is briefly unable.

        """
        known = await self.identity.check(repo)
        if isinstance(known, AnotherRepositoryErr):
            return RepositoryVerdict(VerdictCode.ANOTHER)
        if isinstance(known, Err):
            unread = NoSuchRepository if known.kind == "not_found" else Transient
            raise unread(known.error, retry_after=known.retry_after)
        since = self.identity.since(repo)
        if said := await self.database.run(lambda connection: _owner_word(connection, repo, since)):
            return said
        async with self._asking:
            kept = await self.database.run(lambda connection: _stored(connection, repo.full_name, since))
            if kept and not is_fresh(kept, self.clock.since):
                kept = None
            if kept and kept.pushed_at == known.data.pushed_at:
                return kept
            return await self._find_out(repo, known.data, kept, importance)

    async def _find_out(
        self, repo: Repo, known: Repository, kept: RepositoryVerdict | None, importance: Importance
    ) -> RepositoryVerdict:
        """Find it out, keep it, and tell the journal what is new; `kept` still holds where no page changed.

        Raises as `verdict` does.
        """
        found = replace(await self._found_out(repo, known, kept, importance), pushed_at=known.pushed_at)
        if not found.at:
            found = replace(found, at=iso(self.clock.now()))
        await self.database.run(lambda connection: _store(connection, repo.full_name, found))
        if kept and (kept.code, kept.path) == (found.code, found.path):
            return found
        data = {"repo": repo.full_name, "welcome": found.welcome, "code": found.code.value, "path": found.path}
        summary = f"{repo.full_name} is {found.welcome}"
        line: LineKind | None = None if found.welcome == "welcome" else "social"
        await self.journal.record(Entry("decision", LOOP, summary, line=line, reason=found.reason, data=data))
        return found

    async def _found_out(
        self, repo: Repo, known: Repository, kept: RepositoryVerdict | None, importance: Importance
    ) -> RepositoryVerdict:
        if known.can_push:
            return RepositoryVerdict(VerdictCode.MEMBER)
        if known.pulls != "all":
            return RepositoryVerdict(VerdictCode.PULLS_CLOSED)
        async with self.identity.github.burst():
            pages = await self._pages(repo, known)
        if isinstance(pages, RepositoryVerdict):
            return pages
        digest = digest_of(pages)
        if kept and kept.pages == digest:
            return kept
        return replace(await self._read(repo, pages, importance), pages=digest)

    async def _read(self, repo: Repo, pages: Sequence[RulePage], importance: Importance) -> RepositoryVerdict:
        """Return what the pages say that the model chose by their names. Raises as `verdict` does."""
        chosen = await self.reader.choose(names_shown(pages), importance) if len(pages) > 1 else frozenset({1})
        if chosen is None:
            return RepositoryVerdict(VerdictCode.UNREAD, "the list of its pages")
        async with self.identity.github.burst():
            texts = await self._texts([one for number, one in enumerate(pages, start=1) if number in chosen])
        if isinstance(texts, RepositoryVerdict):
            return texts
        rules: list[tuple[str, Rule]] = []
        for paths, text in questions(texts):
            rules.append((", ".join(dict.fromkeys(paths)), await self.reader.read(text, importance)))
            if rules[-1][1] == "forbidden":
                break
        return RepositoryVerdict(*verdict_of(rules))

    async def _texts(self, pages: Sequence[RulePage]) -> Sequence[tuple[str, str]] | RepositoryVerdict:
        """Return the texts of pages by their names; a verdict where one cannot be read. Raises `Transient`."""
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
        """Return the pages of a repository and of its owner's defaults; a verdict where GitHub does not list them all.

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


def _owner_word(connection: sqlite3.Connection, repo: Repo, since: str) -> RepositoryVerdict | None:
    """What the owner said last, since a moment, of something of ours there; None if nothing."""
    said = outbox_rows.newest_of_owner(connection, ASKED, repo.full_name, since)
    if said is None:
        return None
    return RepositoryVerdict(VerdictCode.OWNER_NO if said.rejected else VerdictCode.OWNER_YES, at=said.created_at)


def _stored(connection: sqlite3.Connection, repo: str, since: str) -> RepositoryVerdict | None:
    """Return the verdict on a repository, if there is one of `since` or later that this version knows."""
    query = "SELECT code, path, at, pages, pushed_at FROM repository_verdicts WHERE repo = ? AND at >= ?"
    row = connection.execute(query, (repo, since)).fetchone()
    if row is None or row[0] not in {code.value for code in VerdictCode}:
        return None
    return RepositoryVerdict(VerdictCode(row[0]), *map(str, row[1:]))


def _store(connection: sqlite3.Connection, repo: str, verdict: RepositoryVerdict) -> None:
    """Keep the verdict on a repository in place of the one before."""
    connection.execute(
        "INSERT OR REPLACE INTO repository_verdicts (repo, code, path, at, pages, pushed_at) VALUES (?, ?, ?, ?, ?, ?)",
        (repo, verdict.code.value, verdict.path, verdict.at, verdict.pages, verdict.pushed_at),
    )
