"""The tests that a repository has of its own: found by its files, run in the sandbox, compared before and after."""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from common.trees import open_to_owner, readable_name, walk
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import Limits
from modules.services.coding.test_output import failing_tests

SuiteState = Literal[
    "passed",  # all of them ran, and passed
    "failed",  # one ran, and fails by what was changed
    "failing_before",  # one fails, as it did before
    "unrun",  # one could not be run
    "none",  # the repository has none
]

MISSING_RUNNER = 127
_LIMITS = Limits(wall_s=120.0)
_KEPT_CHARS = 2_000
_MOST_BYTES = 200_000
_MOST_TEST_CHARS, _MOST_TESTS = 50_000_000, 100_000
_NO_TESTS = "no test specified"
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_RULE = re.compile(r"^([\w./-]+)[ \t]*:(?!=)(.*)(?:\n(?:[ \t].*)?$)*", re.MULTILINE)
_SETTING = re.compile(r"^(?:(?:export|override)[ \t]+)?[\w.-]+[ \t]*[:?+!]{0,3}=.*$|^-?include[ \t].*$", re.MULTILINE)
_NPM_CALL = re.compile(r"\b(?:npm|pnpm|yarn)\s+(?:run\s+)?([\w:.-]+)")
_NPM_SETTINGS = ("jest", "mocha", "ava", "c8", "tap")
_PYTEST = "python3 -c 'import pytest' 2>/dev/null || exit 127; exec python3 -m pytest -q -p no:cacheprovider"
_PYTEST_FILE = re.compile(r"test_\w+\.py|\w+_test\.py")
_PYTEST_SECTIONS = (("setup.cfg", "tool:pytest"), ("tox.ini", "pytest"))
_SKIPPED = frozenset({".git", "node_modules", ".venv", "target"})

_SCRIPT = re.compile(r".+\.[cm]?[jt]sx?")
_SCRIPT_TESTS = re.compile(r"(.*[._-])?(test|tests|spec)\.[cm]?[jt]sx?|test-.*\.[cm]?[jt]s")
_SCRIPT_FOLDERS = frozenset({"test", "__tests__"})
_TEST_FOLDERS = _SCRIPT_FOLDERS | {"tests", "spec"}
_SCRIPT_TEST = re.compile(r"(?:^|[^\w.])(?:test|it)\s*\(\s*(['\"`])(.{1,200}?)\1")
_PYTHON_TEST = re.compile(r"^\s*(?:async\s+)?def\s+(test\w*)\s*\(")
_GO_TEST = re.compile(r"^func\s+(Test\w+)\s*\(")
_RUST_FUNCTION = re.compile(r"^\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)")
_RUST_TEST = re.compile(r"\btest\b")
_NOT_RUN = re.compile(r"\.(?:skip|xfail)|\bignore\b")
_ATTRIBUTE = ("@", "#[")
_COMMENT = ("//", "# ")
_CHECK = re.compile(r"\bassert\w*\b|\bexpect\(|#\[cfg\(test\)\]")
_SKIP = re.compile(r"\.(?:skip|todo|Skip)\w*\(|\bmark\.(?:skip|xfail)|#\[ignore")
_SET_UP = re.compile(r"conftest\.py|(?:jest|vitest|ava)\.config\.\w+|\.mocharc\.\w+")
_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A run of tests: `is_missing` says that what runs them is not here; `output` is the end of what was written."""

    command: str
    passed: bool
    is_missing: bool = False
    output: str = ""

    @property
    def failed(self) -> bool:
        """Whether tests ran, and failed."""
        return not self.passed and not self.is_missing


@dataclass(frozen=True, slots=True)
class Suites:
    """The tests of a tree.

    Attributes:
        definitions: what each command stands for in the files: the script, the target, the options.
        declared: the tests that the files declare and do not skip, each as `path: name`.
        runs: how the commands ended.
        checks: of each file of tests how many lines check something, and how many leave tests out.
        lacks: why something that the repository depends on is not installed; "" where all is.

    """

    definitions: Mapping[str, str]
    declared: frozenset[str]
    runs: tuple[SuiteRun, ...] = ()
    lacks: str = ""
    checks: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as it is kept."""
        runs = [[one.command, one.passed, one.is_missing, one.output] for one in self.runs]
        kept = {"definitions": self.definitions, "declared": sorted(self.declared), "runs": runs, "lacks": self.lacks}
        return json.dumps(kept | {"checks": self.checks})

    @classmethod
    def from_json(cls, text: str) -> Suites:
        """Return what `to_json` kept."""
        kept = json.loads(text)
        runs = tuple(SuiteRun(*one) for one in kept["runs"])
        checks = {path: (checking, skipping) for path, (checking, skipping) in kept.get("checks", {}).items()}
        return cls(kept["definitions"], frozenset(kept["declared"]), runs, kept["lacks"], checks)


