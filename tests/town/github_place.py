"""The town's GitHub with Git behind it, on loopback: its accounts, plain requests, PyGithub and `git` itself."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import github
import httpx
import pytest

from common.clock import FakeClock
from tests.loopback import NO_TLS
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredRepo
from town.serving import serve

T = TypeVar("T")
GARDEN = "/repos/ada/garden"


@dataclass
class GitHubPlace:
    """Ada's garden, where bea may push and cy may not; each token is `t-` and the login."""

    url: str
    http: httpx.AsyncClient
    clock: FakeClock
    network: GitHubNetwork
    faults: GitHubFaults
    repo: StoredRepo
    folder: Path

    async def ask(self, method: str, path: str, body: object = None, *, by: str = "ada", **more: str) -> httpx.Response:
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if by:
            headers["authorization"] = f"Bearer t-{by}"
        return await self.http.request(method, path, json=body, headers=headers)

    async def use(self, work: Callable[[github.Github], T], *, by: str = "ada") -> T:
        """Call `work` with a PyGithub client in a thread; return what it returns."""

        def run() -> T:
            auth = github.Auth.Token(f"t-{by}")
            options: dict[str, Any] = {"seconds_between_requests": 0, "seconds_between_writes": 0, "retry": None}
            with github.Github(base_url=self.url, auth=auth, **options) as client:
                return work(client)

        return await asyncio.to_thread(run)

    def clone_url(self, by: str = "", repo: str = "ada/garden") -> str:
        return f"{self.url.replace('http://', f'http://{by}:t-{by}@' if by else 'http://')}/{repo}.git"

    async def git(self, *arguments: str, at: Path | None = None, code: int = 0) -> str:
        """Run a `git` of somebody's own, which must end with `code`; return what it writes."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_{who}_{what}": "Ada" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        done = await asyncio.to_thread(
            subprocess.run,
            ["git", *arguments],
            cwd=at or self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    async def commit(self, path: str, text: str, *, branch: str = "main", by: str = "ada") -> str:
        """Commit one file through the API; return the commit's hash."""

        def put(client: github.Github) -> str:
            repo = client.get_repo("ada/garden")
            return repo.create_file(path, f"Add {path}", text, branch=branch)["commit"].sha

        return await self.use(put, by=by)

    async def branch(self, name: str, sha: str) -> None:
        answer = await self.ask("POST", f"{GARDEN}/git/refs", {"ref": f"refs/heads/{name}", "sha": sha})
        assert answer.status_code == 201, answer.text


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: apt-get install git")


@asynccontextmanager
async def open_github_place(folder: Path) -> AsyncIterator[GitHubPlace]:
    """Open a fresh GitHub; its Git repositories are under `folder`."""
    clock, faults = FakeClock(), GitHubFaults()
    (folder / "git").mkdir()
    network = GitHubNetwork(clock=clock, git_folder=folder / "git")
    ada, *_ = [network.create_account(login, token=f"t-{login}") for login in ("ada", "bea", "cy")]
    repo = network.create_repo(ada, "garden", description="What grows", collaborators=["bea"])
    app = github_app(network, faults=faults, meter=GitHubMeter(clock))
    async with serve(app) as url, httpx.AsyncClient(base_url=url, verify=NO_TLS, timeout=30) as http:
        yield GitHubPlace(url, http, clock, network, faults, repo, folder)
