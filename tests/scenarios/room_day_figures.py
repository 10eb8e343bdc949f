"""Figures of a day in a room: who spoke, who repeated what, the outcome of requests, the cost. Pure functions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from itertools import pairwise

from adapters.space.types import HOST, Said
from common.clock import parse_iso
from common.text.echo import find_semantic_echo_ensemble
from common.text.phrases import check_empty_promise, has_list
from modules.lives.space.host_request import is_done_chat
from modules.lives.space.request_parser import conversation_thread_uri
from modules.services.commitments.naming import QueuedCommitment
from tests.scenarios.room_day_clock import MORNING
from tests.scenarios.room_day_course import Record, at
from tests.scenarios.room_day_people import PEOPLE
from tests.scenarios.room_day_script import REQUESTS, Line
from town.mind.words import load_bank

NAMES = frozenset(person.name for person in PEOPLE)
THIRDS = (("07:00", "12:20"), ("12:20", "17:40"), ("17:40", "23:00"))

_PAUSE = timedelta(minutes=5)
_SILENCE = timedelta(minutes=10)
_MINUTE = timedelta(minutes=1)
_ON_THE_WAY = timedelta(milliseconds=50)
_NEAR_VERBATIM = 0.9
_PARTNERS, _POOL = 10, 20
_IN_HAND: tuple[str, ...] = tuple(load_bank().room["queued"])


@dataclass(frozen=True, slots=True)
class Echo:
    """A message that repeats an earlier one; `score` is the score of the echo ensemble."""

    at: str
    name: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one request: the commitments made for it, and the messages that report it."""

    request: Line
    queued_commitments: tuple[QueuedCommitment, ...]
    makers: tuple[str, ...]
    done: tuple[str, ...]


