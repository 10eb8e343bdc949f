"""What a repository needs to be worked on, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from common.settings import Settings

PYTHON_LOCKS = ("uv.lock", "poetry.lock", "pylock.toml", "Pipfile.lock")
"""The locks of Python tools that are read, in the order in which one is chosen."""
VENV = ".venv"
Hashes = Mapping[tuple[str, str], tuple[str, ...]]
"""The hashes that a lock gives for a package, by its normalized name and version."""


@dataclass(frozen=True, slots=True)
class Indexes:
    """Where packages come from, as URLs; "": where the tool looks by itself."""

    npm: str = ""
    python: str = ""
    cargo: str = ""
    go: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return those that the owner set."""
        return cls(
            str(settings.coding_npm_registry),
            str(settings.coding_python_index),
            str(settings.coding_cargo_registry),
            str(settings.coding_go_proxy),
        )


@dataclass(frozen=True, slots=True)
class Project:
    """The repository as a Python package.

    Attributes:
        name: of the distribution.
        version: of the distribution; "0.0.0" where only a build would tell it.
        roots: the folders that are put on the import path, relative to the tree.
        entry_points: by group and name.
        links: its addresses by label, for its metadata alone.
        unwritten: the modules with its version that only a build would write.

    """

    name: str
    version: str = "0.0.0"
    roots: tuple[str, ...] = (".",)
    entry_points: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    unwritten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonNeeds:
    """What the files of a Python repository ask for.

    Attributes:
        requirements: of the project, its tests and its development; none of them has an address.
        constraints: the versions that its lock gives.
        hashes: those of its lock.
        python: the versions of Python that it supports, as a specifier; "": any.
        folders: of further packages that are part of the repository.
        lacks: what is left out, and why.

    """

    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    hashes: Hashes = field(default_factory=dict)
    python: str = ""
    folders: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackageNeeds:
    """What the files of a repository ask for that npm, Cargo or Go reads by itself.

    Attributes:
        files: what the tool sees, by path; none: nothing is installed.
        is_locked: whether a lock that can be followed is among them.
        lacks: what is left out, and why.

    """

    files: Mapping[str, str] = field(default_factory=dict)
    is_locked: bool = False
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackageManager:
    """How npm, Cargo or Go installs what a repository needs.

    Attributes:
        name: of its program.
        folder: what it makes, in the tree.
        lock: the file that `resolve` writes where the repository has none.
        index: where it gets packages from; "": its default.
        env: how it is set.
        probe: a script that asks the index for a package that we name, in an empty folder.
        resolve: a script that chooses versions.
        install: a script that installs what the lock says.
        needs: reads a tree.

    """

    name: str
    folder: str
    lock: str
    index: str
    env: Mapping[str, str]
    probe: str
    resolve: str
    install: str
    needs: Callable[[Path], PackageNeeds]


@dataclass(frozen=True, slots=True)
class Kept:
    """What was resolved for a tree, kept so that the next tree with the same needs installs the same."""

    text: str
    lacks: tuple[str, ...] = ()
