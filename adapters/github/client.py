"""GitHub as one account sees it: the adapter's public face.

Every operation answers `ApiResult`; only our own bugs raise. No policy and no deduplication here, and nothing that
survives a crash: GitHub is the record. PyGithub forms the requests, `adapters/web` carries them.

Files and branches. Every operation answers `ApiResult`; only our own bugs raise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from adapters.github.checks import empty, moment_of, no_time, too_long, wrong_branch, wrong_path, wrong_place
from adapters.github.history import BodyEdit, Labelling, LostEdit
from adapters.github.notifications import Notifications
from adapters.github.places import Accounts, PlaceSearch, Repositories
from adapters.github.pulls import PullRequests
from adapters.github.sending import (
    API_VERSION,
    RATE_LIMIT,
    USER_AGENT,
    KeptAnswer,
    OutgoingRequest,
    RequestSender,
    enough_for_loops,
    error_from_response,
    unreadable,
)
from adapters.github.types import (
    PAGE,
    Branch,
    Comment,
    ContentEntry,
    FileChange,
    FileContent,
    GitCommit,
    GitHubPerson,
    GitRef,
    Issue,
    IssueState,
    Reaction,
    Repo,
    Repository,
    TokenKind,
    TokenRights,
    Tree,
    fit_body,
    fit_title,
    is_login,
    is_sha,
    is_token,
)
from adapters.web.client import Failure
from adapters.web.spacing import BackOff, RateLimitStatus, RequestGate
from common.clock import Clock
from common.constants import GITHUB_MIN_SPACING_MS
from common.github_address import github_address
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    import httpx

    from adapters.github.calls import Caller


MAX_FILE_CHARS = 5_000
MAX_WRITTEN_BYTES = 1_000_000
MAX_BRANCHES = 1_000


class Contents:
    """Files of a repository, one by one; `ref` and `branch` are the default branch where they are ""."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller

    async def list(self, repo: Repo, path: str = "", *, ref: str = "") -> ApiResult[tuple[ContentEntry, ...]]:
        """What a folder holds, the root where `path` is ""; of a file, the file alone."""
        what = f"list {path or 'the files'} in {repo.full_name}"
        if wrong := wrong_place(what, repo) or (wrong_path(what, path) if path else None) or _wrong_ref(what, ref):
            return wrong
        return await self._caller().read(what, lambda ask: ask.contents.list(repo, path, ref=ref))

    async def tree(self, repo: Repo, ref: str) -> ApiResult[Tree]:
        """Return all files on a branch, in one request; of more than 100,000 GitHub leaves some out."""
        what = f"list all files in {repo.full_name}"
        if wrong := wrong_place(what, repo) or empty(what, "ref", ref) or _wrong_ref(what, ref):
            return wrong
        return await self._caller().read(what, lambda ask: ask.contents.tree(repo, ref))

    async def read(
        self, repo: Repo, path: str, *, ref: str = "", max_chars: int = MAX_FILE_CHARS
    ) -> ApiResult[FileContent]:
        """The text of a file, at most `max_chars` characters of it; of kind `invalid` for a folder and for no text."""
        what = f"read {path} in {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_path(what, path) or _wrong_ref(what, ref):
            return wrong
        return await self._caller().read(what, lambda ask: ask.contents.read(repo, path, ref=ref, max_chars=max_chars))

    async def write(
        self, repo: Repo, path: str, text: str, *, message: str, branch: str = "", sha: str = ""
    ) -> ApiResult[FileChange]:
        """Write a file in one commit.

        Args:
            repo: where.
            path: from the root.
            text: the whole file.
            message: of the commit.
            branch: that gets the commit.
            sha: of the file that is overwritten, "" for a new one. The error is of kind `conflict` where another stands
                there.

        """
        what = f"write {path} in {repo.full_name}"
        wrong = wrong_place(what, repo) or wrong_path(what, path) or empty(what, "message", message)
        if wrong := wrong or _wrong_ref(what, branch) or _wrong_sha(what, sha):
            return wrong
        if len(text.encode()) > MAX_WRITTEN_BYTES:
            return Err(f"could not {what}: it has more than {MAX_WRITTEN_BYTES:,} bytes", kind="invalid")
        return await self._caller().write(
            what, lambda ask: ask.contents.write(repo, path, text=text, message=message, branch=branch, sha=sha)
        )

    async def delete(self, repo: Repo, path: str, *, message: str, sha: str, branch: str = "") -> ApiResult[FileChange]:
        """Delete a file in one commit; `sha` as in `write`."""
        what = f"delete {path} in {repo.full_name}"
        wrong = wrong_place(what, repo) or wrong_path(what, path) or empty(what, "message", message)
        if wrong := wrong or empty(what, "sha", sha) or _wrong_ref(what, branch) or _wrong_sha(what, sha):
            return wrong
        return await self._caller().write(
            what, lambda ask: ask.contents.delete(repo, path, message=message, branch=branch, sha=sha)
        )


