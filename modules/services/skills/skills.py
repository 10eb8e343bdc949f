"""All texts for the model, read once from `skills/<id>/SKILL.md` and checked against the shipped contracts.

A skill is a page of Markdown with YAML front matter. Its `## ` headings are sections, its `### ` headings subsections,
and `{{name}}` is a variable. Values are inserted once and never read as template text, so untrusted text cannot give
orders. Nothing is written. A SOUL's own skills, and those that all SOULs of a store share, stand beside the shipped
ones.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import TypeAdapter

from adapters.storage.local import Storage
from adapters.storage.objects import SKILL_FILE, SKILL_NAME, SKILLS, ObjectInfo, skill_key
from common.clock import age, local, spoken
from common.constants import TEXT_MAX_BYTES
from common.errors import SkillError, SoulError
from common.files import read_bounded
from common.result import Err
from common.text.markdown import Heading, split_at
from common.text.untrusted import clean, one_line
from modules.services.owner_files import OwnerFiles
from modules.services.skills.own import MOST_IN_TURN, MOST_PAGE_CHARS, READ_IN, is_off

Contracts = Mapping[str, Mapping[str, frozenset[str]]]

FILE = "SKILL.md"
CONTRACTS = "contracts.json"
"""The file with the contract of each skill, derived from the shipped page (`contracts.py`)."""
SYSTEM_SECTION = "System Prompt"
PART = " / "
"""The separator between a section and a subsection in a contract."""

_MET_LATE = timedelta(minutes=10)
_REMEDY = "Restore the skills folder, or correct the file that is named."


@dataclass(frozen=True, slots=True)
class Skill:
    """One page: its text without front matter, and its sections.

    `open` names the sections whose subsections may be added, changed and left out, with the variables that they
    may use.
    """

    body: str
    sections: Mapping[str, str]
    open: Mapping[str, frozenset[str]]


class Skills:
    """All skills of one `folder`; `load` builds it."""

    def __init__(self, folder: Path, skills: Mapping[str, Skill]) -> None:
        self.folder = folder
        self._skills = skills

    @classmethod
    def load(cls, folder: Path, contracts: Contracts | None = None) -> Skills:
        """Read every skill and check it against `contracts`: skill → section → the variables that it may use.

        `Section / Subsection` names a subsection. Without `contracts`, the shipped ones in `folder` apply.

        Raises:
            SkillError: names everything that is missing, blank, unreadable, or uses another variable.

        """
        return cls(folder, _read_all(folder, _shipped(folder) if contracts is None else contracts))

    @property
    def names(self) -> frozenset[str]:
        """The ids of all skills."""
        return frozenset(self._skills)

    def contract(self, skill_id: str) -> Mapping[str, frozenset[str]]:
        """Return the sections and subsections of a skill as `load` checks them, each with its variables."""
        return dict(_contract(self._skills[skill_id]))

    def section_names(self, skill_id: str) -> tuple[str, ...]:
        """Return the names of the sections of a skill, in their order."""
        return tuple(self._skills[skill_id].sections)

    def variables(self, skill_id: str, section: str) -> frozenset[str]:
        """Return the variables that a section uses."""
        return _variables_in(self.section(skill_id, section))

    def section(self, skill_id: str, name: str) -> str:
        """Return the unfilled text of a section, or of `Section / Subsection`. Raises `SkillError` if it is missing."""
        section, _, subsection = name.partition(PART)
        if subsection:
            return self.subsection(skill_id, section, subsection)
        try:
            return self._skills[skill_id].sections[name]
        except KeyError:
            raise SkillError(f"Skill {skill_id} lacks section {name!r}", remedy=_REMEDY) from None

    def subsections(self, skill_id: str, section: str) -> dict[str, str]:
        """Return the subsections of a section by name, variables unfilled."""
        return parse_subsections(self.section(skill_id, section))

    def subsection(self, skill_id: str, section: str, name: str) -> str:
        """Return the text of one subsection, variables unfilled. Raises `SkillError` if there is none."""
        try:
            return self.subsections(skill_id, section)[name]
        except KeyError:
            raise SkillError(f"Skill {skill_id} lacks {name!r} in section {section!r}", remedy=_REMEDY) from None

    def render(
        self, skill_id: str, section: str | None = None, subsection: str | None = None, /, **variables: object
    ) -> str:
        """Return the whole page, a section or a subsection with its variables filled in. Raises `SkillError`."""
        if section is None:
            if skill_id not in self._skills:
                raise SkillError(f"Skill {skill_id} is missing", remedy=_REMEDY)
            return interpolate(self._skills[skill_id].body, variables)
        if subsection is None:
            return interpolate(self.section(skill_id, section), variables)
        return interpolate(self.subsection(skill_id, section, subsection), variables)


def parse_frontmatter(raw: str) -> tuple[dict[str, Any], str]:
    """Split a page into `(frontmatter, body)`; scalars stay text. Raises `ValueError` if it is not a YAML mapping."""
    lines = raw.lstrip("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return {}, raw
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            try:
                data = yaml.load("".join(lines[1:number]), Loader=yaml.BaseLoader)  # noqa: S506 - builds only text
            except yaml.YAMLError as error:
                raise ValueError(_unread(error, lines)) from None
            if not isinstance(data or {}, dict):
                raise ValueError("frontmatter is not a list of `name: value`")
            return data or {}, "".join(lines[number + 1 :])
    return {}, raw


def _unread(error: yaml.YAMLError, lines: Sequence[str]) -> str:
    """Return a message that names the unreadable line of the front matter and how to correct it."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    number = min(mark.line + 1, len(lines) - 1) if mark else 0
    name, colon, _ = lines[number].strip().partition(":")
    if not number or not colon:
        return f"frontmatter: {' '.join(str(error).split())}; put the texts in quotes"
    return f'frontmatter: line {number + 1} ({name}) cannot be read; put it in quotes, as in {name}: "…"'


