"""The tests that a repository has of its own: found by its files, run in the sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import Limits

MISSING_RUNNER = 127
_LIMITS = Limits(wall_s=120.0)
_KEPT_CHARS = 2_000
_MOST_BYTES = 200_000
_NO_TESTS = "no test specified"
_TARGET = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_TEST_FILE = re.compile(r"test_\w+\.py|\w+_test\.py")
_PYTEST = "python3 -c 'import pytest' 2>/dev/null || exit 127; exec python3 -m pytest -q -p no:cacheprovider"
_SKIPPED = frozenset({".git", "node_modules", ".venv", "target"})


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A run of tests: `is_missing` says that what runs them is not here; `output` is the end of what was written."""

    command: str
    passed: bool
    is_missing: bool = False
    output: str = ""


async def run_suites(tree: Path, sandbox: Sandbox, *, network: bool) -> list[SuiteRun]:
    """Run all tests of a tree; none where it has none. Raises `SoulError` where the sandbox does not work."""
    found = await asyncio.to_thread(_read, tree)
    runs = []
    for command in suite_commands(*found):
        ran = await sandbox.run(["/bin/sh", "-c", command], tree, network=network, limits=_LIMITS, env={"CI": "true"})
        is_missing = ran.ended == "exited" and ran.returncode == MISSING_RUNNER
        output = f"{ran.stdout}\n{ran.stderr}".strip()[-_KEPT_CHARS:]
        name = "pytest" if command == _PYTEST else command
        runs.append(SuiteRun(name, ran.success, is_missing, output or f"{ran.ended}, {ran.returncode}"))
    return runs


def suite_commands(names: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """Return the commands that test a repository: by the names of its files, and what stands in some of its root."""
    known = set(names)
    found = {
        "npm test --silent": _has_npm_tests(texts.get("package.json", "")),
        "make test": any(_TARGET.search(texts.get(name, "")) for name in ("Makefile", "makefile", "GNUmakefile")),
        _PYTEST: any(_TEST_FILE.fullmatch(name) for name in known),
        "cargo test --quiet": "Cargo.toml" in texts,
        "go test ./...": "go.mod" in texts,
    }
    return [command for command, is_there in found.items() if is_there]


def _has_npm_tests(text: str) -> bool:
    try:
        scripts = json.loads(text or "{}").get("scripts") or {}
        script = scripts.get("test")
    except (ValueError, AttributeError):
        return False
    return isinstance(script, str) and bool(script.strip()) and _NO_TESTS not in script


def _read(tree: Path) -> tuple[set[str], dict[str, str]]:
    """The names of all files, and the texts of small ones in the root."""
    names: set[str] = set()
    for _, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        names.update(files)
    small = [path for path in tree.iterdir() if path.is_file() and not path.is_symlink()]
    return names, {
        path.name: path.read_text("utf-8", "replace") for path in small if path.stat().st_size <= _MOST_BYTES
    }
