"""Clone, fetch and push over HTTP: an address of a repository handed to `git http-backend` as a CGI program.

The program gets the request's body as it comes, whether its length is told or it is chunked, and has a deadline.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from town.github.breaking import broken, spoil
from town.github.faults import Fault
from town.github.git_process import DEADLINE_S, GitError
from town.github.network import GitHubNetwork
from town.github.pushes import after_push
from town.github.repository import GitRepository
from town.github.rights import check_rights
from town.github.values import GitHubAccount, Refusal, StoredRepo, Token

MAX_BODY_BYTES = 64_000_000
_READ, _WRITE = "git-upload-pack", "git-receive-pack"
_CGI_HEADERS = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
_GIT_HEADERS = {"content-encoding": "HTTP_CONTENT_ENCODING", "git-protocol": "GIT_PROTOCOL"}


class SmartHttp:
    """Serves the Git repositories of `network`.

    `armed` gives the fault that a request meets, `before_write` is awaited before each push.
    """

    def __init__(
        self,
        network: GitHubNetwork,
        armed: Callable[[Request], Fault | None],
        before_write: Callable[[], Awaitable[None]],
        *,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._network = network
        self._before_write = before_write
        self._armed = armed
        self._deadline_s = deadline_s

    async def answer(self, request: Request) -> Response:
        """The answer to a request of a `git` client."""
        fault = self._armed(request)
        if fault and (answer := broken(fault, request, self._network.clock)):
            return answer
        try:
            answer = await self._served(request)
        except Refusal as refusal:
            headers = {"www-authenticate": 'Basic realm="GitHub"'} if refusal.status == _UNKNOWN else {}
            answer = Response(f"{refusal.message}\n", refusal.status, headers, "text/plain")
        except (GitError, TimeoutError) as error:
            answer = Response(f"{type(error).__name__}\n", 504, media_type="text/plain")
        return await spoil(fault, answer, request, self._network.clock) if fault else answer

    async def _served(self, request: Request) -> Response:
        service = _service(request)
        token = self._token(request)
        account = token.account if token else None
        repo = self._repo(request, account)
        if service == _WRITE and token:
            check_rights(self._network, token, {"owner": repo.owner.login, "repo": repo.name})
        if service == _WRITE:
            self._check_push(repo, account)
        git = self._network.git(repo)
        if service == _WRITE:
            await self._before_write()
        before = await git.refs() if service == _WRITE else {}
        async with asyncio.timeout(self._deadline_s):
            answer = await _run(request, git, account)
        if account and service == _WRITE and await git.refs() != before:
            await after_push(self._network, repo, account)
        return answer

    def _repo(self, request: Request, account: GitHubAccount | None) -> StoredRepo:
        owner, name = request.path_params["owner"], request.path_params["repo"]
        try:
            return self._network.moved(owner, name) or self._network.repo(owner, name, account)
        except Refusal as refusal:
            # NOTE(self): GitHub asks who it is before it says that there is nothing.
            raise refusal if account else Refusal(_UNKNOWN, "Authentication required") from refusal

    def _check_push(self, repo: StoredRepo, account: GitHubAccount | None) -> None:
        if account is None:
            raise Refusal(_UNKNOWN, "Authentication required")
        if not self._network.may_push(repo, account):
            raise Refusal(403, f"Permission to {repo.full_name}.git denied to {account.login}.")
        self._network.check_writable(repo)

    def _token(self, request: Request) -> Token | None:
        """Who asks: a token as the password of any name, or a bearer's. Raises `Refusal`."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            return None
        token = _password(given) if scheme.lower() == "basic" else given.strip()
        found = self._network.by_token(token)
        if found is None:
            raise Refusal(_UNKNOWN, "Invalid username or token. Password authentication is not supported.")
        return found


_UNKNOWN = 401


def _service(request: Request) -> str:
    """Which of Git's two services is asked. Raises `Refusal`."""
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
    """What `git http-backend` answers. Raises `Refusal` for a body that is too large."""
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
    """Hands on the body. A program that has read enough closes its end, which is no fault."""
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
    """The answer of a CGI program. Raises `GitError` if it is none."""
    head, found, body = out.partition(b"\r\n\r\n")
    if not found:
        raise GitError("http-backend", 0, "it answered nothing")
    headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
    status = int(headers.pop("Status", "200").split(" ", 1)[0])
    return Response(body, status, headers)
