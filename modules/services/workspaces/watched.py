"""Finds, creates and stores the workspaces that the SOUL watches (`.memory/watched_workspaces.json`).

They are the workspace of the organisation that the owner set, and the repositories in which the owner, or the host of a
room that the owner set, asked for work by name. A failed search is never taken for a missing workspace. The file is
written atomically after each change and kept across versions; fields of other programs in an entry stay.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from adapters.github.client import GitHub
from adapters.github.places import MAX_LISTED
from adapters.github.types import Repo, Repository
from common.clock import Clock, iso, parse_iso, parse_iso_or_none
from common.constants import OWNER_CAUSE
from common.result import ApiResult, Err, Ok, answering
from common.text.strings import create_slug
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.services.outbox.github_bodies import IssueBody, RepositoryBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.pinned_names import PinnedNames
from modules.services.workspaces.addresses import WORKSPACE_PREFIX

KNOWN_FOR_S = 600.0


class WorkspaceFinder:
    """Searches the repositories of organisations; results are valid for ten minutes and not stored on disk."""

    def __init__(self, github: GitHub, clock: Clock) -> None:
        self._github = github
        self._clock = clock
        self._found: dict[str, tuple[Repository | None, float]] = {}

    @answering
    async def find_existing_workspace(self, org: str, *, anew: bool = False) -> ApiResult[Repository | None]:
        """Return the first repository of an organisation that is named as a workspace, or None.

        Each hundred repositories cost a request. With `anew` earlier results are ignored.
        """
        known = self._found.get(org.lower())
        if known and not anew and self._clock.monotonic() - known[1] < KNOWN_FOR_S:
            return Ok(known[0])
        listed = (await self._github.repositories.of_organization(org, direction="asc")).or_raise()
        named = (one for one in listed if is_workspace_name(one.repo.name))
        found = min(named, key=precedence, default=None)
        if found is None and len(listed) >= MAX_LISTED:
            return Err(f"{org} has more repositories than can be looked through ({MAX_LISTED})", kind="invalid")
        self._found[org.lower()] = (found, self._clock.monotonic())
        return Ok(found)

    @answering
    async def get_workspace_url(self, org: str) -> ApiResult[str]:
        """Return the address of the workspace of an organisation; "" if it has none."""
        found = (await self.find_existing_workspace(org)).or_raise()
        return Ok(found.html_url if found else "")


def precedence(one: Repository) -> tuple[str, str]:
    """Return the key that orders the workspaces of an organisation: oldest first, within one second by name.

    All who search the same repositories find the same one at any time.
    """
    return one.created_at, one.full_name.lower()


def is_workspace_name(name: str) -> bool:
    """Return whether this is the name of a workspace."""
    return name.lower().startswith(WORKSPACE_PREFIX) and len(name) > len(WORKSPACE_PREFIX)


MOST_WATCHED = 50
NO_ROOM = f"{MOST_WATCHED} repositories are watched already; `/unwatch` makes room"
GONE_FOR = timedelta(days=7)
"""The time for which a workspace may be missing before it is no longer watched."""
_STOPPED = "unwatchedAt"
_ORGANISATION = "organisation"


class WatchedWorkspace(FileRecord):
    """A watched workspace.

    `discovered_in_thread` is the root of the thread on Bluesky in which it was first named. `active_plan_issues` are
    the numbers of its open plans at `last_polled`, when they were last read. `last_plan_synthesis_attempt` and
    `last_health_check_attempt` are the times of the last tries to plan and to check its work. Issues that nobody
    touched after `no_work_before` hold no work, as the model said when it read them. `in_vain` counts the tries
    after the first that led to nothing over open issues with the digest `in_vain_over`. `finished_issue_number` is the
    issue that says that it is finished, or None. After such an issue was closed, no other is made before
    `no_sentinel_before`. `undoable_told` are the plans of which the owner was told that they have tasks which this SOUL
    cannot do. `requested` marks a repository that is watched because the owner, or the host of a room, asked for work
    in it: only that work is done there.
    """

    owner: str
    repo: str
    url: str
    discovered_at: Moment
    discovered_in_thread: str | None = None
    last_polled: Moment | None = None
    active_plan_issues: tuple[int, ...] = ()
    last_plan_synthesis_attempt: Moment | None = None
    last_health_check_attempt: Moment | None = None
    no_work_before: Moment | None = None
    in_vain_over: str = ""
    in_vain: int = 0
    finished_issue_number: int | None = None
    no_sentinel_before: Moment | None = None
    undoable_told: tuple[int, ...] = ()
    requested: bool = False


class WorkspaceChange(TypedDict, total=False):
    """The changeable fields of a watched workspace, as in `WatchedWorkspace`."""

    last_polled: datetime
    active_plan_issues: tuple[int, ...]
    last_plan_synthesis_attempt: datetime | None
    last_health_check_attempt: datetime | None
    no_work_before: datetime | None
    in_vain_over: str
    in_vain: int
    finished_issue_number: int | None
    no_sentinel_before: datetime | None
    undoable_told: tuple[int, ...]


class WatchedWorkspaces:
    """Stores the watched workspaces. `notice` is a line for the owner if the file was not as expected.

    `address` is the base address of the repositories' pages.
    """

    def __init__(self, path: Path, clock: Clock, address: str) -> None:
        self._clock = clock
        self._address = address
        self._file = RecordFile(path, "workspaces", WatchedWorkspace)
        self.notice = self._file.notice
        found: dict[str, WatchedWorkspace] = {}
        for one in self.all():
            found.setdefault(_key(Repo(one.owner, one.repo)), one)
        self._file.records = found

    def all(self) -> list[WatchedWorkspace]:
        """Return all watched workspaces, oldest discovery first."""
        return sorted(self._file.records.values(), key=lambda one: one.discovered_at)

    def get(self, repo: Repo) -> WatchedWorkspace | None:
        """Return the entry of a repository, or None if it is not watched."""
        return self._file.records.get(_key(repo))

    def names(self) -> frozenset[str]:
        """Return the watched repositories as `owner/name` in lower case. May be called from any thread."""
        return frozenset(self._file.records)

    def default(self) -> Repo | None:
        """Return the only workspace, or the only requested repository if there is no workspace; None for several."""
        watched = self.all()
        meant = [one for one in watched if not one.requested] or watched
        return Repo(meant[0].owner, meant[0].repo) if len(meant) == 1 else None

    def watch(
        self,
        repo: Repo,
        thread_uri: str | None = None,
        *,
        requested: bool = False,
        ordered_at: datetime | None = None,
    ) -> bool:
        """Watch a workspace and store the thread that named it; return whether it is new.

        A workspace that is watched already changes only if its thread was unknown. Beyond `MOST_WATCHED`, a new one
        takes the place of one that is finished, or is not added (`has_room_for`). `requested` is stored for a new one.
        One that the owner unwatched is watched again only if they ordered it later, at `ordered_at`. Raises
        `StorageError`.
        """
        known, stopped_at = self.get(repo), self.stopped_at(repo)
        if known is None and stopped_at and (ordered_at is None or ordered_at < stopped_at):
            return False
        if not self.has_room_for(repo):
            return False
        if known is None and len(self._file.records) >= MOST_WATCHED:
            finished = self._finished()[0]
            del self._file.records[_key(Repo(finished.owner, finished.repo))]
        if known and (known.discovered_in_thread or not thread_uri):
            return False
        self._file.records[_key(repo)] = (
            known.replace(discovered_in_thread=thread_uri)
            if known
            else WatchedWorkspace(
                owner=repo.owner,
                repo=repo.name,
                url=f"{self._address}/{repo.full_name}",
                discovered_at=self._clock.now(),
                discovered_in_thread=thread_uri,
                requested=requested,
            )
        )
        self._file.save()
        return known is None

    def has_room_for(self, repo: Repo) -> bool:
        """Return whether a repository is watched, or could be."""
        return len(self._file.records) < MOST_WATCHED or self.get(repo) is not None or bool(self._finished())

    def _finished(self) -> list[WatchedWorkspace]:
        return [one for one in self.all() if one.finished_issue_number is not None]

    def unwatch(self, repo: Repo) -> bool:
        """Stop watching a repository and store the time; return whether it was watched. Raises `StorageError`."""
        known = self._file.records.pop(_key(repo), None)
        stopped = {**self._stopped(), _key(repo): self._clock.now()}
        newest = sorted(stopped.items(), key=lambda one: one[1])[-MOST_WATCHED:]
        self._file.rest[_STOPPED] = {name: iso(at) for name, at in newest}
        self._file.save()
        return known is not None

    def take_organisation(self, org: str) -> list[WatchedWorkspace]:
        """Store the organisation that is set; stop watching what only the former one led to, and return that.

        A workspace that was named in a thread stays. Raises `StorageError`.
        """
        former = str(self._file.rest.get(_ORGANISATION, "")).lower()
        if former == org.lower():
            return []
        plain = (one for one in self.all() if not (one.requested or one.discovered_in_thread))
        left = [one for one in plain if one.owner.lower() == former]
        for one in left:
            del self._file.records[_key(Repo(one.owner, one.repo))]
        self._file.rest[_ORGANISATION] = org
        self._file.save()
        return left

    def stopped_at(self, repo: Repo) -> datetime | None:
        """Return when a repository was last unwatched; None if never, or if it is not among the last `MOST_WATCHED`."""
        return self._stopped().get(_key(repo))

    def _stopped(self) -> dict[str, datetime]:
        kept = self._file.rest.get(_STOPPED)
        found = kept.items() if isinstance(kept, dict) else ()
        return {name: at for name, text in found if (at := parse_iso_or_none(text if isinstance(text, str) else ""))}

    def unwatch_gone(self, repo: Repo) -> bool:
        """Stop watching a workspace that GitHub does not find; return whether that was done.

        A workspace that was read within a week, or is finished, stays. Raises `StorageError`.
        """
        known = self.get(repo)
        if known is None or known.finished_issue_number is not None:
            return False
        if self._clock.since(known.last_polled or known.discovered_at) < GONE_FOR:
            return False
        del self._file.records[_key(repo)]
        self._file.save()
        return True

    def rename(self, repo: Repo, new: Repo) -> None:
        """Watch a workspace under its new name, unless that one is watched already. Raises `StorageError`."""
        url = f"{self._address}/{new.full_name}"
        known = self._file.records.pop(_key(repo)).replace(owner=new.owner, repo=new.name, url=url)
        self._file.records.setdefault(_key(new), known)
        self._file.save()

    def note_plans(self, repo: Repo, numbers: Sequence[int]) -> None:
        """Store the open plans of a workspace, read just now. Raises `StorageError`."""
        if self.get(repo):
            now = self._clock.now()
            self._file.rest["lastFullPoll"] = iso(now)
            self.note(repo, last_polled=now, active_plan_issues=tuple(numbers))

    def note(self, repo: Repo, **changes: Unpack[WorkspaceChange]) -> None:
        """Store changes of a workspace, if it is watched. None removes a value.

        Raises `StorageError`.
        """
        if known := self.get(repo):
            self._file.records[_key(repo)] = known.replace(**changes)
            self._file.save()

    def note_in_vain(self, repo: Repo, over: str) -> bool:
        """Count a try that led to nothing over open issues with this digest; return whether it is the first.

        Raises `StorageError`.
        """
        known = self.get(repo)
        is_first = known is None or known.in_vain_over != over
        self.note(repo, in_vain_over=over, in_vain=0 if known is None or is_first else known.in_vain + 1)
        return is_first

    def one_save(self) -> AbstractContextManager[None]:
        """Return a context in which many changes are written once, on leaving."""
        return self._file.one_save()

    def is_thread_of_one(self, root_uri: str) -> bool:
        """Return whether a workspace was first named in the thread under this root."""
        return any(one.discovered_in_thread == root_uri for one in self._file.records.values())


def _key(repo: Repo) -> str:
    return repo.full_name.lower()


NAME_CHARS = 60
DESCRIPTION_CHARS = 300
FILLED_WITHIN_S = 30.0
_LOOKS_AGAIN_S = 3.0

CreationCode = Literal["created", "exists", "unknown", "elsewhere", "refused", "held", "waits", "failed"]


@dataclass(frozen=True, slots=True)
class WorkspaceRequest:
    """A requested workspace and who asked, for the outbox; `thread_uri` is where, "" if nowhere."""

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
    """The result of a request for a workspace.

    `created` and `exists` name the `workspace`. `unknown`: it could not be read whether there is one, so none is made.
    `elsewhere`: that organisation is not the one that the owner set. `held` waits for approval, `waits` has not left
    yet, `refused` and `failed` will not leave; `reason` says why.
    """

    code: CreationCode
    workspace: Repository | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OwnWorkspace:
    """Keeps one workspace for each organisation: that of `org`, "" if the owner set none. `finder` also finds others.

    A new one is made from the repository `template`.
    """

    org: str
    template: str
    github: GitHub
    outbox: Outbox
    watched: WatchedWorkspaces
    finder: WorkspaceFinder
    names: PinnedNames
    journal: Journal
    clock: Clock

    async def watch_existing(self) -> None:
        """Watch the workspace of the organisation, if none of it is watched. What cannot be read is tried again later.

        A workspace that the owner unwatched is left alone, also under a new name; one of an organisation that was set
        before is unwatched.

        Raises:
            StorageError: the watch list cannot be written.

        """
        for one in self.watched.take_organisation(self.org):
            why = f"WORKSPACE_ORG is {self.org} now" if self.org else "WORKSPACE_ORG is not set any more"
            summary = f"{one.owner}/{one.repo} is no longer watched: {why}"
            await self.journal.record(Entry("life", "workspaces", summary, line="info", reason=one.url))
        known = (one for one in self.watched.all() if not one.requested)
        if not self.org or any(one.owner.lower() == self.org.lower() for one in known):
            return
        found = (await self.finder.find_existing_workspace(self.org)).or_else(None)
        if found is None:
            return
        await self.names.check("repository", found.full_name, str(found.id))
        names = self.names.same_as("repository", found.full_name)
        is_stopped = any(self.watched.stopped_at(Repo(*one.split("/"))) for one in names)
        if not is_stopped and self.watched.watch(found.repo):
            await self._tell_joined(found)

    async def create_workspace(self, request: WorkspaceRequest) -> Creation:
        """Create the workspace of the organisation from the template and watch it, unless there is one.

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
        await self._watch(repo, thread_uri)
        made = await self._filled(repo)
        return Creation("waits", reason=made.error) if isinstance(made, Err) else Creation("created", made.data)

    @answering
    async def _first_workspace(self, repo: Repo) -> ApiResult[Repository]:
        """Return which workspace stays: `repo`, which we made, or one that somebody else made at the same time.

        If that cannot be read, none is watched; the next look finds the one that stays.
        """
        made = (await self.github.get_repository(repo)).or_raise()
        found = (await self.finder.find_existing_workspace(repo.owner, anew=True)).or_raise()
        # NOTE(self): a repository that was just created may be missing from GitHub's list.
        return Ok(min(made, found or made, key=precedence))

    async def _join(self, workspace: Repository, thread_uri: str) -> Creation:
        """Watch an existing workspace."""
        if await self._watch(workspace.repo, thread_uri):
            await self._tell_joined(workspace)
        return Creation("exists", workspace)

    async def _watch(self, repo: Repo, thread_uri: str) -> bool:
        """Watch a workspace, or tell that there is no room; return whether it is new."""
        if not self.watched.has_room_for(repo):
            summary = f"The workspace {repo.full_name} is not watched: {NO_ROOM}"
            await self.journal.record(Entry("decision", "workspaces", summary, line="warn"))
        return self.watched.watch(repo, thread_uri or None, ordered_at=self.clock.now())

    async def _tell_joined(self, workspace: Repository) -> None:
        summary = f"The workspace of {workspace.repo.owner} is watched from now on"
        data = {"act": "workspace-joined", "repo": workspace.full_name, "about": workspace.full_name.lower()}
        entry = Entry("life", "workspaces", summary, line="info", reason=workspace.html_url, data=data)
        await self.journal.record(entry)

    async def _tell_surplus(self, repo: Repo, stays: Repository) -> None:
        """Tell the owner about a workspace of ours that is not needed; no SOUL deletes a repository."""
        summary = f"{repo.full_name} was made at the same moment as {stays.full_name}, which stays; you can delete it"
        await self.journal.record(Entry("life", "workspaces", summary, line="warn", reason=self.github.page(repo)))

    async def _another_or_failed(self, intent: Intent, org: str, thread_uri: str) -> Creation:
        """Watch the workspace that somebody else made meanwhile, if that is why ours failed."""
        found = await self.finder.find_existing_workspace(org, anew=True)
        if isinstance(found, Ok) and found.data:
            return await self._join(found.data, thread_uri)
        return Creation("failed", reason=intent.error or intent.state)

    async def _filled(self, repo: Repo) -> ApiResult[Repository]:
        """Return the repository once GitHub, after its answer, has copied the template into it."""
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
    """Return the name of the repository for a workspace with this name."""
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
        """Watch a repository in which work was requested; an `Err` says in one line why it cannot be watched.

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
        if self.watched.watch(found.data.repo, requested=True, ordered_at=self.clock.now()):
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
        elif not self.watched.has_room_for(repo):
            problem = NO_ROOM
        return Err(f"{found.full_name} is not watched: {problem}", kind="invalid") if problem else Ok(found)

    async def catch_up(self) -> None:
        """Watch the repositories of requests that were carried out since the last look.

        A failure is told once per request. A request older than the last `unwatch` no longer counts.

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
    """Return whether an issue was opened because the owner asked in private, or the host of a room did.

    The host must have named the repository. What the owner approved counts as requested by the owner.
    """
    body = intent.body
    if intent.state != "done" or not isinstance(body, IssueBody):
        return False
    in_private = intent.by_owner and (intent.cause_id or "").partition(":")[0] == OWNER_CAUSE
    return in_private or (body.source == "space" and body.host_named)
