"""The tests that a repository has of its own: found by its files, run in the sandbox, compared before and after."""

from __future__ import annotations

import asyncio
import configparser
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import Limits

MISSING_RUNNER = 127
_LIMITS = Limits(wall_s=120.0)
_KEPT_CHARS = 2_000
_MOST_BYTES = 200_000
_NO_TESTS = "no test specified"
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_TARGET = re.compile(r"^test\s*:(?!=).*(?:\n(?:[ \t].*)?$)*", re.MULTILINE)
_NPM_SCRIPTS = ("pretest", "test", "posttest")
_PYTEST = "python3 -c 'import pytest' 2>/dev/null || exit 127; exec python3 -m pytest -q -p no:cacheprovider"
_PYTEST_FILE = re.compile(r"test_\w+\.py|\w+_test\.py")
_PYTEST_SECTIONS = (("setup.cfg", "tool:pytest"), ("tox.ini", "pytest"))
_SKIPPED = frozenset({".git", "node_modules", ".venv", "target"})

_SCRIPT = re.compile(r".+\.[cm]?[jt]sx?")
_SCRIPT_TESTS = re.compile(r"(.*[._-])?(test|tests|spec)\.[cm]?[jt]sx?|test-.*\.[cm]?[jt]s")
_SCRIPT_FOLDERS = frozenset({"test", "__tests__"})
_SCRIPT_TEST = re.compile(r"(?:^|[^\w.])(?:test|it)\s*\(\s*(['\"`])(.{1,200}?)\1")
_PYTHON_TEST = re.compile(r"^\s*(?:async\s+)?def\s+(test\w*)\s*\(")
_GO_TEST = re.compile(r"^func\s+(Test\w+)\s*\(")
_RUST_FUNCTION = re.compile(r"^\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)")
_RUST_TEST = re.compile(r"\btest\b")
_NOT_RUN = re.compile(r"\.skip|\bignore\b")
_ATTRIBUTE = ("@", "#[")


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
        lacks: why something that the repository depends on is not installed; "" where all is.

    """

    definitions: Mapping[str, str]
    declared: frozenset[str]
    runs: tuple[SuiteRun, ...] = ()
    lacks: str = ""

    def to_json(self) -> str:
        """Return it as it is kept."""
        runs = [[one.command, one.passed, one.is_missing, one.output] for one in self.runs]
        kept = {"definitions": self.definitions, "declared": sorted(self.declared), "runs": runs, "lacks": self.lacks}
        return json.dumps(kept)

    @classmethod
    def from_json(cls, text: str) -> Suites:
        """Return what `to_json` kept."""
        kept = json.loads(text)
        runs = tuple(SuiteRun(*one) for one in kept["runs"])
        return cls(kept["definitions"], frozenset(kept["declared"]), runs, kept["lacks"])


@dataclass(frozen=True, slots=True)
class SuiteChange:
    """What work did to the tests of a repository, read from files and runs, never from what is said."""

    before: Suites
    after: Suites

    @property
    def broken(self) -> tuple[SuiteRun, ...]:
        """The suites that fail, and did not fail before."""
        return tuple(one for one in self.after.runs if one.failed and one.command not in self._failed_before)

    @property
    def still_failing(self) -> tuple[SuiteRun, ...]:
        """The suites that fail as they did before."""
        return tuple(one for one in self.after.runs if one.failed and one.command in self._failed_before)

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
    def needs_look(self) -> bool:
        """Whether somebody must look at it before it counts as tested."""
        return bool(self.removed or self.changed_commands)

    @property
    def _failed_before(self) -> frozenset[str]:
        return frozenset(one.command for one in self.before.runs if one.failed)


async def run_suites(tree: Path, sandbox: Sandbox, *, network: bool) -> Suites:
    """Run all tests of a tree. Raises `SoulError` where the sandbox does not work."""
    suites, runs = await asyncio.to_thread(_read, tree), list[SuiteRun]()
    for name in suites.definitions:
        command = in_tree(_PYTEST if name == "pytest" else name)
        ran = await sandbox.run(command, tree, network=network, limits=_LIMITS, env={"CI": "true"})
        is_missing = ran.ended == "exited" and ran.returncode == MISSING_RUNNER
        output = f"{ran.stdout}\n{ran.stderr}".strip()[-_KEPT_CHARS:]
        runs.append(SuiteRun(name, ran.success, is_missing, output or f"{ran.ended}, {ran.returncode}"))
    return Suites(suites.definitions, suites.declared, tuple(runs))


def in_tree(command: str) -> list[str]:
    """Return a command as it runs in a tree: what was installed there is found first."""
    return ["/bin/sh", "-c", f'PATH="$PWD/node_modules/.bin:$PWD/.venv/bin:$PATH"\n{command}']


def suite_definitions(names: Iterable[str], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the commands that test a repository, each with what it stands for in the files.

    Args:
        names: of all files.
        texts: what stands in the small ones of its root.

    """
    target = next((found[0] for name in _MAKEFILES if (found := _TARGET.search(texts.get(name, "")))), None)
    definitions = {
        "npm test --silent": _npm_definition(texts.get("package.json", "")),
        "make test": target.rstrip() if target else None,
        "pytest": _pytest_definition(texts) if any(_PYTEST_FILE.fullmatch(name) for name in names) else None,
        "cargo test --quiet": "" if "Cargo.toml" in texts else None,
        "go test ./...": "" if "go.mod" in texts else None,
    }
    return {command: definition for command, definition in definitions.items() if definition is not None}


