"""Installs what a Python repository needs into `.venv`, with uv, and makes the repository itself a package there.

The package is a wheel that holds a path file instead of modules, like that of an editable install; so no code of the
repository runs to build it.
"""

import asyncio
import configparser
import io
import os
import re
import shlex
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from common.files import small_text
from modules.services.coding.environment.room import InstallRoom, reason
from modules.services.coding.environment.types import Hashes, Project, PythonNeeds

_ROOTS = ("src", "lib", "python")
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"^(?:__version__|VERSION)\b[^=\n]*=\s*['\"]([^'\"\n]+)['\"]", re.MULTILINE)
_VERSION_FILES = ("__init__.py", "__about__.py", "_version.py", "version.py", "__version__.py")
_MOST_BYTES = 100_000
_SAFE = re.compile(r"[\w.:\[\], -]+")
_UP = "../../../.."
_FINDER = """\
import importlib.util, re, sys

class _Versions:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_loader(name, _Versions) if name in {names!r} else None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        module.__version__ = module.version = {version!r}
        module.__version_tuple__ = module.version_tuple = tuple(map(int, re.findall(r"[0-9]+", module.version)))

sys.meta_path.append(_Versions)
"""
"""Provides the version modules that a build would write; it is the last finder, so existing modules come first."""
"""The path of the tree (`_UP`), relative to the folder of the installed packages."""


def project_of(tree: Path, texts: Mapping[str, str], folders: Sequence[str]) -> Project | None:
    """Return the package that a tree contains, or None if its files describe none.

    Args:
        tree: the folder of the files.
        texts: the contents of the files in its root, by name.
        folders: the folders of further packages that are part of the repository.

    """
    try:
        page: Mapping[str, Any] = tomllib.loads(texts.get("pyproject.toml", ""))
    except (tomllib.TOMLDecodeError, RecursionError):
        page = {}
    standard, poetry = _table(page.get("project")), _table(_table(page.get("tool")).get("poetry"))
    config = configparser.ConfigParser(interpolation=None)
    try:
        config.read_string(texts.get("setup.cfg", ""))
    except configparser.Error:
        config.clear()
    name = str(standard.get("name") or poetry.get("name") or config.get("metadata", "name", fallback=""))
    if not name and "setup.py" not in texts:
        return None
    name = (
        name if _NAME.fullmatch(name) else canonicalize_name(re.sub(r"[^\w.-]", "-", tree.name)).strip("-") or "project"
    )
    roots = tuple(dict.fromkeys(root for folder in (".", *folders) for root in _roots(tree, folder, page, config)))
    told = standard.get("version") or poetry.get("version") or config.get("metadata", "version", fallback="")
    version = _version(tree, str(told), texts, roots)
    links = {label: url for label, url in _table(standard.get("urls")).items() if "\n" not in f"{label}{url}"}
    entry_points, unwritten = _entry_points(standard, poetry, config), tuple(_unwritten(tree, page, roots))
    return Project(name, version, roots, entry_points, links, unwritten)


def project_wheel(project: Project) -> tuple[str, bytes]:
    """Return the file name and the content of a wheel that makes the project importable from its sources."""
    name = re.sub(r"[-_.]+", "_", project.name)
    about = f"{name}-{project.version}.dist-info"
    said = ["Metadata-Version: 2.1", f"Name: {project.name}", f"Version: {project.version}"]
    said += [f"Project-URL: {label}, {url}" for label, url in project.links.items()]
    groups = (
        "\n".join([f"[{group}]", *(f"{one} = {target}" for one, target in entries.items()), ""])
        for group, entries in project.entry_points.items()
    )
    files = {
        f"__{name}_path.pth": "".join(f"{_UP}/{root}\n" for root in project.roots),
        f"{about}/METADATA": "\n".join([*said, ""]),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: soul\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "\n".join(groups),
    }
    if project.unwritten:
        files[f"__{name}_versions.pth"] = f"import __{name}_versions\n"
        files[f"__{name}_versions.py"] = _FINDER.format(names=project.unwritten, version=project.version)
    listed = "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in {**files, f"{about}/RECORD": listed}.items():
            archive.writestr(path, text)
    return f"{name}-{project.version}-py3-none-any.whl", packed.getvalue()


def _unwritten(tree: Path, page: Mapping[str, Any], roots: Sequence[str]) -> Iterator[str]:
    """Yield the names of the version modules that only a build would write and that do not exist."""
    tools = _table(page.get("tool"))
    scm, hatch = _table(tools.get("setuptools_scm")), tools
    for key in ("hatch", "build", "hooks", "vcs"):
        hatch = _table(hatch.get(key))
    for path in (scm.get("version_file"), scm.get("write_to"), hatch.get("version-file")):
        if not isinstance(path, str) or not path.endswith(".py") or (tree / path).exists():
            continue
        for root in roots:
            below = path if root == "." else path.removeprefix(f"{root}/")
            name = below.removesuffix(".py").replace("/", ".")
            if (root == "." or below != path) and all(part.isidentifier() for part in name.split(".")):
                yield name
                break


