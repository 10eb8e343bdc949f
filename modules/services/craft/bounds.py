"""What a SOUL may change of its own program, and how much at once. Pure.

What limits it, what judges it, and what this rests on are changed by people alone. Nobody but a person reviews a change
of the program, or merges it.
"""

from __future__ import annotations

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
"""The kind of the rows of work that hold a change of the program."""
PROGRAM_GATE = "make check && make test"
"""What has to pass before a change of the program is offered."""
MOST_PROGRAM_FILES, MOST_PROGRAM_LINES = 12, 400
"""So many files may one change touch, and so many lines add and delete together."""
_LINE_CHARS = 120
"""So long is a line of the program: what is added counts as at least as many lines as these would be."""

WITHIN_BOUNDS = (
    *("adapters/*", "bench/*", "common/*", "docs/*", "local_tools/*", "modules/*", "skills/*", "soul/*", "tests/*"),
    *("town/*", "changelog.md", "readme.md"),
)
"""What it may change, but for `OUT_OF_BOUNDS`; nothing else at the root, where files set up or shadow what judges."""
OUT_OF_BOUNDS = (
    # what judges a change
    *("*/conftest.py", "*/.*", "*.cfg", "*.ini", "*.toml", "*.pyi"),
    # what limits its acts
    *("*gate.py", "*gates.py", "*approv*", "*budget*", "*provenance*", "*sandbox*", "*redact*", "*untrusted*"),
    *("*settings.py", "*trust.py", "*services/outbox/*", "*agent/tools/*", "*services/rights/*", "*skills/core/*"),
    *("tests/security/*", "tests/guards/*", "tests/crash/*", "*control*", "*lease*", "*watchdog*", "*backup*"),
    *("*adapters/git/*", "*adapters/web/*", "*agent/turn/*", "*prompter.py", "*disclosure*", "*identity/*"),
    # this mechanism, and how a version is taken over
    *("*craft*", "*lives/tasks/*", "*coding/*", "*self-improvement*", "*burn_in*", "*upgrade*", "*composition/*"),
    *("*growth/policy.py", "*self_tools.py", "*skill_tools.py"),
)
"""The files that it may not change, in small letters; `*` stands for any characters, also for `/`."""
_PLAIN = re.compile(r"[\w./-]+", re.ASCII)
"""How a path is written: one with other signs may stand for another file elsewhere, or look like another."""
_CHANGED = re.compile(r"(\d+) (?:insertion|deletion)")
_FOR_PEOPLE: frozenset[IntentKind] = frozenset({"merge", "review", "review_request", "contents"})


def out_of_bounds(paths: Iterable[str]) -> list[str]:
    """Return those of these paths that a SOUL may not change."""
    return [path for path in paths if not _is_within(path)]


def _is_within(path: str) -> bool:
    name = path.lower()
    # NOTE(self): Python prefers a folder to the module of its name.
    modules = (f"{name[:end]}.py" for end, sign in enumerate(name) if sign == "/")
    is_bound = any(_is_any(one, OUT_OF_BOUNDS) for one in (name, *modules))
    return not is_bound and bool(_PLAIN.fullmatch(path)) and _is_any(name, WITHIN_BOUNDS)


def _is_any(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, one) for one in patterns)


def closed_to_program(changes: BranchChanges) -> Closed | None:
    """Return why a change of the program is not offered; None where it may be."""
    if paths := out_of_bounds(one.path for one in changes.files):
        return Closed("out_of_bounds", "may be changed by people alone", ", ".join(paths))
    lines = max(sum(map(int, _CHANGED.findall(changes.stat))), len(changes.added) // _LINE_CHARS)
    if len(changes.files) > MOST_PROGRAM_FILES or lines > MOST_PROGRAM_LINES:
        most = f"the most are {MOST_PROGRAM_FILES} files, {MOST_PROGRAM_LINES} lines"
        return Closed("too_large", f"{changes.stat}; {most}")
    return None


@dataclass(frozen=True, slots=True)
class OwnProgramRule:
    """A rule of the outbox for the repository of the program, `owner/name`; "" for none."""

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
