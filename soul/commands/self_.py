"""`soul self …`: what SELF.md or another document was, what changed it, and the owner's word on what waits.

Works while the SOUL lives: each step is taken alone with the history, here as there.
"""

from __future__ import annotations

import asyncio
import difflib
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from adapters.storage.keys import SKILL_NAME
from common.clock import SystemClock, span
from common.constants import SECOND_MS
from common.errors import NotWaiting, SoulError
from common.redact import Redactor
from common.settings import Settings
from common.text.markdown import joined_lines
from modules.lives.growth.handle import because
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.home import Home, SoulDocument, read_self
from modules.runtime.journal.rows import Journal
from modules.services.experiences.log import named
from modules.services.identity.entries import see_held, what_moved
from modules.services.identity.history import SelfHistory, held_documents, sha256
from modules.services.identity.identity import extract_from_self
from modules.services.identity.keeper import SelfKeeper
from modules.services.identity.types import DOCUMENTS, OWN_SKILL, SELF, HeldEdit, SelfEdit, Version
from soul.commands.at_hand import at_hand, settings_to_run
from soul.terminal.output import Colour, write_answer, write_json, write_line, write_lines
from soul.terminal.plain import moment

T = TypeVar("T")

_COLOURS: dict[str, Colour] = {"+": "green", "-": "red", "@": "cyan"}
_SKILL = re.compile(OWN_SKILL + SKILL_NAME)
_EXPERIENCE = re.compile(r"e\d+")
_QUOTED = re.compile("“([^“”]+)”")
_UNCHANGED = "It has not changed yet"


def document_named(given: str) -> str:
    """Return the name of a document. Raises `typer.BadParameter` where it is none."""
    if given in DOCUMENTS or _SKILL.fullmatch(given):
        return given
    raise typer.BadParameter(f"{given!r} is none of {', '.join(DOCUMENTS)} and skills/NAME")


_File = Annotated[
    str,
    typer.Option(
        "--file",
        metavar="FILE",
        callback=document_named,
        help="GOALS.md, HEARTBEAT.md or skills/NAME; without it, SELF.md.",
    ),
]
_Version = Annotated[str, typer.Argument(metavar="VERSION", help="The version.")]


def run_self_log(root: Path, *, file: _File = SELF, as_json: bool) -> None:
    """Print every version that is kept, newest first, with who wrote it and why."""
    settings, home = at_hand(root)
    with SelfHistory(home, file).alone() as history:
        versions, now = history.versions(), sha256(history.current())
    listed = [{**asdict(version), "current": version.sha256 == now} for version in versions]
    lines = [] if versions else [_UNCHANGED]
    if versions and versions[0].sha256 != now:
        lines.append(f"* {file} was edited by hand since; that is kept too, before anything replaces it")
    for version in versions:
        mark = "*" if version.sha256 == now else " "
        when = moment(version.at, settings.soul_timezone) if version.at else "?"
        lines.append(
            f"{mark} {version.name}  {when:<16}  {version.by:<5}  {version.reason}{_plain_cites(version.cites)}"
        )
        lines += _grew_from(home, version.cites)
    write_answer(listed, lines, as_json=as_json)


def run_self_show(root: Path, version: _Version, *, file: _File = SELF) -> None:
    """Print one version: who wrote it, why, what it grew from, and its text. Raises `SoulError`."""
    settings, home = at_hand(root)
    with SelfHistory(home, file).alone() as history:
        found = _found(history, file, version)
        text = history.read(found).decode(errors="replace")
    when = moment(found.at, settings.soul_timezone) if found.at else "?"
    write_lines(
        f"{found.name}  {when}  {found.by}  {found.reason}{_plain_cites(found.cites)}",
        *_grew_from(home, found.cites),
        "",
    )
    write_lines(*text.splitlines())


