"""What a repository depends on: installed from its lock before the work, by hash, without running anything of it.

The lock says which packages, in which version and with which hash. Where they come from is up to this machine:
addresses and options that stand in a lock are not followed.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from common.settings import Settings
from common.trees import delete_tree
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import Limits
from modules.services.coding.suites import read_small

INSTALLED = ("node_modules", ".venv")
"""The folders that are made."""

_LIMITS = Limits(wall_s=120.0)
_REASON_CHARS = 300
_NPM = ("package.json", "package-lock.json")
_NPM_RUN = "npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier"
_PYTHON = re.compile(r"requirements[\w.-]*\.(?:txt|lock)")
_PYTHON_RUN = "python3 -m venv .venv && .venv/bin/python -m pip install --require-hashes --no-deps --only-binary :all:"
_PINNED, _HASH = re.compile(r"[\w.\[\],-]+ ?== ?[\w.!+]+(?: ?;[^@-]*)?"), re.compile(r"--hash=\w+:\w+")
_OTHER_LOCKS = ("yarn.lock", "pnpm-lock.yaml", "uv.lock", "poetry.lock", "Pipfile.lock")


@dataclass(frozen=True, slots=True)
class Registries:
    """Where packages come from; "": where npm and pip look by themselves."""

    npm: str = ""
    python: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return those that the owner set."""
        return cls(str(settings.coding_npm_registry), str(settings.coding_python_index))


@dataclass(frozen=True, slots=True)
class Installation:
    """What is to be installed: the command, the files that it reads, and why something is left out."""

    command: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""


async def install(tree: Path, sandbox: Sandbox, registries: Registries) -> str:
    """Install what `tree` depends on, by way of an empty folder beside it; return why something could not be, or "".

    Raises `SoulError` where the sandbox does not work.
    """
    folder = tree.with_name(f"{tree.name}-installed")
    await asyncio.to_thread(delete_tree, folder)
    folder.mkdir()
    try:
        return await _install(tree, folder, sandbox, registries)
    finally:
        await asyncio.to_thread(delete_tree, folder)


async def _install(tree: Path, folder: Path, sandbox: Sandbox, registries: Registries) -> str:
    texts = await asyncio.to_thread(read_small, tree)
    lacks = []
    for made, wanted in (("node_modules", npm_installation(texts)), (".venv", python_installation(texts))):
        lacks += [wanted.lacks] if wanted.lacks else []
        if not wanted.command or is_there(tree / made):
            continue
        for name, text in wanted.files.items():
            await asyncio.to_thread((folder / name).write_text, text, "utf-8")
        given = {"npm_config_registry": registries.npm, "PIP_INDEX_URL": registries.python, "CI": "true"}
        env = {name: value for name, value in given.items() if value}
        ran = await sandbox.run(["/bin/sh", "-c", wanted.command], folder, network=True, limits=_LIMITS, env=env)
        if not ran.success:
            said = " ".join((ran.stderr or ran.stdout).split())[:_REASON_CHARS]
            lacks.append(f"{wanted.command.split()[0]}: {said or ran.ended}")
    await asyncio.to_thread(move_installed, folder, tree)
    return "; ".join(lacks)


def npm_installation(texts: Mapping[str, str]) -> Installation:
    """Return how the packages of a `package-lock.json` are installed."""
    page, lock = (texts.get(name, "") for name in _NPM)
    try:
        asked = json.loads(page or "{}")
        wants = bool(asked.get("dependencies") or asked.get("devDependencies"))
        locked = json.loads(lock or "{}")
        packages = {path: one for path, one in locked.get("packages", {}).items() if path}
        odd = next((path for path, one in packages.items() if not (one.get("version") and one.get("integrity"))), "")
    except (ValueError, AttributeError):
        return Installation(lacks="package.json or package-lock.json cannot be read")
    if not packages:
        return Installation(lacks="package.json names dependencies, and no package-lock.json locks them" * wants)
    if odd:
        return Installation(lacks=f"package-lock.json names no version and hash for {odd[:_REASON_CHARS]}")
    for one in packages.values():
        one.pop("resolved", None)
    return Installation(_NPM_RUN, dict(zip(_NPM, (page, json.dumps(locked)), strict=True)))


def python_installation(texts: Mapping[str, str]) -> Installation:
    """Return how the packages of requirements with hashes are installed."""
    found = {name: _lines(text) for name, text in texts.items() if _PYTHON.fullmatch(name)}
    locked = {name: lines for name, lines in found.items() if lines and all(map(_is_pinned, lines))}
    others = [*(name for name in found if found[name] and name not in locked), *(n for n in _OTHER_LOCKS if n in texts)]
    lacks = f"{', '.join(others)} cannot be installed from by hash" if others and not locked else ""
    if not locked:
        return Installation(lacks=lacks)
    files = {name: "\n".join(lines) for name, lines in locked.items()}
    return Installation(" ".join([_PYTHON_RUN, *(f"-r {name}" for name in files)]), files)


def _is_pinned(line: str) -> bool:
    """Whether a requirement has one version and its hashes, and sets nothing else."""
    words = line.split(" ")
    bare = [word for word in words if not _HASH.fullmatch(word)]
    return len(bare) < len(words) and bool(_PINNED.fullmatch(" ".join(bare)))


def _lines(text: str) -> list[str]:
    """The requirements of a file, each in one line, without comments."""
    joined = re.sub(r"\\\n", " ", text)
    bare = (re.sub(r"(^|\s)#.*", "", line) for line in joined.split("\n"))
    return [" ".join(line.split()) for line in bare if line.strip()]


def move_installed(source: Path, target: Path) -> None:
    """Move what was installed into another folder, unless it brought its own."""
    for name in INSTALLED:
        if (source / name).is_dir() and not is_there(target / name):
            delete_tree(target / name)
            shutil.move(source / name, target / name)


def is_there(path: Path) -> bool:
    """Return whether a path leads anywhere: a link to nothing, or in a circle, does not."""
    try:
        path.stat()
    except OSError:
        return False
    return True
