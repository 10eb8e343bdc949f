"""Runs programs for the SOUL: in a sandbox, or, if the owner insists, without one; else not at all.

A run leaves nothing behind but what it wrote into its work folder. When the SOUL dies, what runs in a sandbox dies too.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

from common.errors import PolicyBlocked, SoulError
from common.redact import Redactor
from modules.runtime.sandbox.cgroup import RunGroup, open_group
from modules.runtime.sandbox.policy import (
    HOME,
    PATH,
    SHARED,
    UNBOUND_WARNING,
    UNSAFE_WARNING,
    environment,
    most_memory,
    most_tasks,
    refused,
    rlimits,
    sandboxed,
)
from modules.runtime.sandbox.supervise import see_to_the_end, start_bare, start_sandboxed
from modules.runtime.sandbox.types import Limits, Ran, Shared
from modules.runtime.sandbox.watch import Watch

_PROBE = Limits(wall_s=10)
_GO = Path("/usr/local/go")
_REMEDY = "Install bubblewrap (apt-get install bubblewrap), or set SOUL_UNSAFE_EXEC=1 and mean it."


def toolchains(env: Mapping[str, str] = os.environ, path: str = PATH) -> tuple[Shared, ...]:
    """Return the folders to share with runs, read-only: the default toolchain of rustup, and Go in `/usr/local/go`.

    Each has its programs in `bin`. Nothing is returned for a program that runs find by themselves, in `path`.
    """
    rust = None if shutil.which("cargo", path=path) else _rust(Path(env.get("RUSTUP_HOME") or "~/.rustup"))
    go = None if shutil.which("go", path=path) else _GO
    found = [Shared(name, folder) for name, folder in (("rust", rust), ("go", go)) if folder]
    return tuple(one for one in found if (one.path / "bin").is_dir())


def _rust(rustup: Path) -> Path | None:
    with suppress(OSError, RuntimeError, tomllib.TOMLDecodeError, KeyError):  # RuntimeError: a user without a home
        rustup = rustup.expanduser()
        name = str(tomllib.loads((rustup / "settings.toml").read_text("utf-8"))["default_toolchain"])
        return next(iter(sorted((rustup / "toolchains").glob(f"{name}*"))), None)
    return None


@dataclass(frozen=True, slots=True)
class _Job:
    command: Sequence[str]
    work_dir: Path
    env: Mapping[str, str]
    network: bool
    limits: Limits
    shared: Sequence[Shared]
    tmp: Path | None


class Sandbox:
    """What runs programs.

    Args:
        redactor: knows the secrets, none of which gets inside.
        private: files and folders that no run may have within reach, such as `.env` and `.memory`.
        tools: what every run sees and finds its programs in the `bin` of (`toolchains`).
        unsafe: whether to run without a sandbox where there is none (`SOUL_UNSAFE_EXEC`).
        host: the environment of this process.
        bwrap: where bubblewrap is; None: not here.

    """

    def __init__(
        self,
        *,
        redactor: Redactor,
        private: Iterable[Path] = (),
        tools: Iterable[Shared] = (),
        unsafe: bool = False,
        host: Mapping[str, str] = os.environ,
        bwrap: str | None = shutil.which("bwrap"),
    ) -> None:
        self._redactor = redactor
        self._private = tuple(path.resolve() for path in private)
        self._tools = tuple(tools)
        self._unsafe = unsafe
        self._host = host
        self._bwrap = bwrap

    @property
    def is_there(self) -> bool:
        """Whether programs are run at all: in a sandbox, or without one as the owner insists."""
        return bool(self._bwrap) or self._unsafe

    async def run(
        self,
        command: Sequence[str],
        work_dir: Path,
        *,
        network: bool = False,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        env: Mapping[str, str] | None = None,
        shared: Sequence[Shared] = (),
        tmp: Path | None = None,
    ) -> Ran:
        """Run a program to its end, or to its limits.

        Args:
            command: program and arguments; no shell reads them. In the sandbox the work folder is `/work`.
            work_dir: the folder that it may write to; it exists.
            network: lets it use the network as this machine does, its loopback services included.
            limits: what it may take.
            env: variables for it, beside a path, a home and the language.
            shared: what else of this machine it sees, at `seen_at`.
            tmp: a folder that exists and becomes its /tmp, with what earlier runs left; its size counts to that of
                the work folder. None: an empty /tmp in memory.

        Raises:
            PolicyBlocked: there is no sandbox, or a secret or a private file would get inside.
            SoulError: the sandbox does not work here.

        """
        path = ":".join([PATH, *(f"{self.seen_at(one)}/bin" for one in self._tools)])
        given = {"PATH": path, **(env or {})}
        job, stop = _Job(command, work_dir, given, network, limits, (*self._tools, *shared), tmp), Event()
        with ThreadPoolExecutor(1, thread_name_prefix="sandbox") as thread:
            running = asyncio.get_running_loop().run_in_executor(thread, self._supervise, job, stop)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait([running])
                raise

    def seen_at(self, shared: Shared) -> str:
        """Return the path at which a run sees what is shared with it."""
        return f"{SHARED}/{shared.name}" if self._bwrap else str(shared.path)

    async def probe(self) -> str:
        """Why programs cannot be run in a sandbox here, found by trying; "" if they can."""
        if not self._bwrap:
            return "bubblewrap is not installed"
        with tempfile.TemporaryDirectory() as folder:
            try:
                ran = await Sandbox(redactor=Redactor(), bwrap=self._bwrap).run(["true"], Path(folder), limits=_PROBE)
            except SoulError as error:
                return str(error)
        return "" if ran.success else f"a trial run in the sandbox failed: {ran.stderr.strip() or ran.ended}"

    def _supervise(self, job: _Job, stop: Event) -> Ran:
        """One run, in a thread of its own."""
        job = replace(job, tmp=job.tmp and job.tmp.resolve())
        job = replace(job, work_dir=self._checked(job))
        watch = Watch(job.work_dir, job.limits, job.tmp)
        group = open_group(most_tasks(job.limits), most_memory(job.limits))
        try:
            return self._limited(job, watch, stop, group)
        finally:
            if group is not None:
                group.remove()

    def _limited(self, job: _Job, watch: Watch, stop: Event, group: RunGroup | None) -> Ran:
        if not self._bwrap:
            env = environment(self._host, job.env, home=str(job.tmp or job.work_dir))
            child = start_bare(job.command, job.work_dir, env, rlimits(job.limits, sandbox=False), group)
            return replace(see_to_the_end(child, watch, job.limits, stop), warning=UNSAFE_WARNING)
        shown = partial(sandboxed, network=job.network, limits=job.limits, shared=job.shared, tmp=job.tmp)
        line = partial(shown, self._bwrap, job.command, job.work_dir)
        env = environment(self._host, job.env, home=HOME)
        child = start_sandboxed(line, env, rlimits(job.limits, sandbox=True), group)
        ran = see_to_the_end(child, watch, job.limits, stop)
        return replace(ran, warning=UNBOUND_WARNING) if group is None and os.geteuid() == 0 else ran

    def _checked(self, job: _Job) -> Path:
        """The real work folder of a job that may run."""
        work_dir = job.work_dir.resolve()
        if not work_dir.is_dir():
            raise PolicyBlocked(f"Not run: {work_dir} is no folder to work in")
        checked = partial(refused, redactor=self._redactor, private=self._private, shared=job.shared)
        for folder in (work_dir, *([job.tmp] if job.tmp else [])):
            if why := checked(job.command, job.env, folder):
                raise PolicyBlocked(f"Not run: {why}")
        if not self._bwrap and not self._unsafe:
            raise PolicyBlocked("Programs are only run in a sandbox, and bubblewrap is not installed", remedy=_REMEDY)
        return work_dir
