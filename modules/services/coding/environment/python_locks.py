"""Reads what the locks of Python tools pin: versions and hashes, never addresses. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from modules.services.coding.environment.types import PYTHON_LOCKS

_HASH = re.compile(r"sha(?:256|384|512):[0-9a-f]{64,128}")
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Pin:
    """One package of a lock."""

    name: str
    version: str
    marker: str = ""
    hashes: tuple[str, ...] = ()

    @property
    def constraint(self) -> str:
        """Return it as a requirement of exactly this version."""
        return f"{self.name}=={self.version}{f' ; {self.marker}' if self.marker else ''}"


@dataclass(slots=True)
class Lock:
    """What a lock says.

    Attributes:
        file: its name.
        pins: the packages that come from an index.
        elsewhere: the names of packages that come from a repository, an address or a folder.
        local: the packages that are part of the repository, by name: their folder, and the names of what they need.

    """

    file: str
    pins: list[Pin] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)
    local: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Return the versions to keep to; a package with several is only bound where markers tell them apart."""
        counts: dict[str, int] = {}
        for pin in self.pins:
            counts[pin.name] = counts.get(pin.name, 0) + 1
        return tuple(pin.constraint for pin in self.pins if counts[pin.name] == 1 or pin.marker)


def read_lock(texts: Mapping[str, str]) -> Lock | None:
    """Return what the first lock among the files says, or None without one. Raises `ValueError`: it cannot be read."""
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
            raise ValueError(f"{key} holds something that is no table")  # noqa: TRY004 - what the file says is wrong
        yield one


def _pin(name: str, version: object, marker: str, hashes: Iterable[object]) -> Iterator[Pin]:
    """Yield a package, unless its name or version is none."""
    if not _NAME.fullmatch(name):
        return
    try:
        number = str(Version(str(version)))
        said = str(Marker(marker)) if marker else ""
    except (InvalidVersion, InvalidMarker):
        return
    found = sorted({text for one in hashes if _HASH.fullmatch(text := str(one))})
    yield Pin(canonicalize_name(name), number, said, tuple(found))
