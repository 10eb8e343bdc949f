"""Who the SOUL is: SELF.md, read by its headings, and its own and its owner's accounts, as set in the settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from common.facts import AgentFacts
from common.person import INVALID_HANDLE
from common.settings import Settings
from common.text.markdown import Heading, joined_lines, outline
from common.text.strings import straighten
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.home import Home, read_self
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.identity.self_mechanics import DailyRitual, SocialMechanics, parse_social_mechanics, read_rituals


@dataclass(slots=True)
class Me:
    """The SOUL's account, its name on GitHub ("" if it has none), its owner, and the time zone of its day.

    The names are those in the settings until the network tells the present ones. A login that is no handle names no
    account: until the network tells the handle, `bluesky_username` is "" then.
    """

    agent_name: str
    bluesky_username: str
    owner_handle: str
    owner_did: str
    timezone: str = ""
    github_username: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Me:
        """Return the identity that the settings describe."""
        return cls(
            agent_name=settings.agent_name,
            bluesky_username=settings.own_handle(),
            owner_handle=settings.owner_bluesky_social_handle,
            owner_did=settings.owner_bluesky_social_handle_did,
            timezone=settings.soul_timezone,
            github_username=settings.agent_github_username,
        )

    def take_handle(self, handle: str) -> None:
        """Take over our present handle; one that cannot be verified now is no news."""
        if handle.lower() not in {"", INVALID_HANDLE}:
            self.bluesky_username = handle

    def take_owner_handle(self, handle: str) -> None:
        """Take over the owner's present handle, likewise."""
        if handle.lower() not in {"", INVALID_HANDLE}:
            self.owner_handle = handle

    def take_github_name(self, login: str) -> None:
        """Take over our present name on GitHub."""
        self.github_username = login

    def is_owner(self, did: str) -> bool:
        """Return whether an account on Bluesky is the owner's."""
        return did == self.owner_did


Part = Literal["identity", "purpose", "values", "questions", "patterns", "learnings", "explorations"]

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "purpose": ("what i'm here to do", "purpose", "mission", "why i exist"),
    "values": ("values", "principles", "core values", "what i believe"),
    "questions": ("questions i'm sitting with", "questions", "what i wonder", "things i'm curious about"),
    "patterns": ("patterns i notice", "patterns", "what i observe", "things i see"),
    "learnings": ("recent learnings", "learnings", "what i've learned", "insights"),
    "explorations": ("what i want to explore", "explorations", "curiosities", "topics to explore"),
    "wishes": ("what i want to be able to do",),
    "currentFocus": ("current focus", "focus", "what i'm working on", "goals"),
    "relationships": ("relationships", "people i care about", "connections", "community"),
    "voice": ("voice", "how i sound", "tone", "my voice"),
    "socialMechanics": ("social mechanics", "engagement preferences", "conversation preferences"),
    "dailyRituals": ("daily rituals", "rituals"),
    "designCatalog": ("design catalog", "design catalogue"),
}
_WEIGHTS: Mapping[Part, int] = {
    "identity": 15,
    "purpose": 15,
    "values": 20,
    "questions": 15,
    "patterns": 15,
    "learnings": 10,
    "explorations": 10,
}
_FEW_VALUES = 3

