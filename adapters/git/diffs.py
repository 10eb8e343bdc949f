"""Parses the output of `git diff`, file by file. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_SECTION = re.compile(r"^diff --git ", re.MULTILINE)
_HUNK = re.compile(r"^@@ ", re.MULTILINE)
_BINARY = re.compile(r"^Binary files ", re.MULTILINE)
_STATUS = {"A": "added", "C": "copied", "D": "removed", "M": "modified", "R": "renamed", "T": "changed type"}
_NONE, _PLAIN = "000000", "100644"
_OLD_PATH = re.compile(r"^--- \"?a/(.+?)\"?\t?$", re.MULTILINE)
_NEW_PATH = re.compile(r"^\+\+\+ \"?b/(.+?)\"?\t?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The differences of one file.

    Attributes:
        path: the path of the file; its old path if it was removed.
        status: `added`, `modified`, `removed`, `renamed`, `copied` or `changed type`.
        additions: number of added lines; `deletions` is that of removed lines.
        patch: its hunks, "" if no line differs.
        previous_path: its old path, "" unless it was moved or copied.
        note: other changes: another mode, or the size of a binary file.
        is_complete: whether this is the whole difference, which it is not for a binary file unless that is removed.

    """

    path: str
    status: str
    additions: int
    deletions: int
    patch: str = ""
    previous_path: str = ""
    note: str = ""
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class RawEntry:
    """One entry of `git diff --raw`: the modes, the new object, the status letter, and the paths."""

    old_mode: str
    new_mode: str
    blob: str
    letter: str
    path: str
    previous_path: str = ""


def raw_entries(raw: str) -> Iterator[RawEntry]:
    """Parse the output of `git diff --raw -z`."""
    fields = iter(raw.split("\0"))
    for told in fields:
        if not told:
            return
        old_mode, new_mode, _, blob, status = told.lstrip(":").split(" ")
        first = next(fields)
        is_moved = status[0] in "RC"
        path, previous = (next(fields), first) if is_moved else (first, "")
        yield RawEntry(old_mode, new_mode, blob, status[0], path, previous)


def sections(patch: str) -> list[str]:
    """Split a patch into the sections of its files; no line of a file begins like the head of a section."""
    return _SECTION.split(patch)[1:]


def hunks_of(section: str) -> str:
    """Return the hunks of a section, "" if it has none."""
    first = _HUNK.search(section)
    return section[first.start() :].rstrip("\n") if first else ""


def path_of(section: str) -> str:
    """Return the path of a section with hunks as git wrote it, quoted if it has odd characters; else ""."""
    head = section[: len(section) - len(hunks_of(section))]
    found = _NEW_PATH.search(head) or _OLD_PATH.search(head)
    return found[1] if found else ""


def file_diffs(raw: str, patch: str, sizes: Mapping[str, int]) -> Iterator[FileDiff]:
    """Combine the output of `git diff` with and without `--raw -z`; `sizes` are those of new objects, in bytes."""
    parts = iter(sections(patch))
    for entry in raw_entries(raw):
        # NOTE(self): a file that became a link, or the reverse, is removed in one section and added in another.
        own = [next(parts, "") for _ in range(2 if entry.letter == "T" else 1)]
        hunks = "\n".join(filter(None, map(hunks_of, own)))
        signs = [line[:1] for line in hunks.split("\n")]
        is_binary = any(_BINARY.search(one) and not hunks_of(one) for one in own)
        yield FileDiff(
            path=entry.path,
            status=_STATUS.get(entry.letter, entry.letter),
            additions=signs.count("+"),
            deletions=signs.count("-"),
            patch=hunks,
            previous_path=entry.previous_path,
            note=", ".join(_notes(entry, sizes.get(entry.blob, 0) if is_binary else None)),
            is_complete=not is_binary or entry.letter == "D",
        )


def _notes(entry: RawEntry, size: int | None) -> Iterator[str]:
    if entry.letter == "D":
        return
    if entry.old_mode == _NONE and entry.new_mode != _PLAIN:
        yield f"mode {entry.new_mode}"
    if entry.old_mode not in {_NONE, entry.new_mode}:
        yield f"mode {entry.old_mode} becomes {entry.new_mode}"
    if size is not None:
        yield f"binary, {size} bytes"


def fair_share(lengths: Iterable[int], room: int) -> int:
    """Return the most that each item may take so that all fit; the room that short ones leave goes to long ones."""
    sizes = sorted(lengths)
    for number, size in enumerate(sizes):
        if size * (len(sizes) - number) > room:
            return room // (len(sizes) - number)
        room -= size
    return max(sizes, default=0)
