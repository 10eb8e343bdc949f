"""One day of memory as a page: what was remembered, in order. Pure.

Memories from a conversation that was condensed carry the tag `compaction`, whatever their kind and subject; they stand
at the end of the page, under a heading with the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from common.clock import local, parse_iso
from common.text.untrusted import clean
from modules.services.memory.admission import Memory
from modules.services.memory.recall import MemoryRenderer, words_from, words_of

COMPACTION_TAG = "compaction"
PROMPT_ENTRIES = 10
"""The number of newest entries of each day in the owner's prompt. Other prompts get what recall finds."""


def day_name(day: date) -> str:
    """Return the name of the file of a day."""
    return f"memory/{day.isoformat()}.md"


def day_span(day: date, timezone: str = "") -> tuple[datetime, datetime]:
    """Return the beginning of a day and of the next one, in UTC; the time zone "" is the machine's."""
    midnights = (datetime.combine(each, time()) for each in (day, day + timedelta(days=1)))
    zone = ZoneInfo(timezone) if timezone else None
    begins, ends = ((each.replace(tzinfo=zone) if zone else each.astimezone()).astimezone(UTC) for each in midnights)
    return begins, ends


def of_day(day: date, memories: Iterable[Memory], timezone: str = "") -> list[Memory]:
    """Return the memories of `day`, oldest change first."""
    ours = [memory for memory in memories if _moment(memory, timezone).date() == day]
    return sorted(ours, key=lambda memory: (memory.updated_at, memory.id))


def render_day(day: date, entries: Sequence[Memory], *, timezone: str, tell: Callable[[Memory, str], str]) -> str:
    """Return the page of `day`; "" if there are no entries.

    Args:
        day: the day.
        entries: the entries of that day, in order.
        timezone: the time zone of the times.
        tell: returns an entry and its time (HH:MM) as a list item.

    """
    if not entries:
        return ""
    timed = [(f"{_moment(memory, timezone):%H:%M}", memory) for memory in entries]
    blocks = [f"# {day.isoformat()}"]
    said = [tell(memory, at) for at, memory in timed if COMPACTION_TAG not in memory.tags]
    blocks += ["\n".join(said)] if said else []
    extracts = (pair for pair in timed if COMPACTION_TAG in pair[1].tags)
    for at, group in groupby(extracts, key=lambda pair: pair[0]):
        told = "\n".join(tell(memory, at) for _, memory in group)
        blocks.append(f"### Extracted from context compaction ({at})\n\n{told}")
    return "\n\n".join(blocks) + "\n"


def in_file(memory: Memory, at: str) -> str:
    """Return an entry as the file shows it: untrusted text cleaned and quoted with its author."""
    if words_of([memory]) is None:
        return f"- {at} {memory.kind}, {' '.join(memory.subject.split())}: {_below(memory.body.strip(), '  ')}"
    quoted = _below(clean(f"{memory.subject}\n{memory.body}"), "  > ")
    return f"- {at} {memory.kind}, {words_from(memory)}:\n  > {quoted}"


def told_in_prompt(
    day: date, entries: Sequence[Memory], memory_renderer: MemoryRenderer, *, most: int, hidden: int
) -> tuple[str, Sequence[Memory]]:
    """Return the page for a prompt, untrusted text framed, and its entries: the newest. `hidden` ones are counted."""
    newest = entries[max(0, len(entries) - most) :]
    page = render_day(
        day, newest, timezone=memory_renderer.timezone, tell=lambda memory, _: memory_renderer.entry_of_day(memory)
    )
    left_out = hidden + len(entries) - len(newest)
    note = memory_renderer.skills.render("memory", "Left Out", count=left_out) if left_out else ""
    return "\n".join(part for part in (page, note) if part), newest


def _moment(memory: Memory, timezone: str) -> datetime:
    return local(parse_iso(memory.updated_at), timezone)


def _below(text: str, indent: str) -> str:
    """Return `text` with all lines except the first indented."""
    return f"\n{indent}".join(text.splitlines())
