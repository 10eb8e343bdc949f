"""Finds out whether a repository of somebody else wants us, before the first word there, and keeps the answer.

A crash in between costs one more reading. While GitHub cannot be read nothing is decided, so nothing is said.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from adapters.github.types import ContentEntry, Repo, Repository
from common.clock import Clock, iso
from common.errors import Transient
from common.result import Err, Ok
from modules.runtime.console import LineKind
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Importance
from modules.services.outbox import store as outbox_rows
from modules.services.outbox.github_bodies import GITHUB_KINDS, GitHubKind
from modules.services.outbox.repository_identity import AnotherRepositoryErr, RepositoryIdentity
from modules.services.repository_rules.policy import (
    DEFAULTS,
    FOLDERS,
    MOST_CHARS,
    MOST_FILES,
    files_to_read,
    is_fresh,
    questions,
    template_folders,
    verdict_of,
)
from modules.services.repository_rules.reader import RuleReader
from modules.services.repository_rules.types import RepositoryVerdict, Rule, VerdictCode

LOOP = "repository-rules"

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
            if kept and is_fresh(kept, self.clock.since):
                return kept
            return await self._find_out(repo, known.data, importance)

    async def _find_out(self, repo: Repo, known: Repository, importance: Importance) -> RepositoryVerdict:
        """Find it out, keep it, and tell the journal. Raises as `verdict` does."""
        found = replace(await self._found_out(repo, known, importance), at=iso(self.clock.now()))
        await self.database.run(lambda connection: _store(connection, repo.full_name, found))
        data = {"repo": repo.full_name, "welcome": found.welcome, "code": found.code.value, "path": found.path}
        summary = f"{repo.full_name} is {found.welcome}"
        line: LineKind | None = None if found.welcome == "welcome" else "social"
        await self.journal.record(Entry("decision", LOOP, summary, line=line, reason=found.reason, data=data))
        return found

    async def _found_out(self, repo: Repo, known: Repository, importance: Importance) -> RepositoryVerdict:
        if known.can_push:
            return RepositoryVerdict(VerdictCode.MEMBER)
        if known.pulls != "all":
            return RepositoryVerdict(VerdictCode.PULLS_CLOSED)
        async with self.identity.github.burst():
            texts = await self._texts(repo)
        if isinstance(texts, RepositoryVerdict):
            return texts
        rules: list[tuple[str, Rule]] = []
        for paths, text in questions(texts):
            rules.append((", ".join(dict.fromkeys(paths)), await self.reader.read(text, importance)))
            if rules[-1][1] == "forbidden":
                break
        return RepositoryVerdict(*verdict_of(rules))

    async def _texts(self, repo: Repo) -> Sequence[tuple[str, str]] | RepositoryVerdict:
        """All that GitHub shows there to whoever wants to take part, by path; a verdict where some of it is unread.

        Raises `Transient`.
        """
        places = [repo] if repo.name.lower() == DEFAULTS else [repo, Repo(repo.owner, DEFAULTS)]
        found = [(place, file.path) for place in places for file in files_to_read(await self._listed(place))]
        if len(found) > MOST_FILES:
            return RepositoryVerdict(VerdictCode.UNREAD, f"{len(found)} files")
        texts: list[tuple[str, str]] = []
        left = MOST_CHARS
        for place, path in found:
            name = path if place == repo else f"{place.full_name}/{path}"
            read = await self.identity.github.contents.read(place, path, max_chars=left)
            if isinstance(read, Err):
                if read.kind == "not_found":
                    continue
                if read.kind == "transient":
                    raise Transient(read.error, retry_after=read.retry_after)
            if isinstance(read, Err) or read.data.truncated:
                return RepositoryVerdict(VerdictCode.UNREAD, name)
            texts.append((name, read.data.text))
            left -= len(read.data.text)
        return texts

    async def _listed(self, repo: Repo) -> list[ContentEntry]:
        """What the folders hold in which such files stand. Raises `Transient`."""
        listed: list[ContentEntry] = []
        folders = list(FOLDERS)
        for folder in folders:
            if folder in FOLDERS[1:] and not any(one.path == folder and one.type == "dir" for one in listed):
                continue
            found = await self.identity.github.contents.list(repo, folder)
            if isinstance(found, Ok):
                listed += found.data
                folders += template_folders(found.data) if folder in FOLDERS else []
            elif found.kind != "not_found":
                raise Transient(found.error, retry_after=found.retry_after)
        return listed


def _owner_word(connection: sqlite3.Connection, repo: Repo, since: str) -> RepositoryVerdict | None:
    """What the owner said last, since a moment, of something of ours there; None if nothing."""
    said = outbox_rows.newest_of_owner(connection, ASKED, repo.full_name, since)
    if said is None:
        return None
    return RepositoryVerdict(VerdictCode.OWNER_NO if said.rejected else VerdictCode.OWNER_YES, at=said.created_at)


def _stored(connection: sqlite3.Connection, repo: str, since: str) -> RepositoryVerdict | None:
    """Return the verdict on a repository, if there is one of `since` or later that this version knows."""
    query = "SELECT code, path, at FROM repository_verdicts WHERE repo = ? AND at >= ?"
    row = connection.execute(query, (repo, since)).fetchone()
    if row is None or row[0] not in {code.value for code in VerdictCode}:
        return None
    return RepositoryVerdict(VerdictCode(row[0]), str(row[1]), str(row[2]))


def _store(connection: sqlite3.Connection, repo: str, verdict: RepositoryVerdict) -> None:
    """Keep the verdict on a repository in place of the one before."""
    connection.execute(
        "INSERT OR REPLACE INTO repository_verdicts (repo, code, path, at) VALUES (?, ?, ?, ?)",
        (repo, verdict.code.value, verdict.path, verdict.at),
    )
