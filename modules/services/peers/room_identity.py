"""Who we tell a room that we are, when we tell it, and what may be believed of what others tell.

Others' words are untrusted: they are cleaned and cut before they come near a prompt.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from adapters.space.client import SpaceClient
from adapters.space.types import IdentitySummary
from common.constants import HOUR_MS
from common.redact import LEAK, Redactor
from common.text.markdown import split_at, without_headings
from common.text.untrusted import one_line
from modules.runtime.events import Event
from modules.runtime.home import Home, SoulDocument, read_self
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.policy import concerns_room
from modules.services.commitments.queue import CommitmentQueue

MOST_ITEMS = 5
_SECTION = 2
MOST_CHARS = 300

_NO_WORK = "No recent completed work"
_PLAIN_VOICE = "unique voice"
_VOICE_CHARS, _WORK_CHARS = 120, 100
_VALUE_CHARS = range(4, 40)
_ESSENCE_SENTENCES, _ESSENCE_LEAST = 3, 10
_REFLECTION_SENTENCES, _REFLECTION_LEAST = 2, 15
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,})\s*$")
_BULLET = re.compile(r"^\s*[-*]\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ABOUT_TOOLS = re.compile(r"\b(?:tools?|function calls?|api|invoke[sd]?|called)\b", re.IGNORECASE)
_TONE = re.compile(r"(?:[-*]\s+)?tone\s*:\s*(\S.*)", re.IGNORECASE)
_ESSENCE = "essence"
_NAMED_VALUE = re.compile(r"^[^\S\n]*[-*][^\S\n]+\*\*([^*\n]+?)[.:!,;]?\*\*", re.MULTILINE)
_EMPHASIS = re.compile(r"[*_`>]+")


def build_identity_summary(self_md: str, soul_md: str, recent_work: str) -> IdentitySummary:
    """The card that a room is shown; `recent_work` "" when there is none.

    Where SOUL.md has a section "Essence" that is its essence, and its list items that begin in bold type are its
    values; where it has none, both are taken from all of its words.
    """
    sections = _sections(self_md)
    essence = _prose("\n".join(_sections(soul_md).get(_ESSENCE, ()))) or _prose(soul_md)
    named = [value.strip() for value in _NAMED_VALUE.findall(soul_md)]
    return IdentitySummary(
        core_values=tuple(piece for piece in named or _pieces(_prose(soul_md), r"[.,;]") if len(piece) in _VALUE_CHARS)[
            :MOST_ITEMS
        ],
        current_interests=_items(
            sections, "current interests", "current interest", "what i want to explore", "current focus"
        ),
        voice=_voice(sections),
        expertise=_items(sections, "what i'm learning", "recent learnings"),
        recent_work=one_line(recent_work, _WORK_CHARS) or _NO_WORK,
        soul_essence=_essence(essence),
    )


def sanitized(summary: IdentitySummary) -> IdentitySummary:
    """A peer's card as it may stand in a prompt: nothing hidden, at most 5 items, 300 characters a field."""
    return IdentitySummary(
        core_values=_few(summary.core_values),
        current_interests=_few(summary.current_interests),
        voice=one_line(summary.voice, MOST_CHARS),
        expertise=_few(summary.expertise),
        recent_work=one_line(summary.recent_work, MOST_CHARS),
        soul_essence=one_line(summary.soul_essence, MOST_CHARS),
    )


def reflection_summary(text: str) -> str:
    """The sentences of a reflection that a room may hear: the first two of substance that are not about tools."""
    told = [
        sentence
        for sentence in _SENTENCE_END.split(_prose(text))
        if len(sentence) > _REFLECTION_LEAST and not _ABOUT_TOOLS.search(sentence)
    ]
    return " ".join(told[:_REFLECTION_SENTENCES])


def _few(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(short for item in items[:MOST_ITEMS] if (short := one_line(item, MOST_CHARS)))


def _sections(markdown: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for heading, lines in split_at(
        markdown.replace("\u2019", "'").splitlines(), lambda heading: heading.level == _SECTION
    ):
        if heading:
            said = (line.strip() for line in lines if line.strip() and not _RULE.match(line))
            found.setdefault(heading.text.casefold(), []).extend(said)
    return found


def _items(sections: dict[str, list[str]], *names: str) -> tuple[str, ...]:
    for name in names:
        lines = [_BULLET.sub("", line) for line in sections.get(name, ()) if not line.startswith("|")]
        if lines:
            return tuple(lines[:MOST_ITEMS])
    return ()


def _voice(sections: dict[str, list[str]]) -> str:
    """The line that names the tone (`Tone: …`), else the first one."""
    lines = [_EMPHASIS.sub("", line) for line in sections.get("voice", [])]
    if tone := next((found[1] for line in lines if (found := _TONE.match(line))), ""):
        return tone[:_VOICE_CHARS]
    return _BULLET.sub("", lines[0])[:_VOICE_CHARS] if lines else _PLAIN_VOICE


def _prose(markdown: str) -> str:
    """Without headings, rules and emphasis, on one line."""
    kept = (line for line in without_headings(markdown.splitlines()) if not _RULE.match(line))
    return " ".join(_EMPHASIS.sub("", " ".join(_BULLET.sub("", line) for line in kept)).split())


def _pieces(text: str, separators: str) -> list[str]:
    return [stripped for piece in re.split(separators, text) if (stripped := piece.strip())]


def _essence(soul: str) -> str:
    sentences = [part.rstrip(".!? ") for part in _SENTENCE_END.split(soul) if len(part) > _ESSENCE_LEAST]
    return ". ".join(sentences[:_ESSENCE_SENTENCES]) + "." if sentences else ""


@dataclass(frozen=True, slots=True)
class RoomJoined(Event):
    """We came into a room; it listens already."""


@dataclass(slots=True)
class IdentityPublisher:
    """Presents the SOUL of `home`.

    `mute_reason` returns why nothing may be told just now, "" if something may; `mute_unasked` the same for what does
    not answer the host.

    A room that was only found is told of no work but what was promised in such a room.
    """

    client: SpaceClient
    home: Home
    soul: SoulDocument
    queue: CommitmentQueue
    redactor: Redactor
    journal: Journal
    is_trusted_room: Callable[[], bool]
    mute_reason: Callable[[], str] = lambda: ""
    mute_unasked: Callable[[], str] = lambda: ""
    _owed: bool = field(default=False, init=False)

    async def introduce(self) -> None:
        """Tell who we are; where nobody listens, nothing is told, and while we must be silent, later."""
        self._owed = bool(self.mute_reason())
        if self._owed:
            return
        is_trusted = self.is_trusted_room()
        recent = self.queue.get_recently_completed_commitments(HOUR_MS)
        done = [one for one in recent if concerns_room(one, is_trusted=is_trusted)]
        work = f"{done[0].type}: {done[0].description}" if done else ""
        self_md = await asyncio.to_thread(read_self, self.home)
        summary = build_identity_summary(self_md, self.soul.text, work)
        if self.redactor.finds_in(list(asdict(summary).values())):
            await self.journal.record(
                Entry("error", "space-participation", f"[space] Not introduced: {LEAK}", line="error")
            )
            return
        await self.client.send_identity(summary)

    async def catch_up(self) -> None:
        """Tell it now, if we came in while we had to be silent."""
        if self._owed:
            await self.introduce()

    async def reflected(self, text: str) -> None:
        """SELF.md changed by a reflection: tell what was learned, if that can be told."""
        if not self.client.is_active:
            return
        summary = reflection_summary(text)
        if summary and not self.mute_unasked() and not self.redactor.finds_in(summary):
            await self.client.send_reflection(summary)
