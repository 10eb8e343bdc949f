"""The people around the SOULs, who ask, thank, quarrel, repost, delete a post and post it again, and fall silent.

Three declare that their posts may not reach a model: two at the beginning, one in the middle. One declares that no
content may be generated from their posts. They take part like everybody.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from adapters.atproto.records import FOLLOW, LIKE, POST, REPOST
from common.clock import iso
from modules.services.rights.policy import PREFERENCE
from tests.scenarios.days_mind import question, sentence
from tests.scenarios.days_town import DAY_S, HOUR_S, MINUTE_S, DaysTown
from town.atproto.index import Json, NetworkEvent

TALKERS = ("ada", "bo", "cleo", "dan", "eve", "finn", "gil", "hanna")
DENIES_BEFORE, DENIES_LATER = ("nell", "otto"), "pia"
NO_REPLIES = "quin"
HONOURED_WITHIN = timedelta(hours=24)
"""The time after which a declaration is read again at the latest."""
_DENIERS = (*DENIES_BEFORE, DENIES_LATER)
_THANKS = ("Thanks!", "thank you so much", "Perfect, thanks a lot!", "👍", "That makes sense, thank you!", "lol nice")
_QUARRELS = ("No, I disagree:", "That is simply not so.", "You keep dodging this:")
_SYLLABLES = "ba du fi go ka le mo ni po ru sa ti ve zu".split()  # noqa: SIM905 - reads better


@dataclass(frozen=True)
class Asked:
    """A post to these SOULs by somebody who wants an answer."""

    uri: str
    author: str
    souls: tuple[str, ...]
    at: datetime


@dataclass(frozen=True)
class Kept:
    """A post whose author denies that it may reach a model; `words` occur in no other post."""

    author: str
    words: str
    at: datetime


@dataclass
class People:
    """Plans what people do each day, and keeps what they posted. `busy` is the number of things begun per day."""

    town: DaysTown
    busy: int = 24
    rng: random.Random = field(default_factory=lambda: random.Random(8))
    asked: list[Asked] = field(default_factory=list)
    together: list[Asked] = field(default_factory=list)
    denied: list[Kept] = field(default_factory=list)
    design: list[Asked] = field(default_factory=list)
    thanked: list[str] = field(default_factory=list)
    declared: dict[str, datetime] = field(default_factory=dict)
    _posted: list[str] = field(default_factory=list)

    def begin(self, days: int) -> None:
        """Schedule what people do for so many days."""
        town, clock = self.town, self.town.clock
        for name in (*TALKERS, *_DENIERS, NO_REPLIES):
            town.account(name)
        for name in DENIES_BEFORE:
            self._declare(name, inference=False)
        self._declare(NO_REPLIES, syntheticContent=False)
        town.at(clock.monotonic() + 4.5 * DAY_S, lambda: self._declare(DENIES_LATER, inference=False))
        town.after(2 * MINUTE_S, self._owner_introduces)
        # NOTE(self): early, as the SOULs' own thoughts show every picture of the gallery within a few days.
        for minutes in (3, 4):
            town.after(minutes * MINUTE_S, partial(self._begin, self._ask_about_design))
        doings = {
            self._ask: 10,
            self._ask_about_design: 1,
            self._answer_newest: 8,
            self._react: 4,
            self._post_again: 2,
            self._deny: 6,
            self._ask_of_no_replies: 1,
        }
        for day in range(days):
            morning = clock.monotonic() + day * DAY_S + HOUR_S
            # NOTE(self): drawn in advance, so that the acts of the SOULs do not change what people do.
            for doing in self.rng.choices(list(doings), list(doings.values()), k=self.busy):
                town.at(morning + self.rng.uniform(0, 15 * HOUR_S), partial(self._begin, doing))
            town.at(morning + self.rng.uniform(0, 12 * HOUR_S), self._ask_three)
            town.at(morning + self.rng.uniform(0, 14 * HOUR_S), self._owner_asks)
        town.network.subscribe(self._notice)

    def _declare(self, name: str, **choices: bool) -> None:
        preferences = {field: {"allow": value} for field, value in choices.items()}
        record: Json = {"$type": PREFERENCE, "preferences": preferences}
        self.town.network.put(self.town.account(name), PREFERENCE, "self", record)
        self.declared[name] = self.town.clock.now()

    # What people begin

    def _owner_introduces(self) -> None:
        named = " ".join(f"@{name}.test" for name in self.town.souls)
        self.post("owner", f"{named} meet each other: {sentence(self.rng)}", tuple(self.town.souls))

    def _owner_asks(self) -> None:
        self._ask("owner")

    def _begin(self, doing: Callable[[str], None]) -> None:
        silent_today = TALKERS[self.town.clock.now().day % len(TALKERS)]
        doing(self.rng.choice([name for name in TALKERS if name != silent_today]))

    def _ask_of_no_replies(self, _: str) -> None:
        self._ask(NO_REPLIES)

    def _ask(self, author: str) -> None:
        soul = self.rng.choice(sorted(self.town.souls))
        self.post(author, f"@{soul}.test {sentence(self.rng)} {question(self.rng)}", (soul,))

    def _ask_about_design(self, author: str) -> None:
        soul = self.rng.choice(sorted(self.town.souls))
        text = f"@{soul}.test {sentence(self.rng)} Which poster or drawing would you hang beside it?"
        self.design.append(self.post(author, text, (soul,)))

    def _ask_three(self) -> None:
        """Post a question to three SOULs."""
        author = self.rng.choice(("owner", "ada", "cleo"))
        three = tuple(self.rng.sample(sorted(self.town.souls), min(3, len(self.town.souls))))
        named = " ".join(f"@{name}.test" for name in three)
        self.together.append(self.post(author, f"{named} {sentence(self.rng)} {question(self.rng)}", three))

    def _answer_newest(self, author: str) -> None:
        """Reply to the newest own post of a SOUL."""
        soul = self.rng.choice(sorted(self.town.souls))
        own = [
            post
            for post in self.town.network.posts(60)
            if post.author.handle == f"{soul}.test" and post.reply is None and "🔗" not in post.text
        ]
        if own:
            self.post(author, f"{sentence(self.rng)} I would keep the first one.", (soul,), under=own[0].uri)

    def _react(self, author: str) -> None:
        """Like or repost the newest post of a SOUL, or follow the SOUL."""
        soul = self.rng.choice(sorted(self.town.souls))
        posts = self.town.network.records(self.town.souls[soul].did, POST)
        kind = self.rng.choice((LIKE, REPOST, FOLLOW))
        subject: object = self.town.souls[soul].did if kind == FOLLOW else None
        if subject is None and posts:
            subject = {"uri": posts[0].uri, "cid": posts[0].cid}
        if subject:
            record = {"subject": subject, "createdAt": iso(self.town.clock.now())}
            self.town.network.create(self.town.account(author), kind, record)

    def _post_again(self, author: str) -> None:
        """Delete the newest question to one SOUL if nobody replied, and post it again in upper case."""
        own = [one for one in self.asked if one.author == author and len(one.souls) == 1]
        if not own:
            return
        old = self.town.network.index.posts.get(own[-1].uri)
        if old is None or self.town.network.index.replies(old.uri):
            return
        text = str(old.value["text"])
        self.asked.remove(own[-1])
        self.town.network.delete(*own[-1].uri.removeprefix("at://").split("/"))
        handle, _, rest = text.partition(" ")
        self.town.network.post_as(self.town.account(author), f"{handle} {rest.upper()}")

    def _deny(self, _: str) -> None:
        """Let a denier mention a SOUL, reply to it, or write a post under which somebody else asks a SOUL."""
        author = self.rng.choice(_DENIERS)
        words = " ".join("".join(self.rng.choices(_SYLLABLES, k=4)) for _ in range(4))
        soul = self.rng.choice(sorted(self.town.souls))
        did, how = self.town.account(author), self.rng.choice(("mention", "under", "top", "quoted thread"))
        text = f"{words.capitalize()} stands by the gate."
        self.denied.append(Kept(author, words[1:], self.town.clock.now()))
        if how == "mention":
            self.town.network.post_as(did, f"@{soul}.test {text} {question(self.rng)}")
        elif how == "under" and (talk := self._talk_of(soul)):
            self.town.network.post_as(did, text, reply_to_uri=talk)
        else:
            uri, _ = self.town.network.post_as(did, text)
            self.town.after(
                self.rng.uniform(MINUTE_S, HOUR_S),
                lambda: self._ask_under(self.rng.choice(TALKERS), soul, uri),
            )

    def _ask_under(self, author: str, soul: str, uri: str) -> None:
        self.post(author, f"@{soul}.test {sentence(self.rng)} {question(self.rng)}", (soul,), under=uri)

    def _talk_of(self, soul: str) -> str:
        """Return the uri of the newest post or reply of a SOUL; "" if there is none."""
        posts = self.town.network.records(self.town.souls[soul].did, POST)
        return posts[0].uri if posts else ""

    # What people do when a SOUL replies

    def _notice(self, event: NetworkEvent) -> None:
        """Let the person to whom a SOUL replied thank, quarrel, ask, or do nothing."""
        post = self.town.network.index.posts.get(event.uri) if event.kind == "created" else None
        if (
            post is None
            or event.did not in {soul.did for soul in self.town.souls.values()}
            or "reply" not in post.value
        ):
            return
        parent = str(post.value["reply"]["parent"]["uri"])
        author = self.town.network.actor(parent.split("/")[2]).handle.partition(".")[0]
        if author not in (*TALKERS, "owner"):
            return
        soul = self.town.network.actor(event.did).handle.partition(".")[0]
        chance, wait_s = self.rng.random(), self.rng.uniform(MINUTE_S, 40 * MINUTE_S)
        if chance < 0.4:
            self.town.after(wait_s, lambda: self._thank(author, event.uri))
        elif chance < 0.6:
            quarrel = f"{self.rng.choice(_QUARRELS)} " if chance < 0.5 else ""
            text = f"{quarrel}{sentence(self.rng)} {question(self.rng)}"
            self.town.after(wait_s, lambda: self._reply(author, text, soul, event.uri))

    def _thank(self, author: str, uri: str) -> None:
        if uri in self.town.network.index.posts:
            thanks = self.rng.choice(_THANKS)
            self.thanked.append(self.town.network.post_as(self.town.account(author), thanks, reply_to_uri=uri)[0])

    def _reply(self, author: str, text: str, soul: str, uri: str) -> None:
        if uri in self.town.network.index.posts:
            self.post(author, text, (soul,), under=uri)

    def post(self, author: str, text: str, souls: tuple[str, ...], under: str | None = None) -> Asked:
        """Let somebody write to these SOULs, and record that they expect an answer."""
        did = self.town.account(author)
        uri, _ = self.town.network.post_as(did, text, reply_to_uri=under)
        asked = Asked(uri, author, souls, self.town.clock.now())
        self.asked.append(asked)
        return asked
