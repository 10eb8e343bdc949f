"""What lies in a Git repository, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

NO_COMMIT = "0" * 40
EntryKind = Literal["blob", "tree", "commit"]
ChangeKind = Literal["added", "removed", "modified", "renamed"]


@dataclass(frozen=True, slots=True)
class Signature:
    """Who made a commit, and when."""

    name: str
    email: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit; `sha`, `tree` and `parents` are object names of 40 hexadecimal digits."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a tree; `size` in bytes, 0 where it is no file; `path` from the root."""

    path: str
    kind: EntryKind
    mode: str
    sha: str
    size: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs between two commits. `patch` is its part of the diff, "" for a binary file."""

    path: str
    kind: ChangeKind
    sha: str
    additions: int
    deletions: int
    patch: str
    previous_path: str = ""
