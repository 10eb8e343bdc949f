"""`soul skills …`: the SOUL's own skills, their versions, and the owner's switch for each.

A skill is a document like SELF.md: these commands do by its name what `soul self … --file skills/NAME` does.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import asdict
from operator import methodcaller
from pathlib import Path
from typing import Annotated

import typer

from adapters.storage.objects import SKILL_NAME
from common.constants import TEXT_MAX_BYTES
from common.files import read_bounded
from modules.runtime.home import Home
from modules.services.identity.history import held_documents, path_of
from modules.services.identity.types import OWN_SKILL
from modules.services.skills.own import switched
from modules.services.skills.skills import FILE, MOST_READ, SkillEntry, read_page
from soul.commands.at_hand import at_hand
from soul.commands.self_ import (
    document_named,
    no_skill,
    reported,
    run_self_diff,
    run_self_log,
    run_self_rollback,
    with_keeper,
)
from soul.resources import SKILLS
from soul.terminal.output import write_answer, write_lines

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The skill.")]
_Version = Annotated[str, typer.Argument(metavar="VERSION", help="The version.")]
_Since = Annotated[str, typer.Argument(metavar="VERSION", help="Since this version; else the last one.")]


def own_skills(home: Home) -> list[SkillEntry | str]:
    """Return each skill in the workspace or, for one that cannot be used, a line that says why."""
    found: list[SkillEntry | str] = []
    paths = sorted(home.workspace.glob(f"{OWN_SKILL}*/{FILE}"))
    for path in paths[:MOST_READ]:
        name = path.parent.name
        if not re.fullmatch(SKILL_NAME, name) or (SKILLS / name).exists():
            found.append(f"{name}: left out, its name is the program's, or has other signs than a-z, 0-9 and -")
            continue
        try:
            found.append(read_page(name, read_bounded(path, TEXT_MAX_BYTES).decode(), "own").entry)
        except (OSError, ValueError) as error:
            found.append(f"{name}: left out, {error}")
    beyond = len(paths) - MOST_READ
    return [*found, *([f"{beyond} more left out, beyond the first {MOST_READ} by name"] if beyond > 0 else [])]


def run_skills_list(root: Path, *, as_json: bool) -> None:
    """Print each own skill: what it is for, which turns read it, whether it is on; and which changes wait."""
    _, home = at_hand(root)
    found = own_skills(home)
    lines = [one if isinstance(one, str) else _line(one) for one in found]
    waiting = [one for one in held_documents(home) if one.startswith(OWN_SKILL)]
    lines += [f"{one.removeprefix(OWN_SKILL)} waits for your approval: soul drafts show {one}" for one in waiting]
    listed = [{"problem": one} if isinstance(one, str) else asdict(one) for one in found]
    write_answer(listed, lines or ["Your SOUL has no skills of its own yet"], as_json=as_json)


def run_skills_log(root: Path, name: _Name, *, as_json: bool) -> None:
    """Print every kept version, newest first. Raises `UsageError` if there is no such skill."""
    run_self_log(root, file=_document(root, name), as_json=as_json)


def run_skills_diff(root: Path, name: _Name, version: _Since = "") -> None:
    """Print what changed since a version. Raises `SoulError`."""
    run_self_diff(root, version, file=_document(root, name))


def run_skills_rollback(root: Path, name: _Name, version: _Version) -> None:
    """Restore a version of the skill. Raises `SoulError`."""
    run_self_rollback(root, version, file=_document(root, name))


def run_skills_switch(root: Path, name: _Name, *, off: bool) -> None:
    """Switch the skill off or on, which is recorded as a change by the owner. Raises `SoulError`."""
    settings, home = at_hand(root)
    document, state = _document(root, name), "off" if off else "on"
    text = switched(path_of(home, document).read_text(encoding="utf-8"), off=off)
    switch = methodcaller("change", text, reason=f"switched {state}", by="owner")
    change = asyncio.run(with_keeper(settings, home, document, switch))
    write_lines(reported(change, document, f"{name} is {state}"))


def _document(root: Path, name: str) -> str:
    document = document_named(f"{OWN_SKILL}{name}")
    if not path_of(at_hand(root)[1], document).is_file():
        raise no_skill(document)
    return document


def _line(one: SkillEntry) -> str:
    where = ", ".join(("talks with you", *one.turns))
    return f"{one.name}{' (off)' if one.is_off else ''}: {one.description} ({where})"
