"""Reads files and history of repositories in the sandbox, each from a bare and shallow copy that is kept for an hour.

A copy has no working tree: nothing of a repository becomes a file here, so no link is followed and no hook, filter or
submodule has an effect. Git fetches through a gateway that passes on what reading one repository takes, and that alone
holds the token. It reads without a network.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from adapters.git.params import environment
from adapters.git.sizes import LISTING
from adapters.github.types import Repo, is_repo
from common.clock import Clock
from common.files import delete_tree
from common.git_names import is_branch_name
from common.github_address import github_address
from common.result import ApiResult, Err, Ok, answering
from common.text.untrusted import one_line
from modules.runtime.sandbox.gateway import Upstream, host_of, open_gateway
from modules.runtime.sandbox.policy import HOME, PATH
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import MIB, Limits

KEPT_S = 3_600.0
"""How long a copy is kept, in seconds."""
HISTORY = 300
"""So many of the newest commits are fetched where history is asked for."""
LINK, MODULE = "120000", "160000"

_MOST_BYTES = 256 * MIB
_FETCHING = Limits(wall_s=120.0, cpu_s=120, memory_bytes=512 * MIB, processes=32, disk_bytes=_MOST_BYTES)
_READING = Limits(wall_s=30.0, cpu_s=30, memory_bytes=512 * MIB, processes=32, disk_bytes=MIB, output_bytes=16 * MIB)
_FETCH = (
    "git init --quiet --bare --template= . && "
    'git --git-dir=. fetch --quiet --no-tags --depth="$1" -- "$2" "+$3:refs/heads/read"'
)
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv")
_SHA_CHARS, _LEAST_SHA_CHARS, _REASON_CHARS = 40, 7, 200
_MOST_COMMITS = 30


@dataclass(frozen=True, slots=True)
class RepositoryEntry:
    """A file of a commit; a link and a submodule by their `mode`. `size` is in bytes, 0 for a submodule."""

    mode: str
    blob: str
    size: int
    path: str


@dataclass(frozen=True, slots=True)
class RepositoryCopy:
    """A repository at the commit `sha`; `folder` holds its objects. What cannot be read is an `Err`."""

    sandbox: Sandbox
    folder: Path
    sha: str

    @property
    def is_cut(self) -> bool:
        """Whether commits before those that were fetched are missing."""
        return (self.folder / "shallow").exists()

    @answering
    async def entries(self) -> ApiResult[Sequence[RepositoryEntry]]:
        """List all files."""
        told = (await self._git(*LISTING, self.sha)).or_raise()
        lines = (line.partition("\t") for line in told.split("\0")[:-1])
        fields = ((*about.split(), path) for about, _, path in lines)
        return Ok(
            [RepositoryEntry(mode, blob, int(size.strip("-") or 0), path) for mode, _, blob, size, path in fields]
        )

    async def content(self, entry: RepositoryEntry) -> ApiResult[str]:
        """Return what a file holds, or where a link leads."""
        return await self._git("cat-file", "blob", entry.blob)

    @answering
    async def search(self, text: str, path: str) -> ApiResult[Sequence[tuple[str, str, str]]]:
        """Return the path, the number and the text of each line that holds `text`."""
        options = ("-n", "-I", "-F", "-z", "--full-name", "--threads=1")
        told = (await self._git("grep", *options, "-e", text, self.sha, *_only(path), ends=(0, 1))).or_raise()
        hits = (line.split("\0", 2) for line in told.split("\n") if line.count("\0") > 1)
        return Ok([(name.removeprefix(f"{self.sha}:"), number, line) for name, number, line in hits])

    async def log(self, path: str) -> ApiResult[str]:
        """Return the newest commits that changed a file or folder, one line each."""
        form = ("--format=%h %ad %an: %s", "--date=short", "--no-color")
        return await self._git("log", f"-{_MOST_COMMITS}", *form, self.sha, *_only(path))

    async def commit(self) -> ApiResult[str]:
        """Return what the commit says and changes; a merge is compared with its first parent."""
        form = ("--format=fuller", "--stat", "--patch", "--diff-merges=first-parent")
        return await self._git("show", *form, *_PLAIN, self.sha)

    @answering
    async def resolved(self, name: str) -> ApiResult[str]:
        """Return the commit that a name stands for."""
        return Ok((await self._git("rev-parse", "--verify", f"{name}^{{commit}}")).or_raise().strip())

    async def _git(self, *arguments: str, ends: Sequence[int] = (0,)) -> ApiResult[str]:
        command = ["git", "--git-dir=.", *arguments]
        ran = await self.sandbox.run(command, self.folder, limits=_READING, env=_environment(""))
        if ran.ended != "exited":
            return Err(f"it took more than it may ({ran.ended})", "invalid")
        return Ok(ran.stdout) if ran.returncode in ends else Err(one_line(ran.stderr, _REASON_CHARS), "invalid")


@dataclass
class _KeptCopy:
    """A copy on the disk, how many commits deep it is, and the commits that names stood for when they were fetched."""

    folder: Path
    depth: int = 0
    commits: dict[str, str] = field(default_factory=dict)


class RepositoryReader:
    """Fetches repositories of one service.

    Args:
        sandbox: runs Git.
        folder: holds the copies, and nothing else.
        api_url: where the interface of the service answers.
        login: our account; "" for none, which reads what is public.
        token: its token.
        clock: says when an hour is over.

    """

    def __init__(self, sandbox: Sandbox, folder: Path, *, api_url: str, login: str, token: str, clock: Clock) -> None:
        self.sandbox = sandbox
        self._root = folder
        self._address = github_address(api_url)
        self._secret = b64encode(f"{login}:{token}".encode()).decode() if token else ""
        self._clock = clock
        self._kept: dict[tuple[str, bool], _KeptCopy] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def open(self, repo: Repo, at: str, depth: int, *, as_account: bool) -> AsyncIterator[RepositoryCopy]:
        """Have a repository there at a branch, a tag or a commit, the default branch if `at` is "".

        Without `as_account` only a public one is found: it is fetched as nobody, into a copy of its own.

        Raises:
            Undone: there is no such repository or commit, or it is too large.

        """
        async with self._lock:
            kept = await self._keep(repo, as_account=as_account)
            sha = (await self._commit(repo, kept, at, depth, as_account=as_account)).or_raise()
            yield RepositoryCopy(self.sandbox, kept.folder, sha)

    async def close(self) -> None:
        """Delete all copies."""
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        await asyncio.to_thread(delete_tree, self._root)

    async def _keep(self, repo: Repo, *, as_account: bool) -> _KeptCopy:
        """Return the copy that there is, or begin one, which is deleted after an hour."""
        key = (repo.full_name.lower(), as_account)
        if key not in self._kept:
            folder = self._root / f"{repo.owner}-{repo.name}-{'account' if as_account else 'public'}".lower()
            folder.mkdir(parents=True)
            self._kept[key] = _KeptCopy(folder)
            task = asyncio.create_task(self._end(key))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        return self._kept[key]

    async def _end(self, key: tuple[str, bool]) -> None:
        await self._clock.sleep(KEPT_S)
        async with self._lock:
            await asyncio.to_thread(delete_tree, self._kept.pop(key).folder)

    @answering
    async def _commit(self, repo: Repo, kept: _KeptCopy, at: str, depth: int, *, as_account: bool) -> ApiResult[str]:
        """Return the commit that `at` names, which is there then."""
        if not is_repo(repo) or (at and not is_branch_name(at)):
            return Err(
                f"{repo.full_name} {at} cannot be the name of a repository and of a branch, tag or commit", "invalid"
            )
        if depth > kept.depth:
            kept.depth, kept.commits = depth, {}
        if at not in kept.commits:
            fetched, found = await self._fetch(repo, kept, at or "HEAD", as_account=as_account), "refs/heads/read"
            if isinstance(fetched, Err) and _is_short_sha(at):
                kept.depth = HISTORY
                fetched, found = await self._fetch(repo, kept, "HEAD", as_account=as_account), at
            fetched.or_raise()
            kept.commits[at] = (await RepositoryCopy(self.sandbox, kept.folder, "").resolved(found)).or_raise()
        return Ok(kept.commits[at])

    async def _fetch(self, repo: Repo, kept: _KeptCopy, ref: str, *, as_account: bool) -> ApiResult[None]:
        host = host_of(self._address)
        if host is None:
            return Err(f"{self._address} is no address", "invalid")
        address = f"http://{host[0]}:{host[1]}{urlsplit(self._address).path}"
        place = f"{urlsplit(self._address).path}/{repo.full_name}.git"
        requests = {("GET", f"{place}/info/refs?service=git-upload-pack"), ("POST", f"{place}/git-upload-pack")}
        header = f"Authorization: Basic {self._secret}" if as_account and self._secret else ""
        upstream = Upstream(frozenset(requests), header, self._address.startswith("https://"))
        script = ["/bin/sh", "-c", _FETCH, "sh", str(kept.depth), f"{address}/{repo.full_name}.git", ref]
        async with open_gateway(frozenset([host]), upstream, _MOST_BYTES) as gateway:
            command, interpreter = gateway.relayed(self.sandbox.seen_at, script)
            env = _environment(address) | interpreter
            ran = await self.sandbox.run(command, kept.folder, limits=_FETCHING, env=env, shared=gateway.shared)
        if ran.ended != "exited" or gateway.bytes_left <= 0:
            return Err("it is too large to read, or takes too long to fetch", "invalid")
        return Ok(None) if ran.success else Err(one_line(ran.stderr, _REASON_CHARS), "invalid")


def _environment(address: str) -> dict[str, str]:
    return environment(address, login="", token="", home=HOME, path=PATH)


def _only(path: str) -> tuple[str, ...]:
    return ("--", f":(top,literal){path}") if path else ()


def _is_short_sha(text: str) -> bool:
    return _LEAST_SHA_CHARS <= len(text) < _SHA_CHARS and all(sign in "0123456789abcdef" for sign in text)
