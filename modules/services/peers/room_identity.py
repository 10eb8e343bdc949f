"""Presents the SOUL to a room, and remembers the members of earlier rooms.

Text by others is untrusted: it is cleaned and cut before it reaches a prompt. The members that the SOUL has talked with
are kept across versions in `.memory/peer_relationships.json`.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from adapters.space.client import SpaceClient
from adapters.space.types import IdentitySummary
from common.clock import Clock, iso, parse_iso_or_none
from common.constants import HOUR_MS, SPACE_IDLE_RESET_MS
from common.files import Json, load_state, save_state
from common.redact import LEAK, Redactor
from common.text.closings import asks, content_words
from common.text.graphemes import leading_sentences, truncate_graphemes
from common.text.markdown import joined_lines, split_at, without_headings
from common.text.strings import straighten
from common.text.untrusted import one_line
from modules.runtime.events import Event
from modules.runtime.home import Home, SoulDocument, read_self
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.policy import concerns_room
from modules.services.commitments.queue import CommitmentQueue
from modules.services.skills.skills import Skills, interpolate

ROOM_MEMBERS_FILE = "peer_relationships.json"

_KEPT_EXCHANGES = 5
_KEPT_STRENGTHS = 3
_KEPT_PEERS = 500
_MAX_CHARS = 200
_REASON_WORDS = 4
_AGREES = re.compile(
    r"""\W{0,3}(?:(?:yes|yeah|yep|oh|ah|and|i)\W{1,3}){0,3}(?:
        agreed? | exactly | absolutely | definitely | precisely | indeed | likewise | same\ here | well\ said | spot\ on
      | good\ (?:point|catch|idea) | fair\ point | (?:that\ )?makes\ sense | couldn't\ agree\ more | true | right | \+1
      | (?:you're|you\ are|that's|that\ is)\ right
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
_DISAGREES = re.compile(
    r"""\W{0,3}(?:
        i\ (?:(?:strongly|respectfully|rather|still)\ )?(?:disagree|doubt|beg\ to\ differ)\b
      | (?:i'm|i\ am)\ not\ (?:so\ )?sure | i\ (?:don't|do\ not)\ (?:think|agree|believe)
      | i\ see\ (?:it|that)\ differently
      | not\ (?:so|quite|really|necessarily)\b | no[,.!;:] | nope\b | on\ the\ contrary | wrong\b
      | actually,?\ (?:no|it|that)\b | (?:yes|sure|true|agreed|right|fair)\W{1,3}but\b | but\b | however\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_LIMITS = re.compile(r"\b(?:but|however|though|although|except|unless)\b", re.IGNORECASE)
_KEY = "relationships"
_SKILL = "space-participation"


Stance = Literal["agrees", "disagrees"]


class PeerRelationship(BaseModel):
    """The memory of one peer; `last_interaction` is ISO-8601 UTC, "" before the first interaction."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="allow", defer_build=True
    )

    peer_name: str
    space_conversations: int = 0
    issues_co_created: int = 0
    prs_reviewed: int = 0
    productive_disagreements: int = 0
    agreements: int = 0
    last_interaction: str = ""
    memorable_exchanges: tuple[str, ...] = ()
    complementary_strengths: tuple[str, ...] = ()


class PeerRelationships:
    """The store of relationships. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock) -> None:
        loaded = load_state(path, {})
        self._path = path
        self._clock = clock
        self.notice = loaded.notice
        self._rest = loaded.data
        self._unread: Json = {}
        self._peers: dict[str, PeerRelationship] = {}
        entries = self._rest.pop(_KEY, {})
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            try:
                self._peers[name] = PeerRelationship.model_validate(entry)
            except ValidationError:
                self._unread[name] = entry
        if self._unread:
            self.notice = f"{path.name}: {len(self._unread)} entries cannot be read and stay as they are"

    def get(self, name: str) -> PeerRelationship | None:
        """Return the memory of `name`, in any case, or None."""
        return self._peers.get(name.lower())

    def record_space_interaction(self, names: Iterable[str]) -> None:
        """Record that these members spoke in our room. It is one conversation until there is a long pause."""
        now = self._clock.now()
        for name in {name.lower(): name for name in names}.values():
            known = self._known(name)
            more = 1 if _is_over(known.last_interaction, now) else 0
            self._put(known, space_conversations=known.space_conversations + more, last_interaction=iso(now))
        self._save()

    def record_co_creation(self, name: str) -> None:
        """Record that we worked on an issue together."""
        known = self._known(name)
        self._put(known, issues_co_created=known.issues_co_created + 1)
        self._save()

    def record_pr_review(self, name: str) -> None:
        """Record that one of us reviewed the other's pull request."""
        known = self._known(name)
        self._put(known, prs_reviewed=known.prs_reviewed + 1)
        self._save()

    def record_memorable_exchange(self, name: str, text: str) -> None:
        """Store a memorable exchange; the newest five are kept."""
        known = self._known(name)
        exchanges = (*known.memorable_exchanges, one_line(text, _MAX_CHARS))[-_KEPT_EXCHANGES:]
        self._put(known, memorable_exchanges=exchanges)
        self._save()

    def record_complementary_strengths(self, name: str, texts: Iterable[str]) -> None:
        """Store what they are good at: the first three of these, and earlier ones as far as there is room."""
        known = self._known(name)
        told = [one_line(text, _MAX_CHARS) for text in texts]
        kept = tuple(dict.fromkeys([*filter(None, told), *known.complementary_strengths]))[:_KEPT_STRENGTHS]
        if kept != known.complementary_strengths:
            self._put(known, complementary_strengths=kept)
            self._save()

    def get_peer_relationship_context(self, name: str, skills: Skills) -> str | None:
        """Return the text for a prompt about us and this member; None if we never talked."""
        known = self.get(name)
        if known is None or not known.space_conversations:
            return None
        numbers = {
            "Conversations": known.space_conversations,
            "Issues": known.issues_co_created,
            "Reviews": known.prs_reviewed,
            "Exchange": known.memorable_exchanges[-1] if known.memorable_exchanges else "",
        }
        words = skills.subsections(_SKILL, "Relationship")
        return " · ".join(interpolate(words[part], {"value": value}) for part, value in numbers.items() if value)

    def _known(self, name: str) -> PeerRelationship:
        return self.get(name) or PeerRelationship(peer_name=name)

    def _put(self, known: PeerRelationship, **changes: object) -> None:
        self._peers[known.peer_name.lower()] = known.model_copy(update=changes)

    def _forget_passers_by(self) -> None:
        """Limit the number of peers; those that we know best and saw last stay."""
        if len(self._peers) > _KEPT_PEERS:
            ranked = sorted(self._peers.items(), key=lambda item: _closeness(item[1]))
            for name, _ in ranked[: len(self._peers) - _KEPT_PEERS]:
                del self._peers[name]

    def _save(self) -> None:
        self._forget_passers_by()
        written = {name: peer.model_dump(mode="json", by_alias=True) for name, peer in self._peers.items()}
        save_state(self._path, {_KEY: {**self._unread, **written}, **self._rest})


def stance_of(answer: str) -> Stance | None:
    """Return whether an answer says that it agrees, or that it disagrees and why; None for anything else."""
    text = straighten(answer)
    if asks(text):
        return None
    if _DISAGREES.match(text):
        return "disagrees" if len(content_words(text)) >= _REASON_WORDS else None
    return "agrees" if _AGREES.match(text) and not _LIMITS.search(text) else None


def _is_over(last: str, now: datetime) -> bool:
    before = parse_iso_or_none(last)
    return before is None or abs(now - before) > timedelta(milliseconds=SPACE_IDLE_RESET_MS)


def _closeness(peer: PeerRelationship) -> tuple[int, str]:
    return peer.issues_co_created + peer.prs_reviewed + peer.space_conversations, peer.last_interaction


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
_DATED = re.compile(r"^\s*(?:[-*]\s+)?(?:\**\d{4}-\d{2}-\d{2}[\s:,.*\u2013\u2014-]*)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ABOUT_TOOLS = re.compile(r"\b(?:tools?|function calls?|api|invoke[sd]?|called)\b", re.IGNORECASE)
_TONE = re.compile(r"(?:[-*]\s+)?tone\s*:\s*(\S.*)", re.IGNORECASE)
_ESSENCE = "essence"
_NAMED_VALUE = re.compile(r"^[^\S\n]*[-*][^\S\n]+\*\*([^*\n]+?)[.:!,;]?\*\*", re.MULTILINE)
_EMPHASIS = re.compile(r"[*_`>]+")


def build_identity_summary(self_md: str, soul_md: str, recent_work: str) -> IdentitySummary:
    """Return the card for a room; `recent_work` is "" if there is none.

    The section "Essence" of SOUL.md is the essence, and its list items that begin in bold type are the values; what is
    missing is taken from the whole text.
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
    """Return a peer's card for a prompt: nothing hidden, at most 5 items, 300 characters a field."""
    return IdentitySummary(
        core_values=_few(summary.core_values),
        current_interests=_few(summary.current_interests),
        voice=one_line(summary.voice, MOST_CHARS),
        expertise=_few(summary.expertise),
        recent_work=one_line(summary.recent_work, MOST_CHARS),
        soul_essence=one_line(summary.soul_essence, MOST_CHARS),
    )


def reflection_summary(text: str) -> str:
    """Return the part of a reflection for a room: its first two sentences of substance that are not about tools."""
    told = [
        sentence
        for sentence in _SENTENCE_END.split(_prose(text))
        if len(sentence) > _REFLECTION_LEAST and not _ABOUT_TOOLS.search(sentence)
    ]
    return " ".join(told[:_REFLECTION_SENTENCES])


def _few(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(short for item in items[:MOST_ITEMS] if (short := one_line(_DATED.sub("", item), MOST_CHARS)))


def _sections(markdown: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for heading, lines in split_at(
        markdown.replace("\u2019", "'").splitlines(), lambda heading: heading.level == _SECTION
    ):
        if heading:
            said = (line.strip() for line in joined_lines(lines) if line.strip() and not _RULE.match(line))
            found.setdefault(heading.text.casefold(), []).extend(said)
    return found


def _items(sections: dict[str, list[str]], *names: str) -> tuple[str, ...]:
    for name in names:
        lines = [_DATED.sub("", line) for line in sections.get(name, ()) if not line.startswith("|")]
        if lines:
            return tuple(lines[:MOST_ITEMS])
    return ()


def _voice(sections: dict[str, list[str]]) -> str:
    """Return the line that names the tone (`Tone: …`), or else the first one."""
    lines = [_EMPHASIS.sub("", line) for line in sections.get("voice", [])]
    if tone := next((found[1] for line in lines if (found := _TONE.match(line))), ""):
        return _whole_sentences(tone)
    return _whole_sentences(_BULLET.sub("", lines[0])) if lines else _PLAIN_VOICE


def _whole_sentences(text: str) -> str:
    return leading_sentences(text, _VOICE_CHARS) or truncate_graphemes(text, _VOICE_CHARS)


def _prose(markdown: str) -> str:
    """Return the text without headings, rules and emphasis, on one line."""
    kept = (line for line in without_headings(markdown.splitlines()) if not _RULE.match(line))
    return " ".join(_EMPHASIS.sub("", " ".join(_BULLET.sub("", line) for line in kept)).split())


def _pieces(text: str, separators: str) -> list[str]:
    return [stripped for piece in re.split(separators, text) if (stripped := piece.strip())]


def _essence(soul: str) -> str:
    sentences = [part.rstrip(".!? ") for part in _SENTENCE_END.split(soul) if len(part) > _ESSENCE_LEAST]
    return ". ".join(sentences[:_ESSENCE_SENTENCES]) + "." if sentences else ""


@dataclass(frozen=True, slots=True)
class RoomJoined(Event):
    """We joined a room, which can receive messages now."""


@dataclass(slots=True)
class IdentityPublisher:
    """Presents the SOUL of `home`.

    `mute_reason` returns why nothing may be sent now, "" if something may; `mute_unasked` does the same for messages
    that do not answer the host.

    A room that was only found is told only of work that was committed to in such a room.
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
        """Send who we are: not at all without a connection, and later if we must be silent now."""
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
            await self.journal.record(Entry("error", "space-participation", f"[space] Not introduced: {LEAK}", "error"))
            return
        await self.client.send_identity(summary)

    async def catch_up(self) -> None:
        """Send who we are now if that was put off."""
        if self._owed:
            await self.introduce()

    async def reflected(self, text: str) -> None:
        """Send a summary of a reflection that changed SELF.md, if that may be sent."""
        if not self.client.is_active:
            return
        summary = reflection_summary(text)
        if summary and not self.mute_unasked() and not self.redactor.finds_in(summary):
            await self.client.send_reflection(summary)
