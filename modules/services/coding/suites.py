"""Finds the test suites of a repository, runs them in the sandbox, and compares them before and after a change."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from common.files import open_to_owner, readable_name, small_text, walk
from modules.runtime.sandbox.policy import MIB, Limits, Ran
from modules.runtime.sandbox.runner import Sandbox
from modules.services.coding import python_tests
from modules.services.coding.suite_files import (
    CARGO,
    GO,
    NOT_SOURCE,
    PACKAGES,
    SET_UP,
    TEST_FOLDERS,
    checks_of,
    declared_tests,
    suite_definitions,
    test_pattern,
)
from modules.services.coding.test_output import RunVerdict, SuiteOutcome, passed_commands, verdict_of, verdict_of_report

SuiteState = Literal[
    "passed",  # at least one suite ran, and all that ran passed
    "failed",  # a suite fails, or ends without a result, because of the change
    "failing_before",  # the suites that fail, or end without a result, did so before
    "unrun",  # there are suites, and none had a result
    "none",  # the repository has no tests
]

SUITE_SECONDS, SUITE_BYTES = 600.0, 2048 * MIB
_TMP_SHARE = 16  # the part of the memory that /tmp may use
_MOST_TEST_CHARS, _MOST_TESTS = 50_000_000, 100_000
_MOST_BYTES = 200_000
_PYTHON = "pytest"
_COMMANDS = {
    _PYTHON: f"exec python3 -c {shlex.quote(Path(python_tests.__file__).read_text('utf-8'))}",
    "cargo test": 'cargo test --no-fail-fast --offline $([ ! -f Cargo.lock ] || echo "--locked")',
}
_INSTALLED = f"""PATH="$PWD/node_modules/.bin:$PWD/.venv/bin:$PATH"
[ ! -d {CARGO} ] || export CARGO_HOME="$PWD/{CARGO}"
[ ! -f go.mod ] || export GOMODCACHE="$PWD/{GO}" GOCACHE="$PWD/{PACKAGES}/go-build" GOTOOLCHAIN=local"""
_LOCALE = {"LC_ALL": "C.UTF-8"}  # the words by which an outcome is recognized are English
_ENVIRONMENT = {**_LOCALE, "CI": "true", "NO_COLOR": "1", "CARGO_TERM_COLOR": "never", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A run of one test suite.

    Attributes:
        command: the command that ran the tests.
        outcome: how it ended.
        output: the part of the output that people and models are shown.
        failing: the names of all failed tests, as far as the output gives them.
        passing: how many tests passed; None if the output does not say.

    """

    command: str
    outcome: SuiteOutcome
    output: str = ""
    failing: frozenset[str] = frozenset()
    passing: int | None = None

    @property
    def passed(self) -> bool:
        """Whether tests ran, and all of them passed."""
        return self.outcome == "passed"

    @property
    def has_result(self) -> bool:
        """Whether tests ran to their end."""
        return self.outcome in {"passed", "failed"}


