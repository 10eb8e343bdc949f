"""Reads the dependencies of a Python repository from its files and locks, without running any of them. Pure.

Only names, versions, extras and markers are taken. URLs, indexes and options never reach a tool.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from modules.services.coding.environment.types import PYTHON_LOCKS, Hashes, PythonNeeds

_CHOSEN = frozenset({"test", "tests", "testing", "dev"})
"""The extras and dependency groups that are installed with the project."""
_REQUIREMENTS = re.compile(r"(?:[\w-]+/)?[\w.-]+\.(?:txt|lock|in)")
_REQUIREMENT_WORDS = _CHOSEN | {"requirements", "develop", "development", "base", "main"}
_HASH = re.compile(r"--hash[= ](sha\d+:[0-9a-f]+)")
_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)[ =]\s*(\S+)")
_MOST_REQUIREMENTS = 500
_SHOWN_CHARS = 80


@dataclass(slots=True)
class _Found:
    """The dependencies found so far. `elsewhere` maps names that are in no index to a reason to report, or ""."""

    elsewhere: Mapping[str, str] = field(default_factory=dict)
    requirements: dict[str, None] = field(default_factory=dict)
    hashes: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    lacks: dict[str, None] = field(default_factory=dict)

    def add(self, text: str) -> Requirement | None:
        """Add a requirement, unless it has a URL, cannot be read, or is one too many; return it if it was added."""
        shown = text.strip()[:_SHOWN_CHARS]
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            self.lacks[f"{shown!r} is no requirement that can be read"] = None
            return None
        if wanted.url:
            self.lacks[f"{wanted.name} is not taken from its address"] = None
        elif (name := canonicalize_name(wanted.name)) in self.elsewhere:
            self.lacks |= {f"{wanted.name} {why}": None for why in [self.elsewhere[name]] if why}
        elif len(self.requirements) < _MOST_REQUIREMENTS:
            self.requirements[str(wanted)] = None
            return wanted
        return None


def python_needs(texts: Mapping[str, str], *, has_tests: bool) -> PythonNeeds:
    """Return the dependencies of a repository.

    Args:
        texts: the files of its root and of `requirements/`, by path.
        has_tests: whether there are test files for pytest.

    """
    found, page = _Found(), dict[str, Any]()
    try:
        page = tomllib.loads(texts.get("pyproject.toml", ""))
    except (tomllib.TOMLDecodeError, RecursionError):
        found.lacks["pyproject.toml cannot be read"] = None
    lock = _lock(texts, found)
    not_indexed = dict.fromkeys(lock.elsewhere, f"is not taken from where {lock.file} says")
    found.elsewhere = {**_sources(page), **not_indexed, **dict.fromkeys(lock.local, "")}
    try:
        python = _from_project(page, found)
        _from_tools(page, found)
    except (AttributeError, TypeError, ValueError, RecursionError):
        python = ""
        found.lacks["pyproject.toml does not have the expected form"] = None
    _from_setup_cfg(texts.get("setup.cfg", ""), found)
    _from_setup_py(texts.get("setup.py", ""), found)
    for name in sorted(texts):
        if _is_chosen(name):
            _from_requirements(name, texts, found, set())
    for _, names in lock.local.values():
        for name in names:
            found.add(name)
    if not found.requirements and lock.pins:
        for pin in lock.pins:
            found.add(pin.constraint)
    if has_tests and not any(Requirement(one).name.lower() == "pytest" for one in found.requirements):
        found.requirements["pytest"] = None
    folders = tuple(folder for folder, _ in lock.local.values() if folder != ".")
    hashes: Hashes = {**found.hashes, **{(pin.name, pin.version): pin.hashes for pin in lock.pins if pin.hashes}}
    return PythonNeeds(tuple(found.requirements), lock.constraints, hashes, python, folders, tuple(found.lacks))


def _lock(texts: Mapping[str, str], found: _Found) -> Lock:
    try:
        return read_lock(texts) or Lock("")
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        found.lacks["its lock cannot be read"] = None
        return Lock("")


def _sources(page: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the names that `tool.uv.sources` takes from elsewhere, each with the reason to report."""
    sources = _at(page, "tool", "uv", "sources")
    kinds = ("git", "url", "path", "workspace")
    return {
        canonicalize_name(name): "is not taken from where tool.uv.sources says"
        for name, source in sources.items()
        if isinstance(source, Mapping) and any(kind in source for kind in kinds)
    }


