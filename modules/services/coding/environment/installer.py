"""Installs what a repository needs before its tests run: packages from the index, by hash, running none of its code."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from common.clock import Clock
from common.trees import delete_tree
from modules.runtime.sandbox.gateway import Host, host_of
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import MIB
from modules.runtime.sandbox.watch import used_bytes
from modules.services.coding.environment import npm
from modules.services.coding.environment.cargo import cargo_manager
from modules.services.coding.environment.golang import go_manager
from modules.services.coding.environment.kept_versions import KeptVersions
from modules.services.coding.environment.npm import npm_manager
from modules.services.coding.environment.room import InstallRoom, reason
from modules.services.coding.environment.tree_reader import has_tests, read_files
from modules.services.coding.environment.types import VENV, Indexes, Kept, PackageManager, Project, PythonNeeds
from modules.services.coding.suite_files import CARGO, GO

CACHE = ".packages"
"""The folder of the home in which downloaded packages are kept for the next task."""
INSTALLED = (npm.FOLDER, VENV, CARGO, GO)
"""The folders that are made in a tree."""

_LONGEST_S = 300.0
_MOST_TOLD = 12
_MOST_CACHE_BYTES = 4096 * MIB
_URL = re.compile(r"https?://[^\s\"'<>]+")


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs packages for one home.

    Attributes:
        indexes: where they come from.
        cache: where downloads and what was resolved are kept; what works in a tree never sees it.
        clock: tells how old that is.
        builds: whether what has no wheel may be built, which runs its code; then nothing is kept.
        hosts: what the tools reach, learned once in a process.

    """

    indexes: Indexes
    cache: Path
    clock: Clock
    builds: bool = False
    hosts: dict[str, frozenset[Host]] = field(default_factory=dict)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def install(self, tree: Path, sandbox: Sandbox) -> str:
        """Install what `tree` depends on; return in one line what could not be, and why, or "".

        What was resolved is kept for 7 days: another tree of the repository with the same needs gets the same versions.
        Raises `SoulError` where the sandbox does not work.
        """
        async with self._one_at_a_time:
            folder = tree.with_name(f"{tree.name}-installed")
            await asyncio.to_thread(delete_tree, folder)
            folder.mkdir()
            self.cache.mkdir(parents=True, exist_ok=True)
            lacks, indexes = list[str](), self.indexes
            try:
                async with asyncio.timeout(_LONGEST_S):
                    lacks += await self._python(tree, folder, sandbox)
                    for manager in (npm_manager(indexes.npm), cargo_manager(indexes.cargo), go_manager(indexes.go)):
                        lacks += await self._with(manager, tree, folder, sandbox)
            except TimeoutError:
                lacks.append(f"installing took longer than {_LONGEST_S:.0f} seconds, and was ended")
            else:
                await asyncio.to_thread(move_installed, folder, tree)
            finally:
                await asyncio.to_thread(delete_tree, folder)
                await asyncio.to_thread(self._bound_cache)
        told = list(dict.fromkeys(lacks))
        more = [f"and {len(told) - _MOST_TOLD} more"] if len(told) > _MOST_TOLD else []
        return "; ".join([*told[:_MOST_TOLD], *more])

    async def _python(self, tree: Path, folder: Path, sandbox: Sandbox) -> list[str]:
        from modules.services.coding.environment import python  # noqa: PLC0415 - with it comes a parser of versions

        needs, project = await asyncio.to_thread(_read_python, tree)
        lacks = list(needs.lacks)
        if (not needs.requirements and project is None) or is_there(tree / VENV):
            return lacks
        env, index = python.python_settings(self.indexes.python), self.indexes.python
        cache = None if self.builds else self.cache / "uv"  # what a build writes must not reach another task
        open_room = InstallRoom(sandbox, folder, cache, None)
        if needs.requirements == ("pytest",) and project is None and await _has_pytest(open_room):
            return lacks
        hosts = await self._hosts("python", index, python.PROBE, env, open_room)
        room = replace(open_room, hosts=hosts)
        made, told = await python.make_venv(room, needs, env)
        lacks += told
        if not made:
            return lacks
        asked = [needs.requirements, needs.constraints, needs.python, self.builds, index]
        place = KeptVersions.of(self.cache, tree, "python", asked, self.clock)
        kept = await asyncio.to_thread(place.read)
        if kept is None:
            before = await asyncio.to_thread(place.newest)
            text, told = await python.resolve(room, needs, env, before, builds=self.builds)
            kept = Kept(text, tuple(told))
            if text:
                await asyncio.to_thread(place.write, kept)
        lacks += kept.lacks
        return lacks + await python.install_resolved(room, kept.text, project, env, builds=self.builds)

    async def _with(self, manager: PackageManager, tree: Path, folder: Path, sandbox: Sandbox) -> list[str]:
        try:
            return await self._installed(manager, tree, folder, sandbox)
        except OSError as error:  # the names of a repository clash with what the tools write
            return [f"{manager.name}: {error.strerror}"]

    async def _installed(self, manager: PackageManager, tree: Path, folder: Path, sandbox: Sandbox) -> list[str]:
        needs = await asyncio.to_thread(manager.needs, tree)
        lacks = list(needs.lacks)
        if not needs.files or is_there(tree / manager.folder):
            return lacks
        if not (await sandbox.run(["/bin/sh", "-c", f"command -v {manager.name}"], folder)).success:
            return [*lacks, f"{manager.name} is not installed on this machine"]
        open_room = InstallRoom(sandbox, folder, self.cache / manager.name, None)
        hosts = await self._hosts(manager.name, manager.index, manager.probe, manager.env, open_room)
        room = replace(open_room, hosts=hosts)
        await asyncio.to_thread(_write_files, folder, needs.files)
        if not needs.is_locked:
            asked: list[object] = [sorted(one for one in needs.files.items() if one[1]), manager.index]
            place = KeptVersions.of(self.cache, tree, manager.name, asked, self.clock)
            kept = await asyncio.to_thread(place.read)
            if kept is None:
                if before := await asyncio.to_thread(place.newest):
                    await asyncio.to_thread(_write_files, folder, {manager.lock: before})
                ran, gateway = await room.run(manager.resolve, manager.env)
                if not ran.success:
                    return [*lacks, f"{manager.name}: {reason(ran, gateway)}"]
                lock = folder / manager.lock
                kept = Kept(await asyncio.to_thread(lock.read_text, "utf-8") if lock.exists() else "")
                await asyncio.to_thread(place.write, kept)
            await asyncio.to_thread(_write_files, folder, {manager.lock: kept.text})
        ran, gateway = await room.run(manager.install, manager.env)
        return lacks if ran.success else [*lacks, f"{manager.name}: {reason(ran, gateway)}"]

    async def _hosts(
        self, tool: str, index: str, probe: str, env: Mapping[str, str], room: InstallRoom
    ) -> frozenset[Host]:
        """Return what a tool reaches: the index that is set or that it has by itself, and where that leads.

        The tool is asked for a package that we name, in a room with nothing of a repository and nothing kept.
        """
        if tool not in self.hosts:
            with tempfile.TemporaryDirectory(prefix="soul-") as empty:
                ran, gateway = await replace(room, folder=Path(empty), cache=None).run(probe, env)
            told = [host_of(url) for url in [index, *_URL.findall(ran.stdout)]]
            found = frozenset([*gateway.reached, *(host for host in told if host)])
            if not ran.success:
                return found
            self.hosts[tool] = found
        return self.hosts[tool]

    def _bound_cache(self) -> None:
        if used_bytes(self.cache) > _MOST_CACHE_BYTES:
            delete_tree(self.cache)


def _read_python(tree: Path) -> tuple[PythonNeeds, Project | None]:
    from modules.services.coding.environment.project import project_of  # noqa: PLC0415 - the same
    from modules.services.coding.environment.python_files import python_needs  # noqa: PLC0415 - the same

    texts = read_files(tree)
    needs = python_needs(texts, has_tests=has_tests(tree))
    return needs, project_of(tree, texts, needs.folders)


async def _has_pytest(room: InstallRoom) -> bool:
    ran = await room.sandbox.run(["python3", "-c", "import pytest"], room.folder)
    return ran.success


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def move_installed(source: Path, target: Path) -> None:
    """Move what was installed into another folder, unless it brought its own. A link is not moved: tests left it."""
    for name in INSTALLED:
        found = source / name
        if found.is_dir() and not found.is_symlink() and not is_there(target / name):
            delete_tree(target / name)
            (target / name).parent.mkdir(exist_ok=True)
            shutil.move(found, target / name)


def is_there(path: Path) -> bool:
    """Return whether a path leads anywhere: a link to nothing, or in a circle, does not."""
    try:
        path.stat()
    except OSError:
        return False
    return True
