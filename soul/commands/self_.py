"""`soul self …` and `soul skills …`: the versions of what the SOUL wrote about itself, and of its own skills.

For SELF.md and other documents they show the reasons, and take the owner's decision on held changes. A skill is such a
document: `soul skills` does by its name what `soul self … --file skills/NAME` does, and has a switch for each.
"""

import asyncio
import difflib
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from adapters.storage.objects import SKILL_NAME
from common.clock import SystemClock, span
from common.constants import SECOND_MS, TEXT_MAX_BYTES
from common.errors import NotWaiting, SoulError, UsageError
from common.files import read_bounded
from common.redact import Redactor
from common.settings import Settings
from common.text.markdown import joined_lines
from modules.lives.growth.handle import because
from modules.runtime.database.file import reading
from modules.runtime.home import Home, SoulDocument, check_self, read_self
from modules.services.craft.proposals import behind, rests_on
from modules.services.experiences import named
from modules.services.identity.entries import (
    DOCUMENTS,
    OWN_SKILL,
    SELF,
    HeldEdit,
    SelfEdit,
    Version,
    change_of,
    see_held,
    what_moved,
)
from modules.services.identity.history import SelfHistory, held_documents, path_of, sha256
from modules.services.identity.identity import extract_from_self
from modules.services.identity.keeper import SelfKeeper
from modules.services.skills.own import switched
from modules.services.skills.skills import FILE, MOST_READ, SkillEntry, page_in, read_page
from soul.commands.at_hand import at_hand, settings_to_run
from soul.commands.beside import journal_beside
from soul.resources import SKILLS
from soul.terminal.output import Colour, write_answer, write_json, write_line, write_lines
from soul.terminal.wording import moment

T = TypeVar("T")

_COLOURS: dict[str, Colour] = {"+": "green", "-": "red", "@": "cyan"}
_SKILL = re.compile(OWN_SKILL + SKILL_NAME)
_EXPERIENCE = re.compile(r"e\d+")
_QUOTED = re.compile("“([^“”]+)”")
_UNCHANGED = "It has not changed yet"


def document_named(given: str) -> str:
    """Return `given` if it is the name of a document. Raises `typer.BadParameter` if not."""
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
    """Print every kept version, newest first, with who wrote it and why."""
    settings, home = at_hand(root)
    with _history(home, file) as history:
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
        lines += grew_from(home, version.cites)
    write_answer(listed, lines, as_json=as_json)


def run_self_show(root: Path, version: _Version, *, file: _File = SELF) -> None:
    """Print one version: who wrote it, why, the experiences behind it, and its text. Raises `SoulError`."""
    settings, home = at_hand(root)
    with _history(home, file) as history:
        found = _found(history, file, version)
        text = history.read(found).decode(errors="replace")
    when = moment(found.at, settings.soul_timezone) if found.at else "?"
    write_lines(
        f"{found.name}  {when}  {found.by}  {found.reason}{_plain_cites(found.cites)}",
        *grew_from(home, found.cites),
        "",
    )
    write_lines(*text.splitlines())


def run_self_check(root: Path) -> bool:
    """Print what the program reads in SELF.md, and warnings with their lines; return whether there are no warnings.

    Raises `ConfigError` or `IdentityError` for what `soul run` refuses.
    """
    home = Home.at(root, settings_to_run(root).memory_dir)
    SoulDocument(home.soul)  # raises for what a start would refuse
    check_self(home)
    text = read_self(home)
    me = extract_from_self(text)
    is_empty = home.self_md.exists() and not text.strip()
    warnings = [f"{home.self_md} is empty: no prompt says who it has become", *me.warnings] if is_empty else me.warnings
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
    for warning in warnings:
        write_lines(f"{_place_of(warning, text)}{warning}", to=sys.stderr)
    return not warnings


def _place_of(warning: str, text: str) -> str:
    """Return the line of SELF.md that a warning quotes, as `line N: `; "" if there is none."""
    quoted = _QUOTED.findall(warning)
    lines = (number for number, line in enumerate(text.splitlines(), 1) if all(part in line for part in quoted))
    number = next(lines, 0) if quoted else 0
    return f"line {number}: " if number else ""


def _plain_cites(cites: Sequence[str]) -> str:
    """Return the addresses that a change cites, in brackets; the names of turns tell a reader nothing."""
    plain = [cite for cite in cites if "://" in cite]
    return f" ({', '.join(plain)})" if plain else ""


def grew_from(home: Home, cites: Sequence[str]) -> list[str]:
    """Return a line for each experience behind a change, if it is still kept."""
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
    """Print what changed since `version`; without one, what the last change did. Raises `SoulError`."""
    with _history(at_hand(root)[1], file) as history:
        now = history.current()
        old = _found(history, file, version) if version else _before(history, now)
        before = history.read(old) if old else b""
    if old is None:
        write_lines(_UNCHANGED)
    else:
        for line in _diff(before, now, old.name, file):
            write_line(line, _COLOURS.get(line[:1]))


def show_held(home: Home, given: str, timezone: str, *, as_json: bool) -> None:
    """Print the held change of a document: why it waits, what it rests on, and its diff. Raises `NotWaiting`."""
    held, lines = held_lines(home, given, timezone)
    if as_json:
        write_json(asdict(held))
    for line in () if as_json else lines:
        write_line(line, _COLOURS.get(line[:1]))


def run_self_rollback(root: Path, version: _Version, *, file: _File = SELF) -> None:
    """Restore a version of the document. Raises `SoulError` if there is no such version, or it is refused."""
    settings, home = at_hand(root)
    with _history(home, file) as history:
        old = _found(history, file, version)
    change = asyncio.run(with_keeper(settings, home, file, lambda keeper: keeper.roll_back(old)))
    write_lines(reported(change, file, f"{file} is back to {old.name}"))