def _from_project(page: Mapping[str, Any], found: _Found) -> str:
    """Add the dependencies in the standard tables; return the specifier of the Python versions that are required."""
    project = _at(page, "project")
    own = canonicalize_name(str(project.get("name", "")))
    extras = {str(canonicalize_name(name)): one for name, one in _at(project, "optional-dependencies").items()}
    groups = {str(canonicalize_name(name)): one for name, one in _at(page, "dependency-groups").items()}
    wanted = [*_listed(project.get("dependencies"))]
    for name in sorted(_CHOSEN):
        wanted += [*_listed(extras.get(name)), *_group(name, groups, set())]
    seen, left = set[str](), [str(one) for one in wanted]
    while left:
        text = left.pop(0)
        if text in seen:
            continue
        seen.add(text)
        names = _own_extras(text, own)
        if names is None:
            found.add(text)
        else:
            left += [str(one) for name in names for one in _listed(extras.get(canonicalize_name(name)))]
    return _specifier(str(project.get("requires-python", "")))


def _own_extras(text: str, own: str) -> Sequence[str] | None:
    """Return the extras of the project itself that a requirement names; None if it names another package."""
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return None
    return sorted(wanted.extras) if own and canonicalize_name(wanted.name) == own else None


def _group(name: str, groups: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    """Yield the requirements of a dependency group, including those of the groups that it includes."""
    if name in seen:
        return
    seen.add(name)
    for one in _listed(groups.get(name)):
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping) and "include-group" in one:
            yield from _group(canonicalize_name(str(one["include-group"])), groups, seen)