def run_self_check(root: Path) -> bool:
    """Print what the program reads in SELF.md and what it does not understand, with its line; return whether all is.

    Raises `ConfigError` or `IdentityError` for what `soul run` refuses.
    """
    home = Home.at(root, settings_to_run(root).memory_dir)
    SoulDocument(home.soul)  # raises for what a start would refuse
    text = read_self(home)
    me = extract_from_self(text)
    mechanics = me.social_mechanics
    write_lines(
        f"Voice: {joined_lines(me.voice.splitlines())[0] if me.voice else 'nothing'}",
        (
            f"Social Mechanics: leaves after {mechanics.max_replies_before_exit} replies, at depth "
            f"{mechanics.max_thread_depth}, after {span(mechanics.silence_threshold_ms / SECOND_MS)} of silence, or "
            f"{span(mechanics.no_response_timeout_ms / SECOND_MS)} without an answer"
        ),
        *(f"Daily Rituals: {one.name} [{one.schedule}] ({one.workspace})" for one in me.daily_rituals),
        f"Interests: {', '.join((*me.explorations, *me.current_focus)) or 'nothing'}",
        *([f"Read by the model only, and by no rule or setting: {', '.join(me.others)}"] if me.others else []),
    )
    for warning in me.warnings:
        write_lines(f"{_place_of(warning, text)}{warning}", to=sys.stderr)
    return not me.warnings


def _place_of(warning: str, text: str) -> str:
    """The line of SELF.md that a warning quotes, as `line N: `; "" where none holds it."""
    quoted = _QUOTED.findall(warning)
    lines = (number for number, line in enumerate(text.splitlines(), 1) if all(part in line for part in quoted))
    number = next(lines, 0) if quoted else 0
    return f"line {number}: " if number else ""


def _plain_cites(cites: Sequence[str]) -> str:
    """What a change cites beside experiences."""
    plain = [cite for cite in cites if not _EXPERIENCE.fullmatch(cite)]
    return f" ({', '.join(plain)})" if plain else ""


def _grew_from(home: Home, cites: Sequence[str]) -> list[str]:
    """A line for each experience behind a change that is still kept."""
    names = [cite for cite in cites if _EXPERIENCE.fullmatch(cite)]
    if not names:
        return []
    try:
        with reading(home.database) as connection:
            found = named(connection, names)
    except SoulError:
        return []
    told = map(because, found)
    return [
        f"      {one['name']}: {one['type'].replace('_', ' ')}"
        + (f", {one['who']}" if one["who"] else "")
        + (f": {one['about']}" if one["about"] else "")
        for one in told
    ]


def run_self_diff(
    root: Path,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Since this version; else the last one.")] = "",
    *,
    file: _File = SELF,
) -> None:
    """Print what changed from that version until now; without one, what the last change did. Raises `SoulError`."""
    with SelfHistory(at_hand(root)[1], file).alone() as history:
        now = history.current()
        old = _found(history, file, version) if version else _before(history, now)
        before = history.read(old) if old else b""
    if old is None:
        write_lines(_UNCHANGED)
    else:
        for line in _diff(before, now, old.name, file):
            write_line(line, _COLOURS.get(line[:1]))


def run_self_held(root: Path, *, file: _File = SELF, as_json: bool) -> None:
    """Print the change that waits for the owner, and what it would do."""
    settings, home = at_hand(root)
    with SelfHistory(home, file).alone() as history:
        held, now = history.show_held(), history.current()
    _tell_amiss(history)
    if as_json:
        write_json(asdict(held) if held else None)
        return
    for line in held_lines(home, file, held, now, settings.soul_timezone):
        write_line(line, _COLOURS.get(line[:1]))
    if held:
        write_lines(f"`soul drafts approve {file}` lets it happen, `soul drafts reject {file}` gives it up")


def run_self_rollback(root: Path, version: _Version, *, file: _File = SELF) -> None:
    """Make SELF.md what it was. Raises `SoulError` when there is no such version, or it may not be SELF.md."""
    settings, home = at_hand(root)
    with SelfHistory(home, file).alone() as history:
        old = _found(history, file, version)
    change = asyncio.run(with_keeper(settings, home, file, lambda keeper: keeper.roll_back(old)))
    write_lines(reported(change, file, f"{file} is back to {old.name}"))


