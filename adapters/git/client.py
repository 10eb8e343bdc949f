"""Clones and pushes as one account. Every operation answers `ApiResult`; only our own bugs raise.

The token goes by the environment of `git` alone, so neither a process list nor the clone holds it. A push takes the
objects of a folder and none of its settings, hooks or addresses, as somebody else's code may have run there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.git.params import environment, is_valid_git_param, without_secrets
from adapters.git.process import GitRun, run_git
from adapters.git.sizes import LISTING, why_too_large
from common.git_names import is_branch_name
from common.github_address import github_address
from common.result import ApiResult, Err, ErrKind, Ok
from common.trees import delete_tree

GIT_DEADLINE_S = 120.0
_MAX_ERROR_CHARS = 300
_TOO_LARGE = ("signal 25", "file too large", "out of memory")
_NO_ACCESS = ("authentication failed", "could not read username", "error: 401", "error: 403", "permission to")
_MISSING = ("not found", "does not exist", "error: 404")
_NO_WAY = ("could not resolve host", "failed to connect", "connection refused", "couldn't connect")


@dataclass(frozen=True, slots=True)
class Pushed:
    """A branch that stands on the server at `sha`."""

    branch: str
    sha: str


class Git:
    """Git as one account at one service.

    Args:
        api_url: where the service's interface answers; its repositories lie beside it (`github_address`).
        login: the account's name; "" for nobody, who may clone what is public.
        token: its token; "" for nobody.
        deadline_s: seconds that one operation may take.

    """

    def __init__(self, *, api_url: str, login: str, token: str, deadline_s: float = GIT_DEADLINE_S) -> None:
        self._address = github_address(api_url)
        self._login = login
        self._token = token
        self._deadline_s = deadline_s

    def url(self, owner: str, repo: str) -> str:
        """The address of a repository, without credentials."""
        return f"{self._address}/{owner}/{repo}.git"

    async def clone(
        self, owner: str, repo: str, folder: Path, *, branch: str = "", depth: int | None = None
    ) -> ApiResult[Path]:
        """Clone into `folder`, which must not exist or be empty; what is left of a failed clone is taken away.

        The error is of kind `invalid` where the repository is too large to work on: its files are counted before any is
        written.

        Args:
            owner: of the repository.
            repo: its name.
            folder: where to.
            branch: the one to check out; the default branch where it is "".
            depth: how many commits of each history; None for all.

        """
        what = f"clone {owner}/{repo}"
        if wrong := _wrong(what, owner, repo, branch=branch or None):
            return wrong
        if _is_taken(folder):
            return Err(f"could not {what}: {folder} is not empty", "invalid")
        options = [f"--branch={branch}"] if branch else []
        options += [f"--depth={max(1, depth)}"] if depth is not None else []
        place = _whole(folder)
        arguments = (
            "clone",
            "--quiet",
            "--no-tags",
            "--no-checkout",
            *options,
            "--",
            self.url(owner, repo),
            str(place),
        )
        run = await self._run(arguments, at=place.parent)
        is_cloned = isinstance(run, GitRun) and run.code == 0
        failed = await self._check_out(what, place) if is_cloned else self._failed(what, run, write=False)
        if failed is not None:
            await asyncio.to_thread(delete_tree, place)
        return failed or Ok(folder)

    async def _check_out(self, what: str, clone: Path) -> Err | None:
        """Write the files of a fresh clone, unless they are too many or too large."""
        found = await self._run(
            ("-C", str(clone), "rev-parse", "--verify", "--quiet", "HEAD^{commit}"), at=clone.parent
        )
        if isinstance(found, GitRun) and found.code == 1:
            return None  # there is no commit in it yet
        for arguments in ((*LISTING, "HEAD"), ("reset", "--quiet", "--hard")):
            run = await self._run(("-C", str(clone), *arguments), at=clone.parent)
            if isinstance(run, GitRun) and run.is_cut:
                return Err(f"could not {what}: it is too large to work on", "invalid")
            if isinstance(run, Err) or run.code:
                return self._failed(what, run, write=False)
            if arguments[0] == LISTING[0] and (wrong := why_too_large(run.out)):
                return Err(f"could not {what}: it is too large to work on ({wrong})", "invalid")
        return None

    async def push(self, folder: Path, owner: str, repo: str, branch: str, *, sha: str = "") -> ApiResult[Pushed]:
        """Push a branch of the clone in `folder` to the branch of the same name, never over what others pushed.

        With `sha` that commit is pushed, whatever the branch stands on in the clone.

        The error is of kind `conflict` where the server holds commits that the branch does not.
        """
        what = f"push {branch} to {owner}/{repo}"
        if wrong := _wrong(what, owner, repo, *filter(None, [sha]), branch=branch):
            return wrong
        git_dir = _whole(folder) / ".git"
        if not _is_taken(git_dir / "objects"):
            return Err(f"could not {what}: {folder} is no clone", "invalid")
        with tempfile.TemporaryDirectory(prefix="push-") as name:
            return await self._push_from(Path(name), git_dir, self.url(owner, repo), branch, sha=sha, what=what)

    async def _push_from(
        self, bare: Path, git_dir: Path, url: str, branch: str, *, sha: str, what: str
    ) -> ApiResult[Pushed]:
        commit = sha or f"refs/heads/{branch}"
        read = await self._run(
            ("--git-dir", str(git_dir), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"), at=bare
        )
        if isinstance(read, Err) or read.code:
            return Err(f"could not {what}: there is no such commit in {git_dir.parent}", "invalid")
        sha = read.out.strip()
        made = await self._run(("init", "--quiet", "--bare", "--template=", str(bare)), at=bare)
        if isinstance(made, Err) or made.code:
            return self._failed(what, made, write=False)
        if (shallow := git_dir / "shallow").is_file():
            await asyncio.to_thread(shutil.copyfile, shallow, bare / "shallow")
        run = await self._run(
            ("--git-dir", str(bare), "push", "--porcelain", "--", url, f"{sha}:refs/heads/{branch}"),
            at=bare,
            more={"GIT_OBJECT_DIRECTORY": str(git_dir / "objects")},
        )
        if isinstance(run, GitRun) and run.code == 0:
            return Ok(Pushed(branch, sha))
        if isinstance(run, GitRun) and any(line.startswith("!") for line in run.out.splitlines()):
            told = without_secrets(run.out, login=self._login, token=self._token)[:_MAX_ERROR_CHARS]
            return Err(f"could not {what}: the server refused it ({told})", "conflict")
        return self._failed(what, run, write=True)

    async def _run(
        self, arguments: tuple[str, ...], *, at: Path, more: Mapping[str, str] | None = None
    ) -> GitRun | Err:
        """Run `git`; an `Err` where it could not be started or did not end in time."""
        env = environment(
            self._address, login=self._login, token=self._token, home=str(at), path=os.environ.get("PATH", os.defpath)
        )
        return await run_git(arguments, at=at, env={**env, **(more or {})}, deadline_s=self._deadline_s)

    def _failed(self, what: str, run: GitRun | Err, *, write: bool) -> Err:
        if isinstance(run, Err):
            kind: ErrKind = "transient" if run.kind == "unknown_outcome" and not write else run.kind
            return Err(f"could not {what}: {run.error}", kind)
        if any(words in run.told.lower() for words in _TOO_LARGE):
            return Err(f"could not {what}: it is too large to work on", "invalid")
        told = without_secrets(run.told, login=self._login, token=self._token)
        return Err(
            f"could not {what}: {told[:_MAX_ERROR_CHARS] or f'git ended with {run.code}'}", _kind(told, write=write)
        )


def _whole(folder: Path) -> Path:
    return folder.resolve()


def _is_taken(folder: Path) -> bool:
    """Whether anything is there but an empty folder."""
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def _kind(told: str, *, write: bool) -> ErrKind:
    said = told.lower()
    if any(words in said for words in _NO_ACCESS):
        return "auth"
    if any(words in said for words in _MISSING):
        return "not_found"
    if any(words in said for words in _NO_WAY):
        return "transient"
    return "unknown_outcome" if write else "transient"


def _wrong(what: str, *values: str, branch: str | None) -> Err | None:
    """Why one of the values, or a branch of that name, cannot be handed to git."""
    wrong = next((value for value in values if not is_valid_git_param(value)), None)
    if wrong is None and branch is not None and not is_branch_name(branch):
        wrong = branch
    return None if wrong is None else Err(f"could not {what}: {wrong!r} is nothing to hand to git", "invalid")
