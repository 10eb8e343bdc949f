"""Events of the fortnight beside the daily life: crowds, a tireless person, a tool to build, direct messages.

The words of each direct message occur in no other text.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from tests.scenarios.days_mind import ASKS_FOR_WORK, question, sentence
from tests.scenarios.days_people import DENIES_BEFORE, TALKERS, Asked, Kept, People
from tests.scenarios.days_town import DAY_S, HOUR_S, MINUTE_S
from town.atproto.chat import DECLARATION, Convo

TIRELESS = "ivo"
COMMANDED = "wren"
"""The SOUL to which the owner sends a command by direct message."""
_CROWDS = (("rowan", 5, 26), ("marlow", 6, 34))
"""For each crowd: the SOUL to which it writes, the day, and the number of people."""
_TIRELESS_DAY, _TIRELESS_TIMES = 9, 72
_BUILDS_DAY = 3
_THANKFUL = 0.4
BUILDERS = ("rowan", "wren", "sable")
_A_TOOL = (
    "I would like a small tool that tells when the next ferry leaves, from every pier of ours."
    f" {ASKS_FOR_WORK} for it, and write a plan there."
)
_SYLLABLES = "bra clo dri fle gru klo pli sno tra vlu".split()  # noqa: SIM905 - reads better


@dataclass(frozen=True)
class Written:
    """Direct messages that somebody wrote one after the other; `wants` says whether they want an answer."""

    author: str
    soul: str
    words: tuple[str, ...]
    at: datetime
    wants: bool


@dataclass
class Events:
    """Plans the events, and keeps what was written and asked."""

    people: People
    written: list[Written] = field(default_factory=list)
    crowd: list[Asked] = field(default_factory=list)
    building: Asked | None = None
    thanks: int = 0

    def begin(self, days: int) -> None:
        """Schedule the events of so many days."""
        town, rng = self.people.town, self.people.rng
        began = town.clock.monotonic()
        for name in (*TALKERS, *DENIES_BEFORE, "owner"):
            town.network.put(town.account(name), DECLARATION, "self", {"allowIncoming": "all"})
        for soul, day, count in _CROWDS:
            for number in range(count):
                moment = began + day * DAY_S + 6 * HOUR_S + rng.uniform(0, 20 * MINUTE_S)
                town.at(moment, partial(self._comes, f"{soul}-fan{number}", soul))
        for number in range(_TIRELESS_TIMES):
            moment = began + _TIRELESS_DAY * DAY_S + HOUR_S + number * 12 * MINUTE_S
            town.at(moment, partial(self._comes, TIRELESS, "rowan"))
        town.at(began + _BUILDS_DAY * DAY_S + 5 * HOUR_S, self._wants_a_tool)
        for day in range(days):
            morning = began + day * DAY_S + 2 * HOUR_S
            for author in ("owner", rng.choice(TALKERS), rng.choice(TALKERS)):
                town.at(morning + rng.uniform(0, 12 * HOUR_S), partial(self._writes, author))
            if day % 3 == 1:
                town.at(morning + rng.uniform(0, 12 * HOUR_S), self._denier_writes)
        town.at(began + 2 * DAY_S + 4 * HOUR_S, self._commands)

    def _comes(self, author: str, soul: str) -> None:
        """Let somebody ask a SOUL something."""
        rng = self.people.rng
        self.crowd.append(self.people.post(author, f"@{soul}.test {sentence(rng)} {question(rng)}", (soul,)))

    def _wants_a_tool(self) -> None:
        """Let the owner describe a tool to three SOULs, and ask for a workspace and a plan."""
        for name in BUILDERS:
            self.people.town.souls[name].expects_work(DAY_S / 4)
        named = " ".join(f"@{name}.test" for name in BUILDERS)
        self.building = self.people.post("owner", f"{named} {_A_TOOL}", BUILDERS)

    # Direct messages

    def _writes(self, author: str) -> None:
        """Send one message, or two in a row; for an author other than the owner, sometimes plan thanks."""
        soul = self.people.rng.choice(sorted(self.people.town.souls))
        words = tuple(self._words() for _ in range(1 if author == "owner" else self.people.rng.randint(1, 2)))
        self._send(author, soul, words, wants=True)
        if author != "owner" and self.people.rng.random() < _THANKFUL:
            self.people.town.after(3 * HOUR_S, lambda: self._thanks(author, soul))

    def _denier_writes(self) -> None:
        author, words = DENIES_BEFORE[0], self._words()
        soul = self.people.rng.choice(sorted(self.people.town.souls))
        self.people.denied.append(Kept(author, words, self.people.town.clock.now()))
        self._send(author, soul, (words,), wants=False)

    def _words(self) -> str:
        return " ".join("".join(self.people.rng.choices(_SYLLABLES, k=4)) for _ in range(4))

    def _thanks(self, author: str, soul: str) -> None:
        """Send thanks, which expect no answer, if the SOUL answered before."""
        if self.answers(author, soul):
            self._say(author, soul, "Thanks a lot!")
            self.thanks += 1

    def _commands(self) -> None:
        self._say("owner", COMMANDED, "/status")

    def _send(self, author: str, soul: str, words: tuple[str, ...], *, wants: bool) -> None:
        for one in words:
            self._say(author, soul, f"What do you make of {one}, by the way?")
        self.written.append(Written(author, soul, words, self.people.town.clock.now(), wants))

    def _say(self, author: str, soul: str, text: str) -> None:
        town = self.people.town
        town.network.chat.send(town.account(author), self.convo(author, soul), text, {})
        town.souls[soul].has_message()

    def convo(self, author: str, soul: str) -> Convo:
        """Return the conversation between these two."""
        town = self.people.town
        return town.network.chat.begin(town.account(author), town.souls[soul].did)

    def answers(self, author: str, soul: str) -> list[tuple[datetime, str]]:
        """Return when and what a SOUL wrote to somebody, oldest first."""
        did = self.people.town.souls[soul].did
        return [(one.sent_at, one.text) for one in self.convo(author, soul).messages if one.sender == did]