def parse_sections(body: str, allowed: Collection[str] | None = None) -> dict[str, str]:
    """Return sections by `## ` heading, outside code fences; with `allowed`, only those headings divide."""
    return dict(_split(body, 2, None if allowed is None else frozenset(allowed)))


def parse_subsections(text: str) -> dict[str, str]:
    """Return the subsections of a section by their `### ` heading."""
    return dict(_split(text, 3, None))


def interpolate(template: str, variables: Mapping[str, object]) -> str:
    """Return `template` with its variables filled in once. Raises `SkillError` for a missing variable."""
    try:
        return _compiled(template).render(variables)
    except TemplateError as error:
        raise SkillError(f"Skill text: {error}", remedy=_REMEDY) from None


@lru_cache(maxsize=512)
def _compiled(template: str) -> Template:
    """Return a compiled template; cached, as compiling takes longer than rendering and the pages are few."""
    return _environment().from_string(template)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.clear()
    return environment


@lru_cache(maxsize=512)
def _split(text: str, level: int, allowed: frozenset[str] | None) -> Mapping[str, str]:
    def divides(heading: Heading) -> bool:
        return heading.level == level and (allowed is None or heading.text in allowed)

    parts: dict[str, list[str]] = {}
    for heading, lines in split_at(text.splitlines(), divides):
        if heading:
            parts.setdefault(heading.text, []).extend(lines)
    return {name: "\n".join(lines).strip() for name, lines in parts.items()}


def _shipped(folder: Path) -> Contracts:
    try:
        read = TypeAdapter(dict[str, dict[str, str]]).validate_json(read_bounded(folder / CONTRACTS, TEXT_MAX_BYTES))
    except (OSError, ValueError) as error:
        raise SkillError(f"Skills: {folder / CONTRACTS} cannot be read", remedy=_REMEDY) from error
    return {
        skill: {name: frozenset(variables.split()) for name, variables in sections.items()}
        for skill, sections in read.items()
    }


