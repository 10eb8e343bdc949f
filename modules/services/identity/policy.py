"""The rules for changes of SELF.md: what is refused, what waits for the owner, and how its parts change. Pure."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, unified_diff
from itertools import islice

from common.constants import SELF_MAX_BYTES
from common.redact import Redactor
from common.text.markdown import outline, split_sections, without_headings
from common.text.patterns import lazy
from common.text.strings import straighten
from modules.services.identity.identity import extract_from_self

LOSS_LIMIT = 0.5
_MOST_DIFF_LINES, _DIFF_LINE_CHARS = 40, 500
_SECTION = 2

# NOTE(self): the sections that the program itself reads, by the keys of `extract_from_self`.
_OPERATIONAL = {"socialMechanics": "Social Mechanics", "voice": "Voice", "dailyRituals": "Daily Rituals"}
# NOTE(self): in scripts without spaces between words each character counts as a word.
_SPACELESS = "\u0e00-\u0fff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
_WORD = lazy(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")


@dataclass(frozen=True, slots=True)
class Loss:
    """The number of the `total` meaningful characters of a text that a change would lose."""

    lost: int
    total: int

    @property
    def too_much(self) -> bool:
        """Whether more than half would be lost."""
        return self.lost > LOSS_LIMIT * self.total


def refusal(content: str, reason: str, redactor: Redactor) -> str:
    """Return why a text can never be SELF.md, or ""."""
    if not content.strip():
        return "it is empty"
    try:
        size = len(content.encode())
    except UnicodeEncodeError:
        return "it holds half of a character pair, which cannot be stored as UTF-8"
    if size > SELF_MAX_BYTES:
        return f"it has {size} bytes, the most is {SELF_MAX_BYTES}"
    if redactor.finds(content):
        return "it holds a secret"
    return "" if reason.strip() else "no reason was given"


def with_section(text: str, heading: str, body: str) -> str:
    """Return `text` with `body` under that heading; a missing heading is added at the end, on the second level.

    A section ends at the next heading of its level or a higher one. Text after a rule (`---`) that closes it stays.
    """
    lines, title = text.splitlines(), _plain(heading)
    new = body.strip().splitlines()
    if new and new[0].startswith("#") and _plain(new[0]).casefold() == title.casefold():
        new = "\n".join(new[1:]).strip().splitlines()
    headings = outline(lines).headings
    same = [one for one in headings if _plain(one.text).casefold() == title.casefold()]
    found = min(same, key=lambda one: (one.level != _SECTION, one.line), default=None)
    if found is None:
        lines += ["", f"## {title}", "", *new]
    else:
        after = (one.line for one in headings if one.line > found.line and one.level <= found.level)
        end = next(after, len(lines))
        rules = [number for number in range(found.line, end) if lines[number].strip() == "---"]
        lines[found.line + 1 : rules[-1] if rules else end] = ["", *new, ""]
    return "\n".join(lines).strip() + "\n"


def with_sections_kept(old: str, new: str, drops: Collection[str]) -> str:
    """Return `new` with each section of `old` that it lacks, except those whose headings are in `drops`."""
    may_go = {_plain(heading).casefold() for heading in drops}
    there = {_title_of(section) for section in split_sections(new)[1]}
    lost = [one for one in split_sections(old)[1] if _title_of(one) not in there | may_go]
    return "\n\n".join([new.rstrip(), *(section.strip() for section in lost)]) + "\n" if lost else new


def reapplied(old: str, new: str, today: str) -> str | None:
    """Return `today` with the changes from `old` to `new`; None if lines that they change are missing."""
    before, after, now = (text.splitlines() for text in (old, new, today))
    same = SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
    place = {block.a + step: block.b + step for block in same for step in range(block.size)}
    place[-1] = -1
    for tag, begin, end, first, last in reversed(SequenceMatcher(None, before, after, autojunk=False).get_opcodes()):
        start = place.get(begin, -1) if begin < end else place.get(begin - 1, -2) + 1
        is_there = begin == end and now[start : start + last - first] == after[first:last]
        if tag == "equal" or (is_there and start >= 0):
            continue
        if start < 0 or any(place.get(one) != start + one - begin for one in range(begin, end)):
            return None
        now[start : start + end - begin] = after[first:last]
    return "\n".join(now) + "\n"


def heading_twice(old: str, new: str) -> str:
    """Return a heading of the first two levels that `new` repeats more often than `old`; "" for none."""
    before, after = _titles(old), _titles(new)
    return next((title for title, count in after.items() if count > max(1, before[title])), "")


def _titles(text: str) -> Counter[str]:
    return Counter(_plain(one.text).casefold() for one in outline(text.splitlines()).headings if one.level <= _SECTION)


def _title_of(section: str) -> str:
    return _plain(section.partition("\n")[0]).casefold()


def loss(old: str, new: str) -> Loss:
    """Return which words of `old` are missing from all of `new`, counted by their letters and digits.

    Headings, white space, punctuation and markup do not count on either side.
    """
    before, after = _words(old), _words(new)
    return Loss(_letters(before - after), _letters(before))


def hold_reason(old: str, new: str) -> str:
    """Return why the owner must approve this change first, or ""."""
    gone = loss(old, new)
    if not gone.too_much:
        return ""
    return f"it loses {round(100 * gone.lost / gone.total)} % of the text"


def limits_reason(old: str, new: str) -> str:
    """Return why the owner must approve a change that nobody asked for, or "".

    That is a change of when the SOUL leaves a conversation, or a new invitation to a ritual.
    """
    before, after = extract_from_self(old), extract_from_self(new)
    if replace(before.social_mechanics, warnings=()) != replace(after.social_mechanics, warnings=()):
        return "it changes Social Mechanics, the limits of a conversation"
    invited = {(one.name.casefold(), who.casefold()) for one in before.daily_rituals for who in one.participants}
    for ritual in after.daily_rituals:
        new_ones = [who for who in ritual.participants if (ritual.name.casefold(), who.casefold()) not in invited]
        if new_ones:
            return f"it invites {', '.join(new_ones)} to the ritual {ritual.name}"
    return ""


def sections_moved(old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sections read by the program that `(appeared, vanished)` between two texts."""
    before, after = operational_parts(old), operational_parts(new)
    return (
        tuple(name for name in after if name not in before),
        tuple(name for name in before if name not in after),
    )


