"""The two parts of SELF.md that steer behaviour: the limits of a conversation, and the rituals of the week."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Literal

from common import constants as c
from common.constants import HOUR_MS, MINUTE_MS
from common.text.patterns import lazy
from common.text.strings import straighten
from modules.runtime.scheduler.policy import QUIET_HOURS_END, QUIET_HOURS_START

_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ALL, _WEEKDAYS, _WEEKENDS = frozenset(range(7)), frozenset(range(5)), frozenset({5, 6})
_GROUPS = {
    **dict.fromkeys(("daily", "everyday", "day", "days"), _ALL),
    **dict.fromkeys(("weekday", "weekdays", "workdays"), _WEEKDAYS),
    **dict.fromkeys(("weekend", "weekends"), _WEEKENDS),
}
_SHORT = {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
_FILLERS = frozenset({"and", "on", "every", "each", "at"})
_TIME_OF_DAY = re.compile(r"(?<![\d:.])(\d{1,2})(?:[:.h](\d{2})(?!\d))?\s?(?:([ap])\.?m\b\.?|h\b)?(?![\w:])")
_RANGE = re.compile(r"([a-z]{1,12})\s?(?:-|–|—|\bto\b|\bthrough\b)\s?([a-z]{1,12})")  # noqa: RUF001 - dashes as written
_SIGNS = re.compile(r"[\s,;/&+@.|*_`()]+")
_MORNING = time(QUIET_HOURS_END)
_NOON_HOURS, _HOURS, _MINUTES = 12, 24, 60
_WEEK = 7


@dataclass(frozen=True, slots=True)
class RitualSchedule:
    """The weekdays (0 is Monday) and the time of day of a ritual; `at` is None for any time in the day."""

    days: frozenset[int]
    at: time | None = None

    def is_on(self, day: date) -> bool:
        """Return whether it takes place on a date."""
        return day.weekday() in self.days

    def opens_at(self, day: date) -> datetime:
        """Return when it opens on a date, in wall-clock time, never before the end of the quiet hours."""
        return datetime.combine(day, max(self.at or _MORNING, _MORNING))

    def is_open(self, wall_clock: datetime) -> bool:
        """Return whether it may open at a local time; a missed opening is made up for until the quiet hours."""
        now = wall_clock.replace(tzinfo=None)
        return self.is_on(now.date()) and self.opens_at(now.date()) <= now and not self.is_over(now)

    @staticmethod
    def is_over(wall_clock: datetime) -> bool:
        """Return whether the quiet hours of the evening have begun, so that nothing opens on that local day."""
        return wall_clock.hour >= QUIET_HOURS_START

    def next_date(self, after: date) -> date:
        """Return its first date after a date."""
        days = (after + timedelta(days=ahead) for ahead in range(1, _WEEK + 1))
        return next(day for day in days if self.is_on(day))


def parse_ritual_schedule(schedule: str) -> RitualSchedule | None:
    """Return the schedule in a text; None without days, with an unclear word, with two times, or from 23:00 on."""
    text = straighten(schedule).lower()
    times = list(_TIME_OF_DAY.finditer(text))
    if len(times) > 1:
        return None
    at = _time_of(times[0]) if times else None
    if times and (at is None or at >= time(QUIET_HOURS_START)):
        return None
    days = set[int]()
    for found in _days_in(_TIME_OF_DAY.sub(" ", text)):
        if found is None:
            return None
        days |= found
    return RitualSchedule(frozenset(days), at) if days else None


def _time_of(found: re.Match[str]) -> time | None:
    """Return a time of day, or None; a bare number is none, as it may count anything."""
    hour, minute = int(found[1]), int(found[2] or 0)
    if found[3]:
        if not 1 <= hour <= _NOON_HOURS:
            return None
        hour = hour % _NOON_HOURS + (_NOON_HOURS if found[3] == "p" else 0)
    elif found[2] is None and not found[0].strip().endswith("h"):
        return None
    return time(hour, minute) if hour < _HOURS and minute < _MINUTES else None


def _days_in(text: str) -> Iterator[frozenset[int] | None]:
    """Yield each group of days that a text names; None for a word that names none."""
    for first, last in _RANGE.findall(text):
        begin, end = _day_of(first), _day_of(last)
        if begin is None or end is None:
            yield None
            return
        yield frozenset((begin + ahead) % _WEEK for ahead in range((end - begin) % _WEEK + 1))
    for word in filter(None, _SIGNS.split(_RANGE.sub(" ", text))):
        if word in _FILLERS:
            continue
        day = _day_of(word)
        yield _GROUPS.get(word) if day is None else frozenset({day})


def _day_of(word: str) -> int | None:
    """Return the day that a word names: `mon`, `monday` or `mondays`."""
    names = (number for number, name in enumerate(_DAY_NAMES) if word in {name[:3], name, f"{name}s"})
    return next(names, _SHORT.get(word))


DEFAULT_MAX_REPLIES_BEFORE_EXIT = 4
DEFAULT_MAX_THREAD_DEPTH = 12
DEFAULT_SILENCE_THRESHOLD_MS = 30 * MINUTE_MS
DEFAULT_NO_RESPONSE_TIMEOUT_MS = HOUR_MS
PROJECT_MAX_REPLIES_BEFORE_EXIT = 10
PROJECT_MAX_THREAD_DEPTH = 50
PROJECT_SILENCE_THRESHOLD_MS = 4 * HOUR_MS
PROJECT_NO_RESPONSE_TIMEOUT_MS = 8 * HOUR_MS

_Field = Literal["max_replies_before_exit", "max_thread_depth", "silence_threshold_ms", "no_response_timeout_ms"]

_UNITS: Mapping[str, int] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), c.SECOND_MS),
    **dict.fromkeys(("", "m", "min", "mins", "minute", "minutes"), c.MINUTE_MS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), c.HOUR_MS),
    **dict.fromkeys(("d", "day", "days"), c.DAY_MS),
}
_NUMBER = r"(\d{1,9}(?:\.\d{1,3}|,\d{1,2})?)(?![.:,]?\d)"
_TIME = lazy(rf"[^\d-]*{_NUMBER}\s*([^\W\d_]*)")
_MORE_TIME = lazy(rf"\s{{0,9}}(?:(?:[.,+&/-]|\band\b)\s{{0,9}})?{_NUMBER}\s{{0,9}}([^\W\d_]*)")
_COUNT = lazy(r"[^\d-]*(\d{1,9})(?!\.?\d)")

_NOT = r"(?:not|never|don't|without|avoid|skip|ignore|no)"
_POLITE = r"(?:acknowledg\w+|thanks|thank-yous|closings?)"
_ANSWERS_ALL = lazy(
    rf"\b(?:reply|replying|respond|responding|answer|answering)\b(?:\s+to)?\s+"
    rf"(?:everything|everyone|everybody|every\s+\w+|all|(?:[\w-]+\s+){{0,2}}{_POLITE})\b"
    rf"|\b{_POLITE}\s+(?:are|get)\s+(?:\w+\s+)?(?:answered|replied|a\s+reply|an\s+answer)",
)
_REFUSES = lazy(rf"\b{_NOT}\b")
_NO = frozenset({"no", "off", "false", "never", "0"})
_ANSWER = lazy(r"(?:always\s+)?(?:answer|reply|respond|answered|yes)\b")

_ITEM = r"(?P<indent>\s*+)(?:[-*+]|\d{1,3}[.)])\s{1,9}(?:\[[ xX]\]\s{1,9})?"
_ENTRY = lazy(rf"{_ITEM}(?P<bold>\*\*|__)(?P<name>.+?)(?P=bold)(?![*_]):?(?P<rest>.*)")
_PLAIN_ENTRY = lazy(rf"{_ITEM}(?P<name>[^\[(]{{1,200}})(?P<rest>\[(?P<schedule>[^\]]{{1,200}})\]\s{{1,9}}\(.*)")
_BARE_ENTRY = lazy(
    r"(?P<indent>\s*+)(?:#{3,6}\s{1,9})?(?P<name>\*\*[^*\[(]{1,200}\*\*|(?<=\s)[^\s*\[(][^\[(]{0,199})"
    r"(?P<rest>:?\s{0,9}\[(?P<schedule>[^\]]{1,200})\]\s{1,9}\(.*)"
)
_TERMS = lazy(
    r"\[(?P<schedule>[^\[\]]{1,200})\]\W{0,20}?\((?P<workspace>[^()\s]{1,300})\)\s{0,9}[:—–-]*\s*(?P<more>.*)"  # noqa: RUF001
)
_DAYS = lazy(r"\W*(?:daily|every|weekdays?|weekends?|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)\b", re.IGNORECASE)
_LINKED = lazy(r"\(?\s{0,9}\[([^\[\]]{1,200})\]\(https?://[^()\s]{1,300}\)\s{0,9}\)?")
_LINK_IN_NAME = lazy(r"\[([^\[\]]{1,200})\]\(https?://[^()\s]{1,300}\)")
_EMPHASIS, _AROUND = "*_`", " \t*_`:.,;–—-"  # noqa: RUF001 - the dashes as written
_NO_EMPHASIS = str.maketrans("", "", "*`")
_SHOWN_CHARS = 80
_SHOWN_WARNINGS = 20
_UNREAD = "SELF.md, Daily Rituals: “{}” is not understood; a ritual is - **Name** [schedule] (workspace)"
_UNTIMED = (
    "SELF.md, Daily Rituals: “{}” never opens: [{}] is not understood; write daily, weekdays, weekends or days of the"
    " week, and a time by day such as 09:00 if it has one"
)
_DETAIL = lazy(r"\s*+(?:(?:[-*+]|\d{1,3}[.)])\s+)?\**(participants|role):?\**:?\s*(.*)", re.IGNORECASE)
_ROLES = lazy(r"[,;/&+]|\b(?:and|or|then)\b", re.IGNORECASE)
_INITIATOR = lazy(r"\W*(?:(?:both|main|the|an?)\s{1,9}){0,3}(?:co-)?initiators?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SocialMechanics:
    """The limits of a conversation, times in ms. `warnings` name the rows that could not be read."""

    max_replies_before_exit: int = DEFAULT_MAX_REPLIES_BEFORE_EXIT
    max_thread_depth: int = DEFAULT_MAX_THREAD_DEPTH
    silence_threshold_ms: int = DEFAULT_SILENCE_THRESHOLD_MS
    no_response_timeout_ms: int = DEFAULT_NO_RESPONSE_TIMEOUT_MS
    skip_low_value_acknowledgments: bool = True
    warnings: tuple[str, ...] = ()

    @property
    def in_project(self) -> SocialMechanics:
        """The limits in a thread about work: those of projects, or one's own if these are higher."""
        return replace(
            self,
            max_replies_before_exit=max(self.max_replies_before_exit, PROJECT_MAX_REPLIES_BEFORE_EXIT),
            max_thread_depth=max(self.max_thread_depth, PROJECT_MAX_THREAD_DEPTH),
            silence_threshold_ms=max(self.silence_threshold_ms, PROJECT_SILENCE_THRESHOLD_MS),
            no_response_timeout_ms=max(self.no_response_timeout_ms, PROJECT_NO_RESPONSE_TIMEOUT_MS),
        )