class Day:
    """Computes figures from a record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.said = sorted((one for one in record.events if isinstance(one, Said)), key=lambda one: one.timestamp)
        self.by_agents = [one for one in self.said if not one.by_host]
        spoken = [
            (name, entry.entry.data)
            for name, figures in record.souls.items()
            for entry in figures.decisions
            if entry.entry.data.get("act") == "spoke"
        ]
        self._promising = {(name, data["message"]) for name, data in spoken if data.get("commitments")}

    def conversations(self) -> list[list[Said]]:
        """Return the messages, split where a pause is so long that agents start a new conversation."""
        talks: list[list[Said]] = []
        last: datetime | None = None
        for one in self.said:
            moment = parse_iso(one.timestamp)
            if last is None or moment - last > _PAUSE:
                talks.append([])
            talks[-1].append(one)
            last = moment
        return talks

    def is_talk(self, said: Said) -> bool:
        """Return whether an agent's message is ordinary talk: no announcement and no commitment."""
        return not (said.by_host or is_done_chat(said.content) or (said.name, said.content) in self._promising)

    def per_third(self) -> dict[str, tuple[int, ...]]:
        """Return how often each agent spoke in each third of the waking day."""
        bounds = [tuple(MORNING + timedelta(seconds=at(clock)) for clock in third) for third in THIRDS]
        counts = Counter(
            (one.name, number)
            for one in self.by_agents
            for number, (begins, ends) in enumerate(bounds)
            if begins <= parse_iso(one.timestamp) < ends
        )
        return {name: tuple(counts[name, number] for number in range(len(bounds))) for name in sorted(NAMES)}

    def echoes(self) -> list[list[Echo | None]]:
        """Return what each message of the agents repeats, by conversation, compared as the product itself compares.

        Messages that crossed on their way are not compared: neither speaker could know of the other.
        """
        return [list(self._echoes(talk)) for talk in self.conversations()]

    def _echoes(self, talk: Sequence[Said]) -> Iterator[Echo | None]:
        for number, one in enumerate(talk):
            if not self.is_talk(one):
                continue
            before = [other for other in talk[max(0, number - _POOL) : number] if not other.by_host]
            pool = [other.content for other in before if not _crossed(other, one)]
            found = find_semantic_echo_ensemble(one.content, pool[-_PARTNERS:], pool, names=NAMES)
            yield Echo(one.timestamp[11:19], one.name, one.content, found.score) if pool and found.is_echo else None

    def longest_chain(self) -> int:
        """Return the largest number of echoes in a row."""
        longest = 0
        for talk in self.echoes():
            run = 0
            for echo in talk:
                run = run + 1 if echo else 0
                longest = max(longest, run)
        return longest

    def repeats(self) -> list[tuple[Said, Said]]:
        """Return pairs of nearly identical messages within a conversation that did not cross on their way."""
        found = []
        for talk in self.conversations():
            words = [one for one in talk if self.is_talk(one)]
            for number, one in enumerate(words):
                before = (other for other in words[:number] if not _crossed(other, one))
                found += [(other, one) for other in before if _alike(_bare(other), _bare(one))]
        return found

    def since_host(self) -> list[int]:
        """Return the number of agent messages after each host message and after each start of a conversation."""
        counts = [0]
        for talk in self.conversations():
            counts.append(0)
            for one in talk:
                if one.by_host:
                    counts.append(0)
                elif self.is_talk(one):
                    counts[-1] += 1
        return counts

    def openers(self) -> list[Said]:
        """Return agents' messages that broke a long silence."""
        opened = [
            after
            for before, after in pairwise(self.said)
            if self.is_talk(after) and parse_iso(after.timestamp) - parse_iso(before.timestamp) >= _SILENCE
        ]
        return [*self.said[:1], *opened] if self.said and not self.said[0].by_host else opened

    def between_openers(self) -> list[timedelta]:
        moments = [parse_iso(one.timestamp) for one in self.openers()]
        return [after - before for before, after in pairwise(moments)]

    def outcomes(self) -> list[Outcome]:
        """Return the outcome of each request of the host."""
        return [self._outcome(line) for line in self.record.lines if line.kind in REQUESTS]

    def _outcome(self, request: Line) -> Outcome:
        thread = conversation_thread_uri(HOST, request.text)
        made = [
            (name, commitment)
            for name, figures in self.record.souls.items()
            for commitment in figures.queued_commitments
            if commitment.source_thread_uri == thread
        ]
        told = {f"{commitment.id}": commitment for _, commitment in made}
        links = [link for commitment in told.values() for link in _links(commitment)]
        done = [
            one.content
            for one in self.by_agents
            if is_done_chat(one.content) and any(one.content.endswith(link) for link in links)
        ]
        return Outcome(
            request, tuple(commitment for _, commitment in made), tuple(name for name, _ in made), tuple(done)
        )

    def answers_to(self, follow_up: Line) -> list[str]:
        """Return what an agent said of a request within a minute of the question: its link, or that it is under way."""
        asked = MORNING + timedelta(seconds=follow_up.at)
        outcome = next(one for one in self.outcomes() if one.request.text == follow_up.asks)
        links = [link for commitment in outcome.queued_commitments for link in _links(commitment)]
        soon = (one for one in self.by_agents if timedelta() <= parse_iso(one.timestamp) - asked < _MINUTE)
        told = (*links, *_IN_HAND)
        return [one.content for one in soon if one.name in outcome.makers and any(word in one.content for word in told)]

    def forbidden(self) -> list[Said]:
        """Return agents' messages that a rule on form forbids: lists and empty promises."""
        checks = (has_list, check_empty_promise)
        return [one for one in self.by_agents if self.is_talk(one) and any(check(one.content) for check in checks)]

    def errors(self) -> list[str]:
        """Return the journal entries on errors that are bugs rather than expected failures."""
        return [
            f"{name}: {entry.entry.summary} {entry.entry.reason}"
            for name, figures in self.record.souls.items()
            for entry in figures.errors
            if entry.entry.line == "error" or entry.entry.data.get("trace")
        ]

    def calls(self) -> dict[str, Counter[str]]:
        """Count the calls of the model by agent and purpose."""
        return {name: Counter(str(call["purpose"]) for call in calls) for name, calls in self.record.usage.items()}

    def tokens(self) -> dict[str, int]:
        """Return the sum of input and output tokens by agent."""
        return {
            name: sum(int(call["input"]) + int(call["output"]) for call in calls)
            for name, calls in self.record.usage.items()
        }


def _links(commitment: QueuedCommitment) -> Iterator[str]:
    result = commitment.result or {}
    yield from (str(issue["url"]) for issue in result.get("issues", ()))
    yield from (str(result[key]) for key in ("url", "issueUrl") if result.get(key))
    if uri := result.get("uri"):
        yield str(uri).rsplit("/", 1)[-1]


def _crossed(one: Said, other: Said) -> bool:
    return parse_iso(other.timestamp) - parse_iso(one.timestamp) < _ON_THE_WAY


def _bare(said: Said) -> str:
    """Return the text of a message without the name that it addresses."""
    text = said.content
    first, _, rest = text.partition(" ")
    return (rest if first.rstrip(",:").lower() in NAMES else text).casefold()


def _alike(one: str, other: str) -> bool:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.real_quick_ratio() >= _NEAR_VERBATIM and matcher.ratio() >= _NEAR_VERBATIM
