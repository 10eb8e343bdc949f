"""Installs what a Python repository needs into `.venv`, with uv: wheels only, unless the owner allows builds."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from modules.services.coding.environment.project import project_wheel
from modules.services.coding.environment.room import InstallRoom, reason
from modules.services.coding.environment.types import Hashes, Project, PythonNeeds

PROBE = (
    "cd /tmp && echo packaging >probe.in"
    ' && "$UV" pip compile -q --no-cache --only-binary :all: --python python3 probe.in'
)
"""Asks the index for a package that we name, which shows from which hosts packages come."""

_COMPILE = '"$UV" pip compile -q --generate-hashes --no-annotate --no-header --python .venv'
_PINNED = re.compile(r"^([\w.-]+)==([\w.!+-]+)(?:[ \t]*\\\n[ \t]+--hash=\S+)*", re.MULTILINE)
_MOST_EACH = 100


def python_settings(index: str) -> Mapping[str, str]:
    """Return the environment variables of uv: one index, the Python that is installed, and no configuration file."""
    settings = {
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_RETRIES": "1",
        "UV_LINK_MODE": "copy",  # programs that run in a tree must not share files with the cache
        "UV_NO_PROGRESS": "1",
    }
    return settings | ({"UV_DEFAULT_INDEX": index} if index else {})


async def make_venv(room: InstallRoom, needs: PythonNeeds, env: Mapping[str, str]) -> tuple[bool, list[str]]:
    """Make an empty `.venv`; return whether it was made, and a line for each thing that went wrong."""
    make, wanted = '"$UV" venv -q --clear --relocatable --python', shlex.quote(needs.python or "python3")
    if needs.python:
        ran, _ = await room.run(f"{make} {wanted} .venv", env)
        if ran.success:
            return True, []
    ran, gateway = await room.run(f"{make} python3 .venv", env)
    if not ran.success:
        return False, [f"Python: {reason(ran, gateway)}"]
    return True, [f"it asks for Python {needs.python}, which is not on this machine"] if needs.python else []


async def resolve(
    room: InstallRoom, needs: PythonNeeds, env: Mapping[str, str], before: str, *, builds: bool
) -> tuple[str, list[str]]:
    """Return the resolved versions and hashes as a requirements file, and what could not be resolved.

    Where the versions of the lock are not available, newer ones are taken; requirements that are not are left out.

    Args:
        room: runs uv in the folder that contains `.venv`.
        needs: the requirements.
        env: the environment variables of uv.
        before: the result for an earlier state of the files; its versions are kept if possible.
        builds: whether packages without a wheel may be built.

    """
    compile_ = f"{_COMPILE}{'' if builds else ' --only-binary :all:'}"
    await _write(room.folder, {"constraints.txt": needs.constraints, "asked.in": needs.requirements})
    await asyncio.to_thread((room.folder / "resolved.txt").write_text, before, "utf-8")
    lacks: list[str] = []
    constraint = " -c constraints.txt" if needs.constraints else ""
    ran, gateway = await room.run(f"{compile_}{constraint} asked.in -o resolved.txt", env)
    if not ran.success and constraint:
        lacks.append(f"the versions of its lock cannot be had here: {reason(ran, gateway)}")
        ran, gateway = await room.run(f"{compile_} asked.in -o resolved.txt", env)
    if not ran.success:
        left, told = await _without_failing(room, needs, env, compile_)
        if not left or not told:
            return "", [*lacks, f"Python: {reason(ran, gateway)}"]
        lacks += told
        await _write(room.folder, {"asked.in": left})
        ran, gateway = await room.run(f"{compile_} asked.in -o resolved.txt", env)
        if not ran.success:
            return "", [*lacks, f"Python: {reason(ran, gateway)}"]
    resolved = await asyncio.to_thread((room.folder / "resolved.txt").read_text, "utf-8")
    return with_lock_hashes(resolved, needs.hashes), lacks


async def _without_failing(
    room: InstallRoom, needs: PythonNeeds, env: Mapping[str, str], compile_: str
) -> tuple[list[str], list[str]]:
    """Return the requirements that can be resolved one by one, and why the others cannot."""
    asked = needs.requirements[:_MOST_EACH]
    await _write(room.folder, {f"each-{n}.in": (text,) for n, text in enumerate(asked)})
    script = f'for one in each-*.in; do {compile_} "$one" >/dev/null 2>"$one.err" && rm "$one.err"; done; true'
    await room.run(script, env)
    left, lacks = [], []
    for n, text in enumerate(asked):
        error = room.folder / f"each-{n}.in.err"
        if error.exists():
            lacks.append(f"{text}: {_essence(await asyncio.to_thread(error.read_text, 'utf-8', 'replace'))}")
        else:
            left.append(text)
    return left, lacks


async def install_resolved(
    room: InstallRoom, resolved: str, project: Project | None, env: Mapping[str, str], *, builds: bool
) -> list[str]:
    """Install the resolved packages by hash, and the project itself; return what could not be installed."""
    lacks: list[str] = []
    await asyncio.to_thread((room.folder / "resolved.txt").write_text, resolved, "utf-8")
    only = "" if builds else " --only-binary :all:"
    into = '"$UV" pip install -q --python .venv --no-deps'
    if resolved.strip():
        ran, gateway = await room.run(f"{into} --require-hashes{only} -r resolved.txt", env)
        lacks += [] if ran.success else [f"Python: {reason(ran, gateway)}"]
    if project is not None:
        name, wheel = project_wheel(project)
        await asyncio.to_thread((room.folder / name).write_bytes, wheel)
        ran, gateway = await room.run(f"{into} --no-cache --offline {shlex.quote(f'./{name}')}", env)
        lacks += [] if ran.success else [f"{project.name} itself: {reason(ran, gateway)}"]
    return lacks


def with_lock_hashes(resolved: str, hashes: Hashes) -> str:
    """Return the resolved requirements with the hashes of the lock, where it has any, instead of those of the index."""

    def kept(found: re.Match[str]) -> str:
        locked = hashes.get((canonicalize_name(found[1]), found[2]))
        return (
            " \\\n    ".join([f"{found[1]}=={found[2]}", *(f"--hash={one}" for one in locked)]) if locked else found[0]
        )

    return _PINNED.sub(kept, resolved)


def _essence(text: str) -> str:
    """Return the reason in an error of the resolver, in one line."""
    said = " ".join(text.split())
    return said.partition("Because ")[2][:200] or said[:200]


async def _write(folder: Path, files: Mapping[str, tuple[str, ...] | list[str]]) -> None:
    for name, lines in files.items():
        await asyncio.to_thread((folder / name).write_text, "".join(f"{line}\n" for line in lines), "utf-8")
