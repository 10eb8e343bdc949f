"""Clones and pushes as one account, by running `git` with fixed settings, a deadline and limits.

Every operation returns `ApiResult`; only our own bugs raise. The token is passed only in the environment of `git`, so
neither a process list nor the clone holds it. A push takes the objects of a folder but none of its settings, hooks or
remotes, because untrusted code may have run there.
"""

import asyncio
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.git.params import LISTING, environment, is_valid_git_param, why_too_large, without_secrets
from common.files import delete_tree, is_machine_trouble
from common.git_names import github_address, is_branch_name
from common.result import ApiResult, Err, ErrKind, Ok
from common.text.github_text import read_source

MIB = 1024 * 1024
MOST_FILE_BYTES = 512 * MIB
"""The largest file that git may write, such as the pack of a repository."""
_MOST_MEMORY_BYTES = 176 * MIB
MOST_OUT_BYTES = 16 * MIB
_MOST_TOLD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_NOT_FOUND = 127
_FILE = b"diff --git "
_FILES = re.compile(b"^(?=%s)" % _FILE, re.MULTILINE)
# NOTE(self): set by a shell, since our own code between fork and exec may hang in a process with threads.
_LIMITED = (
    f'ulimit -d {_MOST_MEMORY_BYTES // 1024} 2>/dev/null; ulimit -f {MOST_FILE_BYTES // 512} 2>/dev/null; exec git "$@"'
)


@dataclass(frozen=True, slots=True)
class GitRun:
    """A run that ended: its exit code, its stdout, and what it wrote to stderr.

    `is_cut` says that it was killed because it wrote more to stdout than allowed; `out` is then the beginning.
    """

    code: int
    out: str
    told: str
    is_cut: bool = False


async def run_git(
    arguments: tuple[str, ...],
    *,
    at: Path,
    env: Mapping[str, str],
    deadline_s: float,
    given: str = "",
    most_bytes: int = MOST_OUT_BYTES,
    handles: tuple[int, ...] = (),
) -> GitRun | Err:
    """Run `git` in the folder `at` with `given` on stdin; it inherits `handles`.

    A run that writes more than `most_bytes` to stdout is killed. The error is of kind `invalid` if it cannot be
    started, `transient` if the machine fails for now, and `unknown_outcome` if it does not end in time.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _LIMITED,
            "git",
            *arguments,
            cwd=at,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=handles,
        )
    except OSError as error:
        if is_machine_trouble(error):
            return Err(f"git cannot be started now: {error.strerror}", "transient")
        return Err(f"git cannot be started ({error.strerror}): install it", "invalid")
    try:
        async with asyncio.timeout(deadline_s):
            out, told = await _talk(process, given.encode(), most_bytes)
            if not (is_cut := len(out) > most_bytes):
                await process.wait()
    except TimeoutError:
        return Err(f"it took longer than {deadline_s:g} s", "unknown_outcome")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await drain(process)
    if is_cut:
        beginning = _text(out[:most_bytes])
        return GitRun(process.returncode or 0, beginning, f"it lists more than {most_bytes // MIB} MiB", is_cut=True)
    if process.returncode == _NOT_FOUND:
        return Err("git cannot be started: install it", "invalid")
    return GitRun(process.returncode or 0, _text(out), told.decode(errors="replace"))


def _text(out: bytes) -> str:
    """Return the output of git as text, each file of a diff in its own encoding."""
    text = _decoded(out)
    return "".join(map(_part, _FILES.split(out))) if text is None else text


def _part(part: bytes) -> str:
    """Return the diff of one file as text; its lines that are not UTF-8 tell the encoding, which may change."""
    lines = part.splitlines(keepends=True)
    odd = b"".join(line for line in lines if _decoded(line) is None)
    source = read_source(odd) if part.startswith(_FILE) else None
    encoding = source.encoding if source else "utf-8"
    return "".join(_decoded(line) or line.decode(encoding, errors="replace") for line in lines)


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


async def _talk(process: asyncio.subprocess.Process, given: bytes, most: int) -> tuple[bytes, bytes]:
    """Write the input of a run; return its stdout, cut off once over `most` bytes, and its stderr."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("the streams are pipes")
    writing = asyncio.create_task(_write(process.stdin, given))
    telling = asyncio.create_task(_last_of(process.stderr))
    try:
        out = await _all_of(process.stdout, most)
        return out, b"" if len(out) > most else await telling
    finally:
        for task in (writing, telling):
            task.cancel()
        await asyncio.gather(writing, telling, return_exceptions=True)


