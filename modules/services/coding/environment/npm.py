"""Reads the dependencies of an npm repository, and installs them with npm: from one registry, without package scripts.

The files that list them are read up to fixed limits, and no link is followed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from common.files import small_text, walk
from modules.services.coding.environment.types import PYTHON_LOCKS, PackageManager, PackageNeeds
from modules.services.coding.suite_files import NOT_SOURCE, PYTEST_FILE

PAGE, LOCK = "package.json", "package-lock.json"
OTHER_LOCKS = ("yarn.lock", "pnpm-lock.yaml")

_SMALL_BYTES, _LOCK_BYTES = 200_000, 4_000_000
_LOCK_NAMES = frozenset({*PYTHON_LOCKS, LOCK, *OTHER_LOCKS})
_ROOT_FILE = re.compile(r"setup\.(?:py|cfg)|pyproject\.toml|PKG-INFO|.+\.(?:txt|in|lock)")
_DEPTH = 3
_MOST_FILES = 200


def read_files(tree: Path) -> dict[str, str]:
    """Return the files of Python and npm that list dependencies, by path."""
    return dict(_files(tree))


def _files(tree: Path) -> Iterator[tuple[str, str]]:
    count = 0
    for folder, folders, names in walk(tree):
        here = Path(folder)
        deep = len(here.parts)
        folders[:] = sorted(name for name in folders if name not in NOT_SOURCE) if deep < _DEPTH else []
        for name in sorted(names, key=lambda one: (one.endswith(".txt"), one)):
            is_requirements = deep == 1 and "requirements" in here.name and name.endswith(".txt")
            is_lock = deep == 0 and name in _LOCK_NAMES
            is_listing = name == PAGE or (deep == 0 and _ROOT_FILE.fullmatch(name))
            most = _LOCK_BYTES if is_lock else _SMALL_BYTES
            if not (is_lock or is_listing or is_requirements) or (text := small_text(tree / here / name, most)) is None:
                continue
            yield (here / name).as_posix(), text
            if (count := count + 1) >= _MOST_FILES:
                return


def has_tests(tree: Path) -> bool:
    """Return whether a tree has test files for pytest."""
    for _, folders, names in walk(tree):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        if any(PYTEST_FILE.fullmatch(name) for name in names):
            return True
    return False


FOLDER = "node_modules"

_PROBE = "npm view semver dist.tarball"
_FLAGS = "--ignore-scripts --no-audit --no-fund --no-update-notifier"

_KINDS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_KEPT = ("name", "version", "private", "workspaces", "overrides", "peerDependenciesMeta", *_KINDS)
_RANGE = re.compile(r"(?:npm:(?:@[\w.-]+/)?[\w.-]+@)?[\w.^~<>=*|+ -]*")
_TEXT_CHARS = 100
_YARN_VERSION = re.compile(r"\s+version:? \"?([\w.+-]+)\"?")


def npm_manager(registry: str) -> PackageManager:
    """Return how to run npm: with one registry, and without a global configuration file."""
    env = {
        "npm_config_globalconfig": "/dev/null",
        "npm_config_fetch_retries": "1",
        "npm_config_omit_lockfile_registry_resolved": "true",
        "CI": "true",
    }
    return PackageManager(
        name="npm",
        folder=FOLDER,
        lock=LOCK,
        index=registry,
        env=env | ({"npm_config_registry": registry} if registry else {}),
        probe=_PROBE,
        resolve=f"npm install --package-lock-only {_FLAGS}",
        install=f"npm ci {_FLAGS}",
        needs=lambda tree: npm_needs(read_files(tree)),
    )


def npm_needs(texts: Mapping[str, str]) -> PackageNeeds:
    """Return the dependencies in the files of a repository, given by path; none if no `package.json` lists any."""
    try:
        pages = pages_in(texts, PAGE, _page)
    except (ValueError, RecursionError):
        return PackageNeeds(lacks=("package.json cannot be read",))
    if PAGE not in pages or not any(page.get(kind) for page in pages.values() for kind in _KINDS):
        return PackageNeeds()
    lacks: list[str] = []
    if LOCK in texts:
        try:
            locked = _locked(texts[LOCK])
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            lacks.append(f"{LOCK} cannot be followed: {error}"[:_TEXT_CHARS])
        else:
            files = {path: _kept(page, None) for path, page in pages.items()}
            return PackageNeeds({**files, LOCK: locked}, is_locked=True)
    pins: dict[str, str] = {}
    other = next((name for name in OTHER_LOCKS if name in texts), None)
    if other:
        pins = pinned(other, texts[other])
        lacks.append(f"{other} is followed for {len(pins)} packages by name; npm chose the other versions")
    files = {path: _kept(page, lacks, pins) for path, page in pages.items()}
    return PackageNeeds(files, is_locked=False, lacks=tuple(lacks))


def pages_in(
    texts: Mapping[str, str], name: str, read: Callable[[str], Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return the content of each file called `name`, by path, without templates below the root that cannot be read.

    Raises `ValueError` or `RecursionError` if that of the root cannot be read.
    """
    pages: dict[str, Mapping[str, Any]] = {}
    for path, text in texts.items():
        try:
            pages |= {path: read(text)} if path.rpartition("/")[2] == name else {}
        except (ValueError, RecursionError):
            if path == name:
                raise
    return pages


