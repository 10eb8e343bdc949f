"""Reflections and readings: their kinds, when one is due, what it is shown, what supports a change of SELF.md. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from common.clock import Since
from common.text.injections import gives_orders
from modules.runtime.events import Event
from modules.services.experiences import Experience
from modules.services.identity.identity import extract_from_self

KIND = "reflection"
READING = "reading"
"""The kind of the rows that hold questions, the loop of their turns, and their skill."""

READ = "read"
"""The `act` of the journal entry about a question that was looked up."""

OTHERS = frozenset({"stranger", "peer"})
"""The trust levels of experiences with other people."""

Objection = Literal["Needs Experience", "One Source", "Wish Of Others", "Gives Orders"]
"""Why a change of SELF.md is refused; the name of a subsection of `Answers` in the skill `own-tools`."""


@dataclass(frozen=True, slots=True)
class ReflectionTurn:
    """What a reflection may cite: the experiences that it was shown, by name, and the cause of the skill to write."""

    experiences: Mapping[str, Experience]
    proposal: str = ""

    def cited(self, names: Iterable[str]) -> tuple[Experience, ...]:
        """Return the experiences of these names that the turn was shown, each once."""
        return tuple(self.experiences[name] for name in dict.fromkeys(names) if name in self.experiences)

    @property
    def has_others(self) -> bool:
        """Whether the turn was shown experiences with others, cited or not."""
        return any(one.trust in OTHERS for one in self.experiences.values())


@dataclass(frozen=True, slots=True)
class ReadingTurn:
    """What a reading was shown: addresses, each with the DID of the author."""

    seen: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReflectionDone(Event):
    """A reflection changed SELF.md; `text` is what the SOUL says about it."""

    text: str


INTERVAL = timedelta(hours=6)
SOONEST = timedelta(hours=1)
SIGNIFICANT_EVENTS = 10
RETRY_S = 1800.0
MOST_TRIES = 3
OF_APPROVAL = "it is about what needs the owner's approval"
OF_WISH = "it is a wish, and others' words were in the reflection"
"""Reasons for which a change of SELF.md waits for approval."""
_SOURCES_NEEDED = 2
_PRIVATE = frozenset({"terminal", "message"})


@dataclass(frozen=True, slots=True)
class Earlier:
    """The last reflection: when it was due, and the newest experience and the number of significant events then."""

    at: datetime
    seen: int
    events: int


@dataclass(frozen=True, slots=True)
class ReflectionMoment:
    """What decides if one is due: local time, newest open experience, number of significant events, last reflection.

    `is_quiet`: it is night. `began` is when this life began, None if unknown. `since` returns how much time was lived
    since a moment.
    """

    now: datetime
    newest: int
    events: int
    last: Earlier | None
    is_quiet: bool
    began: datetime | None
    since: Since


def why_due(moment: ReflectionMoment) -> str:
    """Return why a reflection is due; "" if none is."""
    last = moment.last
    is_new = moment.newest > (last.seen if last else 0)
    if not is_new or moment.is_quiet:
        return ""
    if last is None:
        is_young = moment.began is not None and moment.since(moment.began) < INTERVAL
        return "" if is_young else "the first one"
    waited = moment.since(last.at)
    if waited >= INTERVAL:
        return "six hours have passed, and something happened"
    # NOTE(self): the count restarts when SELF.md changes.
    new_events = moment.events - last.events if moment.events >= last.events else moment.events
    if new_events >= SIGNIFICANT_EVENTS and waited >= SOONEST:
        return f"{new_events} significant events since the last one"
    return ""


def shown(gathered: Sequence[Experience]) -> list[Experience]:
    """Return the experiences that a reflection may see.

    Experiences with others are left out unless they involve two people whose accounts are known. One person alone
    supports no change of SELF.md, and a change cannot draw on what was not shown, whatever it cites.
    """
    people = {one.did for one in gathered if one.trust in OTHERS and one.did}
    return [one for one in gathered if one.trust not in OTHERS or len(people) >= _SOURCES_NEEDED]


def is_private(experiences: Sequence[Experience]) -> bool:
    """Return whether the owner said any of this in private; nothing learned from it is then said in a room."""
    return any(one.trust == "owner" and one.source in _PRIVATE for one in experiences)


def adds_wish(before: str, content: str, section: str) -> bool:
    """Return whether a new text of a section, or of all of SELF.md, contains a wish that was not there before."""
    after = extract_from_self(f"## {section}\n\n{content}" if section else content)
    return bool(set(after.wishes) - set(extract_from_self(before).wishes))


def objection(before: str, content: str, cited: Sequence[Experience], section: str = "") -> Objection | None:
    """Return why a text may not be written into SELF.md; None if it may.

    A change that cites experiences with others needs two accounts, or the owner. One account counts once, however often
    it is cited, and the SOUL's own experiences do not add a second; alone, they need nobody else. A wish is never
    accepted from others.
    """
    if not cited:
        return "Needs Experience"
    others = [one for one in cited if one.trust in OTHERS]
    if others and adds_wish(before, content, section):
        return "Wish Of Others"
    if others and all(one.trust != "owner" for one in cited):
        people = {one.did for one in others if one.did}
        if len(people) < _SOURCES_NEEDED:
            return "One Source"
    known = set(before.splitlines())
    added = "\n".join(line for line in content.splitlines() if line not in known)
    return "Gives Orders" if gives_orders(added) else None
