"""The workspace of the organisation that the owner set: found, watched, and made where there is none.

Making it is an intent of the outbox, so that a crash makes no second one. A life that ends between the answer of GitHub
and the watch list finds the workspace at its next start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.types import Repo, Repository
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering
from common.text.strings import create_slug
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_bodies import RepositoryBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.workspaces.addresses import WORKSPACE_PREFIX
from modules.services.workspaces.finding import WorkspaceFinder, is_workspace_name, precedence
from modules.services.workspaces.watched import WatchedWorkspaces

NAME_CHARS = 60
DESCRIPTION_CHARS = 300
FILLED_WITHIN_S = 30.0
_LOOKS_AGAIN_S = 3.0

CreationCode = Literal["created", "exists", "unknown", "elsewhere", "refused", "held", "waits", "failed"]


@dataclass(frozen=True, slots=True)
class WorkspaceRequest:
    """A workspace that is asked for, and what the outbox is told of who asked; `thread_uri` is where, "" if nowhere."""

    name: str
    description: str = ""
    org: str = ""
    thread_uri: str = ""
    cause_id: str | None = None
    by_owner: bool = False
    own_words: bool = False
    hold: str = ""


@dataclass(frozen=True, slots=True)
class Creation:
    """What came of asking for a workspace.

    `created` and `exists` name the `workspace`. `unknown`: whether there is one could not be seen, so none is made.
    `elsewhere`: that organisation is not the one that the owner set. `held` waits for approval, `waits` has not
    left yet, `refused` and `failed` will not leave; `reason` says why.
    """

    code: CreationCode
    workspace: Repository | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OwnWorkspace:
    """One workspace for each organisation: that of `org`, "" where the owner set none. `finder` finds others, too.

    `template` is the repository of which a new one is made.
    """

    org: str
    template: str
    github: GitHub
    outbox: Outbox
    watched: WatchedWorkspaces
    finder: WorkspaceFinder
    journal: Journal
    clock: Clock

    async def watch_existing(self) -> None:
        """Watch the workspace of the organisation, if none of it is watched. What cannot be seen is looked for later.

        One that the owner had unwatched is left alone.

        Raises:
            StorageError: the watch list cannot be written.

        """
        known = (one for one in self.watched.all() if not one.requested)
        if not self.org or any(one.owner.lower() == self.org.lower() for one in known):
            return
        found = (await self.finder.find_existing_workspace(self.org)).or_else(None)
        if found and not self.watched.stopped_at(found.repo) and self.watched.watch(found.repo):
            await self._tell_joined(found)

    async def create_workspace(self, request: WorkspaceRequest) -> Creation:
        """Make the workspace of the organisation from the template, and watch it. Nothing is made where there is one.

        Raises:
            StorageError: the watch list cannot be written.

        """
        org = request.org or self.org
        if not self.org or org.lower() != self.org.lower():
            return Creation("elsewhere", reason=self.org)
        found = await self.finder.find_existing_workspace(org, anew=True)
        if isinstance(found, Err):
            return Creation("unknown", reason=found.error)
        if found.data:
            return await self._join(found.data, request.thread_uri)
        repo = Repo(org, workspace_name(request.name))
        submitted = await self.outbox.submit(_proposed(request, repo, self.template))
        if not submitted.accepted:
            return Creation("refused", reason=submitted.reason)
        if submitted.held:
            return Creation("held", reason=submitted.reason)
        intent = await self.outbox.settled(submitted.intent.id)
        return await self._outcome(intent, repo, request.thread_uri)

    async def _outcome(self, intent: Intent | None, repo: Repo, thread_uri: str) -> Creation:
        if intent is None or intent.state in {"pending", "sending", "held"}:
            return Creation("waits", reason=(intent.error if intent else None) or "")
        if intent.state != "done":
            return await self._another_or_failed(intent, repo.owner, thread_uri)
        first = await self._first_workspace(repo)
        if isinstance(first, Err):
            return Creation("waits", reason=first.error)
        if first.data.repo != repo:
            await self._tell_surplus(repo, first.data)
            return await self._join(first.data, thread_uri)
        self.watched.watch(repo, thread_uri or None)
        made = await self._filled(repo)
        return Creation("waits", reason=made.error) if isinstance(made, Err) else Creation("created", made.data)

    @answering
    async def _first_workspace(self, repo: Repo) -> ApiResult[Repository]:
        """Return which workspace stays: `repo`, that we have made, or one that somebody made at the same moment.

        Where that cannot be seen none is watched: the next look at the workspaces finds the one that stays.
        """
        made = (await self.github.get_repository(repo)).or_raise()
        found = (await self.finder.find_existing_workspace(repo.owner, anew=True)).or_raise()
        # NOTE(self): what GitHub has just made may be missing from its list.
        return Ok(min(made, found or made, key=precedence))

    async def _join(self, workspace: Repository, thread_uri: str) -> Creation:
        """Watch a workspace that is there."""
        if self.watched.watch(workspace.repo, thread_uri or None):
            await self._tell_joined(workspace)
        return Creation("exists", workspace)

    async def _tell_joined(self, workspace: Repository) -> None:
        summary = f"The workspace of {workspace.repo.owner} is watched from now on"
        data = {"act": "workspace-joined", "repo": workspace.full_name, "about": workspace.full_name.lower()}
        entry = Entry("life", "workspaces", summary, line="info", reason=workspace.html_url, data=data)
        await self.journal.record(entry)

    async def _tell_surplus(self, repo: Repo, stays: Repository) -> None:
        """Tell the owner of the workspace that we have made in vain; no SOUL deletes a repository."""
        summary = f"{repo.full_name} was made at the same moment as {stays.full_name}, which stays; you can delete it"
        await self.journal.record(Entry("life", "workspaces", summary, line="warn", reason=self.github.page(repo)))

    async def _another_or_failed(self, intent: Intent, org: str, thread_uri: str) -> Creation:
        """Watch the workspace that somebody else made meanwhile, where that is why ours was not made."""
        found = await self.finder.find_existing_workspace(org, anew=True)
        if isinstance(found, Ok) and found.data:
            return await self._join(found.data, thread_uri)
        return Creation("failed", reason=intent.error or intent.state)

    async def _filled(self, repo: Repo) -> ApiResult[Repository]:
        """Return the repository once GitHub has copied the template into it, which it does after it has answered."""
        end = self.clock.monotonic() + FILLED_WITHIN_S
        while True:
            read = await self.github.get_repository(repo)
            if isinstance(read, Ok):
                branches = await self.github.refs.branches(repo, limit=1)
                if isinstance(branches, Ok) and branches.data:
                    return read
            if self.clock.monotonic() >= end:
                return read if isinstance(read, Err) else Err(f"{repo.full_name} is still empty", kind="transient")
            await self.clock.sleep(_LOOKS_AGAIN_S)


def workspace_name(name: str) -> str:
    """Return the name of the repository for a workspace that is called so."""
    slug = create_slug(name)
    slug = slug.removeprefix(WORKSPACE_PREFIX) if is_workspace_name(slug) else slug
    return f"{WORKSPACE_PREFIX}{slug[:NAME_CHARS].strip('-')}"


def _proposed(request: WorkspaceRequest, repo: Repo, template: str) -> ProposedAction:
    body = RepositoryBody(
        repo=repo.full_name,
        template=template,
        description=" ".join(request.description.split())[:DESCRIPTION_CHARS],
        only_one=WORKSPACE_PREFIX,
    )
    return ProposedAction(
        body,
        part=f"workspace:{repo.full_name.lower()}",
        cause_id=request.cause_id,
        by_owner=request.by_owner,
        own_words=request.own_words,
        hold=request.hold,
    )
