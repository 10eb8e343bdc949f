"""Makes repositories readable: files and a shallow history, fetched in the sandbox and kept for an hour.

Git fetches through a gateway that passes only the requests for reading one repository, and that alone holds the token.
Links are written as files that hold their targets, attributes are ignored, and no setting names a program.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from adapters.git.params import environment
from adapters.github.types import Repo, is_repo
from common.clock import Clock
from common.files import delete_tree
from common.git_names import github_address, is_branch_name
from common.result import ApiResult, Err, Ok
from common.settings import Settings
from common.text.untrusted import one_line
from modules.runtime.sandbox.gateway import Upstream, host_of, open_gateway
from modules.runtime.sandbox.policy import HOME, MIB, PATH, Limits
from modules.runtime.sandbox.runner import Sandbox

KEPT_S = 3_600.0
"""The seconds for which a copy is kept."""
MOST_COPIES = 4
HISTORY = 300
"""The number of newest commits that are fetched if the history is needed."""

_MOST_BYTES = 256 * MIB
_LIMITS = Limits(wall_s=120.0, memory_bytes=512 * MIB, processes=32, disk_bytes=2 * _MOST_BYTES)
_FETCH = """set -e
git init --quiet --bare --template= git && mkdir -p tree git/info && export GIT_DIR=git
echo '* -text !eol !ident !filter !working-tree-encoding !diff' >git/info/attributes
git fetch --quiet --no-tags --depth="$1" -- "$2" "+$3:refs/heads/read"
sha=$(git rev-parse --verify "$4^{commit}")
git -c core.symlinks=false --work-tree=tree checkout --quiet --force "$sha"
echo "$sha"
"""
_REASON_CHARS = 200


@dataclass(frozen=True, slots=True)
class RepositoryCopy:
    """A repository at the commit `sha`, with its files in `tree`."""

    sandbox: Sandbox
    folder: Path
    sha: str

    @property
    def tree(self) -> Path:
        """The folder with all files of the commit; it holds no links."""
        return self.folder / "tree"

    async def git(self, *arguments: str) -> ApiResult[str]:
        """Return the output of `git`, which reads the history in the sandbox, without a network."""
        command, env = ["git", "--git-dir=git", *arguments], environment("", login="", token="", home=HOME, path=PATH)
        ran = await self.sandbox.run(command, self.folder, limits=_LIMITS, env=env)
        return Ok(ran.stdout) if ran.success else Err(one_line(ran.stderr, _REASON_CHARS) or ran.ended, "invalid")


@dataclass
class RepositoryReader:
    """Fetches repositories into `folder`, which holds nothing else."""

    sandbox: Sandbox
    folder: Path
    settings: Settings
    clock: Clock
    _copies: dict[Path, tuple[str, int, str]] = field(default_factory=dict, init=False)
    """By folder: the requested branch, tag or commit, the depth, and the commit."""
    _ending: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @asynccontextmanager
    async def open(self, repo: Repo, at: str, depth: int, *, as_account: bool) -> AsyncIterator[RepositoryCopy]:
        """Open a copy of a repository at a branch, a tag or a commit; at the default branch if `at` is "".

        Without `as_account` only public repositories are found, fetched without a login into a copy of their own.

        Raises:
            Undone: there is no such repository or commit, or it is too large.

        """
        if not is_repo(repo) or (at and not is_branch_name(at)):
            Err("no repository, branch, tag or commit can be called that", "invalid").or_raise()
        async with self._lock:
            folder = self.folder / repo.owner.lower() / repo.name.lower() / ("account" if as_account else "public")
            name, deep, sha = self._copies.get(folder, ("", 0, ""))
            if name != at or deep < depth:
                await self._make_room(folder)
                fetched = await self._fetch_named(repo, folder, at, depth, as_account=as_account)
                if isinstance(fetched, Err):
                    await self._delete(folder)
                sha = fetched.or_raise()
                self._copies[folder] = (at, depth, sha)
            yield RepositoryCopy(self.sandbox, folder, sha)

    async def close(self) -> None:
        """Delete all copies."""
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        await asyncio.to_thread(delete_tree, self.folder)

    async def _make_room(self, folder: Path) -> None:
        """Create the folder, for an hour; the oldest copies are deleted."""
        self._copies.pop(folder, None)
        for oldest in list(self._copies)[: 1 - MOST_COPIES]:
            await self._delete(oldest)
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        task = asyncio.create_task(self._end(folder))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, folder: Path) -> None:
        await self.clock.sleep(KEPT_S)
        async with self._lock:
            await self._delete(folder)

    async def _delete(self, folder: Path) -> None:
        self._copies.pop(folder, None)
        await asyncio.to_thread(delete_tree, folder)

    async def _fetch_named(self, repo: Repo, folder: Path, at: str, depth: int, *, as_account: bool) -> ApiResult[str]:
        """Fetch what `at` names; the prefix of a commit's name is searched in the history."""
        fetched = await self._fetch(repo, folder, (str(depth), at or "HEAD", "refs/heads/read"), as_account=as_account)
        if isinstance(fetched, Ok) or not at or not set(at) <= set("0123456789abcdef"):
            return fetched
        return await self._fetch(repo, folder, (str(HISTORY), "HEAD", at), as_account=as_account)

    async def _fetch(self, repo: Repo, folder: Path, what: tuple[str, str, str], *, as_account: bool) -> ApiResult[str]:
        """Fetch and check out; return the commit. `what` are the depth, the reference, and the name of the commit."""
        settings, address = self.settings, github_address(str(self.settings.github_api_url))
        host, root = host_of(address) or ("", 0), urlsplit(address).path
        place = f"{root}/{repo.full_name}.git"
        requests = {("GET", f"{place}/info/refs?service=git-upload-pack"), ("POST", f"{place}/git-upload-pack")}
        secret = f"{settings.agent_github_username}:{settings.agent_github_token.get_secret_value()}".encode()
        header = f"Authorization: Basic {b64encode(secret).decode()}" if as_account else ""
        url, (depth, ref, name) = f"http://{host[0]}:{host[1]}{place}", what
        upstream = Upstream(frozenset(requests), header, address.startswith("https://"))
        async with open_gateway(frozenset([host]), upstream, _MOST_BYTES) as gateway:
            script = ["/bin/sh", "-c", _FETCH, "sh", depth, url, ref, name]
            command, interpreter = gateway.relayed(self.sandbox.seen_at, script)
            env = environment(url, login="", token="", home=HOME, path=PATH) | interpreter
            ran = await self.sandbox.run(command, folder, limits=_LIMITS, env=env, shared=gateway.shared)
        if ran.ended != "exited" or gateway.bytes_left <= 0:
            return Err("it is too large to read, or takes too long to fetch", "invalid")
        if ran.success:
            return Ok(ran.stdout.strip())
        reader = "our account" if as_account else "anybody (in this conversation private repositories are not read)"
        return Err(
            f"{repo.full_name} at {ref} cannot be read by {reader}: {one_line(ran.stderr, _REASON_CHARS)}", "invalid"
        )
