"""Watches the repositories in which the owner, or the host of a room that the owner set, asked for work by name.

What counts as a request is an issue or a plan that was opened for it: the outbox keeps who asked, so a restart, or an
approval that comes later, loses no request. Text by anybody else never adds a repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from adapters.github.client import GitHub
from adapters.github.types import Repo, Repository
from common.clock import Clock, parse_iso
from common.constants import OWNER_CAUSE
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_bodies import IssueBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from modules.services.workspaces.watched import MOST_WATCHED, WatchedWorkspaces

_LOOKED_BACK = timedelta(days=7)
_FINAL = frozenset({"invalid", "not_found"})


@dataclass(frozen=True, slots=True)
class RequestedRepositories:
    """Adds repositories to the watch list if the token may push to them."""

    github: GitHub
    watched: WatchedWorkspaces
    outbox: Outbox
    journal: Journal
    clock: Clock

    async def watch(self, repo: Repo) -> ApiResult[None]:
        """Watch a repository in which work was asked for; an `Err` says in one line why it cannot be watched.

        Unless that may change by itself, `catch_up` does not try it again for the same request.

        Raises:
            StorageError: the watch list cannot be written.

        """
        if self.watched.get(repo):
            return Ok(None)
        found = await self._watchable(repo)
        if isinstance(found, Err):
            if found.kind in _FINAL:
                self.watched.unwatch(repo)
            return found
        name = found.data.full_name
        if self.watched.watch(found.data.repo, requested=True):
            summary = f"{name} is watched from now on, as work was asked for there; `/unwatch {name}` ends that"
            await self.journal.record(Entry("life", "workspaces", summary, line="info", reason=found.data.html_url))
        return Ok(None)

    @answering
    async def _watchable(self, repo: Repo) -> ApiResult[Repository]:
        """Return the repository, if GitHub lets us push there and the watch list has room."""
        found = (await self.github.get_repository(repo)).or_raise()
        problem = ""
        if found.archived:
            problem = "it is archived"
        elif not found.can_push:
            problem = f"@{self.github.login} has no push access"
        elif len(self.watched.names()) >= MOST_WATCHED:
            problem = f"{MOST_WATCHED} repositories are watched already"
        return Err(f"{found.full_name} is not watched: {problem}", kind="invalid") if problem else Ok(found)

    async def catch_up(self) -> None:
        """Watch the repositories of requests that were carried out since the last look.

        A request that cannot be met is told once. One that is older than the last `unwatch` no longer counts.

        Raises:
            StorageError: the watch list cannot be written.

        """
        for intent in await self.outbox.since(["issue"], self.clock.now() - _LOOKED_BACK):
            if not _is_request(intent) or not isinstance(intent.body, IssueBody):
                continue
            owner, _, name = intent.body.repo.partition("/")
            repo = Repo(owner, name)
            stopped_at = self.watched.stopped_at(repo)
            if self.watched.get(repo) or (stopped_at and parse_iso(intent.created_at) <= stopped_at):
                continue
            answer = await self.watch(repo)
            if isinstance(answer, Err) and answer.kind in _FINAL:
                entry = Entry("decision", "workspaces", answer.error, line="warn", trigger_uri=intent.result_uri)
                await self.journal.record(entry)


def _is_request(intent: Intent) -> bool:
    """Return whether an issue was opened because the owner asked for it in private, or the host of a room did.

    The host must have named the repository. What the owner approved counts as asked for by the owner.
    """
    body = intent.body
    if intent.state != "done" or not isinstance(body, IssueBody):
        return False
    in_private = intent.by_owner and (intent.cause_id or "").partition(":")[0] == OWNER_CAUSE
    return in_private or (body.source == "space" and body.host_named)