_RULE = re.compile(r"([-*_])(?:\s*+\1){2,}")
_PLACEHOLDER = re.compile(r"(?:[-*]\s++)?([*_])\(.*\)\1")
_BULLET = re.compile(r"[-*]\s+(\S.*)")
_DATE = re.compile(r"(?:\*\*)?\d{4}-\d{2}-\d{2}(?:\*\*)?(?::(?:\*\*)?)?\s*")
_CELL_RULE = re.compile(r"[\s:|-]*")
_TITLE_PREFIX = re.compile(r"(?:agent self document|self)\b[\s:—–|/-]*", re.IGNORECASE)  # noqa: RUF001 - dashes as written
_WORD = r"\w+(?:[-.']\w+)*"
_LEFT_OPEN = re.compile(
    r"(?:\$\{|\{{2,3})\s{0,9}(?:(?:agent[_ -]?)?name|(date))\s{0,9}(?:\|[^{}\n]{0,40})?\}{1,3}"
    r"|[<\[{]agent[_-]?name[>\]}]",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(rf"\bI'm\s+[*_`\"]*({_WORD})")


@dataclass(frozen=True, slots=True)
class SelfExtract:
    """The parts of SELF.md; absent parts are empty.

    `others` are the headings of sections that only the model reads; `warnings` tell the owner what could not be read.
    """

    identity: str = ""
    name: str = ""
    purpose: str = ""
    values: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    learnings: tuple[str, ...] = ()
    explorations: tuple[str, ...] = ()
    wishes: tuple[str, ...] = ()
    current_focus: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()
    social_mechanics: SocialMechanics = field(default_factory=SocialMechanics)
    voice: str = ""
    daily_rituals: tuple[DailyRitual, ...] = ()
    design_catalog: tuple[str, ...] = ()
    raw_sections: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelfRichness:
    """The completeness of SELF.md, 0 to 100. `suggestions` name the parts to extend, missing ones first."""

    score: int
    suggestions: tuple[Part, ...]


@lru_cache(maxsize=4)
def extract_from_self(content: str) -> SelfExtract:
    """Read a whole SELF.md; results are cached, as each turn asks again."""
    title, opening, sections = _split(_filled(straighten(content)).lstrip("\ufeff"))
    found = _first_of_each(sections)
    raw = {key: body for key, aliases in _ALIASES.items() if (body := _find(found, aliases))}

    def listed(key: str, *readers: Callable[[str], Iterator[str]]) -> tuple[str, ...]:
        return tuple(item for reader in readers for item in reader(raw.get(key, "")))

    mechanics = parse_social_mechanics(raw.get("socialMechanics", ""))
    rituals, unread = read_rituals(raw.get("dailyRituals", ""))
    name = re.search(_WORD, _TITLE_PREFIX.sub("", title, count=1))
    return SelfExtract(
        identity=_first_line("\n".join(opening)),
        name=name.group() if name else "",
        purpose=_first_line(raw.get("purpose", "")),
        values=listed("values", _bullets),
        questions=listed("questions", _bullets),
        patterns=listed("patterns", _bullets),
        learnings=tuple(filter(None, (_DATE.sub("", item, count=1) for item in listed("learnings", _bullets, _cells)))),
        explorations=listed("explorations", _bullets, _cells),
        wishes=listed("wishes", _bullets),
        current_focus=listed("currentFocus", _bullets),
        relationships=listed("relationships", _bullets),
        social_mechanics=mechanics,
        voice=raw.get("voice", ""),
        daily_rituals=rituals,
        design_catalog=listed("designCatalog", _bullets),
        raw_sections=raw,
        others=tuple(heading for heading, body in sections if heading and body not in raw.values()),
        warnings=(*mechanics.warnings, *unread),
    )


def self_lines(me: SelfExtract) -> Mapping[str, tuple[str, ...]]:
    """Return the lines of each part of SELF.md that consists of lines."""
    return {
        "values": me.values,
        "questions": me.questions,
        "patterns": me.patterns,
        "learnings": me.learnings,
        "explorations": me.explorations,
        "currentFocus": me.current_focus,
        "relationships": me.relationships,
    }


def extract_display_name(self_md: str, fallback: str = "Agent", agent_name: str = "") -> str:
    """Return the name to show: `agent_name` if it is the title of SELF.md, else "I'm NAME", the title or `fallback`."""
    text = _filled(straighten(self_md), agent_name).lstrip("\ufeff")
    title = _TITLE_PREFIX.sub("", _split(text)[0], count=1).strip()
    if agent_name and title.casefold() == agent_name.casefold():
        return agent_name
    introduction = _FIRST_PERSON.search(text)
    return introduction.group(1) if introduction else title or fallback


def _filled(text: str, agent_name: str = "") -> str:
    """Return `text` with the placeholders of a template replaced by the name if it is known, else by nothing."""
    return _LEFT_OPEN.sub(lambda found: "" if found[1] else agent_name, text)


def assess_self_richness(extract: SelfExtract) -> SelfRichness:
    """Return how complete SELF.md is, and which parts to extend."""
    missing = tuple(part for part in _WEIGHTS if not getattr(extract, part))
    thin: tuple[Part, ...] = ("values",) if 0 < len(extract.values) < _FEW_VALUES else ()
    return SelfRichness(sum(_WEIGHTS.values()) - sum(_WEIGHTS[part] for part in missing), missing + thin)


def _split(content: str) -> tuple[str, list[str], list[tuple[str, str]]]:
    """Return the H1, the lines right below it, and the H2 sections as (heading, body)."""
    title, opening = "", list[str]()
    sections: list[tuple[str, list[str]]] = []
    in_opening = False
    lines_of_page = content.splitlines()
    headings = {heading.line: heading for heading in outline(lines_of_page).headings if not heading.indent}
    for place, line in enumerate(lines_of_page):
        if not line:
            lines = sections[-1][1] if sections else opening
            if lines and lines[-1]:
                lines.append("")
            continue
        heading = headings.get(place)
        if heading and heading.level == 1 and not title:
            title, in_opening = _without_closing_marks(heading), True
        elif heading and heading.level <= 2:  # noqa: PLR2004 - H1 and H2 end a section, only H2 opens one
            sections.append((_without_closing_marks(heading) if heading.level > 1 else "", []))
            in_opening = False
        elif sections:
            bare = line.strip()
            may = bare.startswith(("-", "*", "_"))
            means_nothing = may and (_RULE.fullmatch(bare) or _PLACEHOLDER.fullmatch(bare))
            sections[-1][1].append("" if means_nothing else line)
        elif in_opening and not heading:
            opening.append(line.strip())
    return title, opening, [(heading, "\n".join(body).strip()) for heading, body in sections]


def _without_closing_marks(heading: Heading) -> str:
    return heading.text.rstrip("#").rstrip()


def _first_of_each(sections: list[tuple[str, str]]) -> dict[str, str]:
    """Return, by alias, the body of the first section whose heading begins with it.

    Each heading is compared once with all aliases still sought, so that a document of headings alone costs little.
    """
    found: dict[str, str] = {}
    sought = {alias: _begins_with(alias) for aliases in _ALIASES.values() for alias in aliases}
    any_of = _begins_with(*sought)
    for heading, body in sections:
        if not heading or not any_of.match(heading):
            continue
        for alias in [alias for alias, begins in sought.items() if begins.match(heading)]:
            found[alias] = body
            del sought[alias]
        if not sought:
            break
        any_of = _begins_with(*sought)
    return found


def _begins_with(*aliases: str) -> re.Pattern[str]:
    return re.compile(rf"\W{{0,40}}+(?:{'|'.join(map(re.escape, aliases))})\b", re.IGNORECASE)


def _find(found: Mapping[str, str], aliases: tuple[str, ...]) -> str:
    return next((found[alias] for alias in aliases if alias in found), "")


def _first_line(section: str) -> str:
    line = next((line for line in joined_lines(section.splitlines()) if line.strip()), "")
    bullet = _BULLET.fullmatch(line.strip())
    return bullet.group(1) if bullet else line.strip()


def _bullets(section: str) -> Iterator[str]:
    for line in joined_lines(section.splitlines()):
        if bullet := _BULLET.fullmatch(line.strip()):
            yield bullet.group(1)


def _cells(section: str) -> Iterator[str]:
    """Yield the first cell with text of each table row; a cell that holds only a date is skipped."""
    rows = [row for line in section.splitlines() if (row := line.strip()).startswith("|")]
    for index, row in enumerate(rows):
        following = rows[index + 1] if index + 1 < len(rows) else ""
        if _is_separator(row) or _is_separator(following):
            continue
        cells = (cell.strip() for cell in row.strip("|").split("|"))
        cell = next((cell for cell in cells if cell and not _DATE.fullmatch(cell)), "")
        if cell and not _PLACEHOLDER.fullmatch(cell):
            yield cell


def _is_separator(row: str) -> bool:
    return "-" in row and _CELL_RULE.fullmatch(row) is not None


_NAME = "identity.name"
"""The name in the settings when SELF.md was last not at odds with it."""


class Identity:
    """Reads SELF.md again for each call, as it changes."""

    def __init__(self, *, home: Home, agent_name: str) -> None:
        self._home = home
        self._agent_name = agent_name

    @property
    def display_name(self) -> str:
        return extract_display_name(read_self(self._home), fallback="Agent", agent_name=self._agent_name)

    async def tell_former_name(self, database: Database, journal: Journal) -> None:
        """At start, tell the owner if SELF.md has the SOUL's former name but not the one that is set now."""
        name, text = self._agent_name, self.text().casefold()
        former = await database.run(lambda connection: marks.get(connection, _NAME))
        if former and former.casefold() in text and name.casefold() not in text:
            summary = f"SELF.md still calls your SOUL {former}: AGENT_NAME is {name}"
            reason = "edit SELF.md, or ask your SOUL to rewrite it"
            await journal.record(Entry("life", "start", summary, line="warn", reason=reason))
        elif former != name:
            await database.run(lambda connection: marks.put(connection, {_NAME: name}))

    def text(self) -> str:
        """Return SELF.md; "" if it cannot be read."""
        return read_self(self._home)

    def extract(self) -> SelfExtract:
        """Return the parts of SELF.md."""
        return extract_from_self(read_self(self._home))


def agent_facts(me: Me, identity: Identity, soul: str) -> AgentFacts:
    """Return the facts about `me`; `soul` is the text of SOUL.md."""
    return AgentFacts(
        name=identity.display_name,
        handle=me.bluesky_username,
        soul=soul,
        self_lines=self_lines(identity.extract()),
    )