@dataclass(frozen=True, slots=True)
class Suites:
    """The test suites of a tree.

    Attributes:
        definitions: the definition of each command in the files: the script, the target, the options.
        declared: the tests that the files declare and do not skip, each as `path: name`.
        runs: the results of the commands.
        lacks: why some dependency of the repository is not installed; "" if all are.
        checks: for each test file, how many lines contain a check and how many skip tests.

    """

    definitions: Mapping[str, str]
    declared: frozenset[str]
    runs: tuple[SuiteRun, ...] = ()
    lacks: str = ""
    checks: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteChange:
    """The effect of a change on the tests of a repository, read from files and runs, never from what the model says."""

    before: Suites
    after: Suites

    @property
    def broken(self) -> tuple[SuiteRun, ...]:
        """The suites with a worse result than before: a test fails that did not, or there is no result any more."""
        return tuple(one for one in self.after.runs if _is_broken(self._before(one), one))

    @property
    def newly_failing(self) -> tuple[str, ...]:
        """The names of the tests that fail and did not before, as far as the outputs give them."""
        before = {one.command: one.failing for one in self.before.runs}
        found = (sorted(one.failing - before.get(one.command, frozenset())) for one in self.broken)
        return tuple(dict.fromkeys(name for names in found for name in names))

    @property
    def mended(self) -> tuple[str, ...]:
        """The names of the tests that failed before and pass now, as far as both outputs give them."""
        after = {one.command: one for one in self.after.runs if one.has_result}
        return tuple(
            name
            for was in self.before.runs
            for now in [after.get(was.command)]
            if now and (now.passed or now.failing)
            for name in sorted(was.failing - now.failing)
        )

    @property
    def still_failing(self) -> tuple[SuiteRun, ...]:
        """The suites in which tests fail as they did before."""
        return tuple(one for one in self._kept if one.outcome == "failed")

    @property
    def still_unnamed(self) -> tuple[SuiteRun, ...]:
        """Those of `still_failing` that give no names of failed tests, so that these could not be compared."""
        before = {one.command: one for one in self.before.runs}
        return tuple(one for one in self.still_failing if not (one.failing and before[one.command].failing))

    @property
    def without_result(self) -> tuple[SuiteRun, ...]:
        """The suites that end without a result, as before."""
        return tuple(one for one in self._kept if not one.has_result)

    @property
    def _kept(self) -> tuple[SuiteRun, ...]:
        broken = self.broken
        return tuple(one for one in self.after.runs if one not in broken)

    @property
    def added(self) -> tuple[str, ...]:
        """The tests that were added."""
        return tuple(sorted(self.after.declared - self.before.declared))

    @property
    def removed(self) -> tuple[str, ...]:
        """The tests that were removed, renamed or skipped."""
        return tuple(sorted(self.before.declared - self.after.declared))

    @property
    def new_commands(self) -> tuple[str, ...]:
        """The test commands that did not exist before."""
        return tuple(one for one in self.after.definitions if one not in self.before.definitions)

    @property
    def changed_commands(self) -> tuple[str, ...]:
        """The test commands that were removed or whose definition changed."""
        after = self.after.definitions
        return tuple(name for name, text in self.before.definitions.items() if after.get(name) != text)

    @property
    def weaker(self) -> tuple[str, ...]:
        """The test files that are gone, check less or skip more; not those with a test in `removed`."""
        return tuple(
            path
            for path, (checking, skipping) in sorted(self.before.checks.items())
            for now in [self.after.checks.get(path)]
            if (now is None or now[0] < checking or now[1] > skipping)
            and not any(one.startswith(f"{path}: ") for one in self.removed)
        )

    @property
    def weakened(self) -> tuple[str, ...]:
        """The removed tests, the weaker test files, and the changed commands."""
        return (*self.removed, *self.weaker, *self.changed_commands)

    @property
    def needs_look(self) -> bool:
        """Whether a person must review the change before it counts as tested."""
        return bool(self.weakened)

    @property
    def state(self) -> SuiteState:
        """The result of all suites together; only suites that ran count."""
        if self.broken:
            return "failed"
        if not any(one.has_result for one in self.after.runs):
            has_none = all(one.outcome == "empty" for one in self.after.runs)
            return "none" if has_none and len(self.after.runs) == len(self.after.definitions) else "unrun"
        has_failing = any(not one.passed and one.outcome not in {"missing", "empty"} for one in self._kept)
        return "failing_before" if has_failing else "passed"

    def _before(self, run: SuiteRun) -> SuiteRun | None:
        return next((one for one in self.before.runs if one.command == run.command), None)


def _is_broken(was: SuiteRun | None, now: SuiteRun) -> bool:
    """Return whether the run `now` has a worse result than the run `was` before the changes."""
    had_result = was is not None and was.has_result
    if now.outcome in {"missing", "empty"}:
        return had_result
    if now.passed or was is None or was.outcome in {"passed", "missing", "empty"}:
        return not now.passed
    if was.outcome != "failed":
        return False
    is_named = now.failing or not was.failing
    is_known = not was.failing or now.failing <= was.failing
    is_counted = bool(now.passing) or not was.passing
    return not (now.has_result and is_named and is_known and is_counted)


async def read_suites(tree: Path) -> Suites:
    """Return the suites that the files of a tree define, without running anything."""
    return await asyncio.to_thread(_read, tree)


