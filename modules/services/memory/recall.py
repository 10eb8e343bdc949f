"""Selects what a turn is shown of memory: whole entries in their own words, counted as shown; or one day as a page.

Outside the owner's own sessions only public entries are searched. Notes that rest on other people's words are framed as
such, and the result says whose words they are. The counters are committed before the text is returned; a read-only
store loses the counters, but not the text.

Memories from a conversation that was condensed carry the tag `compaction`, whatever their kind and subject; they stand
at the end of the page of their day, under a heading with the time.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from cachetools import LRUCache

from common.clock import Clock, local, parse_iso
from common.errors import Transient
from common.provenance import Provenance, Trust
from common.text.untrusted import clean
from modules.services.memory.admission import OWNER_SOURCE, READING_SOURCE, Memory, Query
from modules.services.memory.rows import MemoryStore, is_about
from modules.services.skills.skills import Framer, Skills

RECALL_ENTRIES, PUBLIC_RECALL_ENTRIES = 8, 4
RECALL_TOKENS, PUBLIC_RECALL_TOKENS = 2000, 800
"""The most entries and tokens that are recalled in the owner's turns, and in any other."""

_SEARCHED = 20
_ENTRIES_KEPT = 200
_SKILL = "memory"
_PLACE = "\0"
FOREIGN: dict[Trust, Provenance] = {"stranger": Provenance.STRANGER, "peer": Provenance.PEER}
"""The provenance of memories that rest on the words of others, by trust."""


def words_of(memories: Iterable[Memory]) -> Provenance | None:
    """Return the provenance of the least trusted words in these; None if all are ours or the owner's."""
    return min((FOREIGN[memory.trust] for memory in memories if memory.trust in FOREIGN), default=None)


def trusted(memory: Memory, least: Provenance) -> bool:
    """Return whether it rests on no words less trusted than `least`; our own are trusted like the owner's."""
    return FOREIGN.get(memory.trust, Provenance.OWNER) >= least


def words_from(memory: Memory) -> str:
    """Return from whose words a memory comes that does not rest on ours or the owner's alone."""
    if memory.source.startswith(OWNER_SOURCE) and not memory.source.startswith(OWNER_SOURCE + READING_SOURCE):
        return f"from a talk with your owner that also held the words of a {memory.trust}"
    return f"from the words of a {memory.trust}"


def as_told(memory: Memory) -> Memory:
    """Return a memory without its recall counters, which no prompt shows."""
    return replace(memory, last_recalled_at=None, recall_count=0)