async def drain(process: asyncio.subprocess.Process) -> None:
    """Wait until a killed run and its pipes have ended: asyncio notices only once the pipes were read to the end."""
    await abort_input(process)
    for stream in (process.stdout, process.stderr):
        while stream and await stream.read(_CHUNK_BYTES):
            pass
    await process.wait()


async def abort_input(process: asyncio.subprocess.Process) -> None:
    """Close the pipe to a process's input and drop what was not read yet."""
    if process.stdin is None:
        return
    if not process.stdin.is_closing():
        process.stdin.transport.abort()
    with suppress(OSError):
        await process.stdin.wait_closed()


async def _write(stdin: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(given)
        await stdin.drain()
        stdin.close()


async def _all_of(stream: asyncio.StreamReader, most: int) -> bytes:
    read = bytearray()
    while len(read) <= most and (chunk := await stream.read(_CHUNK_BYTES)):
        read += chunk
    return bytes(read)


async def _last_of(stream: asyncio.StreamReader) -> bytes:
    read = b""
    while chunk := await stream.read(_CHUNK_BYTES):
        read = (read + chunk)[-_MOST_TOLD_BYTES:]
    return read


GIT_DEADLINE_S = 120.0
_MAX_ERROR_CHARS = 300
_TOO_LARGE = ("signal 25", "file too large", "out of memory")
_NO_ACCESS = ("authentication failed", "could not read username", "error: 401", "error: 403", "permission to")
_MISSING = ("not found", "does not exist", "error: 404")
_NO_WAY = ("could not resolve host", "failed to connect", "connection refused", "couldn't connect")


@dataclass(frozen=True, slots=True)
class Pushed:
    """A branch whose newest commit on the server is `sha`."""

    branch: str
    sha: str


class Git:
    """Git as one account at one service.

    Args:
        api_url: the API of the service; the address of its repositories follows from it (`github_address`).
        login: the account's name; "" for nobody, who may clone public repositories.
        token: its token; "" for nobody.
        deadline_s: seconds that one operation may take.

    """

    def __init__(self, *, api_url: str, login: str, token: str, deadline_s: float = GIT_DEADLINE_S) -> None:
        self._address = github_address(api_url)
        self._login = login
        self._token = token
        self._deadline_s = deadline_s

    def url(self, owner: str, repo: str) -> str:
        """Return the address of a repository, without credentials."""
        return f"{self._address}/{owner}/{repo}.git"

    async def clone(
        self, owner: str, repo: str, folder: Path, *, branch: str = "", depth: int | None = None
    ) -> ApiResult[Path]:
        """Clone into `folder`, which must not exist or be empty; the rest of a failed clone is deleted.

        The error is of kind `invalid` if the repository is too large to work on: its files are counted before any is
        written.

        Args:
            owner: the owner of the repository.
            repo: its name.
            folder: where to clone to.
            branch: the branch to check out; "": the default branch.
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
        """Write the files of a fresh clone, unless they are too many or too large; return the error, if any."""
        found = await self._run(
            ("-C", str(clone), "rev-parse", "--verify", "--quiet", "HEAD^{commit}"), at=clone.parent
        )
        if isinstance(found, GitRun) and found.code == 1:
            return None  # it has no commit yet
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

        With `sha` that commit is pushed instead of the branch's newest one. The error is of kind `conflict` if the
        server has commits that the branch lacks.
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
        """Run `git`; return an `Err` if it could not be started or did not end in time."""
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
    """Return whether anything but an empty folder is there."""
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
    """Return why one of the values, or the branch name, must not be passed to git; else None."""
    wrong = next((value for value in values if not is_valid_git_param(value)), None)
    if wrong is None and branch is not None and not is_branch_name(branch):
        wrong = branch
    return None if wrong is None else Err(f"could not {what}: {wrong!r} is nothing to hand to git", "invalid")