def run_self_decide(root: Path, *, approve: bool, file: _File = SELF) -> None:
    """Let the change that waits happen, or give it up. Raises `NotWaiting` when none waits."""
    decide_here(root, approve=approve, file=file, reason="")


def decide_here(root: Path, *, approve: bool, file: str, reason: str) -> None:
    """Decide a change that waits, with the owner's reason for a no. Raises `NotWaiting` when none waits."""
    settings, home = at_hand(root)
    with SelfHistory(home, file).alone() as history:
        _tell_amiss(history)
    write_lines(asyncio.run(decide_held(settings, home, approve=approve, file=file, reason=reason)))


async def decide_held(settings: Settings, home: Home, *, approve: bool, file: str = SELF, reason: str = "") -> str:
    """Let the change that waits happen, or give it up; return a line on it. Raises `NotWaiting` when none waits."""
    if file not in held_documents(home):
        raise _none_waits(file)
    return await with_keeper(settings, home, file, partial(decided, approve=approve, reason=reason))


async def decided(keeper: SelfKeeper, *, approve: bool, reason: str = "") -> str:
    """Let the change of the keeper's document happen, or give it up; return a line. Raises as `decide_held`."""
    file = keeper.document
    if approve and (change := await keeper.approve()) is not None:
        return reported(change, file, f"Approved: {file} is changed")
    if not approve and await keeper.reject(reason) is not None:
        return f"Rejected: {file} stays as it is"
    raise _none_waits(file)


def _none_waits(file: str) -> NotWaiting:
    return NotWaiting(f"No change of {file} waits for you", remedy=f"`{see_held(file)}` shows what waits.")


def _tell_amiss(history: SelfHistory) -> None:
    if history.amiss:
        write_lines(history.amiss, to=sys.stderr)


def _found(history: SelfHistory, file: str, name: str) -> Version:
    version = history.find(name)
    if version is None:
        raise SoulError(
            f"There is no version {name} of {file}, or more than one begins so", remedy="`soul self log` shows them."
        )
    return version


def _before(history: SelfHistory, now: bytes) -> Version | None:
    """The version that what SELF.md is now took the place of."""
    versions = history.versions()
    earlier = versions[1:] if versions and versions[0].sha256 == sha256(now) else versions
    return next(iter(earlier), None)


async def with_keeper(settings: Settings, home: Home, file: str, use: Callable[[SelfKeeper], Awaitable[T]]) -> T:
    """Let `use` have the keeper of a document, whether the SOUL is awake or not."""
    async with await Database.beside(home.database) as database:
        clock, redactor = SystemClock(), Redactor(settings.secrets)
        journal = Journal(database, SilentConsole(), clock, redactor)
        return await use(SelfKeeper(home=home, clock=clock, journal=journal, redactor=redactor, document=file))


def reported(change: SelfEdit, file: str, done: str) -> str:
    """Return the line on what was `done`. Raises `SoulError` where it was refused."""
    if change.status == "refused":
        raise SoulError(f"{file} was not changed: {change.reason}", remedy=f"`{see_held(file)}` shows what waits.")
    return "; ".join([done, *what_moved(change)])


def held_lines(home: Home, file: str, held: HeldEdit | None, now: bytes, timezone: str) -> list[str]:
    """Return why the change of a document waits that is `now` so, from what it grew, and what it would do."""
    if held is None:
        return [f"No change of {file} waits for you"]
    return [
        f"Waits since {moment(held.at, timezone)}, because {held.why}",
        f"Wanted because: {held.reason}{_plain_cites(held.cites)}",
        *_grew_from(home, held.cites),
        *_diff(now, held.content.encode(), file, "as it would be"),
    ]


def _diff(old: bytes, new: bytes, old_name: str, new_name: str) -> list[str]:
    before, after = (text.decode(errors="replace").splitlines() for text in (old, new))
    lines = list(difflib.unified_diff(before, after, old_name, new_name, lineterm=""))
    return lines or [f"{old_name} and {new_name} are the same"]
