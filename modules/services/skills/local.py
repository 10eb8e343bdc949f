"""Skills beyond the shipped ones: a SOUL's own, in its workspace, and those that all SOULs of a store share.

In front of a page stand `name`, `description` and, if it likes, `when` (to load it). The SOUL's own hide shared ones of
the same name; none can take the name of a shipped prompt. A page that is no skill is left out with a warning, and of a
store that cannot be reached what was seen last is told: neither stops a turn. Nothing is written here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adapters.storage.keys import SKILL_FILE, SKILLS, skill_key
from adapters.storage.store import Storage
from adapters.storage.types import ObjectInfo
from common.errors import SoulError
from common.result import Err
from common.text.untrusted import clean, one_line
from modules.services.owner_files import OwnerFiles
from modules.services.skills.skills import parse_frontmatter

Origin = Literal["own", "shared"]

MAX_SKILL_BYTES = 64 * 1024

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_LINE_CHARS = 240
_MAX_FRONT_CHARS = 2048  # what reads it takes four times as long for twice as much


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """One line of the listing: what the skill is for, and when to load it ("" if it does not say)."""

    name: str
    description: str
    when: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class _SkillPage:
    entry: SkillEntry
    text: str


class LocalSkills:
    """Finds and loads them.

    Args:
        owner_files: has the SOUL's own, as `skills/{name}/SKILL.md`.
        storage: has the shared ones, under the same names.
        shipped: the names that are taken.
        warn: is called once for each trouble, as long as it lasts.

    """

    def __init__(
        self, *, owner_files: OwnerFiles, storage: Storage, shipped: Collection[str], warn: Callable[[str], None]
    ) -> None:
        self._owner_files = owner_files
        self._storage = storage
        self._shipped = frozenset(shipped)
        self._warn = warn
        self._troubles: dict[str, str] = {}
        self._seen: dict[str, tuple[str, _SkillPage]] = {}

    async def listing(self) -> tuple[SkillEntry, ...]:
        """All that can be loaded, by name."""
        own, shared = await asyncio.gather(self._own_names(), self._shared())
        pages = [page for page in await asyncio.gather(*map(self._own_page, own)) if page]
        pages += [page for page in shared if page]
        found: dict[str, SkillEntry] = {}
        for page in pages:
            found.setdefault(page.entry.name, page.entry)
        return tuple(found[name] for name in sorted(found))

    async def load(self, name: str) -> str | None:
        """The text of a skill, without what stands in front of it; None if there is none of that name."""
        if not self._possible(name):
            return None
        page = await self._own_page(name) or await self._shared_page(name)
        return page.text if page else None

    async def _own_names(self) -> Sequence[str]:
        try:
            names = await self._owner_files.names(SKILLS)
        except SoulError as error:
            self._tell("own skills", str(error))
            return ()
        self._tell("own skills", "")
        return self._names_in([name.removeprefix(SKILLS) for name in names])

    async def _own_page(self, name: str) -> _SkillPage | None:
        where = f"{SKILLS}{name}/{SKILL_FILE}"
        try:
            text = await self._owner_files.read(where)
        except SoulError as error:
            self._tell(where, str(error))
            return None
        return None if text is None else self._page(where, name, text, "own")

    async def _shared(self) -> Sequence[_SkillPage | None]:
        listed = await self._storage.list(SKILLS)
        if isinstance(listed, Err):
            self._tell("shared skills", listed.error)
            return [page for _, page in self._seen.values()]
        self._tell("shared skills", "")
        there = {info.key.removeprefix(SKILLS): info for info in listed.data}
        infos = {name: there[f"{name}/{SKILL_FILE}"] for name in self._names_in(there)}
        self._seen = {name: seen for name, seen in self._seen.items() if name in infos}
        return await asyncio.gather(*(self._unless_seen(name, info) for name, info in infos.items()))

    async def _unless_seen(self, name: str, info: ObjectInfo) -> _SkillPage | None:
        """The page, fetched anew only if the listing says that it is another one."""
        etag, page = self._seen.get(name, ("", None))
        if page and info.etag and info.etag == etag:
            return page
        if page := await self._shared_page(name):
            self._seen[name] = (info.etag, page)
        return page

    async def _shared_page(self, name: str) -> _SkillPage | None:
        where = skill_key(name)
        found = await self._storage.get(where)
        if isinstance(found, Err):
            self._tell(f"shared {where}", "" if found.kind == "not_found" else found.error)
            return None
        return self._page(f"shared {where}", name, found.data.data.decode(errors="replace"), "shared")

    def _names_in(self, paths: Collection[str]) -> list[str]:
        """The names of skills among `{name}/SKILL.md`, those left out that are taken."""
        names = [path.removesuffix(f"/{SKILL_FILE}") for path in sorted(paths) if path.endswith(f"/{SKILL_FILE}")]
        for name in names:
            if name in self._shipped:
                self._tell(f"skill {name}", "has the name of a shipped one")
        return [name for name in names if self._possible(name)]

    def _possible(self, name: str) -> bool:
        return bool(_NAME.fullmatch(name)) and name not in self._shipped

    def _page(self, where: str, name: str, text: str, origin: Origin) -> _SkillPage | None:
        """The skill that a text is, or None after a warning."""
        try:
            page = _parsed(name, text, origin)
        except ValueError as error:
            self._tell(where, one_line(str(error), _LINE_CHARS))
            return None
        self._tell(where, "")
        return page

    def _tell(self, what: str, trouble: str) -> None:
        if trouble and self._troubles.get(what) != trouble:
            self._warn(f"{what} left out: {trouble}")
        self._troubles[what] = trouble


def _parsed(name: str, text: str, origin: Origin) -> _SkillPage:
    if len(text.encode(errors="replace")) > MAX_SKILL_BYTES:
        raise ValueError(f"it is larger than {MAX_SKILL_BYTES // 1024} KiB")
    if text.startswith("---") and len(text.partition("\n---")[0]) > _MAX_FRONT_CHARS:
        raise ValueError("too much stands in front of it")
    try:
        front, body = parse_frontmatter(text)
    except RecursionError:
        raise ValueError("frontmatter: it is nested too deeply") from None
    if front.get("name", name) != name:
        raise ValueError("it calls itself by another name")
    description = _line(front, "description")
    if not description:
        raise ValueError("it does not say what it is for: there is no description in front")
    if not (said := clean(body)):
        raise ValueError("there is nothing in it")
    return _SkillPage(SkillEntry(name, description, _line(front, "when"), origin), said)


def _line(front: dict[str, Any], name: str) -> str:
    value = front.get(name)
    return one_line(value, _LINE_CHARS) if isinstance(value, str) else ""