def is_document(given: str) -> bool:
    """Return whether `given` names a document, alone or as `NAME@TIME`, the time of the change that the owner saw."""
    name = given.partition("@")[0]
    return name in DOCUMENTS or _SKILL.fullmatch(name) is not None


async def decide_held(settings: Settings, home: Home, given: str, *, approve: bool, reason: str = "") -> str:
    """Approve or reject a held change; return a line on it. Raises the same errors as `decided`."""
    name = given.partition("@")[0]
    if name not in held_documents(home):
        raise _none_waits(name)
    decide = partial(decided, given=given, approve=approve, reason=reason)
    return await with_keeper(settings, home, name, decide)


async def decided(keeper: SelfKeeper, given: str, *, approve: bool, reason: str = "") -> str:
    """Approve the held change of a document, or reject it with the owner's reason; return a line on it.

    Raises `NotWaiting` if none waits, or another than the owner was shown.
    """
    file, _, came = given.partition("@")
    keeper = keeper.of(file)
    if approve and (change := await keeper.approve(came)) is not None:
        return reported(change, file, f"Approved: {file} is changed")
    if not approve and await keeper.reject(came, reason) is not None:
        return f"Rejected: {change_of(file)}"
    raise _none_waits(file)


def _none_waits(file: str) -> NotWaiting:
    return NotWaiting(f"No change of {file} waits for you", remedy="`soul drafts` shows what waits.")


def no_skill(document: str) -> UsageError:
    """Return the error for a skill that the SOUL does not have."""
    return UsageError(
        f"There is no skill {document.removeprefix(OWN_SKILL)} of its own", remedy="`soul skills list` shows them."
    )


def _history(home: Home, document: str) -> AbstractContextManager[SelfHistory]:
    """Return the history of a document, to be read. Raises `UsageError` if there never was such a skill."""
    history = SelfHistory(home, document)
    if document.startswith(OWN_SKILL) and not history.is_kept and not path_of(home, document).is_file():
        raise no_skill(document)
    return history.reading()


def _found(history: SelfHistory, file: str, name: str) -> Version:
    version = history.find(name)
    if version is None:
        raise UsageError(
            f"There is no version {name} of {file}, or more than one begins so", remedy="`soul self log` shows them."
        )
    return version


def _before(history: SelfHistory, now: bytes) -> Version | None:
    """Return the version that the current content of the document replaced."""
    versions = history.versions()
    earlier = versions[1:] if versions and versions[0].sha256 == sha256(now) else versions
    return next(iter(earlier), None)


async def with_keeper(settings: Settings, home: Home, file: str, use: Callable[[SelfKeeper], Awaitable[T]]) -> T:
    """Return what `use` returns for the keeper of a document, whether the SOUL is awake or not."""
    clock, redactor = SystemClock(), Redactor(settings.secrets)
    async with journal_beside(settings, home, clock) as (_, journal):
        return await use(SelfKeeper(home=home, clock=clock, journal=journal, redactor=redactor, document=file))


def reported(change: SelfEdit, file: str, done: str) -> str:
    """Return a line on the change, beginning with `done`. Raises `SoulError` if it was refused."""
    if change.status == "refused":
        raise SoulError(f"{file} was not changed: {change.reason}", remedy=f"`{see_held(file)}` shows what waits.")
    return "; ".join([done, *what_moved(change)])


def held_lines(home: Home, given: str, timezone: str, *, command: str = "soul drafts ") -> tuple[HeldEdit, list[str]]:
    """Return the held change of a document, and lines on why it waits, what it rests on, and its diff.

    The change then counts as seen by the owner. Raises `NotWaiting` if none waits.
    """
    file, held, now, amiss, fits = given.partition("@")[0], None, b"", "", False
    if file in held_documents(home):
        with SelfHistory(home, file).alone() as history:
            if held := history.show_held():
                now, fits = history.replaced_by(held), not history.is_stale(held)
        amiss = history.amiss
    if held is None:
        raise SoulError(amiss) if amiss else _none_waits(file)
    named, told = f"{file}@{held.at}", "What it is for" if file.startswith(OWN_SKILL) else "Wanted because"
    return held, [
        f"Waits since {moment(held.at, timezone)}, because {held.why}",
        f"{told}: {held.reason}{_plain_cites(held.cites)}",
        *grew_from(home, held.cites),
        *skill_rests_on(home, file),
        *_read_in(file, held),
        *_diff(now, held.content.encode(), file, "as it would be"),
        f"{f'`{command}approve {named}` applies it, ' if fits else ''}`{command}reject {named}` drops it",
    ]


def _read_in(document: str, held: HeldEdit) -> list[str]:
    """Return a line on the turns that read the page of a skill; [] for another document."""
    page = page_in(document.removeprefix(OWN_SKILL), held.content) if document.startswith(OWN_SKILL) else None
    return [f"Read in {', '.join(('talks with you', *page.entry.turns))}"] if page else []


def skill_rests_on(home: Home, document: str) -> list[str]:
    """Return lines on what the waiting proposal of a skill rests on; [] for another document."""
    if not document.startswith(OWN_SKILL):
        return []
    with reading(home.database) as connection:
        found = behind(connection, document)
        return rests_on(connection, found if found and found.state == "waiting" else None)


def _diff(old: bytes, new: bytes, old_name: str, new_name: str) -> list[str]:
    before, after = (text.decode(errors="replace").splitlines() for text in (old, new))
    lines = list(difflib.unified_diff(before, after, old_name, new_name, lineterm=""))
    return lines or [f"{old_name} and {new_name} are the same"]


_Name = Annotated[str, typer.Argument(metavar="NAME", help="The skill.")]
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