async def suite_change(
    base: Path,
    tree: Path,
    sandbox: Sandbox,
    install: Callable[[Path], Awaitable[str]],
    *,
    network: bool,
    seconds: float = SUITE_SECONDS,
) -> SuiteChange:
    """Return how the tests changed from the tree `base` to `tree`; suites that do not pass in `tree` run in `base` too.

    `install` installs the dependencies of a tree and returns why some are missing. Raises `SoulError` if the sandbox
    does not work.
    """
    lacks = await install(tree)
    after = await run_suites(tree, sandbox, network=network, seconds=seconds)
    suspects = [one.command for one in after.runs if not one.passed]
    before = replace(await read_suites(base), lacks=lacks)
    if not suspects:
        return SuiteChange(before, after)
    await install(base)
    ran = await run_suites(base, sandbox, network=network, seconds=seconds, only=suspects)
    return SuiteChange(replace(before, runs=ran.runs), after)


async def run_suites(
    tree: Path,
    sandbox: Sandbox,
    *,
    network: bool,
    seconds: float = SUITE_SECONDS,
    memory: int = SUITE_BYTES,
    only: Collection[str] | None = None,
    gate: str = "",
) -> Suites:
    """Run the tests of a tree: all, those of the commands `only`, or one `gate` instead. Each may take `seconds`.

    Without `only`, a command that an earlier one ran and passed is skipped, such as pytest in `make test`. If the
    earlier one failed, each command runs: a recipe ends at its first failure and so may not name all failing tests.

    Raises `SoulError` if the sandbox does not work.
    """
    await asyncio.to_thread(open_to_owner, tree)  # an earlier run may have made files unreadable
    suites, runs, covered = await read_suites(tree), list[SuiteRun](), set[str]()
    if gate:
        suites = replace(suites, definitions={gate: suites.definitions.get("make test", "")})
    limits = suite_limits(seconds, memory)
    for name in suites.definitions:
        if name in only if only is not None else name not in covered:
            command = in_tree(_COMMANDS.get(name, name))
            ran = await sandbox.run(command, tree, network=network, limits=limits, env=_ENVIRONMENT)
            told = await asyncio.to_thread(_verdict, name, ran)
            runs.append(SuiteRun(name, told.outcome, told.output, frozenset(told.failing), told.passing))
            covered |= passed_commands(f"{ran.stdout}\n{ran.stderr}") if told.outcome == "passed" else set()
    return replace(suites, runs=tuple(runs))


def suite_limits(seconds: float, memory: int = SUITE_BYTES) -> Limits:
    """Return the limits of one program of a repository that may run for `seconds` and use `memory` bytes."""
    wide = Limits(memory_bytes=memory, disk_bytes=2048 * MIB, tmp_bytes=memory // _TMP_SHARE, output_bytes=8 * MIB)
    return replace(wide, wall_s=seconds, cpu_s=int(4 * seconds) + 1)


def _verdict(name: str, ran: Ran) -> RunVerdict:
    if name == _PYTHON:
        return verdict_of_report(ran.ended, ran.returncode, ran.stdout, ran.stderr)
    return verdict_of(ran.ended, ran.returncode, f"{ran.stdout}\n{ran.stderr}")


def in_tree(command: str) -> list[str]:
    """Return a shell command that finds the packages installed in the tree first."""
    return ["/bin/sh", "-c", f"{_INSTALLED}\n{command}"]


def _read(tree: Path) -> Suites:
    names, declared, checks, set_up = set[str](), set[str](), dict[str, tuple[int, int]](), dict[str, str]()
    read_chars = 0
    for folder, folders, files in walk(tree):
        folders[:] = sorted(name for name in folders if name not in NOT_SOURCE)
        names.update(files)
        for name in sorted(files):
            path = tree / folder / name
            said = readable_name(f"{folder}/{name}" if folder else name)
            if SET_UP.fullmatch(name):
                set_up[said] = _text(path)
            if not test_pattern(said) and TEST_FOLDERS.isdisjoint(said.split("/")[:-1]):
                continue
            text = _text(path) if read_chars < _MOST_TEST_CHARS and len(declared) < _MOST_TESTS else ""
            read_chars += len(text)
            tests = {f"{said}: {test}" for test in declared_tests(said, text)}
            declared |= tests
            if tests or not said.endswith(".rs"):
                checks[said] = checks_of(text)
    return Suites(suite_definitions(names, read_small(tree) | set_up), frozenset(declared), checks=checks)


def read_small(tree: Path) -> dict[str, str]:
    """Return the contents of the small files in the root of a tree, by name."""
    return {path.name: _text(path) for path in tree.iterdir() if path.is_file() and not path.is_symlink()}


def _text(path: Path) -> str:
    return small_text(path, _MOST_BYTES) or ""