def _read_all(folder: Path, contracts: Contracts) -> dict[str, Skill]:
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for path in sorted(folder.glob(f"[!.]*/{FILE}")):
        try:
            skills[path.parent.name] = _read(path.parent.name, read_bounded(path, TEXT_MAX_BYTES).decode())
        except (OSError, ValueError) as error:
            problems.append(f"{path.parent.name}: {error}")
    for skill_id, sections in contracts.items():
        if skill_id in skills:
            problems += [f"{skill_id}: {problem}" for problem in _breaches(skills[skill_id], sections)]
        elif not (folder / skill_id / FILE).exists():
            problems.append(f"{skill_id}: there is no {folder / skill_id / FILE}")
    if problems:
        raise SkillError(f"Skills: {'; '.join(problems)}", remedy=_REMEDY)
    return skills


@lru_cache(maxsize=128)
def _read(skill_id: str, page: str) -> Skill:
    front, body = parse_frontmatter(page)
    name = front.get("name", skill_id)
    if name != skill_id:
        raise ValueError(f"it calls itself {name!r}")
    metadata = front.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    listed, opened = told.get("sections"), told.get("open") or {}
    if not isinstance(opened, dict) or not all(isinstance(variables, list) for variables in opened.values()):
        raise ValueError("frontmatter: `open` is not a list of `section: [variables]`")
    sections = parse_sections(body, listed if isinstance(listed, list) else None)
    return Skill(body.strip(), sections, {name: frozenset(variables) for name, variables in opened.items()})


def _contract(skill: Skill) -> Iterator[tuple[str, frozenset[str]]]:
    for section, text in skill.sections.items():
        parts = {} if section in skill.open else parse_subsections(text)
        if not parts:
            yield section, skill.open.get(section, _variables_in(text))
        for name, part in parts.items():
            yield f"{section}{PART}{name}", _variables_in(part)


def _breaches(skill: Skill, sections: Mapping[str, frozenset[str]]) -> Iterator[str]:
    for name, declared in sections.items():
        section, _, subsection = name.partition(PART)
        text = skill.sections.get(section, "")
        text = parse_subsections(text).get(subsection, "") if subsection else text
        if not text:
            yield f"section {name!r} is missing or blank"
            continue
        try:
            used = _variables_in(text)
        except TemplateError as error:
            yield f"section {name!r} cannot be read: {error}"
            continue
        allowed = f"only {', '.join(sorted(declared))}" if declared else "no variables"
        for variable in sorted(used - declared):
            yield f"section {name!r} uses {variable!r}, but may use {allowed}"


@lru_cache(maxsize=4096)
def _variables_in(text: str) -> frozenset[str]:
    if "{" not in text:
        return frozenset()
    return frozenset(find_undeclared_variables(_environment().parse(text)))


Origin = Literal["own", "shared"]

MAX_SKILL_BYTES = 64 * 1024
MOST_READ = 200
"""The most skills that are read of each origin, the first by name."""

_NAME = re.compile(SKILL_NAME)
_LINE_CHARS = 240
_MAX_FRONT_CHARS = 2048  # parsing takes four times as long for twice as much


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """One line of the listing: what the skill is for, and when to load it ("" if it does not say).

    `turns` are those in which its page is read without being loaded; `is_off`: the owner switched it off.
    """

    name: str
    description: str
    when: str
    origin: Origin
    turns: tuple[str, ...] = ()
    is_off: bool = False


@dataclass(frozen=True, slots=True)
class LocalPage:
    """A skill that is not shipped, and its text."""

    entry: SkillEntry
    text: str