@dataclass(frozen=True, slots=True)
class MemoryRenderer:
    """Renders entries for a prompt. `timezone` is that of the dates; "" is the machine's."""

    skills: Skills
    framer: Framer
    timezone: str = ""

    def entry(self, memory: Memory) -> str:
        """Return one whole entry. A day that its subject names is not repeated."""
        day = f"{local(parse_iso(memory.updated_at), self.timezone):%Y-%m-%d}"
        when = "" if day in memory.subject else day
        return self._rendered(memory, "Entry", when=when, importance=memory.importance)

    def entry_of_day(self, memory: Memory) -> str:
        """Return one entry below the heading of its day, without a date."""
        return self._rendered(memory, "Day Entry")

    def _rendered(self, memory: Memory, section: str, **known: object) -> str:
        known |= {"id": memory.id, "kind": memory.kind}
        tags = ", ".join(memory.tags)
        if memory.trust in FOREIGN:
            text = f"{memory.subject}\n{memory.body}" + (f"\n({tags})" if tags else "")
            author = f"you, {words_from(memory)}"
            frame = self.framer.frame("reading", author=author, uri=memory.source, text=text)
            return self.skills.render(_SKILL, f"Foreign {section}", **known, frame=frame)
        subject, body = " ".join(memory.subject.split()), "\n  ".join(memory.body.strip().splitlines())
        return self.skills.render(_SKILL, section, **known, subject=subject, body=body, tags=tags)

    def entries(self, memories: Iterable[Memory]) -> str:
        """Return the entries, one after another."""
        return "\n".join(self.entry(memory) for memory in memories)

    def hidden(self) -> str:
        """Return the hint that fitting entries are hidden here because they rest on words of others."""
        return self.skills.render(_SKILL, "Hidden")

    def recalled(self, entries: str) -> str:
        """Return the entries as a part of a prompt."""
        return self.skills.render(_SKILL, "Recalled", entries=entries)


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of a recall: `text` for the prompt ("" for none), and whose words it brings in, if they are not ours.

    `memories` are all that fit, including those that the prompt shows elsewhere and `text` therefore leaves out.
    `uncounted` says why they were not counted as shown; "" if they were.
    """

    text: str = ""
    memories: tuple[Memory, ...] = ()
    provenance: Provenance | None = None
    uncounted: str = ""

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(memory.id for memory in self.memories)


class MemoryRecall:
    """Finds the entries that a turn is shown.

    The same entries give the same bytes, however they were found: oldest first, and each as it was rendered last,
    including the boundaries around others' words. Those were drawn after these words had been written.
    """

    def __init__(self, store: MemoryStore, clock: Clock, estimate: Callable[[str], int]) -> None:
        self._store = store
        self._clock = clock
        self._estimate = estimate
        self._last_told = LRUCache[Memory, str](_ENTRIES_KEPT)

    async def recall(
        self,
        text: str,
        memory_renderer: MemoryRenderer,
        *,
        public_only: bool,
        least: Provenance = Provenance.STRANGER,
        shown: Collection[int] = (),
        person: str = "",
    ) -> Recalled:
        """Return the best entries for `text` that fit, with the introduction, and raise their counters.

        Outside the owner's sessions only notes about `person` and about subjects of the text are returned.

        Args:
            text: the new message of the turn.
            memory_renderer: renders them, with the turn's own framer.
            public_only: True for every session that is not the owner's.
            least: leave out what rests on words less trusted than these, so that the turn keeps its provenance; in the
                owner's sessions a hint tells that there is some about a subject of the text.
            shown: the memories that the prompt holds already; they are recalled too, but not rendered again.
            person: the DID of the person that the turn is about; "" for nobody.

        """
        now = self._clock.now()
        found = await self._store.search(Query(text, limit=_SEARCHED, public_only=public_only), now)
        subjects = {one.id: " ".join((one.subject, *one.tags)) for one in found}
        hidden = not public_only and any(not trusted(one, least) and is_about(subjects[one.id], text) for one in found)
        if public_only:
            theirs = await self._store.of_person(person, PUBLIC_RECALL_ENTRIES, public_only=True) if person else []
            found = [*theirs, *(one for one in found if one not in theirs and is_about(subjects[one.id], text))]
        most = PUBLIC_RECALL_ENTRIES if public_only else RECALL_ENTRIES
        most_tokens = PUBLIC_RECALL_TOKENS if public_only else RECALL_TOKENS
        best: list[Memory] = []
        told: dict[Memory, str] = {}
        page = memory_renderer.recalled(_PLACE)
        hint = memory_renderer.hidden() if hidden else ""
        for memory in found:
            if not trusted(memory, least) or len(best) == most:
                continue
            if memory.id in shown:
                best.append(memory)
                continue
            more = told | {memory: self._entry(memory, memory_renderer)}
            if self._estimate(page.replace(_PLACE, _page(more))) <= most_tokens:
                best.append(memory)
                told = more
        if not best:
            return Recalled(hint)
        uncounted = ""
        try:
            await self._store.recalled([memory.id for memory in best], now)
        except Transient as error:
            uncounted = str(error)
        entries = page.replace(_PLACE, _page(told)) if told else ""
        return Recalled("\n".join(filter(None, (entries, hint))), tuple(best), words_of(told), uncounted)

    def _entry(self, memory: Memory, memory_renderer: MemoryRenderer) -> str:
        key = as_told(memory)
        if key not in self._last_told:
            self._last_told[key] = memory_renderer.entry(memory)
        return self._last_told[key]


def _page(told: Mapping[Memory, str]) -> str:
    """Return the rendered entries of these memories, oldest first."""
    return "\n".join(told[memory] for memory in sorted(told, key=lambda memory: (memory.updated_at, memory.id)))


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