def _from_tools(page: Mapping[str, Any], found: _Found) -> None:
    """Add the dependencies in the tables of uv, PDM, Hatch and Poetry."""
    texts = [*_listed(_at(page, "tool", "uv").get("dev-dependencies"))]
    for group in _at(page, "tool", "pdm", "dev-dependencies").values():
        texts += _listed(group)
    for name in ("default", "hatch-test", *sorted(_CHOSEN)):
        env = _at(page, "tool", "hatch", "envs", name)
        texts += [*_listed(env.get("dependencies")), *_listed(env.get("extra-dependencies"))]
    for text in texts:
        if "{" not in str(text):
            found.add(str(text))
    poetry = _at(page, "tool", "poetry")
    tables = [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    tables += [_at(poetry, "group", name, "dependencies") for name in sorted(_CHOSEN)]
    for name, wanted in (item for table in tables for item in (table or {}).items()):
        if name.lower() != "python":
            _add_poetry(name, wanted, found)


def _add_poetry(name: str, wanted: object, found: _Found) -> None:
    told = wanted[0] if isinstance(wanted, list) and wanted else wanted
    if isinstance(told, str):
        found.add(f"{name}{poetry_specifier(told)}")
    elif isinstance(told, Mapping) and "version" in told:
        if not told.get("optional"):
            extras = ",".join(str(one) for one in told.get("extras") or ())
            marker = f" ; {told['markers']}" if told.get("markers") else ""
            found.add(f"{name}{f'[{extras}]' if extras else ''}{poetry_specifier(str(told['version']))}{marker}")
    else:
        found.lacks[f"{name} is not taken from its address"] = None


def poetry_specifier(text: str) -> str:
    """Convert a version of Poetry into a Python specifier: `^1.2` is `>=1.2,<2`. "" if it restricts nothing."""
    parts = []
    for part in (one.strip() for one in text.split(",")):
        if part in {"", "*"} or "|" in part:
            continue
        sign = part[0] if part[0] in "^~" else ""
        number = part.removeprefix(sign).removeprefix("=").lstrip()
        digits = re.match(r"\d+(?:\.\d+)*", number)
        if not sign or digits is None or part.startswith("~="):
            parts.append(part if re.match(r"[<>=!~]", part) else f"=={part}")
            continue
        numbers = [int(one) for one in digits[0].split(".")]
        at = (
            min(1, len(numbers) - 1) if sign == "~" else next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
        )
        above = [*numbers[:at], numbers[at] + 1]
        parts.append(f">={number},<{'.'.join(map(str, above))}")
    return _specifier(",".join(parts))


def _from_setup_cfg(text: str, found: _Found) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        found.lacks["setup.cfg cannot be read"] = None
        return
    texts = [parser.get("options", key, fallback="") for key in ("install_requires", "tests_require")]
    texts += [parser.get("options.extras_require", name, fallback="") for name in sorted(_CHOSEN)]
    for line in _lines("\n".join(texts)):
        if not line.startswith("file:"):
            found.add(line)


def _from_setup_py(text: str, found: _Found) -> None:
    """Add the requirements in a `setup.py` that are literals."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found.lacks["setup.py cannot be read"] = None
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg not in {"install_requires", "tests_require", "extras_require"}:
                continue
            try:
                value = ast.literal_eval(keyword.value)
            except (ValueError, TypeError, RecursionError):
                found.lacks[f"setup.py computes its {keyword.arg}"] = None
                continue
            if isinstance(value, Mapping):
                value = [one for name in sorted(_CHOSEN) for one in _listed(value.get(name))]
            for one in _listed(value):
                for line in _lines(str(one)):
                    found.add(line)


def _listed(value: object) -> Sequence[object]:
    """Return the requirements in a value: those of a list, or one text; none for a value of another kind."""
    return [value] if isinstance(value, str) else [*value] if isinstance(value, Iterable) else ()


def _is_chosen(path: str) -> bool:
    """Return whether a file contains requirements of the project, its tests or its development."""
    if not _REQUIREMENTS.fullmatch(path):
        return False
    words = set(re.split(r"[^a-z]+", path.rpartition(".")[0].lower())) - {""}
    is_input = path.endswith(".in")
    return "requirements" in words and words <= _REQUIREMENT_WORDS and not is_input


def _from_requirements(path: str, texts: Mapping[str, str], found: _Found, seen: set[str]) -> None:
    """Add the requirements in a requirements file and in the files that it includes."""
    if path in seen:
        return
    seen.add(path)
    for line in _lines(texts.get(path, "")):
        if included := _INCLUDE.fullmatch(line):
            _from_requirements(_beside(path, included[1]), texts, found, seen)
        elif line.startswith(("-e", "--editable", ".")):
            if line.split()[-1].partition("[")[0] not in {".", "./"}:
                found.lacks[f"{line[:_SHOWN_CHARS]!r} in {path} is not installed"] = None
        elif line.startswith("-"):
            found.lacks[f"{line.split('=')[0].split()[0]} in {path} is not followed"] = None
        elif re.match(r"[\w+]+:|[\w./-]+\.(?:whl|zip|tar\.gz)$", line) and "@" not in line.split(":")[0]:
            found.lacks[f"{line[:_SHOWN_CHARS]!r} in {path} is not taken from its address"] = None
        else:
            wanted = found.add(re.split(r"\s--", line)[0])
            pinned = re.fullmatch(r"==([\w.!+]+)", str(wanted.specifier)) if wanted else None
            if wanted and pinned and (hashes := _HASH.findall(line)):
                found.hashes[canonicalize_name(wanted.name), str(Version(pinned[1]))] = tuple(sorted(hashes))


def _beside(path: str, name: str) -> str:
    """Return the path of a file that the file at `path` refers to as `name`."""
    parts = [*path.split("/")[:-1], *name.split("/")]
    kept: list[str] = []
    for part in parts:
        if part == ".." and kept:
            kept.pop()
        elif part != ".":
            kept.append(part)
    return "/".join(kept)


def _lines(text: str) -> list[str]:
    """Return the lines of a requirements file, with continued lines joined and without comments."""
    joined = re.sub(r"\\\r?\n", " ", text)
    bare = (re.sub(r"(^|\s)#.*", "", line) for line in joined.split("\n"))
    return [" ".join(line.split()) for line in bare if line.strip()]


def _specifier(text: str) -> str:
    try:
        return str(SpecifierSet(text))
    except InvalidSpecifier:
        return ""


def _at(page: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the table at a path of keys, or an empty one."""
    here: object = page
    for key in keys:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}


_PINNED_HASH = re.compile(r"sha(?:256|384|512):[0-9a-f]{64,128}")
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Pin:
    """A package in a lock."""

    name: str
    version: str
    marker: str = ""
    hashes: tuple[str, ...] = ()

    @property
    def constraint(self) -> str:
        """The package as a requirement of exactly this version."""
        return f"{self.name}=={self.version}{f' ; {self.marker}' if self.marker else ''}"


