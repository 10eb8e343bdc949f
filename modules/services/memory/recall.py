"""What of memory a turn is shown: whole entries that fit its message, in their words, and counted as shown.

Outside the owner's own sessions only what may be told to others is looked at. Notes that rest on other people's words
are framed as such, and the turn learns whose words came in. The counters are committed before the text is handed out;
a store that only reads for now costs the counters, and not the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from cachetools import LRUCache

from common.clock import Clock, local, parse_iso
from common.errors import Transient
from common.provenance import Provenance, Trust
from modules.services.memory.admission import OWNER_SOURCE, READING_SOURCE, Memory, Query
from modules.services.memory.rows import MemoryStore, is_about
from modules.services.skills.skills import Framer, Skills

RECALL_ENTRIES, PUBLIC_RECALL_ENTRIES = 8, 4
RECALL_TOKENS, PUBLIC_RECALL_TOKENS = 2000, 800
"""At most so much comes to mind in a turn of the owner's, and in any other."""

_SEARCHED = 20
_ENTRIES_KEPT = 200
_SKILL = "memory"
_PLACE = "\0"
FOREIGN: dict[Trust, Provenance] = {"stranger": Provenance.STRANGER, "peer": Provenance.PEER}
"""Whose words a memory rests on that rests on those of others."""


def words_of(memories: Iterable[Memory]) -> Provenance | None:
    """Whose words these hold, the least trusted; None when they are all our own or the owner's."""
    return min((FOREIGN[memory.trust] for memory in memories if memory.trust in FOREIGN), default=None)


def trusted(memory: Memory, least: Provenance) -> bool:
    """Whether it rests on no words less trusted than `least`; our own are trusted like the owner's."""
    return FOREIGN.get(memory.trust, Provenance.OWNER) >= least


def words_from(memory: Memory) -> str:
    """Return from whose words a memory is that does not rest on ours or the owner's alone."""
    if memory.source.startswith(OWNER_SOURCE) and not memory.source.startswith(OWNER_SOURCE + READING_SOURCE):
        return f"from a talk with your owner that also held the words of a {memory.trust}"
    return f"from the words of a {memory.trust}"


def as_told(memory: Memory) -> Memory:
    """Return a memory without what no prompt tells: whether it came to mind."""
    return replace(memory, last_recalled_at=None, recall_count=0)


@dataclass(frozen=True, slots=True)
class MemoryRenderer:
    """Entries in the words of a prompt. `timezone` is that of the days named; "" is the machine's own."""

    skills: Skills
    framer: Framer
    timezone: str = ""

    def entry(self, memory: Memory) -> str:
        """Return one entry, whole. A day that its subject names is not told again."""
        day = f"{local(parse_iso(memory.updated_at), self.timezone):%Y-%m-%d}"
        when = "" if day in memory.subject else day
        return self._rendered(memory, "Entry", when=when, importance=memory.importance)

    def entry_of_day(self, memory: Memory) -> str:
        """Return one entry below the heading of its day, which tells when it was."""
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
        """One after another."""
        return "\n".join(self.entry(memory) for memory in memories)

    def hidden(self) -> str:
        """Return that something fits and is not told here, because it rests on words of others."""
        return self.skills.render(_SKILL, "Hidden")

    def recalled(self, entries: str) -> str:
        """Entries as a part of a prompt."""
        return self.skills.render(_SKILL, "Recalled", entries=entries)


@dataclass(frozen=True, slots=True)
class Recalled:
    """What came to mind: `text` for the prompt ("" for nothing), and whose words it brings in, if they are not ours.

    `memories` are all that fit, also those that the prompt shows elsewhere and `text` therefore leaves out.
    `uncounted` says why it was not counted as shown; "" when it was.
    """

    text: str = ""
    memories: tuple[Memory, ...] = ()
    provenance: Provenance | None = None
    uncounted: str = ""

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(memory.id for memory in self.memories)


class MemoryRecall:
    """Finds what a turn should be reminded of.

    The same entries are told in the same bytes, however they were found: the oldest first, and each as it was told
    last, the marks around others' words included. These were drawn when those words were written already.
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
        counted: bool = True,
        person: str = "",
    ) -> Recalled:
        """The best entries for `text` that fit, the introduction included; their counters are raised if `counted`.

        Outside the owner's sessions these are notes about `person` and about what the text speaks of, and no others.

        Args:
            text: the new message of the turn.
            memory_renderer: the words, with the turn's own framer.
            public_only: True for every session that is not the owner's.
            least: leave out what rests on words less trusted than these, so that the turn does not sink; in the owner's
                sessions it is told that there is some about what the text speaks of.
            shown: the memories that the prompt holds already; they come to mind, too, but are not told again.
            counted: False for a look that no model sees.
            person: the DID of whom the turn is about; "" for nobody.

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
        if counted:
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
    """Return the entries of these memories, the oldest first."""
    return "\n".join(told[memory] for memory in sorted(told, key=lambda memory: (memory.updated_at, memory.id)))
