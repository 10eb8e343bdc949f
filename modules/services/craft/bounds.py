"""Limits which files of its own program a SOUL may change, and how much at once. Pure.

Only people change the files that limit a SOUL, that judge its changes, or that this mechanism rests on. Only people
review and merge a change of the program.
"""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from adapters.git.worktree import BranchChanges
from modules.services.coding.gates import Closed
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import OnGitHub, PushBody
from modules.services.outbox.types import ProposedAction, Verdict
from modules.services.plans.types import parse_task_branch

PROGRAM = "program"
"""The kind of the work items for a change of the program."""
PROGRAM_GATE = "make check && make test"
"""The command that must pass before a change of the program is offered."""
MOST_PROGRAM_FILES, MOST_PROGRAM_LINES = 12, 400
"""The most files that one change may touch, and the most lines that it may add and delete together."""
_LINE_CHARS = 120
"""The length of a line of the program; added text counts as at least its length divided by this."""

WITHIN_BOUNDS = (
    *("adapters/*", "bench/*", "common/*", "docs/*", "local_tools/*", "modules/*", "skills/*", "soul/*", "tests/*"),
    *("town/*", "changelog.md", "readme.md"),
)
"""What it may change, except `OUT_OF_BOUNDS`. Other files at the root may configure or shadow what judges a change."""
OUT_OF_BOUNDS = (
    # files that judge a change
    *("*/conftest.py", "*/.*", "*.cfg", "*.ini", "*.toml", "*.pyi"),
    # files that limit its acts
    *("*gate.py", "*gates.py", "*approv*", "*budget*", "*provenance*", "*sandbox*", "*redact*", "*untrusted*"),
    *("*settings.py", "*trust.py", "*services/outbox/*", "*agent/tools/*", "*services/rights/*", "*skills/core/*"),
    *("tests/security/*", "tests/guards/*", "tests/crash/*", "*control*", "*lease*", "*watchdog*", "*backup*"),
    *("*adapters/git/*", "*adapters/web/*", "*agent/turn/*", "*prompter.py", "*disclosure*", "*identity/*"),
    # this mechanism, and how a version is installed
    *("*craft*", "*lives/tasks/*", "*coding/*", "*self-improvement*", "*burn_in*", "*upgrade*", "*composition/*"),
    *("*growth/policy.py", "*self_tools.py", "*skill_tools.py"),
)
"""The files that it may not change, in lower case; `*` matches any characters, also `/`."""
_PLAIN = re.compile(r"[\w./-]+", re.ASCII)
"""The characters of a path; with others it may mean another file on another system, or look like another."""
_CHANGED = re.compile(r"(\d{1,9}) (?:insertion|deletion)")
_FOR_PEOPLE: frozenset[IntentKind] = frozenset({"merge", "review", "review_request", "contents"})


def out_of_bounds(paths: Iterable[str]) -> list[str]:
    """Return those of `paths` that a SOUL may not change."""
    return [path for path in paths if not _is_within(path)]


def _is_within(path: str) -> bool:
    name = path.lower()
    # NOTE(self): Python prefers a package to a module of the same name.
    modules = (f"{name[:end]}.py" for end, sign in enumerate(name) if sign == "/")
    is_bound = any(_is_any(one, OUT_OF_BOUNDS) for one in (name, *modules))
    return not is_bound and bool(_PLAIN.fullmatch(path)) and _is_any(name, WITHIN_BOUNDS)


def _is_any(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, one) for one in patterns)


def closed_to_program(changes: BranchChanges) -> Closed | None:
    """Return why a change of the program may not be offered, or None."""
    if paths := out_of_bounds(one.path for one in changes.files):
        return Closed("out_of_bounds", "may be changed by people alone", ", ".join(paths))
    lines = max(sum(map(int, _CHANGED.findall(changes.stat))), len(changes.added) // _LINE_CHARS)
    if len(changes.files) > MOST_PROGRAM_FILES or lines > MOST_PROGRAM_LINES:
        most = f"the most are {MOST_PROGRAM_FILES} files, {MOST_PROGRAM_LINES} lines"
        return Closed("too_large", f"{changes.stat}; {most}")
    return None


@dataclass(frozen=True, slots=True)
class OwnProgramRule:
    """A rule of the outbox for `repository`, the repository of the program (`owner/name`, or "" for none)."""

    repository: str

    def __call__(self, _: sqlite3.Connection, action: ProposedAction, __: datetime) -> Sequence[Verdict]:
        body, why = action.body, ""
        if not isinstance(body, OnGitHub) or not self.repository or body.repo.lower() != self.repository.lower():
            return ()
        if action.kind in _FOR_PEOPLE or (isinstance(body, PushBody) and parse_task_branch(body.branch) is None):
            why = "it changes its own program by pull requests alone, which only people review and merge"
        elif isinstance(body, PushBody) and (paths := out_of_bounds(body.paths)):
            why = f"only people change {paths[0]}"
        return [Verdict("own-program", "block" if why else "pass", why)]