def declared_tests(path: str, text: str) -> Iterator[str]:
    """Yield the names of the tests that a file declares and does not skip; none where it is no file of tests."""
    pattern, attributes = _pattern(path), ""
    for line in text.split("\n") if pattern else ():
        if line.lstrip().startswith(_ATTRIBUTE):
            attributes += line
            continue
        found = pattern.search(line) if pattern else None
        is_test = pattern is not _RUST_FUNCTION or _RUST_TEST.search(attributes)
        if found and is_test and not _NOT_RUN.search(attributes):
            yield found[found.lastindex or 0]
        attributes = attributes if not line.strip() else ""


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


def _npm_definition(text: str) -> str | None:
    try:
        scripts = json.loads(text or "{}").get("scripts") or {}
        told = {name: scripts[name] for name in _NPM_SCRIPTS if name in scripts}
    except (ValueError, AttributeError, TypeError):
        return None
    script = told.get("test")
    is_there = isinstance(script, str) and script.strip() and _NO_TESTS not in script
    return json.dumps(told) if is_there else None


def _pytest_definition(texts: Mapping[str, str]) -> str:
    """What the files of the root set for pytest; a file that cannot be read as what it is counts whole."""
    try:
        project = tomllib.loads(texts.get("pyproject.toml", "")).get("tool", {}).get("pytest", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        project = texts["pyproject.toml"]
    sections = [_section(texts.get(name, ""), section) for name, section in _PYTEST_SECTIONS]
    return json.dumps([texts.get("pytest.ini", ""), project, *sections], sort_keys=True, default=str)


def _section(text: str, name: str) -> object:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return text
    return dict(parser[name]) if parser.has_section(name) else {}


def _read(tree: Path) -> Suites:
    """What stands in the files of a tree."""
    names, declared = set[str](), set[str]()
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        names.update(files)
        for name in files:
            path = Path(folder) / name
            said = path.relative_to(tree).as_posix()
            declared.update(f"{said}: {test}" for test in declared_tests(said, _text(path) if _pattern(said) else ""))
    return Suites(suite_definitions(names, read_small(tree)), frozenset(declared))


def read_small(tree: Path) -> dict[str, str]:
    """Return what stands in the small files of the root of a tree."""
    return {path.name: _text(path) for path in tree.iterdir() if path.is_file() and not path.is_symlink()}


def _text(path: Path) -> str:
    """What stands in a small file, "" for others."""
    is_read = not path.is_symlink() and path.is_file() and path.stat().st_size <= _MOST_BYTES
    return path.read_text("utf-8", "replace") if is_read else ""
