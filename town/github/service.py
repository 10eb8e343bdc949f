"""The town's GitHub over HTTP, like the real one: its REST API, Git itself, faults under `/town/*`.

The rights of a token are checked besides those of its account: GitHub's scopes, and the limits of fine-grained tokens.
"""

import asyncio
import binascii
import json
import logging
from base64 import b64decode
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from town.github import (
    check_methods,
    git_methods,
    graphql_methods,
    methods,
    notification_methods,
    place_methods,
    pull_methods,
)
from town.github.bodies import parse_body
from town.github.limits import GitHubMeter, RateStanding
from town.github.network import GitHubNetwork
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.pulls import after_push
from town.github.repository import DEADLINE_S, GitError, GitRepository
from town.github.values import (
    SECONDARY,
    STRIKES,
    Fault,
    GitHubAccount,
    GitHubFaults,
    Refusal,
    StoredRepo,
    Token,
    broken,
    not_found,
    refusal_response,
    spoil,
)
from town.github.views import PAGE_POLICY, GitHubViews, issue_page, repo_page

_NARROW = "Resource not accessible by personal access token"


def check_rights(network: GitHubNetwork, token: Token, path: Mapping[str, Any]) -> None:
    """Raise `Refusal` if a token may not write in the repository that a path names.

    A classic token needs the scope `repo`, or `public_repo` for a public repository. A fine-grained one may write only
    if its account, or an organisation of which the account is a member, is the owner.
    """
    repo = _repo(network, token, path)
    if repo is None or token.is_of_app:
        return
    if token.scopes is None:
        members = network.state.members.get(repo.owner.login.lower(), ())
        if token.account != repo.owner and token.account.login.lower() not in members:
            raise Refusal(403, _NARROW)
    elif "repo" not in token.scopes and (repo.private or "public_repo" not in token.scopes):
        raise not_found()


def _repo(network: GitHubNetwork, token: Token, path: Mapping[str, Any]) -> StoredRepo | None:
    """Return the repository that a path names; None if it names none, or one that this account cannot see."""
    try:
        if "repo_id" in path:
            return network.repo_by_id(path["repo_id"], token.account)
        return network.repo(path["owner"], path["repo"], token.account) if "repo" in path else None
    except Refusal:
        return None


MAX_BODY_BYTES = 64_000_000
_READ, _WRITE = "git-upload-pack", "git-receive-pack"
_CGI_HEADERS = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
_GIT_HEADERS = {"content-encoding": "HTTP_CONTENT_ENCODING", "git-protocol": "GIT_PROTOCOL"}