@dataclass(frozen=True, slots=True)
class SuiteChange:
    """What work did to the tests of a repository, read from files and runs, never from what is said."""

    before: Suites
    after: Suites

    @property
    def broken(self) -> tuple[SuiteRun, ...]:
        """The suites that fail, and did not before, or in which a test fails that did not."""
        return tuple(one for one in self.after.runs if one.failed and not self._failed_before(one))

    @property
    def still_failing(self) -> tuple[SuiteRun, ...]:
        """The suites that fail as they did before."""
        return tuple(one for one in self.after.runs if one.failed and self._failed_before(one))

    @property
    def added(self) -> tuple[str, ...]:
        """The tests that are new."""
        return tuple(sorted(self.after.declared - self.before.declared))

    @property
    def removed(self) -> tuple[str, ...]:
        """The tests that are gone, renamed or skipped."""
        return tuple(sorted(self.before.declared - self.after.declared))

    @property
    def new_commands(self) -> tuple[str, ...]:
        """The commands that there were none of."""
        return tuple(one for one in self.after.definitions if one not in self.before.definitions)

    @property
    def changed_commands(self) -> tuple[str, ...]:
        """The commands that are gone, or stand for something else."""
        after = self.after.definitions
        return tuple(name for name, text in self.before.definitions.items() if after.get(name) != text)

    @property
    def weaker(self) -> tuple[str, ...]:
        """The files of tests that are gone, check less or leave out more; not those of which `removed` names a test."""
        return tuple(
            path
            for path, (checking, skipping) in sorted(self.before.checks.items())
            for now in [self.after.checks.get(path)]
            if (now is None or now[0] < checking or now[1] > skipping)
            and not any(one.startswith(f"{path}: ") for one in self.removed)
        )

    @property
    def weakened(self) -> tuple[str, ...]:
        """What the work took from the tests: tests, files of them, and commands."""
        return (*self.removed, *self.weaker, *self.changed_commands)

    @property
    def needs_look(self) -> bool:
        """Whether somebody must look at it before it counts as tested."""
        return bool(self.weakened)

    @property
    def state(self) -> SuiteState:
        """What the tests came to, all together."""
        if self.broken:
            return "failed"
        if len(self.after.runs) < len(self.after.definitions) or any(one.is_missing for one in self.after.runs):
            return "unrun"
        if self.still_failing:
            return "failing_before"
        return "passed" if self.after.runs else "none"

    def _failed_before(self, run: SuiteRun) -> bool:
        was = next((one for one in self.before.runs if one.command == run.command and one.failed), None)
        return was is not None and set(failing_tests(run.output)) <= set(failing_tests(was.output))


async def read_suites(tree: Path) -> Suites:
    """Return what stands in the files of a tree, and run nothing."""
    return await asyncio.to_thread(_read, tree)


async def suite_change(
    base: Path, tree: Path, sandbox: Sandbox, install: Callable[[Path], Awaitable[str]], *, network: bool
) -> SuiteChange:
    """Return what was done to the tests from the tree `base` on; those of `base` run where some fail in `tree`.

    `install` installs what a tree depends on, and returns why something is not. Raises `SoulError` where the sandbox
    does not work.
    """
    lacks = await install(tree)
    after = await run_suites(tree, sandbox, network=network)
    if not any(one.failed for one in after.runs):
        return SuiteChange(replace(await read_suites(base), lacks=lacks), after)
    await install(base)
    return SuiteChange(replace(await run_suites(base, sandbox, network=network), lacks=lacks), after)


