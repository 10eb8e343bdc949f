"""What a branch must be before it is pushed, in the order in which it is asked. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from adapters.git.diffs import hunks_of, path_of, sections
from adapters.git.worktree import BranchChanges, TreeChange
from common.text.hidden import added_invisible, is_prose, names_of
from common.text.untrusted import one_line
from modules.services.coding.suites import SuiteRun
from modules.services.skills.skills import Skills

MOST_FILES = 60
MOST_ADDED_CHARS = 400_000
MOST_FILE_BYTES = 500_000
MOST_PICTURE_BYTES = 200_000
_ABOUT_CHARS = 2_000
_FOR_FILES = frozenset(("secret", "not_text", "too_large", "hidden", "line_missing", "out_of_bounds"))

GateCode = Literal[
    "other_branch",  # the tree does not stand on the branch of the task
    "merge_commits",  # the branch holds a merge, or not the commit that it began at
    "no_changes",  # nothing was committed
    "conflict_markers",  # a conflict of the merge was not resolved
    "tests_failed",  # tests of the repository fail, and did not fail before
    "secret",  # the added lines hold something that looks like a secret
    "hidden",  # the added lines of a file that is no prose hold invisible characters
    "not_text",  # a file is binary, a link, or a repository
    "too_large",  # a file, or all of it, is too large to be reviewed
    "out_of_bounds",  # files of its own program that only people change
    "line_missing",  # a line is missing that the repository wants in one of its files
]


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What is known of a branch.

    Attributes:
        branch: of the task.
        changes: what was made.
        broken: the tests that it made fail.
        finds_secret: returns whether a text holds a secret.
        named: the files that the task names; small pictures among them are let through.
        unresolved: the files in which conflict markers are left.
        lines: the lines that the repository wants added, each with the path of its file.

    """

    branch: str
    changes: BranchChanges
    broken: Sequence[SuiteRun]
    finds_secret: Callable[[str], bool]
    named: Sequence[str] = ()
    unresolved: Sequence[str] = ()
    lines: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Closed:
    """A gate that is shut: which, because of the file `about` if it is one, and `detail` for the owner."""

    code: GateCode
    detail: str = ""
    about: str = ""


def closed_gate(facts: GateFacts) -> Closed | None:
    """Return the first gate that is shut, or None."""
    return next(_closed(facts), None)


def _closed(facts: GateFacts) -> Iterator[Closed]:
    changes = facts.changes
    if changes.branch != facts.branch:
        yield Closed("other_branch", f"it stands on {changes.branch}")
    if changes.merges or not changes.holds_base:
        yield Closed("merge_commits", f"{changes.merges} merge commits")
    if not changes.commits or not changes.files:
        yield Closed("no_changes")
    for path in facts.unresolved:
        yield Closed("conflict_markers", about=path)
    for failed in facts.broken:
        yield Closed("tests_failed", f"{failed.command}: {failed.output}")
    if facts.finds_secret("\n".join((changes.added, *(one.path for one in changes.files)))):
        yield Closed("secret")
    yield from _hidden(changes)
    yield from _unreviewable(facts)
    for path, line in facts.lines:
        if not any(path_of(one) == path and f"+{line}" in one.splitlines() for one in sections(changes.patch)):
            yield Closed("line_missing", line, path)


def _unreviewable(facts: GateFacts) -> Iterator[Closed]:
    """Yield what makes changes more, or other, than a person can review."""
    changes = facts.changes
    if large := _first(changes.files, lambda one: (one.size or 0) > MOST_FILE_BYTES):
        yield Closed("too_large", f"{large.size} bytes", large.path)
    if odd := _first(changes.files, lambda one: one.is_link or one.is_repository or _is_unfit(one, facts.named)):
        yield Closed("not_text", about=odd.path)
    if not changes.is_whole:
        yield Closed("too_large", "the diff is larger than 4 MiB")
    if len(changes.files) > MOST_FILES or len(changes.added) > MOST_ADDED_CHARS:
        yield Closed("too_large", f"{len(changes.files)} files, {len(changes.added)} characters added")


def gate_told(skills: Skills, closed: Closed | None) -> str:
    """Return what the agent is told of a gate before it may end; "" where it is none that files can shut."""
    if closed is None or closed.code not in _FOR_FILES:
        return ""
    about = {} if closed.code == "secret" else {"about": one_line(f"{closed.about} {closed.detail}", _ABOUT_CHARS)}
    return skills.render("coding", "Gates", closed.code, **about).strip()


def named_but_unchanged(named: Iterable[str], changed: Sequence[str]) -> tuple[str, ...]:
    """Return the files that a task names, by path, folder or pattern, and in which nothing changed."""
    return tuple(one for one in dict.fromkeys(named) if not any(any_named([one], path) for path in changed))


def any_named(named: Iterable[str], path: str) -> bool:
    """Return whether one of these names, each a path, a folder or a pattern, stands for a file."""
    bare = (one.strip().removeprefix("./").rstrip("/") for one in named)
    return any(fnmatchcase(path, name) or path.startswith(f"{name}/") for name in bare)


def _hidden(changes: BranchChanges) -> Iterator[Closed]:
    for section in sections(changes.patch):
        path = path_of(section)
        if found := "" if is_prose(path) else added_invisible(hunks_of(section)):
            yield Closed("hidden", names_of(found), path)


def _is_unfit(change: TreeChange, named: Sequence[str]) -> bool:
    """Whether a file is binary, and no small picture that the task names; one that is deleted is neither."""
    is_asked_for = change.is_picture and (change.size or 0) <= MOST_PICTURE_BYTES
    return change.is_binary and change.size is not None and not (is_asked_for and any_named(named, change.path))


def _first(files: Iterable[TreeChange], wrong: Callable[[TreeChange], bool]) -> TreeChange | None:
    return next((one for one in files if wrong(one)), None)