def operational_parts(text: str) -> dict[str, str]:
    """Return the sections that the program itself reads, by name."""
    found = extract_from_self(text).raw_sections
    return {name: found[key] for key, name in _OPERATIONAL.items() if key in found}


def _plain(heading: str) -> str:
    return " ".join(straighten(heading).strip("# \t\n").split())


def _words(text: str) -> Counter[str]:
    lines = without_headings(text.splitlines())
    return Counter(word.casefold() for line in lines for word in _WORD.findall(line))


def _letters(words: Counter[str]) -> int:
    return sum(len(word) * times for word, times in words.items())


def diff_lines(old: str, new: str) -> list[str]:
    """Return the removed (-) and added (+) lines without context, shortened; at most `_MOST_DIFF_LINES`."""
    compared = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    found = [line for line in islice(compared, 2, None) if line[:1] in "+-" and line[1:].strip()]
    return [line[:_DIFF_LINE_CHARS] for line in found][:_MOST_DIFF_LINES]


@dataclass(frozen=True, slots=True)
class AddedLine:
    """A line that a change adds: its nearest heading, and the lines above and below it that are not blank, or ""."""

    text: str
    heading: str
    above: str
    below: str
    is_last_but_one: bool


def line_changes(old: str, new: str) -> tuple[list[str], list[AddedLine]]:
    """Return the lines that a change removes and those that it adds, stripped and without blank ones."""
    before, after = ([line.strip() for line in text.splitlines() if line.strip()] for text in (old, new))
    removed, added = list[str](), list[AddedLine]()
    for tag, begin, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += before[begin:end]
            added += [_added_at(place, after) for place in range(first, last)]
    return removed, added


def _added_at(place: int, lines: list[str]) -> AddedLine:
    heading = next((line for line in lines[:place][::-1] if line.startswith("#")), "")
    above, below = lines[place - 1] if place else "", "".join(lines[place + 1 : place + 2])
    return AddedLine(lines[place], heading, above, below, is_last_but_one=place + 2 == len(lines))