@dataclass(slots=True)
class Lock:
    """The content of a lock.

    Attributes:
        file: its name.
        pins: the packages from an index.
        elsewhere: the names of packages from a repository, a URL or a folder.
        local: the packages that are part of the repository, by name: their folder, and the names of their dependencies.

    """

    file: str
    pins: list[Pin] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)
    local: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def constraints(self) -> tuple[str, ...]:
        """The pinned versions; a package with several versions is included only where a marker distinguishes them."""
        counts: dict[str, int] = {}
        for pin in self.pins:
            counts[pin.name] = counts.get(pin.name, 0) + 1
        return tuple(pin.constraint for pin in self.pins if counts[pin.name] == 1 or pin.marker)


def read_lock(texts: Mapping[str, str]) -> Lock | None:
    """Return the first lock among the files, or None if there is none. Raises `ValueError` if it cannot be read."""
    for name, reader in zip(PYTHON_LOCKS, (_uv, _poetry, _pylock, _pipfile), strict=True):
        if name in texts:
            return reader(name, texts[name])
    return None


def _uv(file: str, text: str) -> Lock:
    lock = Lock(file)
    for one in _tables(tomllib.loads(text), "package"):
        source, name = one.get("source") or {}, canonicalize_name(str(one.get("name")))
        folder = next((str(source[kind]) for kind in ("editable", "virtual", "directory") if kind in source), None)
        if folder is not None:
            needs = tuple(str(dep["name"]) for dep in one.get("dependencies") or () if "name" in dep)
            lock.local[name] = (folder, needs)
        elif "registry" not in source:
            lock.elsewhere.add(name)
        else:
            markers = one.get("resolution-markers") or ()
            files = [*(one.get("wheels") or ()), *([one["sdist"]] if "sdist" in one else [])]
            marker = " or ".join(f"({part})" for part in markers)
            lock.pins += _pin(name, one.get("version"), marker, (entry.get("hash") for entry in files))
    return lock


def _poetry(file: str, text: str) -> Lock:
    lock = Lock(file)
    for one in _tables(tomllib.loads(text), "package"):
        name = canonicalize_name(str(one.get("name")))
        if (one.get("source") or {}).get("type", "legacy") != "legacy":
            lock.elsewhere.add(name)
            continue
        markers = one.get("markers", "")
        marker = markers if isinstance(markers, str) else ""
        lock.pins += _pin(name, one.get("version"), marker, (entry.get("hash") for entry in one.get("files") or ()))
    return lock


def _pylock(file: str, text: str) -> Lock:
    lock = Lock(file)
    for one in _tables(tomllib.loads(text), "packages"):
        name = canonicalize_name(str(one.get("name")))
        if "directory" in one or "vcs" in one or "archive" in one or "version" not in one:
            lock.elsewhere.add(name)
            continue
        files = [*(one.get("wheels") or ()), *([one["sdist"]] if "sdist" in one else [])]
        hashes = (f"{kind}:{value}" for entry in files for kind, value in (entry.get("hashes") or {}).items())
        lock.pins += _pin(name, one["version"], str(one.get("marker", "")), hashes)
    return lock


def _pipfile(file: str, text: str) -> Lock:
    lock, told = Lock(file), json.loads(text)
    for section in ("default", "develop"):
        for name, one in (told.get(section) or {}).items():
            version = str(one.get("version", ""))
            if not version.startswith("=="):
                lock.elsewhere.add(canonicalize_name(name))
                continue
            pins = _pin(name, version[2:], str(one.get("markers", "")), one.get("hashes") or ())
            lock.pins += [pin for pin in pins if pin not in lock.pins]
    return lock


def _tables(told: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    for one in told.get(key) or ():
        if not isinstance(one, Mapping):
            raise ValueError(f"{key} holds something that is no table")  # noqa: TRY004 - the value is wrong, not a type
        yield one


def _pin(name: str, version: object, marker: str, hashes: Iterable[object]) -> Iterator[Pin]:
    """Yield the pin of a package, unless its name, version or marker is invalid."""
    if not _NAME.fullmatch(name):
        return
    try:
        number = str(Version(str(version)))
        said = str(Marker(marker)) if marker else ""
    except (InvalidVersion, InvalidMarker):
        return
    found = sorted({text for one in hashes if _PINNED_HASH.fullmatch(text := str(one))})
    yield Pin(canonicalize_name(name), number, said, tuple(found))
