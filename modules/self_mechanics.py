"""The two parts of SELF.md that steer behaviour: when a conversation is enough, and what is done every day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from common import constants as c
from common.text.strings import straighten

_Field = Literal["max_replies_before_exit", "max_thread_depth", "silence_threshold_ms", "no_response_timeout_ms"]

_UNITS: Mapping[str, int] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), c.SECOND_MS),
    **dict.fromkeys(("", "m", "min", "mins", "minute", "minutes"), c.MINUTE_MS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), c.HOUR_MS),
    **dict.fromkeys(("d", "day", "days"), c.DAY_MS),
}
_TIME = re.compile(r"[^\d-]*(\d{1,9}(?:\.\d{1,3})?)(?!\.?\d)\s*([^\W\d_]*)")
_COUNT = re.compile(r"[^\d-]*(\d{1,9})(?!\.?\d)")

_NOT = r"(?:not|never|don't|without|avoid|skip|ignore|no)"
_POLITE = r"(?:acknowledg\w+|thanks|thank-yous|closings?)"
_ANSWERS_ALL = re.compile(
    rf"\b(?:reply|replying|respond|responding|answer|answering)\b(?:\s+to)?\s+"
    rf"(?:everything|everyone|everybody|every\s+\w+|all|(?:[\w-]+\s+){{0,2}}{_POLITE})\b"
    rf"|\b{_POLITE}\s+(?:are|get)\s+(?:\w+\s+)?(?:answered|replied|a\s+reply|an\s+answer)",
)
_REFUSES = re.compile(rf"\b{_NOT}\b")
_NO = frozenset({"no", "off", "false", "never", "0"})
_ANSWER = re.compile(r"(?:always\s+)?(?:answer|reply|respond|answered|yes)\b")

_ENTRY = re.compile(r"[-*]\s+\*\*(?P<name>[^*]+?):?\*\*:?(?P<rest>.*)")
_TERMS = re.compile(r"\W*\[(?P<schedule>[^\]]+)\]\W*?\((?P<workspace>[^()\s]+)\)\s*[:—–-]*\s*(?P<more>.*)")  # noqa: RUF001
_DETAIL = re.compile(r"\s*(?:[-*]\s+)?\**(participants|role):?\**:?\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SocialMechanics:
    """When a conversation is enough. Times in ms. `warnings` name the rows that could not be read."""

    max_replies_before_exit: int = c.DEFAULT_MAX_REPLIES_BEFORE_EXIT
    max_thread_depth: int = c.DEFAULT_MAX_THREAD_DEPTH
    silence_threshold_ms: int = c.DEFAULT_SILENCE_THRESHOLD_MS
    no_response_timeout_ms: int = c.DEFAULT_NO_RESPONSE_TIMEOUT_MS
    skip_low_value_acknowledgments: bool = True
    warnings: tuple[str, ...] = ()


PROJECT_MECHANICS = SocialMechanics(
    max_replies_before_exit=c.PROJECT_MAX_REPLIES_BEFORE_EXIT,
    max_thread_depth=c.PROJECT_MAX_THREAD_DEPTH,
    silence_threshold_ms=c.PROJECT_SILENCE_THRESHOLD_MS,
    no_response_timeout_ms=c.PROJECT_NO_RESPONSE_TIMEOUT_MS,
)


@dataclass(frozen=True, slots=True)
class DailyRitual:
    """Something done on certain days with certain people. `schedule` is lower case; `participants` as written."""

    name: str
    schedule: str
    workspace: str
    participants: tuple[str, ...] = ()
    role: Literal["initiator", "participant"] = "participant"
    description: str = ""


def parse_time_to_ms(text: str) -> int:
    """`30m`, `30 min`, `1.5h`, `2 days`, `45s`, or a bare number of minutes; 0 for anything else."""
    match = _TIME.match(text)
    unit = _UNITS.get(match.group(2).lower()) if match else None
    return int(Decimal(match.group(1)) * unit) if match and unit else 0


def parse_social_mechanics(section: str) -> SocialMechanics:
    """Read the table of thresholds (signal, threshold); what is absent or unreadable keeps its default."""
    found: dict[_Field, int] = {}
    warnings: list[str] = []
    skip = True
    for line in straighten(section).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.strip().startswith("|") else []
        if _answers_acknowledgments(line.lower(), [cell.lower() for cell in cells]):
            skip = False
        if len(cells) < 2 or "signal" in cells[0].lower():  # noqa: PLR2004 - signal and threshold
            continue
        name = _row_field(cells[0].lower())
        value = _row_value(name, cells[1]) if name else 0
        if name and value:
            found[name] = value
        elif name:
            warnings.append(f"SELF.md, Social Mechanics: “{cells[1]}” for “{cells[0]}” is not understood")
    return SocialMechanics(
        max_replies_before_exit=found.get("max_replies_before_exit", c.DEFAULT_MAX_REPLIES_BEFORE_EXIT),
        max_thread_depth=found.get("max_thread_depth", c.DEFAULT_MAX_THREAD_DEPTH),
        silence_threshold_ms=found.get("silence_threshold_ms", c.DEFAULT_SILENCE_THRESHOLD_MS),
        no_response_timeout_ms=found.get("no_response_timeout_ms", c.DEFAULT_NO_RESPONSE_TIMEOUT_MS),
        skip_low_value_acknowledgments=skip,
        warnings=tuple(warnings),
    )


def parse_daily_rituals(section: str) -> tuple[DailyRitual, ...]:
    """Entries `- **Name** [schedule] (workspace)`, each with the lines under it; incomplete entries are left out."""
    rituals: list[DailyRitual] = []
    open_entry = False
    for line in section.splitlines():
        if entry := _ENTRY.match(line):
            terms = _TERMS.fullmatch(entry["rest"])
            open_entry = terms is not None
            if terms:
                rituals.append(
                    DailyRitual(
                        name=entry["name"].strip(),
                        schedule=terms["schedule"].strip().lower(),
                        workspace=terms["workspace"],
                        description=terms["more"].strip(),
                    )
                )
        elif open_entry and line.strip():
            rituals[-1] = _with_line(rituals[-1], line)
    return tuple(rituals)


def _row_field(label: str) -> _Field | None:
    """What a row is about; the most telling word decides, so "My replies in thread" is about replies."""
    if "depth" in label:
        return "max_thread_depth"
    if "silence" in label:
        return "silence_threshold_ms"
    if "replies" in label or "reply count" in label:
        return "max_replies_before_exit"
    if "response" in label:
        return "no_response_timeout_ms"
    return "max_thread_depth" if "thread" in label and "repl" not in label else None


def _row_value(name: _Field, cell: str) -> int:
    if name.endswith("_ms"):
        return parse_time_to_ms(cell)
    match = _COUNT.match(cell)
    return int(match.group(1)) if match else 0


def _answers_acknowledgments(line: str, cells: list[str]) -> bool:
    if len(cells) > 1 and re.search(rf"\b{_POLITE}", cells[0]):
        return cells[1] in _NO if "skip" in cells[0] else _ANSWER.match(cells[1]) is not None
    return bool(_ANSWERS_ALL.search(line)) and not _REFUSES.search(line)


def _with_line(ritual: DailyRitual, line: str) -> DailyRitual:
    detail = _DETAIL.fullmatch(line)
    if detail and detail.group(1).lower() == "participants":
        return replace(ritual, participants=tuple(filter(None, (name.strip() for name in detail.group(2).split(",")))))
    if detail:
        return replace(ritual, role="initiator" if detail.group(2).strip().lower() == "initiator" else "participant")
    return replace(ritual, description=f"{ritual.description}\n{line.strip()}".strip())