def _roots(tree: Path, folder: str, page: Mapping[str, Any], config: configparser.ConfigParser) -> Iterator[str]:
    """Yield the folders in `folder` from which modules are imported, relative to the tree."""
    if not (_is_inside(tree, folder) and (tree / folder).is_dir()):
        return
    setuptools = _table(_table(page.get("tool")).get("setuptools"))
    where = _table(_table(setuptools.get("packages")).get("find")).get("where")
    told = [_table(setuptools.get("package-dir")).get(""), config.get("options.packages.find", "where", fallback="")]
    told += where if isinstance(where, list) else []
    named = [one for one in told if isinstance(one, str) and one] if folder == "." else []
    inside = [one for one in dict.fromkeys([*named, *_ROOTS]) if _is_inside(tree, f"{folder}/{one}")]
    found = [one for one in inside if _holds_modules(tree / folder / one)]
    yield from (os.path.normpath(f"{folder}/{one}") for one in found or ["."])


def _holds_modules(folder: Path) -> bool:
    """Return whether a folder contains modules and is not a package itself."""
    if not folder.is_dir() or folder.is_symlink() or (folder / "__init__.py").exists():
        return False
    return any((one.suffix == ".py" and one.is_file()) or (one / "__init__.py").is_file() for one in folder.iterdir())


def _version(tree: Path, told: str, texts: Mapping[str, str], roots: Sequence[str]) -> str:
    """Return the version that the files give, with that of a source distribution first; "0.0.0" if none is valid."""
    metadata = re.search(r"^Version: (.+)$", texts.get("PKG-INFO", ""), re.MULTILINE)
    candidates = [metadata[1] if metadata else "", told]
    for root in roots if not any(candidates) else ():
        for package in sorted((tree / root).iterdir())[:_MOST_BYTES]:
            for name in () if package.is_symlink() else _VERSION_FILES:
                candidates += _VERSION.findall(small_text(package / name, _MOST_BYTES) or "")
    for one in candidates:
        try:
            return str(Version(one))
        except InvalidVersion:
            continue
    return "0.0.0"


def _entry_points(
    standard: Mapping[str, Any], poetry: Mapping[str, Any], config: configparser.ConfigParser
) -> Mapping[str, Mapping[str, str]]:
    groups = {
        "console_scripts": {**_table(poetry.get("scripts")), **_table(standard.get("scripts"))},
        **{name: _table(one) for name, one in _table(poetry.get("plugins")).items()},
        **{name: _table(one) for name, one in _table(standard.get("entry-points")).items()},
    }
    if config.has_section("options.entry_points"):
        for group, text in config["options.entry_points"].items():
            pairs = (line.partition("=") for line in text.split("\n"))
            groups[group] = {**groups.get(group, {}), **{name.strip(): to.strip() for name, _, to in pairs if to}}
    safe = {
        group: {name: to for name, to in entries.items() if isinstance(to, str) and _SAFE.fullmatch(f"{name} {to}")}
        for group, entries in groups.items()
        if _SAFE.fullmatch(group)
    }
    return {group: entries for group, entries in safe.items() if entries}


def _is_inside(tree: Path, path: str) -> bool:
    """Return whether a path stays in the tree, also through links, and has no line break, which would split a line."""
    return "\n" not in path and (tree / path).resolve().is_relative_to(tree.resolve())


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


PROBE = (
    "cd /tmp && echo packaging >probe.in"
    ' && "$UV" pip compile -q --no-cache --only-binary :all: --python python3 probe.in'
)
"""Asks the index for a package that we name, which shows from which hosts packages come."""

_COMPILE = '"$UV" pip compile -q --generate-hashes --no-annotate --no-header --python .venv'
_PINNED = re.compile(r"^([\w.-]+)==([\w.!+-]+)(?:[ \t]*\\\n[ \t]+--hash=\S+)*", re.MULTILINE)
_MOST_EACH = 100


def python_settings(index: str) -> Mapping[str, str]:
    """Return the environment variables of uv: one index, the Python that is installed, and no configuration file."""
    settings = {
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_RETRIES": "1",
        "UV_LINK_MODE": "copy",  # programs that run in a tree must not share files with the cache
        "UV_NO_PROGRESS": "1",
    }
    return settings | ({"UV_DEFAULT_INDEX": index} if index else {})


async def make_venv(room: InstallRoom, needs: PythonNeeds, env: Mapping[str, str]) -> tuple[bool, list[str]]:
    """Make an empty `.venv`; return whether it was made, and a line for each thing that went wrong."""
    make, wanted = '"$UV" venv -q --clear --relocatable --python', shlex.quote(needs.python or "python3")
    if needs.python:
        ran, _ = await room.run(f"{make} {wanted} .venv", env)
        if ran.success:
            return True, []
    ran, gateway = await room.run(f"{make} python3 .venv", env)
    if not ran.success:
        return False, [f"Python: {reason(ran, gateway)}"]
    return True, [f"it asks for Python {needs.python}, which is not on this machine"] if needs.python else []