class Refs:
    """Branches of a repository. Making one is atomic: of several who try, one succeeds."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller

    async def branches(self, repo: Repo, *, limit: int = MAX_BRANCHES) -> ApiResult[tuple[Branch, ...]]:
        """All branches, by name."""
        what = f"list the branches of {repo.full_name}"
        if wrong := wrong_place(what, repo):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.branches(repo, limit=limit))

    async def get(self, repo: Repo, branch: str) -> ApiResult[GitRef]:
        """One branch; of kind `not_found` where there is none."""
        what = f"read the branch {branch} of {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_branch(what, branch):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.get(repo, branch))

    async def matching(self, repo: Repo, prefix: str, *, limit: int = MAX_BRANCHES) -> ApiResult[tuple[GitRef, ...]]:
        """The branches whose name begins with `prefix`, for example `soul/`."""
        what = f"list the branches {prefix}… of {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_branch(what, prefix.removesuffix("/")):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.matching(repo, prefix, limit=limit))

    async def create(self, repo: Repo, branch: str, sha: str) -> ApiResult[GitRef]:
        """Make a branch at the commit `sha`. The error is of kind `conflict` where it exists: somebody was first."""
        what = f"create the branch {branch} in {repo.full_name}"
        wrong = wrong_place(what, repo) or wrong_branch(what, branch) or empty(what, "commit", sha)
        if wrong := wrong or _wrong_sha(what, sha):
            return wrong
        return await self._caller().write(what, lambda ask: ask.refs.create(repo, branch, sha))

    async def commit(self, repo: Repo, sha: str) -> ApiResult[GitCommit]:
        """One commit, with its tree and message."""
        what = f"read the commit {sha} of {repo.full_name}"
        if wrong := wrong_place(what, repo) or empty(what, "commit", sha) or _wrong_sha(what, sha):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.commit(repo, sha))

    async def create_empty_commit(
        self, repo: Repo, parent: GitCommit, *, message: str, name: str, email: str, date: str
    ) -> ApiResult[GitCommit]:
        """Store a commit upon `parent` that changes nothing, on no branch.

        Its author and its date (ISO-8601 UTC) are given, so that the same call stores the same commit again.
        """
        what = f"store a commit in {repo.full_name}"
        if wrong := wrong_place(what, repo) or empty(what, "message", message) or _wrong_sha(what, parent.sha):
            return wrong
        commit = GitCommit("", parent.tree, message, (parent.sha,))
        author = {"name": name, "email": email, "date": date}
        return await self._caller().write(what, lambda ask: ask.refs.create_commit(repo, commit, author=author))

    async def delete(self, repo: Repo, branch: str) -> ApiResult[None]:
        """Delete a branch; one that is gone already is a success."""
        what = f"delete the branch {branch} of {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_branch(what, branch):
            return wrong
        done = await self._caller().write(what, lambda ask: ask.refs.delete(repo, branch))
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" and done.status == _GONE else done


_GONE = 422


def _wrong_ref(what: str, ref: str) -> Err | None:
    return wrong_branch(what, ref) if ref else None


def _wrong_sha(what: str, sha: str) -> Err | None:
    return None if not sha or is_sha(sha) else Err(f"could not {what}: no commit or file has that sha", kind="invalid")


READ_TIMEOUT_S = 15.0
_OK = 200
_PREFIXES: dict[str, TokenKind] = {"ghp_": "classic", "github_pat_": "fine_grained", "ghs_": "app", "ghu_": "app"}
MAX_COMMENTS = 10_000
"""The most comments that are read of one issue, oldest first."""
MAX_EVENTS = 1_000


class GitHub:
    """One account at one service.

    Issues, comments and accounts are asked for here; the rest by `pulls`, `contents`, `refs`, `repositories`,
    `accounts`, `notifications` and `search`, which share its budget, its spacing and its bursts.

    Args:
        api_url: where the service answers, for example `https://api.github.com`. No other origin is spoken to.
        login: the account's name; "" for nobody.
        token: its token; "" for nobody, who may read what is public.
        clock: time for spacing and limits.
        min_spacing_s: the least number of seconds between two requests.
        timeout_s: how long the service may be silent while it answers.
        write_block_reason: asked right before each write leaves: why it must not, or "".
        on_response: told of each request whether the service answered as one does that is well, and if not, how.
        on_lost_edit: told of each edit of somebody else that a write of ours replaced for good.
        transport: makes what the requests travel by.

    """

    def __init__(
        self,
        *,
        api_url: str,
        login: str,
        token: str,
        clock: Clock,
        min_spacing_s: float = GITHUB_MIN_SPACING_MS / 1000,
        timeout_s: float = READ_TIMEOUT_S,
        write_block_reason: Callable[[], str] = str,
        on_response: Callable[[bool, str], None] | None = None,
        on_lost_edit: Callable[[LostEdit], None] | None = None,
        transport: Callable[[], httpx.AsyncBaseTransport],
    ) -> None:
        self._login = login
        self._token = token
        self._api_url = api_url
        self.address = github_address(api_url)
        self.on_lost_edit = on_lost_edit
        self._clock = clock
        self._gate = RequestGate(
            clock=clock,
            rules=RATE_LIMIT,
            spacing_s=min_spacing_s,
            write_block_reason=write_block_reason,
            on_response=on_response,
        )
        self._sender = RequestSender(
            api_url=api_url, transport=transport(), clock=clock, timeout_s=timeout_s, gate=self._gate
        )
        self.pulls = PullRequests(lambda: self._caller)
        self.contents = Contents(lambda: self._caller)
        self.refs = Refs(lambda: self._caller)
        self.repositories = Repositories(lambda: self._caller)
        self.accounts = Accounts(lambda: self._caller)
        self.notifications = Notifications(lambda: self._caller)
        self.search = PlaceSearch(lambda: self._caller)

    @cached_property
    def _caller(self) -> Caller:
        from adapters.github.calls import Caller  # noqa: PLC0415 - loads PyGithub, which takes half a second

        return Caller(
            api_url=self._api_url, token=self._token, clock=self._clock, spacing=self._gate.spacing, sender=self._sender
        )

    def page(self, repo: Repo) -> str:
        """Return where people read a repository."""
        return f"{self.address}/{repo.full_name}"

    @property
    def login(self) -> str:
        """The account's name, as it was set."""
        return self._login

    @property
    def configured(self) -> bool:
        """Whether there is an account to write as."""
        return bool(self._login and self._token)

    @property
    def rate(self) -> RateLimitStatus:
        """What is left of the hour's requests, as far as we know."""
        return self._gate.budget.status

    def back_off(self) -> BackOff | None:
        """How long and why nothing is sent; None while requests may leave."""
        return self._gate.budget.back_off()

    @property
    def enough_for_loops(self) -> bool:
        """Whether enough requests are left for a loop to begin its round; a loop that finds too few skips it."""
        return enough_for_loops(self.rate)

    def burst(self) -> AbstractAsyncContextManager[None]:
        """`async with github.burst():` calls inside follow each other at once, and nothing comes between."""
        return self._gate.spacing.burst()

    async def pause(self, seconds: float) -> None:
        """Let time pass; within a burst other requests may leave meanwhile, and the burst goes on after them."""
        await self._gate.spacing.pause(seconds)

    async def create_issue(
        self, repo: Repo, title: str, body: str, *, labels: Sequence[str] = (), assignees: Sequence[str] = ()
    ) -> ApiResult[Issue]:
        """Open an issue, assigned to ourselves if to nobody else; title and body are cut to what GitHub takes."""
        what = f"create an issue in {repo.full_name}"
        if wrong := wrong_place(what, repo) or empty(what, "title", title):
            return wrong
        who = tuple(assignees) or ((self._login,) if self._login else ())
        short, text = fit_title(title), fit_body(body)
        return await self._caller.write(
            what, lambda ask: ask.create_issue(repo, short, text, labels=labels, assignees=who)
        )

    async def list_issues(
        self,
        repo: Repo,
        *,
        state: Literal["open", "closed", "all"] = "open",
        creator: str = "",
        labels: Sequence[str] = (),
        since: str = "",
        limit: int = 100,
    ) -> ApiResult[tuple[Issue, ...]]:
        """The newest issues, pull requests among them.

        Args:
            repo: where.
            state: of the issues.
            creator: only this account's.
            labels: only those that have all of them.
            since: only those changed since, ISO-8601.
            limit: the most to return, at least 1; each hundred costs a request.

        """
        what = f"list the issues of {repo.full_name}"
        moment = moment_of(since)
        if wrong := wrong_place(what, repo) or no_time(what, since, moment):
            return wrong
        return await self._caller.read(
            what,
            lambda ask: ask.list_issues(repo, state=state, creator=creator, labels=labels, since=moment, limit=limit),
            per_page=min(max(limit, 1), PAGE),
        )

    async def get_issue(self, repo: Repo, number: int) -> ApiResult[Issue]:
        """One issue or pull request."""
        what = f"read {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller.read(what, lambda ask: ask.get_issue(repo, number))

    async def update_issue(
        self,
        repo: Repo,
        number: int,
        *,
        title: str = "",
        body: str = "",
        state: IssueState | None = None,
        labels: Sequence[str] | None = None,
        assignees: Sequence[str] | None = None,
    ) -> ApiResult[Issue]:
        """Change what is given. An empty title or body is left as it stands; labels and assignees are replaced.

        A body that others may edit meanwhile is written by `rewriting`. It is never cut, as what people wrote stands in
        it: one that is too long for GitHub changes nothing.
        """
        what = f"update {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number) or too_long(what, body):
            return wrong
        short, text = fit_title(title), body if body.strip() else ""
        if not (short or text or state) and labels is None and assignees is None:
            return Err(f"could not {what}: there is nothing to change", kind="invalid")
        return await self._caller.write(
            what,
            lambda ask: ask.update_issue(
                repo, number, title=short, body=text, state=state, labels=labels, assignees=assignees
            ),
        )

    async def list_comments(self, repo: Repo, number: int, *, since: str = "") -> ApiResult[tuple[Comment, ...]]:
        """All comments, oldest first; `since` (ISO-8601) leaves only those written or changed since."""
        what = f"read the comments of {repo.full_name}#{number}"
        moment = moment_of(since)
        if wrong := wrong_place(what, repo, number) or no_time(what, since, moment):
            return wrong
        return await self._caller.read(
            what, lambda ask: ask.list_comments(repo, number, since=moment, limit=MAX_COMMENTS)
        )

    async def create_comment(self, repo: Repo, number: int, body: str) -> ApiResult[Comment]:
        """Comment on an issue or pull request; the body is cut to what GitHub takes."""
        what = f"comment on {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number) or empty(what, "text", body):
            return wrong
        text = fit_body(body)
        return await self._caller.write(what, lambda ask: ask.create_comment(repo, number, text))

    async def get_comment(self, repo: Repo, comment_id: int) -> ApiResult[Comment]:
        """One comment on an issue or pull request."""
        what = f"read a comment in {repo.full_name}"
        if wrong := wrong_place(what, repo, comment_id):
            return wrong
        return await self._caller.read(what, lambda ask: ask.get_comment(repo, comment_id))

    async def edits(self, node_id: str) -> ApiResult[tuple[BodyEdit, ...]]:
        """The newest versions of the text of an issue or comment, newest first; none if it was never edited."""
        return await self._caller.read("read who edited a text", lambda ask: ask.edits(node_id))

    async def edit_comment(self, repo: Repo, comment_id: int, body: str) -> ApiResult[Comment]:
        """Give a comment another text, cut to what GitHub takes; its author may, and who may push."""
        what = f"change a comment in {repo.full_name}"
        if wrong := wrong_place(what, repo, comment_id) or empty(what, "text", body):
            return wrong
        text = fit_body(body)
        return await self._caller.write(what, lambda ask: ask.edit_comment(repo, comment_id, text))

    async def delete_comment(self, repo: Repo, comment_id: int) -> ApiResult[None]:
        """Take a comment away; one that is gone already is a success."""
        what = f"delete a comment in {repo.full_name}"
        if wrong := wrong_place(what, repo, comment_id):
            return wrong
        done = await self._caller.write(what, lambda ask: ask.delete_comment(repo, comment_id))
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" else done

    async def add_reaction(self, repo: Repo, number: int, reaction: Reaction) -> ApiResult[int]:
        """React to an issue; the reaction's id. The same reaction again is the same one."""
        what = f"react to {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller.write(what, lambda ask: ask.add_reaction(repo, number, reaction))

    async def add_assignees(self, repo: Repo, number: int, logins: Sequence[str]) -> ApiResult[Issue]:
        """Assign more accounts; GitHub passes over those that cannot be assigned."""
        what = f"assign {', '.join(logins)} to {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number) or empty(what, "account", "".join(logins)):
            return wrong
        return await self._caller.write(what, lambda ask: ask.add_assignees(repo, number, logins))

    async def remove_assignee(self, repo: Repo, number: int, login: str) -> ApiResult[Issue]:
        """Unassign an account, unless it is the only one; the issue as it stands then."""
        what = f"unassign {login} from {repo.full_name}#{number}"
        async with self.burst():
            now = await self.get_issue(repo, number)
            if isinstance(now, Err):
                return now
            if {name.lower() for name in now.data.assignees} <= {login.lower()}:
                return now
            return await self._caller.write(what, lambda ask: ask.remove_assignee(repo, number, login))

    async def labellings(self, repo: Repo, number: int) -> ApiResult[tuple[Labelling, ...]]:
        """Who put which labels on an issue, and took them away, oldest first."""
        what = f"read who labelled {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller.read(what, lambda ask: ask.places.labellings(repo, number, limit=MAX_EVENTS))

    async def add_labels(self, repo: Repo, number: int, labels: Sequence[str]) -> ApiResult[tuple[str, ...]]:
        """Add labels to an issue; all that it has then. Labels that the repository does not know become known."""
        what = f"label {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number) or empty(what, "label", "".join(labels)):
            return wrong
        return await self._caller.write(what, lambda ask: ask.add_labels(repo, number, labels))

    async def remove_label(self, repo: Repo, number: int, label: str) -> ApiResult[None]:
        """Take a label from an issue; one that it does not have is a success."""
        what = f"take a label from {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number) or empty(what, "label", label):
            return wrong
        done = await self._caller.write(what, lambda ask: ask.remove_label(repo, number, label))
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" else done

    async def get_repository(self, repo: Repo) -> ApiResult[Repository]:
        """A repository, if it is there and we may see it."""
        what = f"read the repository {repo.full_name}"
        if wrong := wrong_place(what, repo):
            return wrong
        return await self._caller.read(what, lambda ask: ask.get_repository(repo))

    async def get_user(self, login: str) -> ApiResult[GitHubPerson]:
        """Who somebody is."""
        what = f"read the account {login}"
        if not is_login(login):
            return Err(f"could not {what}: no account can be called that", kind="invalid")
        return await self._caller.read(what, lambda ask: ask.get_user(login))

    async def rights(self) -> ApiResult[TokenRights]:
        """Return whose the token is, of which kind, and the scopes that GitHub tells of it.

        It asks without PyGithub, as every start asks it and many lives need nothing more of GitHub.
        """
        what = "check the GitHub token"
        if not self._token:
            return Err(f"could not {what}: there is none (AGENT_GITHUB_TOKEN)", kind="auth")
        if not is_token(self._token):
            return Err(f"could not {what}: AGENT_GITHUB_TOKEN has characters that no token has", kind="auth")
        headers = {
            "Authorization": f"Bearer {self._token}",
            "User-Agent": USER_AGENT,
            "X-GitHub-Api-Version": API_VERSION,
        }
        outgoing = OutgoingRequest("GET", f"{self._api_url.rstrip('/')}/user", headers, None, what)
        try:
            async with self._gate.spacing.permit() as permit:
                answer = await self._sender.send(outgoing, permit)
        except Failure as failure:
            return failure.err
        return _rights_in(answer, what, self._token, self._clock.now())

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()


def _rights_in(answer: KeptAnswer, what: str, token: str, now: datetime) -> ApiResult[TokenRights]:
    try:
        told = json.loads(answer.text)
    except ValueError:
        told = None
    if answer.status != _OK:
        return error_from_response(answer.status, told, answer.headers, what=what, write=False, now=now)
    login = told.get("login") if isinstance(told, dict) else None
    if not isinstance(login, str) or not login:
        return unreadable(what, write=False)
    scopes = answer.headers.get("x-oauth-scopes")
    known = next((kind for prefix, kind in _PREFIXES.items() if token.startswith(prefix)), None)
    kind: TokenKind = known or ("unknown" if scopes is None else "classic")
    granted = tuple(one for part in (scopes or "").split(",") if (one := part.strip()))
    return Ok(TokenRights(login, kind, granted, told["id"] if isinstance(told.get("id"), int) else 0))
