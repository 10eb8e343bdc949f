"""Installs the packages that a repository needs for its tests: from the index, by hash, running none of its code.

Cargo and Go are here; npm and Python are in modules of their own. The resolved versions are kept in the home for later
rounds and reviews of the repository.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from common.clock import Clock
from common.files import delete_tree, small_text, walk, write_atomic
from modules.runtime.sandbox.gateway import Host, host_of
from modules.runtime.sandbox.policy import MIB
from modules.runtime.sandbox.runner import Sandbox, used_bytes
from modules.services.coding.environment import npm
from modules.services.coding.environment.npm import has_tests, npm_manager, pages_in, read_files
from modules.services.coding.environment.room import InstallRoom, reason
from modules.services.coding.environment.types import (
    VENV,
    Indexes,
    Kept,
    PackageManager,
    PackageNeeds,
    Project,
    PythonNeeds,
)
from modules.services.coding.suite_files import CARGO, GO, NOT_SOURCE

PAGE, LOCK = "Cargo.toml", "Cargo.lock"

_CONFIG = """[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "cargo/vendor"
"""
"""Makes Cargo use the vendored copies, for runs without a network."""
_PROBE_PAGE = '[package]\nname = "p"\nversion = "0.1.0"\n[dependencies]\ncfg-if = "1"\n'
_PAGE_BYTES, _LOCK_BYTES = 200_000, 4_000_000
_MOST_FILES = 20_000
_NAME_CHARS = 60
_WITHOUT_PACKAGES = frozenset({"package", "metadata", "features"})


def cargo_manager(registry: str) -> PackageManager:
    """Return how to run Cargo with `registry`, or with its default registry if that is ""."""
    ours = ("source.crates-io.replace-with='ours'", f"source.ours.registry='sparse+{registry.rstrip('/')}/'")
    cargo = " ".join(["cargo", *(f"--config {shlex.quote(one)}" for one in ours if registry)])
    made = f"mkdir -p /tmp/p/src && cd /tmp/p && touch src/lib.rs && printf %s {shlex.quote(_PROBE_PAGE)} >{PAGE}"
    copied = f"{cargo} vendor -q --locked --versioned-dirs --respect-source-config {CARGO}/vendor >/dev/null"
    return PackageManager(
        name="cargo",
        folder=CARGO,
        lock=LOCK,
        index=registry,
        env={"CARGO_NET_RETRY": "1", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL": "sparse"},
        probe=f"{made} && {cargo} fetch -q",
        resolve=f"{cargo} fetch -q",
        install=f"{copied} && printf %s {shlex.quote(_CONFIG)} >{CARGO}/config.toml",
        needs=cargo_needs,
    )


def cargo_needs(tree: Path) -> PackageNeeds:
    """Return the files of a tree that Cargo needs; none if the tree has no external dependency."""
    files = dict(_files(tree))
    if PAGE not in files:
        return PackageNeeds()
    try:
        pages = pages_in(files, PAGE, tomllib.loads)
    except (ValueError, RecursionError):
        return PackageNeeds(lacks=(f"{PAGE} cannot be read",))
    files = {path: text for path, text in files.items() if path in pages or path.rpartition("/")[2] != PAGE}
    if elsewhere := list(dict.fromkeys(name for page in pages.values() for name in _from_git(page))):
        return PackageNeeds(
            lacks=tuple(f"{name[:_NAME_CHARS]} is not taken from its Git repository" for name in elsewhere)
        )
    is_locked = LOCK in files
    has_some = "source = " in files[LOCK] if is_locked else any("dependencies" in text for text in files.values())
    return PackageNeeds(files, is_locked=is_locked) if has_some else PackageNeeds()


def _from_git(table: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of the packages that a `Cargo.toml` takes from Git repositories."""
    for name, value in table.items():
        if isinstance(value, Mapping) and name not in _WITHOUT_PACKAGES:
            yield from [name] if "git" in value else _from_git(value)


def _files(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield each `Cargo.toml` and the lock by path, and the paths of sources, from which Cargo infers what to build."""
    count = 0
    for folder, folders, names in walk(tree):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        for name in names:
            is_page, is_lock = name == PAGE, name == LOCK and not folder
            text = (
                small_text(tree / folder / name, _LOCK_BYTES if is_lock else _PAGE_BYTES) if is_page or is_lock else ""
            )
            if text is None or not (text or name.endswith(".rs")):
                continue
            yield f"{folder}/{name}" if folder else name, text
            if (count := count + 1) >= _MOST_FILES:
                return


_PROXY = 'export GOPROXY="${GOPROXY:-$(go env GOPROXY | sed "s/[,|]direct$//")}"'
"""Sets GOPROXY to the configured proxy or to the default of Go, without direct access to repositories."""
_PROBE = f'{_PROXY} && echo "$GOPROXY" && go mod download -json golang.org/x/mod@v0.12.0'
"""Asks the proxy for a module that we name."""
_INSTALL = (
    f"{_PROXY} && go mod download"
    f' && kept="$GOMODCACHE" && export GOMODCACHE="$PWD/{GO}" && GOPROXY="file://$kept/cache/download" go mod download'
)
"""Downloads into the cache, and copies from there the modules that this repository needs."""

_LOOPBACK = re.compile(r"//(?:localhost|127\.0\.0\.1)(?=[:/]|$)")
"""Go uses no HTTP proxy for these spellings of loopback, so it would bypass the gateway and fail; others work."""
_PAGE, _SUM = "go.mod", "go.sum"
_NAMES = frozenset({_PAGE, _SUM, "go.work", "go.work.sum"})
_VENDORED = "vendor/modules.txt"
_REQUIRES = re.compile(r"^[ \t]*require\b", re.MULTILINE)
_MOST_BYTES, _MOST_GO_FILES = 4_000_000, 500


def go_manager(proxy: str) -> PackageManager:
    """Return how to run Go: with one proxy, without a configuration file, and with hashes from `go.sum` alone."""
    proxy = _LOOPBACK.sub("//LOCALHOST", proxy)
    env = {"GOENV": "off", "GOFLAGS": "-modcacherw", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOVCS": "*:off"}
    return PackageManager(
        name="go",
        folder=GO,
        lock=_SUM,
        index=proxy,
        env=env | ({"GOPROXY": proxy} if proxy else {}),
        probe=_PROBE,
        resolve="",
        install=_INSTALL,
        needs=go_needs,
    )


def go_needs(tree: Path) -> PackageNeeds:
    """Return the files of a tree that Go needs; none if the tree requires no module or has them vendored."""
    files = dict(_go_files(tree))
    is_needed = _PAGE in files and any(_REQUIRES.search(text) for text in files.values())
    if not is_needed or (tree / _VENDORED).exists():
        return PackageNeeds()
    if _SUM not in files:
        return PackageNeeds(lacks=(f"{_PAGE} names modules, and there is no {_SUM} with their hashes",))
    return PackageNeeds(files, is_locked=True)


def _go_files(tree: Path) -> Iterator[tuple[str, str]]:
    count = 0
    for folder, folders, names in walk(tree):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        for name in sorted(_NAMES.intersection(names)):
            if (text := small_text(tree / folder / name, _MOST_BYTES)) is not None and count < _MOST_GO_FILES:
                count += 1
                yield f"{folder}/{name}" if folder else name, text


_FOLDER = "resolved"
_KEPT_S, _KEPT_LACKING_S = 7 * 86_400, 3_600


@dataclass(frozen=True, slots=True)
class KeptVersions:
    """The kept result for one set of needs: a file in the folder of the repository.

    It is used for 7 days; if something could not be resolved, for one hour, as it may be available by then.
    """

    folder: Path
    name: str
    clock: Clock

    @classmethod
    def of(cls, cache: Path, tree: Path, kind: str, needs: list[object], clock: Clock) -> KeptVersions:
        """Return the place for a tree, whose parent folder is named `<repository>--<purpose>`."""
        digest = hashlib.sha256(json.dumps(needs).encode()).hexdigest()[:16]
        return cls(cache / _FOLDER / tree.parent.name.partition("--")[0] / kind, f"{digest}.json", clock)

    def read(self) -> Kept | None:
        """Return the result for these needs, or None if there is none that is recent enough."""
        return next((kept for name, _, kept in self._all() if name == self.name), None)

    def newest(self) -> str:
        """Return the newest recent result for any needs of the repository, or ""."""
        return max(((at, kept.text) for _, at, kept in self._all()), default=(0, ""))[1]

    def write(self, kept: Kept) -> None:
        """Write the result for these needs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {"text": kept.text, "lacks": list(kept.lacks), "at": self.clock.now().timestamp()}
        write_atomic(self.folder / self.name, json.dumps(told))

    def _all(self) -> Iterator[tuple[str, float, Kept]]:
        """Yield for each recent file its name, when it was written and its content; delete files that are too old."""
        for path in self.folder.glob("*.json"):
            with suppress(ValueError, KeyError, TypeError):
                told = json.loads(path.read_text("utf-8"))
                kept, at = Kept(told["text"], tuple(told["lacks"])), float(told["at"])
                if 0 <= self.clock.now().timestamp() - at < (_KEPT_LACKING_S if kept.lacks else _KEPT_S):
                    yield path.name, at, kept
                    continue
            path.unlink(missing_ok=True)


CACHE = ".packages"
"""The folder in the home in which downloaded packages are kept for the next task."""
INSTALLED = (npm.FOLDER, VENV, CARGO, GO)
"""The folders that are installed into a tree."""

_LONGEST_S = 300.0
_MOST_TOLD = 12
_MOST_CACHE_BYTES = 4096 * MIB
_URL = re.compile(r"https?://[^\s\"'<>]+")


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs packages for one home.

    Attributes:
        indexes: where packages come from.
        cache: the folder for downloads and resolved versions; programs that run in a tree never see it.
        clock: tells how old those are.
        builds: whether packages without a wheel may be built, which runs their code; then nothing is kept.
        hosts: the hosts that each tool reaches, learned once per process.

    """

    indexes: Indexes
    cache: Path
    clock: Clock
    builds: bool = False
    hosts: dict[str, frozenset[Host]] = field(default_factory=dict)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def install(self, tree: Path, sandbox: Sandbox) -> str:
        """Install the dependencies of `tree`; return in one line what could not be installed and why, or "".

        Resolved versions are kept for 7 days: another tree of the repository with the same needs gets the same
        versions. Raises `SoulError` if the sandbox does not work.
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
        from modules.services.coding.environment import python  # noqa: PLC0415 - it imports a version parser

        needs, project = await asyncio.to_thread(_read_python, tree)
        lacks = list(needs.lacks)
        if (not needs.requirements and project is None) or is_there(tree / VENV):
            return lacks
        env, index = python.python_settings(self.indexes.python), self.indexes.python
        cache = None if self.builds else self.cache / "uv"  # files that a build writes must not reach another task
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
        except OSError as error:  # file names of the repository clash with those of the tools
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
        """Return the hosts that a tool reaches: the configured or default index, and the hosts that it redirects to.

        The tool is asked for a package that we name, in a room without files of the repository and without a cache.
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
    from modules.services.coding.environment.python import project_of  # noqa: PLC0415 - as above
    from modules.services.coding.environment.python_files import python_needs  # noqa: PLC0415 - as above

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
    """Move the installed folders to another tree, unless it has its own. A link is not moved: a test run left it."""
    for name in INSTALLED:
        found = source / name
        if found.is_dir() and not found.is_symlink() and not is_there(target / name):
            delete_tree(target / name)
            (target / name).parent.mkdir(exist_ok=True)
            shutil.move(found, target / name)


def is_there(path: Path) -> bool:
    """Return whether a path exists; a broken link and a circle of links do not."""
    try:
        path.stat()
    except OSError:
        return False
    return True