async def resolve(
    room: InstallRoom, needs: PythonNeeds, env: Mapping[str, str], before: str, *, builds: bool
) -> tuple[str, list[str]]:
    """Return the resolved versions and hashes as a requirements file, and what could not be resolved.

    Where the versions of the lock are not available, newer ones are taken; requirements that are not are left out.

    Args:
        room: runs uv in the folder that contains `.venv`.
        needs: the requirements.
        env: the environment variables of uv.
        before: the result for an earlier state of the files; its versions are kept if possible.
        builds: whether packages without a wheel may be built.

    """
    compile_ = f"{_COMPILE}{'' if builds else ' --only-binary :all:'}"
    await _write(room.folder, {"constraints.txt": needs.constraints, "asked.in": needs.requirements})
    await asyncio.to_thread((room.folder / "resolved.txt").write_text, before, "utf-8")
    lacks: list[str] = []
    constraint = " -c constraints.txt" if needs.constraints else ""
    ran, gateway = await room.run(f"{compile_}{constraint} asked.in -o resolved.txt", env)
    if not ran.success and constraint:
        lacks.append(f"the versions of its lock cannot be had here: {reason(ran, gateway)}")
        ran, gateway = await room.run(f"{compile_} asked.in -o resolved.txt", env)
    if not ran.success:
        left, told = await _without_failing(room, needs, env, compile_)
        if not left or not told:
            return "", [*lacks, f"Python: {reason(ran, gateway)}"]
        lacks += told
        await _write(room.folder, {"asked.in": left})
        ran, gateway = await room.run(f"{compile_} asked.in -o resolved.txt", env)
        if not ran.success:
            return "", [*lacks, f"Python: {reason(ran, gateway)}"]
    resolved = await asyncio.to_thread((room.folder / "resolved.txt").read_text, "utf-8")
    return with_lock_hashes(resolved, needs.hashes), lacks


async def _without_failing(
    room: InstallRoom, needs: PythonNeeds, env: Mapping[str, str], compile_: str
) -> tuple[list[str], list[str]]:
    """Return the requirements that can be resolved one by one, and why the others cannot."""
    asked = needs.requirements[:_MOST_EACH]
    await _write(room.folder, {f"each-{n}.in": (text,) for n, text in enumerate(asked)})
    script = f'for one in each-*.in; do {compile_} "$one" >/dev/null 2>"$one.err" && rm "$one.err"; done; true'
    await room.run(script, env)
    left, lacks = [], []
    for n, text in enumerate(asked):
        error = room.folder / f"each-{n}.in.err"
        if error.exists():
            lacks.append(f"{text}: {_essence(await asyncio.to_thread(error.read_text, 'utf-8', 'replace'))}")
        else:
            left.append(text)
    return left, lacks


async def install_resolved(
    room: InstallRoom, resolved: str, project: Project | None, env: Mapping[str, str], *, builds: bool
) -> list[str]:
    """Install the resolved packages by hash, and the project itself; return what could not be installed."""
    lacks: list[str] = []
    await asyncio.to_thread((room.folder / "resolved.txt").write_text, resolved, "utf-8")
    only = "" if builds else " --only-binary :all:"
    into = '"$UV" pip install -q --python .venv --no-deps'
    if resolved.strip():
        ran, gateway = await room.run(f"{into} --require-hashes{only} -r resolved.txt", env)
        lacks += [] if ran.success else [f"Python: {reason(ran, gateway)}"]
    if project is not None:
        name, wheel = project_wheel(project)
        await asyncio.to_thread((room.folder / name).write_bytes, wheel)
        ran, gateway = await room.run(f"{into} --no-cache --offline {shlex.quote(f'./{name}')}", env)
        lacks += [] if ran.success else [f"{project.name} itself: {reason(ran, gateway)}"]
    return lacks


def with_lock_hashes(resolved: str, hashes: Hashes) -> str:
    """Return the resolved requirements with the hashes of the lock, where it has any, instead of those of the index."""

    def kept(found: re.Match[str]) -> str:
        locked = hashes.get((canonicalize_name(found[1]), found[2]))
        return (
            " \\\n    ".join([f"{found[1]}=={found[2]}", *(f"--hash={one}" for one in locked)]) if locked else found[0]
        )

    return _PINNED.sub(kept, resolved)


def _essence(text: str) -> str:
    """Return the reason in an error of the resolver, in one line."""
    said = " ".join(text.split())
    return said.partition("Because ")[2][:200] or said[:200]


async def _write(folder: Path, files: Mapping[str, tuple[str, ...] | list[str]]) -> None:
    for name, lines in files.items():
        await asyncio.to_thread((folder / name).write_text, "".join(f"{line}\n" for line in lines), "utf-8")