def pinned(file: str, text: str) -> dict[str, str]:
    """Return the versions in a lock of yarn or pnpm, by `name@range`."""
    if file == "yarn.lock":
        return dict(_yarn_pins(text))
    try:
        told = yaml.load(text, Loader=yaml.CSafeLoader)
        importers = told.get("importers") or {".": told}
        return {
            f"{name}@{one['specifier']}": str(one["version"]).partition("(")[0]
            for importer in importers.values()
            for kind in _KINDS
            for name, one in (importer.get(kind) or {}).items()
            if isinstance(one, Mapping) and "specifier" in one and re.match(r"\d", str(one.get("version")))
        }
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, RecursionError):
        return {}


def _yarn_pins(text: str) -> Iterator[tuple[str, str]]:
    names: list[str] = []
    for line in text.replace("\r", "").split("\n"):
        if line.endswith(":") and not line.startswith((" ", "#")):
            names = [name.strip().replace("@npm:", "@") for name in line[:-1].replace('"', "").split(",")]
        elif found := _YARN_VERSION.fullmatch(line):
            yield from ((name, found[1]) for name in names)
            names = []


def _page(text: str) -> Mapping[str, Any]:
    page = json.loads(text)
    if not isinstance(page, Mapping):
        raise ValueError("it is no object")  # noqa: TRY004 - the value is wrong, not a type
    return page


def _locked(text: str) -> str:
    """Return a lock without URLs. Raises `ValueError` if a package in it has no version or hash."""
    locked = _page(text)
    packages = locked.get("packages") or {}
    for path, one in packages.items():
        if "node_modules/" not in path or one.get("link"):
            continue
        if not ((one.get("version") and one.get("integrity")) or one.get("inBundle")):
            raise ValueError(f"no version and hash for {path}")
        one.pop("resolved", None)
    if not any("node_modules/" in path for path in packages):
        raise ValueError("it names no package")
    return json.dumps(locked)


def _kept(page: Mapping[str, Any], lacks: list[str] | None, pins: Mapping[str, str] | None = None) -> str:
    """Return a `package.json` without scripts; if `lacks` is given, also without URLs, which are reported in it."""
    kept = {key: page[key] for key in _KEPT if key in page}
    if lacks is not None:
        kept.pop("overrides", None)
        for kind in _KINDS:
            if kind in kept:
                kept[kind] = dict(_ranges(kept[kind], lacks, pins or {}))
    return json.dumps(kept)


def _ranges(wanted: object, lacks: list[str], pins: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, told in wanted.items() if isinstance(wanted, Mapping) else ():
        text = str(told).removeprefix("workspace:") if str(told).startswith("workspace:") else str(told)
        if not _RANGE.fullmatch(text):
            lacks.append(f"{name} is not taken from its address"[:_TEXT_CHARS])
        else:
            yield name, pins.get(f"{name}@{text}", text)