@dataclass(frozen=True, slots=True)
class SmartHttp:
    """Serves the Git repositories of `network`.

    `armed` returns the fault that a request meets; `before_write` is awaited before each push.
    """

    network: GitHubNetwork
    armed: Callable[[Request], Fault | None]
    before_write: Callable[[], Awaitable[None]]
    deadline_s: float = DEADLINE_S

    async def answer(self, request: Request) -> Response:
        """Answer a request of a `git` client."""
        fault = self.armed(request)
        if fault and (answer := broken(fault, request, self.network.clock)):
            return answer
        try:
            answer = await self._served(request)
        except Refusal as refusal:
            headers = {"www-authenticate": 'Basic realm="GitHub"'} if refusal.status == _UNKNOWN else {}
            answer = Response(f"{refusal.message}\n", refusal.status, headers, "text/plain")
        except (GitError, TimeoutError) as error:
            answer = Response(f"{type(error).__name__}\n", 504, media_type="text/plain")
        return await spoil(fault, answer, request, self.network.clock) if fault else answer

    async def _served(self, request: Request) -> Response:
        service = _service(request)
        token = self._token(request)
        account = token.account if token else None
        repo = self._repo(request, account)
        if service == _WRITE and token:
            check_rights(self.network, token, {"owner": repo.owner.login, "repo": repo.name})
        if service == _WRITE:
            self._check_push(repo, account)
        git = self.network.git(repo)
        if service == _WRITE:
            await self.before_write()
        before = await git.refs() if service == _WRITE else {}
        async with asyncio.timeout(self.deadline_s):
            answer = await _run(request, git, account)
        if account and service == _WRITE and await git.refs() != before:
            await after_push(self.network, repo, account)
        return answer

    def _repo(self, request: Request, account: GitHubAccount | None) -> StoredRepo:
        owner, name = request.path_params["owner"], request.path_params["repo"]
        try:
            return self.network.moved(owner, name) or self.network.repo(owner, name, account)
        except Refusal as refusal:
            # NOTE(self): GitHub demands authentication before it says that a repository does not exist.
            raise refusal if account else Refusal(_UNKNOWN, "Authentication required") from refusal

    def _check_push(self, repo: StoredRepo, account: GitHubAccount | None) -> None:
        if account is None:
            raise Refusal(_UNKNOWN, "Authentication required")
        if not self.network.may_push(repo, account):
            raise Refusal(403, f"Permission to {repo.full_name}.git denied to {account.login}.")
        self.network.check_writable(repo)

    def _token(self, request: Request) -> Token | None:
        """Return the token, sent as a basic password of any name or as a bearer token. Raises `Refusal`."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            return None
        token = _password(given) if scheme.lower() == "basic" else given.strip()
        found = self.network.by_token(token)
        if found is None:
            raise Refusal(_UNKNOWN, "Invalid username or token. Password authentication is not supported.")
        return found


_UNKNOWN = 401


def _service(request: Request) -> str:
    """Return which of Git's two services is requested. Raises `Refusal`."""
    place = request.path_params["service"]
    service = request.query_params.get("service", "") if place == "info/refs" else place
    verb = "GET" if place == "info/refs" else "POST"
    if service not in {_READ, _WRITE} or request.method != verb:
        raise Refusal(404, "Not Found")
    return service


def _password(given: str) -> str:
    try:
        name, _, password = b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password or name