async def run_suites(tree: Path, sandbox: Sandbox, *, network: bool) -> Suites:
    """Run all tests of a tree. Raises `SoulError` where the sandbox does not work."""
    await asyncio.to_thread(open_to_owner, tree)  # an earlier run may have closed files
    suites, runs = await read_suites(tree), list[SuiteRun]()
    for name in suites.definitions:
        command = in_tree(_PYTEST if name == "pytest" else name)
        ran = await sandbox.run(command, tree, network=network, limits=_LIMITS, env={"CI": "true"})
        is_missing = ran.ended == "exited" and ran.returncode == MISSING_RUNNER
        output = f"{ran.stdout}\n{ran.stderr}".strip()[-_KEPT_CHARS:]
        runs.append(SuiteRun(name, ran.success, is_missing, output or f"{ran.ended}, {ran.returncode}"))
    return replace(suites, runs=tuple(runs))


def in_tree(command: str) -> list[str]:
    """Return a command as it runs in a tree: what was installed there is found first."""
    return ["/bin/sh", "-c", f'PATH="$PWD/node_modules/.bin:$PWD/.venv/bin:$PATH"\n{command}']


def suite_definitions(names: Iterable[str], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the commands that test a repository, each with what it stands for in the files.

    Files named as pytest's count only where no Makefile says how to test: many are run by unittest, and need no pytest.

    Args:
        names: of all files.
        texts: what stands in the small ones of its root, and in those that set its tests up.

    """
    make = next((found for name in _MAKEFILES if (found := _make_definition(texts.get(name, "")))), None)
    is_pytest = make is None and any(_PYTEST_FILE.fullmatch(name) for name in names)
    definitions = {
        "npm test --silent": _npm_definition(texts),
        "make test": make,
        "pytest": _pytest_definition(texts) if is_pytest else None,
        "cargo test --quiet": "" if "Cargo.toml" in texts else None,
        "go test ./...": "" if "go.mod" in texts else None,
    }
    return {command: definition for command, definition in definitions.items() if definition is not None}


def declared_tests(path: str, text: str) -> Iterator[str]:
    """Yield the names of the tests that a file declares and does not skip; none where it is no file of tests."""
    pattern, attributes = _pattern(path), ""
    for line in text.split("\n") if pattern else ():
        if line.lstrip().startswith(_COMMENT):
            continue
        if line.lstrip().startswith(_ATTRIBUTE):
            attributes += line
            if not (pattern is _RUST_FUNCTION and pattern.search(line)):
                continue
        found = pattern.search(line) if pattern else None
        is_test = pattern is not _RUST_FUNCTION or _RUST_TEST.search(attributes)
        if found and is_test and not _NOT_RUN.search(attributes):
            yield found[found.lastindex or 0]
        attributes = attributes if not line.strip() else ""


def checks_of(text: str) -> tuple[int, int]:
    """Return how many lines check something, and how many leave tests out."""
    lines = text.split("\n")
    return sum(bool(_CHECK.search(line)) for line in lines), sum(bool(_SKIP.search(line)) for line in lines)


def _pattern(path: str) -> re.Pattern[str] | None:
    """Return what a declaration of a test looks like in a file; None where it is no file of tests."""
    *folders, name = path.split("/")
    is_script = _SCRIPT_TESTS.fullmatch(name) or (_SCRIPT_FOLDERS.intersection(folders) and _SCRIPT.fullmatch(name))
    kinds = (
        (_PYTEST_FILE.fullmatch(name), _PYTHON_TEST),
        (name.endswith("_test.go"), _GO_TEST),
        (name.endswith(".rs"), _RUST_FUNCTION),
        (is_script, _SCRIPT_TEST),
    )
    return next((pattern for is_of_kind, pattern in kinds if is_of_kind), None)


def _npm_definition(texts: Mapping[str, str]) -> str | None:
    try:
        page = json.loads(texts.get("package.json") or "{}")
        scripts = {name: text for name, text in (page.get("scripts") or {}).items() if isinstance(text, str)}
    except (ValueError, AttributeError, TypeError):
        return None
    script = scripts.get("test", "")
    if not script.strip() or _NO_TESTS in script:
        return None
    told, left = dict[str, str](), ["test"]
    while left:
        name = left.pop()
        run = {one: scripts[one] for one in (f"pre{name}", name, f"post{name}") if one in scripts and one not in told}
        told |= run
        left += [called for text in run.values() for called in _NPM_CALL.findall(text)]
    settings = {name: page[name] for name in _NPM_SETTINGS if name in page}
    return json.dumps([told, settings, _set_up(texts, of_python=False)], sort_keys=True)


def _make_definition(text: str) -> str:
    """What `make test` stands for: its rule, those that it needs, and what the file sets for all; "" without one."""
    rules, told, left = {found[1]: found for found in _RULE.finditer(text)}, dict[str, str](), ["test"]
    while left:
        name = left.pop()
        if name in rules and name not in told:
            told[name] = rules[name][0].rstrip()
            left += rules[name][2].split()
    return "\n".join([*_SETTING.findall(text), *told.values()]) if told else ""


def _pytest_definition(texts: Mapping[str, str]) -> str:
    """What the files of the root set for pytest; a file that cannot be read as what it is counts whole."""
    try:
        project = tomllib.loads(texts.get("pyproject.toml", "")).get("tool", {}).get("pytest", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        project = texts["pyproject.toml"]
    sections = [_section(texts.get(name, ""), section) for name, section in _PYTEST_SECTIONS]
    told = [[texts.get(name, "") for name in _PYTEST_FILES], project, *sections, _set_up(texts, of_python=True)]
    return json.dumps(told, sort_keys=True, default=str)


def _set_up(texts: Mapping[str, str], *, of_python: bool) -> dict[str, str]:
    """Return the files that set up the tests of Python, or of scripts."""
    names = [path for path in texts if _SET_UP.fullmatch(path.rpartition("/")[2])]
    return {path: texts[path].strip() for path in names if path.endswith(".py") is of_python}


def _section(text: str, name: str) -> object:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return text
    return dict(parser[name]) if parser.has_section(name) else {}


def _read(tree: Path) -> Suites:
    names, declared, checks, set_up = set[str](), set[str](), dict[str, tuple[int, int]](), dict[str, str]()
    read_chars = 0
    for folder, folders, files in walk(tree):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        names.update(files)
        for name in sorted(files):
            path = tree / folder / name
            said = readable_name(f"{folder}/{name}" if folder else name)
            if _SET_UP.fullmatch(name):
                set_up[said] = _text(path)
            if not _pattern(said) and _TEST_FOLDERS.isdisjoint(said.split("/")[:-1]):
                continue
            text = _text(path) if read_chars < _MOST_TEST_CHARS and len(declared) < _MOST_TESTS else ""
            read_chars += len(text)
            tests = {f"{said}: {test}" for test in declared_tests(said, text)}
            declared |= tests
            if tests or not said.endswith(".rs"):
                checks[said] = checks_of(text)
    return Suites(suite_definitions(names, read_small(tree) | set_up), frozenset(declared), checks=checks)


def read_small(tree: Path) -> dict[str, str]:
    """Return what stands in the small files of the root of a tree."""
    return {path.name: _text(path) for path in tree.iterdir() if path.is_file() and not path.is_symlink()}


def _text(path: Path) -> str:
    """What stands in a small file, "" for others and for what cannot be read."""
    try:
        is_read = not path.is_symlink() and path.is_file() and path.stat().st_size <= _MOST_BYTES
        return path.read_text("utf-8", "replace") if is_read else ""
    except OSError:
        return ""