@dataclass(frozen=True, slots=True)
class DailyRitual:
    """A ritual on certain days with certain people. `schedule` is lower case; `participants` as written."""

    name: str
    schedule: str
    workspace: str
    participants: tuple[str, ...] = ()
    role: Literal["initiator", "participant"] = "participant"
    description: str = ""

    @property
    def when(self) -> RitualSchedule | None:
        """The days and the time of day that `schedule` names; None if it is not understood."""
        return parse_ritual_schedule(self.schedule)


def parse_time_to_ms(text: str) -> int:
    """Return the ms in `30m`, `30 min`, `1.5h`, `1,5h`, `1h30m`, `2 days`, `45s` or bare minutes; otherwise 0."""
    match = _TIME.match(text)
    unit = _UNITS.get(match.group(2).lower()) if match else None
    total = Decimal(0)
    while match and unit:
        total += Decimal(match.group(1).replace(",", ".")) * unit
        match = _MORE_TIME.match(text, match.end()) if match.group(2) else None
        smaller = _UNITS.get(match.group(2).lower()) if match else None
        unit = smaller if smaller and smaller < unit else None
    return int(total)


def few(warnings: list[str]) -> tuple[str, ...]:
    """Return the first warnings and a line with the number of the others, so that no document fills the journal."""
    more = len(warnings) - _SHOWN_WARNINGS
    return (*warnings[:_SHOWN_WARNINGS], *([f"SELF.md: {more} more lines are not understood"] if more > 0 else []))


