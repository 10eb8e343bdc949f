"""Reads SELF.md: what the SOUL wrote about itself, by its headings.

The document belongs to the SOUL: nothing in it is required, anything may be missing or odd, and reading it never fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from common.text.strings import straighten
from modules.self_mechanics import (
    DailyRitual,
    SocialMechanics,
    parse_daily_rituals,
    parse_social_mechanics,
    parse_time_to_ms,
)

__all__ = [
    "DailyRitual",
    "SelfExtract",
    "SelfRichness",
    "SocialMechanics",
    "assess_self_richness",
    "extract_display_name",
    "extract_from_self",
    "parse_daily_rituals",
    "parse_social_mechanics",
    "parse_time_to_ms",
]

Part = Literal["identity", "purpose", "values", "questions", "patterns", "learnings", "explorations"]

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "purpose": ("what i'm here to do", "purpose", "mission", "why i exist"),
    "values": ("values", "principles", "core values", "what i believe"),
    "questions": ("questions i'm sitting with", "questions", "what i wonder", "things i'm curious about"),
    "patterns": ("patterns i notice", "patterns", "what i observe", "things i see"),
    "learnings": ("recent learnings", "learnings", "what i've learned", "insights"),
    "explorations": ("what i want to explore", "explorations", "curiosities", "topics to explore"),
    "currentFocus": ("current focus", "focus", "what i'm working on", "goals"),
    "relationships": ("relationships", "people i care about", "connections", "community"),
    "voice": ("voice", "how i sound", "tone", "my voice"),
    "socialMechanics": ("social mechanics", "engagement preferences", "conversation preferences"),
    "dailyRituals": ("daily rituals", "rituals"),
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

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_RULE = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*")
_PLACEHOLDER = re.compile(r"\s*(?:[-*]\s+)?([*_])\(.*\)\1\s*")
_STARTS_ANEW = re.compile(r"\s*(?:[-*+]\s|\d+[.)]\s|\||#|```|~~~|>)")
_BULLET = re.compile(r"\s*[-*]\s+(.*\S)\s*")
_DATE = re.compile(r"(?:\*\*)?\d{4}-\d{2}-\d{2}(?:\*\*)?(?::(?:\*\*)?)?\s*")
_CELL_RULE = re.compile(r"[\s:|-]*")
_TITLE_PREFIX = re.compile(r"(?:agent self document|self)\b[\s:—–|/-]*", re.IGNORECASE)  # noqa: RUF001 - dashes as written
_WORD = r"\w+(?:[-.']\w+)*"
_FIRST_PERSON = re.compile(rf"\bI'm\s+[*_`\"]*({_WORD})")


@dataclass(frozen=True, slots=True)
class SelfExtract:
    """SELF.md by its parts; empty where it is silent. `warnings` tell the owner what could not be read."""

    identity: str = ""
    name: str = ""
    purpose: str = ""
    values: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    learnings: tuple[str, ...] = ()
    explorations: tuple[str, ...] = ()
    current_focus: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()
    social_mechanics: SocialMechanics = field(default_factory=SocialMechanics)
    voice: str = ""
    daily_rituals: tuple[DailyRitual, ...] = ()
    raw_sections: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelfRichness:
    """How much of a self is written down, 0 to 100. `suggestions` name the parts to grow, `missing` ones first."""

    score: int
    missing: tuple[Part, ...]
    suggestions: tuple[Part, ...]


def extract_from_self(content: str) -> SelfExtract:
    """Read a whole SELF.md."""
    title, opening, sections = _split(straighten(content).lstrip("\ufeff"))
    raw = {key: body for key, aliases in _ALIASES.items() if (body := _find(sections, aliases))}

    def listed(key: str, *readers: Callable[[str], Iterator[str]]) -> tuple[str, ...]:
        return tuple(item for reader in readers for item in reader(raw.get(key, "")))

    mechanics = parse_social_mechanics(raw.get("socialMechanics", ""))
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
        current_focus=listed("currentFocus", _bullets),
        relationships=listed("relationships", _bullets),
        social_mechanics=mechanics,
        voice=raw.get("voice", ""),
        daily_rituals=parse_daily_rituals(raw.get("dailyRituals", "")),
        raw_sections=raw,
        warnings=mechanics.warnings,
    )


def extract_display_name(self_md: str, fallback: str = "Agent", agent_name: str = "") -> str:
    """The name to show: `agent_name` if SELF.md is titled so, else "I'm NAME", else the title, else `fallback`."""
    text = straighten(self_md).lstrip("\ufeff")
    title = _TITLE_PREFIX.sub("", _split(text)[0], count=1).strip()
    if agent_name and title.casefold() == agent_name.casefold():
        return agent_name
    introduction = _FIRST_PERSON.search(text)
    return introduction.group(1) if introduction else title or fallback


def assess_self_richness(extract: SelfExtract) -> SelfRichness:
    """How much there is to speak from."""
    missing = tuple(part for part in _WEIGHTS if not getattr(extract, part))
    thin: tuple[Part, ...] = ("values",) if 0 < len(extract.values) < _FEW_VALUES else ()
    return SelfRichness(sum(_WEIGHTS.values()) - sum(_WEIGHTS[part] for part in missing), missing, missing + thin)


def _split(content: str) -> tuple[str, list[str], list[tuple[str, str]]]:
    """The H1, the lines right under it, and the H2 sections as (heading, body). Fenced code holds no headings."""
    title, opening = "", list[str]()
    sections: list[tuple[str, list[str]]] = []
    in_opening = fenced = False
    for line in content.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        heading = None if fenced else _HEADING.fullmatch(line)
        level = len(heading.group(1)) if heading else 0
        if heading and level == 1 and not title:
            title, in_opening = heading.group(2), True
        elif heading and level <= 2:  # noqa: PLR2004 - H1 and H2 end a section, only H2 opens one
            sections.append((heading.group(2) if level > 1 else "", []))
            in_opening = False
        elif sections:
            means_nothing = _RULE.fullmatch(line) or _PLACEHOLDER.fullmatch(line)
            sections[-1][1].append("" if means_nothing else line)
        elif in_opening and not heading:
            opening.append(line.strip())
    return title, opening, [(heading, "\n".join(body).strip()) for heading, body in sections]


def _find(sections: list[tuple[str, str]], aliases: tuple[str, ...]) -> str:
    for alias in aliases:
        for heading, body in sections:
            if re.match(rf"\W*{re.escape(alias)}\b", heading, re.IGNORECASE):
                return body
    return ""


def _first_line(section: str) -> str:
    line = next((line for line in _unwrapped(section) if line.strip()), "")
    bullet = _BULLET.fullmatch(line)
    return bullet.group(1) if bullet else line.strip()


def _unwrapped(section: str) -> list[str]:
    """The lines, each paragraph and each list item on one: in Markdown a line break inside them means nothing."""
    lines: list[str] = []
    for line in section.splitlines():
        goes_on = lines and lines[-1].strip(" -*+") and not lines[-1].lstrip().startswith("|")
        if goes_on and line.strip() and not _STARTS_ANEW.match(line):
            lines[-1] = f"{lines[-1].rstrip()} {line.strip()}"
        else:
            lines.append(line)
    return lines


def _bullets(section: str) -> Iterator[str]:
    for line in _unwrapped(section):
        if bullet := _BULLET.fullmatch(line):
            yield bullet.group(1)


def _cells(section: str) -> Iterator[str]:
    """The first cell of each table row that says something; a cell that is only a date gives way to the next."""
    rows = [line.strip() for line in section.splitlines() if line.strip().startswith("|")]
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