async def _run(request: Request, git: GitRepository, account: GitHubAccount | None) -> Response:
    """Return the answer of `git http-backend`. Raises `Refusal` for a body that is too large."""
    env = {
        "GIT_PROJECT_ROOT": str(git.folder.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{git.folder.name}/{request.path_params['service']}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.url.query,
        "REMOTE_ADDR": request.client.host if request.client else "",
        **({"REMOTE_USER": account.login} if account else {}),
        **{name: request.headers[key] for key, name in (_CGI_HEADERS | _GIT_HEADERS).items() if key in request.headers},
    }
    async with git.git.started(git.folder, "http-backend", env=env) as process:
        stdin, stdout, stderr = _pipes(process)
        feeding = asyncio.create_task(_feed(request, stdin))
        try:
            out, _ = await asyncio.gather(stdout.read(), stderr.read())
            await feeding
        finally:
            feeding.cancel()
        await process.wait()
    return _response(out)


def _pipes(
    process: asyncio.subprocess.Process,
) -> tuple[asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamReader]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise RuntimeError("a git without pipes")
    return process.stdin, process.stdout, process.stderr


async def _feed(request: Request, stdin: asyncio.StreamWriter) -> None:
    """Pass on the body. A program that has read enough closes its end, which is no error."""
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise Refusal(413, "the pack is too large")
            stdin.write(chunk)
            await stdin.drain()
    except (BrokenPipeError, ConnectionResetError, ClientDisconnect):
        return
    finally:
        stdin.close()


def _response(out: bytes) -> Response:
    """Return the answer of a CGI program. Raises `GitError` if there is none."""
    head, found, body = out.partition(b"\r\n\r\n")
    if not found:
        raise GitError("http-backend", 0, "it answered nothing")
    headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
    status = int(headers.pop("Status", "200").split(" ", 1)[0])
    return Response(body, status, headers)


logger = logging.getLogger(__name__)
_UNCHANGED = 304
_SAFE = {"GET", "HEAD"}
_ROOMS = (
    methods,
    check_methods,
    git_methods,
    pull_methods,
    notification_methods,
    place_methods,
)


def _merged(tables: Iterable[dict[str, dict[str, Handler]]]) -> dict[str, dict[str, Handler]]:
    """Return the handlers of several tables by path and verb."""
    merged: dict[str, dict[str, Handler]] = {}
    for table in tables:
        for path, by_verb in table.items():
            merged.setdefault(path, {}).update(by_verb)
    return merged


IN_REPO = _merged(room.IN_REPO for room in _ROOMS)
ELSEWHERE = _merged(room.ELSEWHERE for room in (methods, notification_methods, place_methods, graphql_methods))


def github_app(
    network: GitHubNetwork, *, faults: GitHubFaults | None = None, meter: GitHubMeter | None = None
) -> Starlette:
    """Return the application that serves `network`; put it on loopback with `town.serving.serve`.

    Its address is that of the API (`GITHUB_API_URL`) and of the pages. The answers of the API carry `x-ratelimit-*`
    headers. Faults can be armed only if `faults` is given, in process or by `POST /town/faults`.
    """
    service = _GitHubService(
        network, faults if faults is not None else GitHubFaults(), meter or GitHubMeter(network.clock)
    )
    routes = [Route("/rate_limit", service.rate_limit)]
    routes += [Route(path, service.answering(by), methods=list(by)) for path, by in ELSEWHERE.items()]
    routes += [
        Route(f"{place}{path}", service.answering(by), methods=list(by))
        for place in ("/repos/{owner}/{repo}", "/repositories/{repo_id:int}")
        for path, by in IN_REPO.items()
    ]
    if faults is not None:
        routes.append(Route("/town/faults", faults.answer, methods=["GET", "POST", "DELETE"]))
    git = SmartHttp(network, service.armed, service.keep)
    routes += [
        Route("/{owner}/{repo}.git/{service:path}", git.answer, methods=["GET", "POST"]),
        Route("/{owner}/{repo}", service.repo_page),
        Route("/{owner}/{repo}/issues", service.repo_page),
        Route("/{owner}/{repo}/{kind}/{number:int}", service.issue_page),
    ]
    return Starlette(routes=routes, exception_handlers={404: service.nowhere, 405: service.nowhere})


class _GitHubService:
    def __init__(self, network: GitHubNetwork, faults: GitHubFaults, meter: GitHubMeter) -> None:
        self._network = network
        self._faults = faults
        self._meter = meter
        self._replicas = Replicas(network)

    def answering(self, by_verb: dict[str, Handler]) -> Callable[[Request], object]:
        """Return the endpoint of one route."""

        async def endpoint(request: Request) -> Response:
            content = await request.body()
            where = f"{request.method} {request.url.path}"
            if slow := self._faults.meet(where, {"slow"}):
                await self._network.clock.sleep(self._faults.some_of(slow.seconds))
            fault = self.armed(request)
            if fault and (answer := broken(fault, request, self._network.clock)):
                return answer
            handler = by_verb["GET" if request.method == "HEAD" else request.method]
            answer = await self._answer(handler, request, content)
            return await spoil(fault, answer, request, self._network.clock) if fault else answer

        return endpoint

    def armed(self, request: Request) -> Fault | None:
        """Return the fault that a request meets."""
        return self._faults.meet(f"{request.method} {request.url.path}", STRIKES)

    async def keep(self) -> None:
        """Keep the state before a write, if stale reads are armed."""
        if any(fault.kind == "stale" for fault in self._faults.armed):
            await self._replicas.keep()

    async def rate_limit(self, request: Request) -> Response:
        """Return how many requests are left; this does not count as one."""
        try:
            token = self._token(request)
        except Refusal as refusal:
            return refusal_response(refusal)
        standing = self._meter.standing(*_who(token, request))
        told = standing.told()
        body = {"resources": {"core": told, "search": told}, "rate": told}
        return JSONResponse(body, headers=standing.headers())

    async def repo_page(self, request: Request) -> Response:
        repo = self._public(request)
        return HTMLResponse(repo_page(repo), headers=_GUARD) if repo else _no_page()

    async def issue_page(self, request: Request) -> Response:
        repo = self._public(request)
        issue = repo.issues.get(request.path_params["number"]) if repo else None
        if repo is None or issue is None or request.path_params["kind"] not in {"issues", "pull"}:
            return _no_page()
        return HTMLResponse(issue_page(repo, issue, await self._diff(repo, issue.number)), headers=_GUARD)

    async def _diff(self, repo: StoredRepo, number: int) -> str:
        """Return the diff of a pull request; "" for an issue, or if Git has none."""
        pull = repo.pulls.get(number)
        if pull is None:
            return ""
        try:
            git = self._network.git(repo)
            start = await git.merge_base(pull.base, pull.head)
            return await git.diff(start, pull.head) if start else ""
        except (Refusal, GitError) as error:
            logger.warning("no diff of %s#%d: %s", repo.full_name, number, error)
            return ""

    async def nowhere(self, request: Request, _: Exception) -> Response:
        return refusal_response(Refusal(404, "Not Found"))

    async def _answer(self, handler: Handler, request: Request, content: bytes) -> Response:
        try:
            token = self._token(request)
        except Refusal as refusal:
            return refusal_response(refusal)
        who = _who(token, request)
        standing = self._meter.count(*who)
        answer = await self._performed(handler, request, content, token, standing)
        if answer.status_code == _UNCHANGED and token:
            standing = self._meter.give_back(*who)
        answer.headers.update(standing.headers())
        answer.headers["x-github-media-type"] = "github.v3; format=json"
        if token and token.scopes is not None:
            answer.headers["x-oauth-scopes"] = ", ".join(token.scopes)
        return answer

    async def _performed(
        self, handler: Handler, request: Request, content: bytes, token: Token | None, standing: RateStanding
    ) -> Response:
        if standing.refused:
            whose = f"user ID {token.account.id}" if token else "your address"
            return refusal_response(Refusal(403, f"API rate limit exceeded for {whose}."))
        if token and request.method not in _SAFE and (wait := self._meter.write_wait(token.account.login)):
            answer = refusal_response(Refusal(403, SECONDARY))
            answer.headers["retry-after"] = str(wait)
            return answer
        if moved := self._moved(request):
            return moved
        try:
            views = GitHubViews(f"{request.url.scheme}://{request.url.netloc}")
            if token and request.method not in _SAFE:
                check_rights(self._network, token, request.path_params)
            network = await self._seen_by(request)
            body = parse_body(content, bare_list="labels" if request.url.path.endswith("/labels") else "")
            call = GitHubCall(network, views, token, request.path_params, request.query_params, body)
            found = handler(call)
            return _success(found if isinstance(found, Answer) else await found, request, self._network.clock.now())
        except Refusal as refusal:
            return refusal_response(refusal)
        except GitError as error:
            logger.warning("the town's Git: %s", error)
            return refusal_response(Refusal(500, "Server Error"))

    async def _seen_by(self, request: Request) -> GitHubNetwork:
        """Return the network as a request sees it: for a read possibly a past state."""
        if request.method not in _SAFE:
            await self.keep()
            return self._network
        stale = self._faults.meet(f"{request.method} {request.url.path}", {"stale"})
        return self._replicas.behind(self._faults.some_of(stale.seconds)) if stale else self._network

    def _token(self, request: Request) -> Token | None:
        if not request.headers.get("user-agent"):
            raise Refusal(403, "Request forbidden by administrative rules. Please make sure it has a User-Agent header")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            return None
        found = self._network.by_token(token.strip()) if scheme.lower() in {"bearer", "token"} else None
        if found is None:
            raise Refusal(401, "Bad credentials")
        return found

    def _moved(self, request: Request) -> Response | None:
        owner, name = request.path_params.get("owner"), request.path_params.get("repo")
        repo = self._network.moved(owner, name) if owner and name else None
        if repo is None:
            return None
        rest = request.url.path.removeprefix(f"/repos/{owner}/{name}")
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"{request.url.scheme}://{request.url.netloc}/repositories/{repo.id}{rest}{query}"
        status, message = (301, "Moved Permanently") if request.method in _SAFE else (307, "Temporary Redirect")
        answer = RedirectResponse(url, status)
        answer.body = json.dumps({"message": message, "url": url}).encode()
        answer.headers["content-length"] = str(len(answer.body))
        answer.headers["content-type"] = "application/json; charset=utf-8"
        return answer

    def _public(self, request: Request) -> StoredRepo | None:
        try:
            return self._network.repo(request.path_params["owner"], request.path_params["repo"], None)
        except Refusal:
            return None


def _who(token: Token | None, request: Request) -> tuple[str, str]:
    """Return the login and the address of a client."""
    return token.account.login if token else "", request.client.host if request.client else ""


_GUARD = {"content-security-policy": PAGE_POLICY}


def _success(answer: Answer, request: Request, now: datetime) -> Response:
    if answer.body is None:
        return Response(status_code=answer.status)
    response = JSONResponse(answer.body, answer.status, dict(answer.headers))
    if request.method in _SAFE:
        response.headers["etag"] = etag_of(bytes(response.body))
        response.headers["cache-control"] = "private, max-age=60, s-maxage=60"
        if answer.modified:
            response.headers["last-modified"] = last_modified(answer.modified, now)
        if is_unchanged(request.headers, response.headers["etag"], answer.modified):
            kept = {"etag", "last-modified", "cache-control", *answer.headers}
            headers = {name: value for name, value in response.headers.items() if name in kept}
            return Response(None, _UNCHANGED, headers)
    if answer.window and (links := answer.window.links(answer.count)):
        response.headers["link"] = ", ".join(f'<{_at_page(request, page)}>; rel="{rel}"' for rel, page in links.items())
    if request.method == "POST" and isinstance(answer.body, dict) and "url" in answer.body:
        response.headers["location"] = answer.body["url"]
    return response


def _at_page(request: Request, page: int) -> str:
    query = urlencode({**request.query_params, "page": page})
    return f"{request.url.scheme}://{request.url.netloc}{request.url.path}?{query}"


def _no_page() -> Response:
    return HTMLResponse("<h1>404</h1><p>This is not the page you are looking for.</p>", 404)


def etag_of(body: bytes) -> str:
    """Return the weak ETag of a body."""
    return f'W/"{sha256(body).hexdigest()}"'


def last_modified(modified: datetime, now: datetime) -> str:
    """Return the value of `Last-Modified`.

    A change within the current second is dated one second back, so that a client that sends it misses no later change.
    """
    return format_datetime(min(modified, now - timedelta(seconds=1)).astimezone(UTC), usegmt=True)


def is_unchanged(asked: Mapping[str, str], etag: str, modified: datetime | None) -> bool:
    """Return whether the client that sent these headers has the answer; an ETag decides if both are sent."""
    if known := asked.get("if-none-match"):
        tags = {tag.strip().removeprefix("W/") for tag in known.split(",")}
        return bool(tags & {etag.removeprefix("W/"), "*"})
    since = _date(asked.get("if-modified-since", ""))
    return since is not None and modified is not None and modified.replace(microsecond=0) <= since


def _date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


_KEPT = timedelta(seconds=60)


class Replicas:
    """Past states of `network`, each with the time of the write that ended it. Only `keep` adds one."""

    def __init__(self, network: GitHubNetwork) -> None:
        self._network = network
        self._past: deque[tuple[datetime, GitHubNetwork]] = deque()

    async def keep(self) -> None:
        """Keep the present state; call this before each write."""
        now = self._network.clock.now()
        while self._past and self._past[0][0] <= now - _KEPT:
            self._past.popleft()
        if not self._past or self._past[-1][0] < now:
            self._past.append((now, self._copy(await self._network.all_refs())))

    def _copy(self, refs: Mapping[int, Mapping[str, str]]) -> GitHubNetwork:
        network = self._network
        # NOTE(self): accounts never change, so the copy shares them.
        state = deepcopy(network.state, {id(account): account for account in network.state.accounts.values()})
        return GitHubNetwork(clock=network.clock, git_folder=network.git_folder, state=state, pinned=refs)

    def behind(self, seconds: float) -> GitHubNetwork:
        """Return the network as of `seconds` ago, as far as that was kept; the present one for 0."""
        at = self._network.clock.now() - timedelta(seconds=seconds)
        return next((past for until, past in self._past if until > at), self._network)