class LocalSkills:
    """Finds and loads skills that are not shipped.

    Args:
        owner_files: holds the SOUL's own, as `skills/{name}/SKILL.md`.
        storage: holds the shared ones, under the same names.
        shipped: the names that are taken.
        warn: is called once for each problem, as long as it lasts.

    """

    def __init__(
        self, *, owner_files: OwnerFiles, storage: Storage, shipped: Collection[str], warn: Callable[[str], None]
    ) -> None:
        self._owner_files = owner_files
        self._storage = storage
        self._shipped = frozenset(shipped)
        self._warn = warn
        self._troubles: dict[str, str] = {}
        self._seen: dict[str, tuple[str, LocalPage]] = {}

    async def listing(self) -> tuple[SkillEntry, ...]:
        """Return all skills that can be loaded, by name."""
        own, shared = await asyncio.gather(self._own_names(), self._shared())
        pages = [page for page in await asyncio.gather(*map(self._own_page, own)) if page]
        pages += [page for page in shared if page]
        found: dict[str, SkillEntry] = {}
        for page in pages:
            found.setdefault(page.entry.name, page.entry)
        return tuple(found[name] for name in sorted(found))

    async def own(self) -> list[LocalPage]:
        """Return the SOUL's own skills by name, including those that its owner switched off."""
        return [page for name in await self._own_names() if (page := await self._own_page(name, with_off=True))]

    async def load(self, name: str) -> str | None:
        """Return the text of a skill without its front matter; None if there is none of that name."""
        if not self._possible(name):
            return None
        page = await self._own_page(name) or await self._shared_page(name)
        return page.text if page else None

    async def told(self, task: str) -> str:
        """Return the own pages that are read in turns whose task is the skill `task`; "" for none."""
        turn = next((turn for turn, tasks in READ_IN.items() if task in tasks), None)
        pages = await asyncio.gather(*map(self._own_page, await self._own_names() if turn else ()))
        there = [page for page in pages if page and turn in page.entry.turns]
        return "\n\n".join(f"{page.entry.description}\n{page.text}" for page in there[:MOST_IN_TURN])

    async def _own_names(self) -> Sequence[str]:
        try:
            names = await self._owner_files.names(SKILLS)
        except SoulError as error:
            self._tell("own skills", str(error))
            return ()
        return self._names_in([name.removeprefix(SKILLS) for name in names], "own skills")

    async def _own_page(self, name: str, *, with_off: bool = False) -> LocalPage | None:
        where = f"{SKILLS}{name}/{SKILL_FILE}"
        try:
            text = await self._owner_files.read(where)
        except SoulError as error:
            self._tell(where, str(error))
            return None
        return None if text is None else self._page(where, name, text, "own", with_off=with_off)

    async def _shared(self) -> Sequence[LocalPage | None]:
        listed = await self._storage.list(SKILLS)
        if isinstance(listed, Err):
            self._tell("shared skills", listed.error)
            return [page for _, page in self._seen.values()]
        there = {info.key.removeprefix(SKILLS): info for info in listed.data}
        infos = {name: there[f"{name}/{SKILL_FILE}"] for name in self._names_in(there, "shared skills")}
        self._seen = {name: seen for name, seen in self._seen.items() if name in infos}
        return await asyncio.gather(*(self._unless_seen(name, info) for name, info in infos.items()))

    async def _unless_seen(self, name: str, info: ObjectInfo) -> LocalPage | None:
        """Return the page; it is fetched again only if the listing shows a change."""
        etag, page = self._seen.get(name, ("", None))
        if page and info.etag and info.etag == etag:
            return page
        if page := await self._shared_page(name):
            self._seen[name] = (info.etag, page)
        return page

    async def _shared_page(self, name: str) -> LocalPage | None:
        where = skill_key(name)
        found = await self._storage.get(where)
        if isinstance(found, Err):
            self._tell(f"shared {where}", "" if found.kind == "not_found" else found.error)
            return None
        return self._page(f"shared {where}", name, found.data.data.decode(errors="replace"), "shared")

    def _names_in(self, paths: Collection[str], what: str) -> list[str]:
        """Return the names of skills among `{name}/SKILL.md`, without taken names and those beyond the limit."""
        names = [path.removesuffix(f"/{SKILL_FILE}") for path in sorted(paths) if path.endswith(f"/{SKILL_FILE}")]
        for name in names:
            if name in self._shipped:
                self._tell(f"skill {name}", "has the name of a shipped one")
        names = [name for name in names if self._possible(name)]
        beyond = len(names) - MOST_READ
        self._tell(what, f"{beyond} of them, beyond the first {MOST_READ} by name" if beyond > 0 else "")
        return names[:MOST_READ]

    def _possible(self, name: str) -> bool:
        return bool(_NAME.fullmatch(name)) and name not in self._shipped

    def _page(self, where: str, name: str, text: str, origin: Origin, *, with_off: bool = False) -> LocalPage | None:
        """Return the skill in a text, or None after a warning."""
        try:
            page = read_page(name, text, origin)
        except ValueError as error:
            self._tell(where, one_line(str(error), _LINE_CHARS))
            return None
        self._tell(where, "")
        return None if page.entry.is_off and not with_off else page

    def _tell(self, what: str, trouble: str) -> None:
        if trouble and self._troubles.get(what) != trouble:
            self._warn(f"{what} left out: {trouble}")
        self._troubles[what] = trouble


