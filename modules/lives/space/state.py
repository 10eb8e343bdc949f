"""What a SOUL keeps in mind of a room while it lives: who said what, what was asked, and what was answered.

Nothing here survives a crash, and nothing needs to: the room replays its record to whoever joins, promises lie in the
queue, relationships in their file.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from adapters.space.types import Said, is_host
from common.clock import parse_iso_or_none
from common.constants import (
    SPACE_HISTORY_KEPT,
    SPACE_IDLE_RESET_MS,
    SPACE_OPENER_SILENCE_MS,
    SPACE_READ_CHARS,
    SPACE_TALK_ENDED_MS,
)
from common.text.closings import ends_talk
from common.text.host_intent import classify_host_intent_structural
from modules.lives.space.request_parser import point_summary
from modules.lives.space.types import HistoryEntry, HostRequest, Intent, PeerEvent

POINTS_KEPT = 15
PEER_EVENTS_KEPT = 200

_SAME_OWN_WORDS_S = 120
_LONG_SILENCE = timedelta(milliseconds=SPACE_OPENER_SILENCE_MS)
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_CLOCKS_APART = timedelta(minutes=10)


def moment(timestamp: str, now: datetime) -> datetime:
    """When something happened, by the room's word as far as it can be true; `now` where it cannot.

    A room may write any date. One far ahead would make all that comes later look old, and one at the ends of the
    calendar exists in no other time zone.
    """
    at = parse_iso_or_none(timestamp)
    return now if at is None or at > now + _CLOCKS_APART else max(at, _EARLIEST)


@dataclass(slots=True)
class Conversation:
    """One room, as `me` lives it. Times are aware UTC.

    Attributes:
        me: our own name there; another where somebody else came in under it.
        history: what was said, oldest first, the newest 200.
        repo: the repository that the talk is about.
        pinned: what is worth keeping beyond a pause.
        points: what each speaker's latest messages were about, in a few words.
        request: the host's wish, and what came of it.
        settled: the last wish that was met, for whoever asks after it when the talk has paused.
        last_activity_at: when somebody last spoke.
        joined_at: when we came in.
        cooldown_until: until then we only listen.
        spoken: how many messages of ours were said in this life.
        heard_at: when anybody last spoke, the replayed record included; a pause does not end it.
        ended_at: when the host ended the talk; None once it has spoken again.
        opened_at: when an agent last broke a long silence, or we tried to.
        peer_events: what peers did, as far as requests are concerned.
        issues: links to issues that peers made, and who made each.
        asked_for_repo: the request for which the host was asked for a repository.

    """

    me: str
    history: deque[HistoryEntry] = field(default_factory=lambda: deque(maxlen=SPACE_HISTORY_KEPT))
    repo: str | None = None
    pinned: tuple[str, ...] = ()
    points: deque[str] = field(default_factory=lambda: deque(maxlen=POINTS_KEPT))
    request: HostRequest = field(default_factory=HostRequest)
    settled: HostRequest = field(default_factory=HostRequest)
    last_activity_at: datetime | None = None
    joined_at: datetime | None = None
    cooldown_until: datetime | None = None
    spoken: int = 0
    heard_at: datetime | None = None
    opened_at: datetime | None = None
    ended_at: datetime | None = None
    peer_events: deque[PeerEvent] = field(default_factory=lambda: deque(maxlen=PEER_EVENTS_KEPT))
    issues: dict[str, str] = field(default_factory=dict)
    asked_for_repo: str = ""
    _count: int = 0

    def take_in(self, said: Sequence[Said], now: datetime) -> list[HistoryEntry]:
        """Add what is new of `said`, and return it, oldest first.

        What the room replays is known by time, author and words; the same words of ours within two minutes are the
        room's echo of what we already noted. Replayed words are no sign of life.
        """
        known = Counter((entry.at, entry.name, entry.content) for entry in self.history)
        new: list[HistoryEntry] = []
        for one in said:
            at = moment(one.timestamp, now)
            key = (at, one.name, _read(one.content))
            if known[key] or (one.name == self.me and self._noted(_read(one.content), at)):
                continue
            known[key] += 1
            new.append(self._entry(one, at))
        if any(entry.replayed for entry in new):
            self.history = deque(sorted([*self.history, *new], key=lambda entry: entry.at), maxlen=SPACE_HISTORY_KEPT)
        else:
            self.history.extend(new)
        self._note(new, now)
        return new

    def spoke(self, content: str, now: datetime) -> HistoryEntry:
        """Add words of our own that were just said."""
        self._count += 1
        entry = HistoryEntry(id=f"m{self._count}", name=self.me, content=_read(content), at=now, is_me=True)
        self.history.append(entry)
        self._note([entry], now)
        return entry

    def take_back(self, entry: HistoryEntry) -> None:
        """Words of ours that the room never heard."""
        if entry in self.history:
            self.history.remove(entry)

    def note_ending(self) -> None:
        """Take in whether the host's newest words end the talk. A pause, which forgets words, does not undo it."""
        if (latest := self.latest_host()) is not None:
            asks = "action_request" in (latest.intent, classify_host_intent_structural(latest.content).intent)
            over = not asks and ends_talk(latest.content)
            self.ended_at = latest.at if over else None

    def is_ended(self, now: datetime) -> bool:
        """Whether the host has ended the talk, and not long ago."""
        return self.ended_at is not None and now - self.ended_at < timedelta(milliseconds=SPACE_TALK_ENDED_MS)

    def is_idle(self, now: datetime) -> bool:
        """Whether nobody has spoken for so long that what comes next is another conversation."""
        last = self.last_activity_at
        return last is not None and now - last > timedelta(milliseconds=SPACE_IDLE_RESET_MS)

    def reset(self) -> None:
        """Begin afresh; only what is pinned stays. Ask `is_idle` before new words are added."""
        self.pinned = (f"Repo: {self.repo}",) if self.repo else ()
        self.settled = self.request if self.request.content else self.settled
        self.history.clear()
        self.points.clear()
        self.peer_events.clear()
        self.issues.clear()
        self.repo = None
        self.request = HostRequest()
        self.asked_for_repo = ""
        self.last_activity_at = None

    def leave(self, now: datetime) -> None:
        """Another room, or the same one anew: nothing of the talk before belongs to it."""
        self.reset()
        self.pinned, self.settled = (), HostRequest()
        self.joined_at, self.cooldown_until = now, None
        self.heard_at = self.opened_at = self.ended_at = None

    def classified(self, intents: dict[str, Intent]) -> None:
        """Note what the host's messages mean, by their ids."""
        for at, entry in enumerate(self.history):
            if (intent := intents.get(entry.id)) is not None and intent != entry.intent:
                self.history[at] = replace(entry, intent=intent)

    @property
    def host_messages(self) -> list[HistoryEntry]:
        return [entry for entry in self.history if entry.is_host]

    @property
    def own_messages(self) -> list[HistoryEntry]:
        return [entry for entry in self.history if entry.is_me]

    @property
    def agent_messages(self) -> list[HistoryEntry]:
        """Of peers and of ourselves."""
        return [entry for entry in self.history if not entry.is_host]

    def latest_host(self, *, intent: Intent | None = None) -> HistoryEntry | None:
        """The host's newest message, or the newest that meant `intent`."""
        return next(
            (entry for entry in reversed(self.history) if entry.is_host and intent in (None, entry.intent)), None
        )

    def _entry(self, said: Said, at: datetime) -> HistoryEntry:
        self._count += 1
        return HistoryEntry(
            id=f"m{self._count}",
            name=said.name,
            content=_read(said.content),
            at=at,
            is_host=is_host(said.name, said.id),
            is_me=said.name == self.me,
            replayed=said.replayed,
            addressed=said.addressed,
        )

    def _noted(self, content: str, at: datetime) -> bool:
        return any(
            entry.is_me and entry.content == content and abs((entry.at - at).total_seconds()) < _SAME_OWN_WORDS_S
            for entry in self.history
        )

    def _note(self, new: Iterable[HistoryEntry], now: datetime) -> None:
        for entry in new:
            if not entry.is_host:
                self.points.append(point_summary(entry.name, entry.content))
                if self.heard_at is None or entry.at - self.heard_at >= _LONG_SILENCE:
                    self.opened_at = entry.at
            self.heard_at = max(entry.at, self.heard_at or entry.at)
            if not entry.replayed:
                self.last_activity_at = now


def _read(content: str) -> str:
    """As much of a message as is read; an ellipsis tells that there was more."""
    return content if len(content) <= SPACE_READ_CHARS else f"{content[: SPACE_READ_CHARS - 1]}…"