def parse_social_mechanics(section: str) -> SocialMechanics:
    """Read the table of thresholds (signal, threshold); absent or unreadable rows keep their defaults."""
    found: dict[_Field, int] = {}
    warnings: list[str] = []
    skip = True
    for line in filter(None, straighten(section).splitlines()):
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
            shown, label = cells[1][:_SHOWN_CHARS], cells[0][:_SHOWN_CHARS]
            warnings.append(f"SELF.md, Social Mechanics: “{shown}” for “{label}” is not understood")
    return SocialMechanics(
        max_replies_before_exit=found.get("max_replies_before_exit", DEFAULT_MAX_REPLIES_BEFORE_EXIT),
        max_thread_depth=found.get("max_thread_depth", DEFAULT_MAX_THREAD_DEPTH),
        silence_threshold_ms=found.get("silence_threshold_ms", DEFAULT_SILENCE_THRESHOLD_MS),
        no_response_timeout_ms=found.get("no_response_timeout_ms", DEFAULT_NO_RESPONSE_TIMEOUT_MS),
        skip_low_value_acknowledgments=skip,
        warnings=few(warnings),
    )


def read_rituals(section: str) -> tuple[tuple[DailyRitual, ...], tuple[str, ...]]:
    """Return the rituals, and a warning for each of the first entries that look like one and cannot be read.

    A ritual is an entry `- **Name** [schedule] (workspace)` with the lines under it; incomplete entries are left out.
    Any list will do: `-`, `*`, `+`, numbers, tasks, indented or not. If the schedule is understood, the name need not
    be bold, and a bold name or a heading needs no list.
    """
    entries: list[tuple[DailyRitual, list[str]]] = []
    unread: list[str] = []
    open_entry, indent = False, 0
    for line in filter(None, section.splitlines()):
        entry = None if _DETAIL.fullmatch(line) else _ENTRY.match(line)
        plain = None if entry else _PLAIN_ENTRY.match(line) or _BARE_ENTRY.fullmatch(line)
        item = entry or plain
        ritual = _ritual(item["name"], item["rest"]) if item else None
        if plain and ritual and ritual.when is None:
            ritual = None
        beside = item is not None and not (open_entry and len(item["indent"]) > indent)
        if item and ritual:
            entries.append((ritual, []))
            open_entry, indent = True, len(item["indent"])
        elif entry and beside:
            open_entry = False
            if "[" in entry["rest"] or "(" in entry["rest"]:
                unread.append(line)
        elif item and beside and not entry and _DAYS.match(item["schedule"]):
            open_entry = False
            unread.append(line)
        elif open_entry and line.strip():
            entries[-1][1].append(line)
    warnings = [_UNREAD.format(line.strip()[:_SHOWN_CHARS]) for line in unread]
    warnings += [
        _UNTIMED.format(one.name[:_SHOWN_CHARS], one.schedule[:_SHOWN_CHARS]) for one, _ in entries if one.when is None
    ]
    return tuple(_with_lines(ritual, lines) for ritual, lines in entries), few(warnings)


