"""The checks that a branch must pass before it is pushed, in their order. Pure."""

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
    "other_branch",  # another branch than that of the task is checked out
    "merge_commits",  # the branch has a merge commit, or no longer contains the commit it began at
    "no_changes",  # nothing was committed
    "conflict_markers",  # a file has conflict markers from a merge
    "tests_failed",  # tests of the repository fail that did not fail before
    "secret",  # the added lines, or a path, contain something that looks like a secret
    "hidden",  # the added lines of a file other than prose contain invisible characters
    "not_text",  # a file is binary, a link, or a repository
    "too_large",  # one file, or the whole change, is too large to review
    "out_of_bounds",  # the change touches files of its own program that only people may change
    "line_missing",  # a line is missing that the repository requires in one of its files
]


@dataclass(frozen=True, slots=True)
class GateFacts:
    """The facts about a branch that the gates check.

    Attributes:
        branch: the branch of the task.
        changes: what the branch changes.
        broken: the test runs that fail because of the changes.
        finds_secret: returns whether a text contains a secret.
        named: the files that the task names; small pictures among them may pass.
        unresolved: the files that still contain conflict markers.
        lines: the lines that the repository requires, each as (path of the file, line).

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
    """A failed gate: its code, the file `about` that failed it ("" if none did), and `detail` for the owner."""

    code: GateCode
    detail: str = ""
    about: str = ""


def closed_gate(facts: GateFacts) -> Closed | None:
    """Return the first gate that fails, or None."""
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
    """Yield the gates that fail because a person could not review the changes."""
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
    """Return what the model reads about a failed gate before it may finish; "" if the gate is not about files."""
    if closed is None or closed.code not in _FOR_FILES:
        return ""
    about = {} if closed.code == "secret" else {"about": one_line(f"{closed.about} {closed.detail}", _ABOUT_CHARS)}
    return skills.render("coding", "Gates", closed.code, **about).strip()


def named_but_unchanged(named: Iterable[str], changed: Sequence[str]) -> tuple[str, ...]:
    """Return those files that a task names, by path, folder or pattern, in which nothing changed."""
    return tuple(one for one in dict.fromkeys(named) if not any(any_named([one], path) for path in changed))


def any_named(named: Iterable[str], path: str) -> bool:
    """Return whether one of the names, each a path, a folder or a pattern, matches the file at `path`."""
    bare = (one.strip().removeprefix("./").rstrip("/") for one in named)
    return any(path == name or fnmatchcase(path, name) or path.startswith(f"{name}/") for name in bare)


def _hidden(changes: BranchChanges) -> Iterator[Closed]:
    for section in sections(changes.patch):
        path = path_of(section)
        if found := "" if is_prose(path) else added_invisible(hunks_of(section)):
            yield Closed("hidden", names_of(found), path)


def _is_unfit(change: TreeChange, named: Sequence[str]) -> bool:
    """Return whether a file is binary, except a deleted one and a small picture that the task names."""
    is_asked_for = change.is_picture and (change.size or 0) <= MOST_PICTURE_BYTES
    return change.is_binary and change.size is not None and not (is_asked_for and any_named(named, change.path))


def _first(files: Iterable[TreeChange], wrong: Callable[[TreeChange], bool]) -> TreeChange | None:
    return next((one for one in files if wrong(one)), None)
