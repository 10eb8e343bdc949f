"""GitHub as one account sees it: the public interface of the adapter.

Every operation returns `ApiResult`; only our own bugs raise. There is no policy and no deduplication here, and nothing
is kept across a crash: GitHub is the record. PyGithub builds the requests, `adapters/web` sends them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from adapters.github import convert
from adapters.github.checks import empty, moment_of, no_time, too_long, wrong_place
from adapters.github.history import BodyEdit, Labelling, LostEdit
from adapters.github.notifications import Notifications
from adapters.github.places import Accounts, Contents, PlaceSearch, Refs, Repositories
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
    Account,
    Comment,
    GitHubPerson,
    Issue,
    IssueState,
    Reaction,
    Repo,
    Repository,
    TokenKind,
    TokenRights,
    first,
    fit_body,
    fit_title,
    is_login,
    is_token,
    repo_path,
)
from adapters.web.client import Failure
from adapters.web.spacing import BackOff, RateLimitStatus, RequestGate
from common.clock import Clock, parse_iso
from common.constants import GITHUB_MIN_SPACING_MS
from common.git_names import github_address
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    import httpx

    from adapters.github.calls import Ask, Caller


_EDITS = """query Edits($id: ID!, $most: Int!) {
  node(id: $id) { ... on Comment { userContentEdits(first: $most) { nodes { diff editedAt editor { login } } } } }
}"""
_MOST_EDITS = 20
_LABEL_EVENTS = frozenset({"labeled", "unlabeled"})
READ_TIMEOUT_S = 15.0
_OK = 200
_PREFIXES: dict[str, TokenKind] = {"ghp_": "classic", "github_pat_": "fine_grained", "ghs_": "app", "ghu_": "app"}
MAX_COMMENTS = 10_000
"""The most comments of one issue that are read, oldest first."""
MAX_EVENTS = 1_000


class GitHub:
    """One account at one service.

    Issues, comments and accounts are handled here; the rest in `pulls`, `contents`, `refs`, `repositories`, `accounts`,
    `notifications` and `search`, which share its budget, its spacing and its bursts.

    Args:
        api_url: the API, for example `https://api.github.com`. No other origin is contacted.
        login: the account's name as set, until `rights` learns the present one; "" for nobody.
        token: its token; "" for nobody, who may read what is public.
        clock: time for spacing and limits.
        min_spacing_s: the least number of seconds between two requests.
        timeout_s: how long the service may be silent while it answers.
        write_block_reason: called right before each write leaves; returns why it must not leave, or "".
        on_response: called after each request with whether the service works, and if not, what it answered.
        on_lost_edit: called with each edit by somebody else that a write of ours replaced for good.
        on_login: called with the present name of the account, whenever GitHub tells it.
        transport: makes the transport of the requests.

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
        on_login: Callable[[str], None] = lambda _: None,
        transport: Callable[[], httpx.AsyncBaseTransport],
    ) -> None:
        self.login_as_set = self._login = login
        self._token = token
        self._api_url = api_url
        self.address = github_address(api_url)
        self.on_lost_edit = on_lost_edit
        self._on_login = on_login
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
        self.pulls = PullRequests(self._caller)
        self.contents = Contents(self._caller)
        self.refs = Refs(self._caller)
        self.repositories = Repositories(self._caller)
        self.accounts = Accounts(self._caller)
        self.notifications = Notifications(self._caller)
        self.search = PlaceSearch(self._caller)

    def _caller(self, *wrong: Err | None) -> Caller:
        """Return a `Caller`; if a check found something `wrong`, it sends nothing and returns that."""
        from adapters.github.calls import Caller  # noqa: PLC0415 - loads PyGithub, which takes half a second

        return Caller(
            next(filter(None, wrong), None),
            api_url=self._api_url,
            token=self._token,
            clock=self._clock,
            spacing=self._gate.spacing,
            sender=self._sender,
        )

    def page(self, repo: Repo) -> str:
        """Return the URL of a repository's page."""
        return f"{self.address}/{repo.full_name}"

    @property
    def login(self) -> str:
        """The name of the token's account; until GitHub has told it, the one that was set."""
        return self._login

    @property
    def configured(self) -> bool:
        """Whether there is an account to write as."""
        return bool(self._login and self._token)

    @property
    def rate(self) -> RateLimitStatus:
        """The remaining requests of the hour, as far as known."""
        return self._gate.budget.status

    def back_off(self) -> BackOff | None:
        """Return for how long and why nothing is sent; None while requests may leave."""
        return self._gate.budget.back_off()

    @property
    def enough_for_loops(self) -> bool:
        """Whether enough requests are left for a loop to start a round; otherwise it skips the round."""
        return enough_for_loops(self.rate)

    def burst(self) -> AbstractAsyncContextManager[None]:
        """Send the requests of all calls inside `async with` one after the other, with no other request in between."""
        return self._gate.spacing.burst()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`; within a burst other requests may leave meanwhile, and the burst continues after them."""
        await self._gate.spacing.pause(seconds)

    async def create_issue(
        self, repo: Repo, title: str, body: str, *, labels: Sequence[str] = (), assignees: Sequence[str] = ()
    ) -> ApiResult[Issue]:
        """Open an issue, assigned to ourselves if to nobody else; title and body are cut to GitHub's limits."""
        what = f"create an issue in {repo.full_name}"
        who = tuple(assignees) or ((self._login,) if self._login else ())
        short, text = fit_title(title), fit_body(body)
        return await self._caller(wrong_place(what, repo), empty(what, "title", title)).write(
            what,
            lambda ask: convert.issue(
                ask.repository(repo).create_issue(
                    short, body=text, labels=ask.given(list(labels)), assignees=ask.given(list(who))
                )
            ),
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
        pulls: bool = True,
    ) -> ApiResult[tuple[Issue, ...]]:
        """Return the newest issues, pull requests among them unless `pulls` is False.

        Args:
            repo: the repository.
            state: only issues in this state.
            creator: only this account's.
            labels: only those that have all of these.
            since: only those changed since, ISO-8601.
            limit: the most to return, at least 1; each hundred, with the pull requests passed over, costs a request.
            pulls: whether pull requests are returned, and count.

        """
        what = f"list the issues of {repo.full_name}"
        moment = moment_of(since)

        def work(ask: Ask) -> tuple[Issue, ...]:
            found = ask.repository(repo).get_issues(
                state=state,
                sort="created",
                direction="desc",
                creator=ask.given(ask.user(creator) if creator else None),
                labels=ask.given(list(labels)),
                since=ask.given(moment),
            )
            issues = (one for one in map(convert.issue, found) if pulls or not one.is_pull_request)
            return tuple(first(limit, issues))

        return await self._caller(wrong_place(what, repo), no_time(what, since, moment)).read(
            what, work, per_page=min(max(limit, 1), PAGE) if pulls else PAGE
        )

    async def get_issue(self, repo: Repo, number: int) -> ApiResult[Issue]:
        """Return one issue or pull request."""
        what = f"read {repo.full_name}#{number}"
        return await self._caller(wrong_place(what, repo, number)).read(
            what, lambda ask: convert.issue(ask.issue(repo, number).complete())
        )

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
        """Change the given fields. An empty title or body stays unchanged; labels and assignees are replaced.

        A body that others may edit at the same time is written with `rewriting`. It is never cut, since it holds what
        people wrote: one that is too long for GitHub changes nothing.
        """
        what = f"update {repo.full_name}#{number}"
        short, text = fit_title(title), body if body.strip() else ""
        if not (short or text or state) and labels is None and assignees is None:
            return Err(f"could not {what}: there is nothing to change", kind="invalid")

        def work(ask: Ask) -> Issue:
            issue = ask.issue(repo, number)
            issue.edit(
                title=ask.given(short),
                body=ask.given(text),
                state=ask.given(state),
                labels=ask.given(None) if labels is None else list(labels),
                assignees=ask.given(None) if assignees is None else list(assignees),
            )
            return convert.issue(issue)

        return await self._caller(wrong_place(what, repo, number), too_long(what, body)).write(what, work)

    async def list_comments(self, repo: Repo, number: int, *, since: str = "") -> ApiResult[tuple[Comment, ...]]:
        """Return all comments, oldest first; with `since` (ISO-8601) only those written or changed since."""
        what = f"read the comments of {repo.full_name}#{number}"
        moment = moment_of(since)

        def work(ask: Ask) -> tuple[Comment, ...]:
            found = ask.issue(repo, number).get_comments(since=ask.given(moment))
            return tuple(map(convert.comment, first(MAX_COMMENTS, found)))

        return await self._caller(wrong_place(what, repo, number), no_time(what, since, moment)).read(what, work)

    async def create_comment(self, repo: Repo, number: int, body: str) -> ApiResult[Comment]:
        """Comment on an issue or pull request; the body is cut to GitHub's limit."""
        what = f"comment on {repo.full_name}#{number}"
        text = fit_body(body)
        return await self._caller(wrong_place(what, repo, number), empty(what, "text", body)).write(
            what, lambda ask: convert.comment(ask.issue(repo, number).create_comment(text))
        )

    async def get_comment(self, repo: Repo, comment_id: int) -> ApiResult[Comment]:
        """Return one comment on an issue or pull request."""
        what = f"read a comment in {repo.full_name}"
        return await self._caller(wrong_place(what, repo, comment_id)).read(
            what, lambda ask: convert.comment(ask.comment(repo, comment_id).complete())
        )

    async def edits(self, node_id: str) -> ApiResult[tuple[BodyEdit, ...]]:
        """Return the newest versions of the text of an issue or comment, newest first; none if it was never edited."""

        def work(ask: Ask) -> tuple[BodyEdit, ...]:
            _, answer = ask.requester.graphql_query(_EDITS, {"id": node_id, "most": _MOST_EDITS})
            found = answer["data"]["node"]["userContentEdits"]["nodes"]
            # NOTE(self): the field is called `diff`, and holds the whole text of the version.
            return tuple(
                BodyEdit(one["diff"], (one["editor"] or {}).get("login", ""), one["editedAt"]) for one in found
            )

        return await self._caller().read("read who edited a text", work)

    async def edit_comment(self, repo: Repo, comment_id: int, body: str) -> ApiResult[Comment]:
        """Replace the text of a comment, cut to GitHub's limit; its author may do this, and anybody who may push."""
        what = f"change a comment in {repo.full_name}"

        def work(ask: Ask) -> Comment:
            comment = ask.comment(repo, comment_id)
            comment.edit(fit_body(body))
            return convert.comment(comment)

        return await self._caller(wrong_place(what, repo, comment_id), empty(what, "text", body)).write(what, work)

    async def delete_comment(self, repo: Repo, comment_id: int) -> ApiResult[None]:
        """Delete a comment; it is a success if it is already gone."""
        what = f"delete a comment in {repo.full_name}"
        done = await self._caller(wrong_place(what, repo, comment_id)).write(
            what, lambda ask: ask.comment(repo, comment_id).delete()
        )
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" else done

    async def add_reaction(self, repo: Repo, number: int, reaction: Reaction) -> ApiResult[int]:
        """React to an issue; return the reaction's id. Repeating the same reaction returns the same one."""
        what = f"react to {repo.full_name}#{number}"
        return await self._caller(wrong_place(what, repo, number)).write(
            what, lambda ask: convert.number(ask.issue(repo, number).create_reaction(reaction).id)
        )

    async def add_assignees(self, repo: Repo, number: int, logins: Sequence[str]) -> ApiResult[Issue]:
        """Assign more accounts; GitHub ignores those that cannot be assigned."""
        what = f"assign {', '.join(logins)} to {repo.full_name}#{number}"

        def work(ask: Ask) -> Issue:
            issue = ask.issue(repo, number)
            issue.add_to_assignees(*logins)
            return convert.issue(issue)

        return await self._caller(wrong_place(what, repo, number), empty(what, "account", "".join(logins))).write(
            what, work
        )

    async def remove_assignee(self, repo: Repo, number: int, login: str) -> ApiResult[Issue]:
        """Unassign an account, unless it is the only one; return the resulting issue."""
        what = f"unassign {login} from {repo.full_name}#{number}"

        def work(ask: Ask) -> Issue:
            issue = ask.issue(repo, number)
            issue.remove_from_assignees(login)
            return convert.issue(issue)

        async with self.burst():
            now = await self.get_issue(repo, number)
            if isinstance(now, Err):
                return now
            if {name.lower() for name in now.data.assignees} <= {login.lower()}:
                return now
            return await self._caller().write(what, work)

    async def labellings(self, repo: Repo, number: int) -> ApiResult[tuple[Labelling, ...]]:
        """Return who added and removed which labels on an issue, oldest first."""
        what = f"read who labelled {repo.full_name}#{number}"

        def work(ask: Ask) -> tuple[Labelling, ...]:
            found = first(MAX_EVENTS, ask.pages(f"{repo_path(repo)}/issues/{number}/events"))
            return tuple(convert.labelling(one) for one in found if one.get("event") in _LABEL_EVENTS)

        return await self._caller(wrong_place(what, repo, number)).read(what, work)

    async def acted_since(self, account: Account, repo: Repo, moment: datetime) -> ApiResult[bool]:
        """Return whether an account did anything since then in public, or in a repository, as far as GitHub tells.

        Only the newest `PAGE` events of each are read. If all of those in a private repository are newer, they may hide
        what it did, so the answer is True.
        """
        what = f"read what {account.login} did"
        urls = (f"/users/{quote(account.login, safe='')}/events/public", f"{repo_path(repo)}/events")

        def work(ask: Ask) -> bool:
            by_it, there = (
                [one for one in first(PAGE, ask.pages(url)) if parse_iso(one["created_at"]) >= moment] for url in urls
            )
            may_hide = len(there) >= PAGE and not there[-1]["public"]
            return may_hide or any(one["actor"]["id"] == account.id for one in (*by_it, *there))

        return await self._caller(wrong_place(what, repo)).read(what, work)

    async def add_labels(self, repo: Repo, number: int, labels: Sequence[str]) -> ApiResult[tuple[str, ...]]:
        """Add labels to an issue; return all its labels. Labels that are new to the repository are created."""
        what = f"label {repo.full_name}#{number}"
        url, body = f"{repo_path(repo)}/issues/{number}/labels", {"labels": [*labels]}
        return await self._caller(wrong_place(what, repo, number), empty(what, "label", "".join(labels))).write(
            what, lambda ask: tuple(str(one["name"]) for one in ask.send("POST", url, body))
        )

    async def remove_label(self, repo: Repo, number: int, label: str) -> ApiResult[None]:
        """Remove a label from an issue; it is a success if the issue does not have it."""
        what = f"take a label from {repo.full_name}#{number}"
        url = f"{repo_path(repo)}/issues/{number}/labels/{quote(label, safe='')}"
        done = await self._caller(wrong_place(what, repo, number), empty(what, "label", label)).write(
            what, lambda ask: ask.do("DELETE", url)
        )
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" else done

    async def get_repository(self, repo: Repo) -> ApiResult[Repository]:
        """Return a repository, if it exists and we may see it."""
        what = f"read the repository {repo.full_name}"
        return await self._caller(wrong_place(what, repo)).read(
            what, lambda ask: convert.repository(ask.repository(repo).complete())
        )

    async def get_user(self, login: str) -> ApiResult[GitHubPerson]:
        """Return an account by its login."""
        what = f"read the account {login}"
        if not is_login(login):
            return Err(f"could not {what}: no account can be called that", kind="invalid")
        url = f"/users/{quote(login, safe='')}"
        return await self._caller().read(what, lambda ask: convert.person(ask.person(url).complete()))

    async def rights(self) -> ApiResult[TokenRights]:
        """Return the account and the kind of the token, and the scopes that GitHub tells.

        This works without PyGithub, since every start needs it, and often nothing more of GitHub.
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
        found = _rights_in(answer, what, self._token, self._clock.now())
        if isinstance(found, Ok) and self._login:
            self._login = found.data.login
            self._on_login(self._login)
        return found

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