def _ritual(name: str, rest: str) -> DailyRitual | None:
    """Return the ritual of an entry; None if its schedule or workspace is missing."""
    found = (match for text in (rest, _LINKED.sub(r" (\1) ", rest)) for match in _TERMS.finditer(text))
    terms = next(filter(_is_schedule, found), None)
    if terms is None:
        return None
    bare_name = _LINK_IN_NAME.sub(r"\1", name).translate(_NO_EMPHASIS).strip().rstrip(":").strip()
    workspace = terms["workspace"].strip(_EMPHASIS).rstrip("/")
    return DailyRitual(
        name=bare_name,
        schedule=terms["schedule"].strip(_EMPHASIS).strip().lower(),
        workspace=workspace.rpartition("/")[2] if "://" in workspace else workspace,
        description=terms["more"].strip(),
    )


def _is_schedule(terms: re.Match[str]) -> bool:
    """Return whether brackets hold a schedule: any right after the name, only words for days after other text."""
    behind_text = terms.string[: terms.start()].strip(_AROUND)
    linked = terms["workspace"].startswith(("http://", "https://")) and "](" in terms[0]
    return not linked and (not behind_text or _DAYS.match(terms["schedule"]) is not None)


def _row_field(label: str) -> _Field | None:
    """Return the field of a row; the most specific word decides, so "My replies in thread" is about replies."""
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


def _with_lines(ritual: DailyRitual, lines: list[str]) -> DailyRitual:
    described = [ritual.description]
    for line in lines:
        detail = _DETAIL.fullmatch(line)
        if detail and detail.group(1).lower() == "participants":
            names = filter(None, (name.strip() for name in detail.group(2).split(",")))
            ritual = replace(ritual, participants=tuple(names))
        elif detail:
            initiates = any(map(_INITIATOR.match, _ROLES.split(detail.group(2))))
            ritual = replace(ritual, role="initiator" if initiates else "participant")
        else:
            described.append(line.strip())
    return replace(ritual, description="\n".join(described).strip())
