"""The dependencies of a repository, and where they come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from common.settings import Settings

PYTHON_LOCKS = ("uv.lock", "poetry.lock", "pylock.toml", "Pipfile.lock")
"""The lock files of Python tools that are read, in order of preference."""
VENV = ".venv"
Hashes = Mapping[tuple[str, str], tuple[str, ...]]
"""The hashes that a lock gives, by (normalized name, version) of a package."""


@dataclass(frozen=True, slots=True)
class Indexes:
    """The URLs of the package indexes; "" means the default of the tool."""

    npm: str = ""
    python: str = ""
    cargo: str = ""
    go: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the indexes that the owner set."""
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
        name: the name of the distribution.
        version: its version; "0.0.0" if only a build would determine it.
        roots: the folders to put on the import path, relative to the tree.
        entry_points: the entry points by group and name.
        links: its URLs by label, only for its metadata.
        unwritten: the version modules that only a build would write.

    """

    name: str
    version: str = "0.0.0"
    roots: tuple[str, ...] = (".",)
    entry_points: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    unwritten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonNeeds:
    """The dependencies of a Python repository.

    Attributes:
        requirements: of the project, its tests and its development; none of them is a URL.
        constraints: the versions from its lock.
        hashes: the hashes from its lock.
        python: the versions of Python that it supports, as a specifier; "" means any.
        folders: the folders of further packages that are part of the repository.
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
    """The dependencies of a repository that npm, Cargo or Go reads from files.

    Attributes:
        files: the files that the tool sees, by path; if empty, nothing is installed.
        is_locked: whether they include a lock that can be used.
        lacks: what is left out, and why.

    """

    files: Mapping[str, str] = field(default_factory=dict)
    is_locked: bool = False
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackageManager:
    """How npm, Cargo or Go installs the dependencies of a repository.

    Attributes:
        name: the name of the program.
        folder: the folder that it makes in the tree.
        lock: the file that `resolve` writes if the repository has none.
        index: the URL it gets packages from; "" means its default.
        env: its environment variables.
        probe: a script that asks the index for a package that we name, in an empty folder.
        resolve: a script that chooses versions.
        install: a script that installs the versions in the lock.
        needs: returns the dependencies of a tree.

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
    """The resolved versions of a tree, kept so that the next tree with the same needs gets the same ones."""

    text: str
    lacks: tuple[str, ...] = ()
