"""Calls to GitHub that return `ApiResult`: PyGithub builds requests and parses answers, and sends nothing itself.

PyGithub blocks, so each call runs in a greenlet in the event loop's own thread: when PyGithub waits for an answer, the
call switches back to the loop, which sends the request through `sending`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, ItemsView, Iterator
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

from greenlet import getcurrent, greenlet

from adapters.github import sdk
from adapters.github.sending import (
    API_VERSION,
    USER_AGENT,
    KeptAnswer,
    OutgoingRequest,
    RequestSender,
    error_from_response,
    has_next,
    unreadable,
)
from adapters.github.types import PAGE, Repo, is_token, repo_path
from adapters.web.client import Failure
from adapters.web.spacing import Permit, RequestSpacing
from common.clock import Clock
from common.result import ApiResult, Err, Ok

_PLAIN_PORT = 80
_SECURE_PORT = 443
_NO_TIMEOUT = 0  # NOTE(self): `sending` enforces the deadline
# NOTE(self): PyGithub parses answers with plain asserts and look-ups; a malformed answer raises one of these.
_SENSELESS = (
    sdk.BadAttributeException,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)

Json = dict[str, Any]
T = TypeVar("T")
logger = logging.getLogger(__name__)


class Ask:
    """The interface for the work of one call: PyGithub's `requester`, and PyGithub objects made with it."""

    def __init__(self, requester: sdk.Requester) -> None:
        self.requester = requester

    def get(self, url: str, parameters: Json | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON at an address."""
        return self.requester.requestJsonAndCheck("GET", url, parameters=parameters)[1]

    def send(self, method: str, url: str, body: Json | None = None) -> Any:  # noqa: ANN401 - JSON
        """Change what is at an address; return the answer."""
        return self.requester.requestJsonAndCheck(method, url, input=body)[1]

    def do(self, method: str, url: str, body: Json | None = None) -> None:
        """Change what is at an address; ignore the body of the answer."""
        self.requester.requestJsonAndCheck(method, url, input=body)

    def pages(self, url: str, parameters: Json | None = None, *, items: str = "") -> Iterator[Json]:
        """Yield all items of a list, one request a page; `items` is the field that holds them in an object."""
        page = 1
        while True:
            asked = {**(parameters or {}), "per_page": PAGE, "page": page}
            headers, data = self.requester.requestJsonAndCheck("GET", url, parameters=asked)
            yield from data[items] if items else data
            if not has_next(headers):
                return
            page += 1

    def given(self, value: T | None) -> Any:  # noqa: ANN401 - as PyGithub takes it
        """Return a value as PyGithub takes it: an empty one is left out."""
        return value or sdk.NotSet

    def repository(self, repo: Repo) -> sdk.Repository:
        return sdk.Repository(self.requester, url=repo_path(repo))

    def told_repository(self, told: Json) -> sdk.Repository:
        return sdk.Repository(self.requester, attributes=told, completed=True)

    def issue(self, repo: Repo, number: int) -> sdk.Issue:
        return sdk.Issue(self.requester, url=f"{repo_path(repo)}/issues/{number}")

    def told_issue(self, told: Json) -> sdk.Issue:
        return sdk.Issue(self.requester, attributes=told, completed=True)

    def comment(self, repo: Repo, comment_id: int) -> sdk.IssueComment:
        return sdk.IssueComment(self.requester, url=f"{repo_path(repo)}/issues/comments/{comment_id}")

    def pull(self, repo: Repo, number: int) -> sdk.PullRequest:
        return sdk.PullRequest(self.requester, url=f"{repo_path(repo)}/pulls/{number}")

    def told_pull(self, told: Json) -> sdk.PullRequest:
        return sdk.PullRequest(self.requester, attributes=told, completed=True)

    def told_line_comment(self, told: Json) -> sdk.PullRequestComment:
        return sdk.PullRequestComment(self.requester, attributes=told, completed=True)

    def commit(self, sha: str) -> sdk.Commit:
        return sdk.Commit(self.requester, attributes={"sha": sha}, completed=True)

    def user(self, login: str) -> sdk.NamedUser:
        return sdk.NamedUser(self.requester, attributes={"login": login}, completed=True)

    def person(self, url: str) -> sdk.NamedUser:
        return sdk.NamedUser(self.requester, url=url)


@dataclass(frozen=True, slots=True)
class Caller:
    """Makes calls, one at a time, as the account of `token`. With `wrong` nothing is sent: that is the result."""

    wrong: Err | None
    api_url: str
    token: str = field(repr=False)
    clock: Clock
    spacing: RequestSpacing
    sender: RequestSender

    async def read(self, what: str, work: Callable[[Ask], T], *, per_page: int = PAGE) -> ApiResult[T]:
        """Make a reading call; `what` completes "could not …"."""
        return await self._call(what, work, write=False, per_page=per_page)

    async def write(self, what: str, work: Callable[[Ask], T]) -> ApiResult[T]:
        """Make a call that changes something in public; it is never sent twice."""
        if not self.token and self.wrong is None:
            return Err(f"could not {what}: there is no GitHub token (AGENT_GITHUB_TOKEN)", kind="auth")
        return await self._call(what, work, write=True, per_page=PAGE)

    async def _call(self, what: str, work: Callable[[Ask], T], *, write: bool, per_page: int) -> ApiResult[T]:
        if self.wrong is not None:
            return self.wrong
        if self.token and not is_token(self.token):
            return Err(f"could not {what}: AGENT_GITHUB_TOKEN has characters that no token has", kind="auth")
        async with self.spacing.permit(write=write) as permit:
            requester = _requester(what, api_url=self.api_url, token=self.token, per_page=per_page)
            try:
                return Ok(await self._run(lambda: work(Ask(requester)), permit))
            except Failure as failure:
                return failure.err
            except sdk.GithubException as error:
                headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
                now = self.clock.now()
                return error_from_response(error.status, error.data, headers, what=what, write=write, now=now)
            except _SENSELESS as error:
                logger.warning("GitHub, %s: the answer could not be read (%s)", what, type(error).__name__)
                return unreadable(what, write=write)

    async def _run(self, work: Callable[[], T], permit: Permit) -> T:
        """Run `work` in a greenlet; send each request that it switches here with, and switch the answer back."""
        working = greenlet(work)
        working.gr_context = copy_context()
        came = working.switch()
        while not working.dead:
            try:
                answer = await self.sender.send(came, permit)
            except BaseException as error:
                came = working.throw(error)
            else:
                came = working.switch(answer)
        return cast("T", came)


Callers = Callable[..., Caller]
"""Returns a `Caller`, given the results of checks, each None if nothing is wrong."""


class Bearer(sdk.Token):
    """A token, sent in the way that GitHub recommends."""

    @property
    def token_type(self) -> str:
        return "Bearer"


def _requester(what: str, *, api_url: str, token: str, per_page: int) -> sdk.Requester:
    """Return PyGithub's requester for the one call `what`; objects made with it fetch nothing by themselves."""

    class OfCall(sdk.Requester):
        """A separate class, because PyGithub stores the connection classes on it."""

    connections = [
        type(name, (_Connection,), {"scheme": scheme, "default_port": port, "what": what})
        for name, scheme, port in (("_Plain", "http", _PLAIN_PORT), ("_Secure", "https", _SECURE_PORT))
    ]
    OfCall.injectConnectionClasses(*cast("list[Any]", connections))
    return OfCall(
        auth=Bearer(token) if token else None,
        base_url=api_url,
        timeout=_NO_TIMEOUT,
        user_agent=USER_AGENT,
        per_page=per_page,
        verify=True,
        retry=None,
        pool_size=None,
        lazy=True,
        api_version=API_VERSION,
    )


class _Connection:
    """Stands in for PyGithub's connection."""

    scheme: ClassVar[str]
    default_port: ClassVar[int]
    what: ClassVar[str]

    def __init__(self, host: str, port: int | None = None, **_: object) -> None:
        self.host = host
        self._port = port or self.default_port
        self._asked: OutgoingRequest | None = None

    def request(
        self,
        verb: str,
        url: str,
        content: str | None,
        headers: dict[str, str],
        stream: bool = False,  # noqa: FBT001, FBT002 - as PyGithub calls it
    ) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._asked = OutgoingRequest(verb, f"{self.scheme}://{host}:{self._port}{url}", headers, content, self.what)

    def getresponse(self) -> _Response:
        if self._asked is None:
            raise RuntimeError("nothing was asked")
        return _Response(getcurrent().parent.switch(self._asked))

    def close(self) -> None:
        """Do nothing; `sending` keeps the connections."""


class _Response:
    """Stands in for PyGithub's response."""

    def __init__(self, answer: KeptAnswer) -> None:
        self.status = answer.status
        self._answer = answer

    def getheaders(self) -> ItemsView[str, str]:
        return self._answer.headers.items()

    def read(self) -> str:
        return self._answer.text