def page_in(name: str, text: str) -> LocalPage | None:
    """Return the own skill in a text, or None if it is none."""
    try:
        return read_page(name, text, "own")
    except ValueError:
        return None


def read_page(name: str, text: str, origin: Origin) -> LocalPage:
    """Return the skill in a file. Raises `ValueError` that says what is wrong."""
    if len(text.encode(errors="replace")) > MAX_SKILL_BYTES:
        raise ValueError(f"it is larger than {MAX_SKILL_BYTES // 1024} KiB")
    if text.startswith("---") and len(text.partition("\n---")[0]) > _MAX_FRONT_CHARS:
        raise ValueError("too much stands in front of it")
    try:
        front, body = parse_frontmatter(text)
    except RecursionError:
        raise ValueError("frontmatter: it is nested too deeply") from None
    except (OverflowError, TypeError) as error:
        raise ValueError(f"frontmatter: {error}") from None
    if front.get("name", name) != name:
        raise ValueError("it calls itself by another name")
    description = _line(front, "description")
    if not description:
        raise ValueError("it does not say what it is for: there is no description in front")
    if not (said := clean(body)):
        raise ValueError("there is nothing in it")
    turns = front.get("turns") or []
    if not isinstance(turns, list) or not all(isinstance(turn, str) and turn in READ_IN for turn in turns):
        raise ValueError(f"turns is a list of some of: {', '.join(READ_IN)}")
    if turns and len(said) > MOST_PAGE_CHARS:
        raise ValueError(f"it has {len(said)} characters; the page of a skill with turns has at most {MOST_PAGE_CHARS}")
    entry = SkillEntry(name, description, _line(front, "when"), origin, tuple(turns), is_off=is_off(front))
    return LocalPage(entry, said)


def _line(front: dict[str, Any], name: str) -> str:
    value = front.get(name)
    return one_line(value, _LINE_CHARS) if isinstance(value, str) else ""


_ATTRIBUTE_LENGTH = 300
_BOUNDARY = re.compile(r"(?<=[a-z]-)[0-9a-f]{12}(?=[ >])")
_QUOTES = str.maketrans({'"': "'", "<": "\u2039", ">": "\u203a"})


def written(skills: Skills, at: datetime, now: datetime, timezone: str) -> str:
    """Return when a line was written, for one that is met at `now`, more than ten minutes later; else ""."""
    if now - at <= _MET_LATE:
        return ""
    return skills.render("memory", "Written", when=spoken(local(at, timezone)), ago=age(at, now)).strip()


class Framer:
    """Frames untrusted text. Each framer draws its boundary after the framed text was written."""

    def __init__(self, skills: Skills, rng: random.Random) -> None:
        self._template = skills.section("core", "Untrusted Text")
        self._boundary = f"{rng.getrandbits(48):012x}"

    def frame(self, kind: str, *, author: str, uri: str, text: str) -> str:
        """Return a block of kind `post`, `quoted`, `attached`, `links`, `conversation`, `message` or `reading`.

        `author` and `uri` stand between quotes; they can close neither the quotes nor the tag.
        """
        who, where = (one_line(value, _ATTRIBUTE_LENGTH).translate(_QUOTES) for value in (author, uri))
        values = {"kind": kind, "boundary": self._boundary, "author": who, "uri": where, "text": clean(text)}
        return interpolate(self._template, values)


def without_boundaries(text: str) -> str:
    """Return `text` without the boundaries of its frames, which are drawn again each time and are no change."""
    return _BOUNDARY.sub("", text)
