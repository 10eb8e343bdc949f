"""A SOUL that too many people want to talk to, and a mind without any restraint: what happens to it, day after day.

The outbox, its delivery and the manners are real; only the crowd, the mind and the road to the network are made up.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from adapters.atproto.types import Notification
from modules.services.outbox.bodies import FollowBody, PostBody, ReplyBody, RepostBody
from modules.services.outbox.types import Intent, ProposedAction
from tests.modules.services.outbox.body_values import reply_body
from tests.modules.services.outbox.rules.etiquette_outbox import EtiquetteOutbox, did, like, reply_to, uri

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0

_SOUNDS = ("ba", "be", "do", "du", "fi", "ga", "ho", "ka", "le", "lu", "ma", "ni", "po", "ra", "su", "ti", "vo", "we")
_CANNED = ("Thank you so much, that made my day! {}", "thank you so much that made my day {}", "Great point!! {}")
_TICK = 120.0
_SIGNS = ("🌧️", "!!", "123", "@fan{}.example", "https://x.example/{}")


def root_of(reply: Intent) -> str:
    """The uri of the thread in which a reply of ours stands."""
    assert isinstance(reply.body, ReplyBody)
    return reply.body.root.uri


@dataclass(frozen=True)
class ReceivedPost:
    """A post that reached us, as the crowd knows it."""

    post: Notification
    at: datetime
    is_bot: bool


@dataclass
class Popular:
    """Two weeks (or one day) of being popular. `heard` and `approved` are books of the crowd's and the owner's own."""

    etiquette_outbox: EtiquetteOutbox
    rng: random.Random
    followers: frozenset[str] = frozenset(did(f"fan{number}") for number in range(5))
    received: list[ReceivedPost] = field(default_factory=list)
    approved: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    _events: list[tuple[float, int, Callable[[], Awaitable[None]]]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _seen: int = 0
    _began: float = 0.0

    async def live(self, days: int, mentions: int) -> None:
        """All the mentions of so many days, and everything that comes of them."""
        self._began = self.etiquette_outbox.clock.monotonic()
        self.etiquette_outbox.followers |= self.followers
        for moment in self._moments(days, mentions):
            self._at(moment, self._mention)
        for day in range(days):
            self._at(day * DAY + 20 * HOUR, self._approve_all)
        while self._events or await self._has_waiting():
            await self._go_on()

    async def _go_on(self) -> None:
        """To the next thing that happens, or the next departure."""
        report = await self.etiquette_outbox.outbox.deliver_due()
        await self._bots_answer()
        waits = [report.next_in_s] if report.next_in_s is not None else []
        if self._events:
            waits.append(self._events[0][0] - self._now())
        await self.etiquette_outbox.clock.advance(max(_TICK, min(waits, default=_TICK)))
        while self._events and self._events[0][0] <= self._now():
            await heapq.heappop(self._events)[2]()

    def _moments(self, days: int, mentions: int) -> list[float]:
        """When mentions come: a third of them in bursts of forty within five minutes, more by day than by night."""
        moments: list[float] = []
        while len(moments) < mentions / 3:
            start = self.rng.uniform(0, days * DAY - HOUR)
            moments += [start + self.rng.uniform(0, 5 * MINUTE) for _ in range(40)]
        while len(moments) < mentions:
            day, hour = self.rng.randrange(days), min(23.0, max(0.0, self.rng.gauss(15, 5)))
            moments.append(day * DAY + hour * HOUR + self.rng.uniform(0, HOUR - 1))
        return moments[:mentions]

    async def _mention(self) -> None:
        """Somebody new or known, two in five a bot; one in ten deletes and posts again."""
        is_bot = self.rng.random() < 0.4
        name = f"bot{self.rng.randrange(60)}" if is_bot else f"fan{min(int(self.rng.paretovariate(0.5)), 2000)}"
        if not is_bot and self.rng.random() < 0.02:
            name = "owner"
        text = self._sentence()
        await self._reach_us(name, text, is_bot=is_bot)
        if self.rng.random() < 0.1:
            again = text.upper() + self.rng.choice((" 🌧️", "!", "", "…"))
            self._in(self.rng.uniform(MINUTE, 12 * HOUR), lambda: self._reach_us(name, again, is_bot=is_bot))

    async def _reach_us(self, name: str, text: str, *, is_bot: bool, root: str = "", parent: str = "") -> None:
        reason = "reply" if root else "mention"
        post = await self.etiquette_outbox.receive(name, text, reason=reason, root=root, parent=parent, is_bot=is_bot)
        self.received.append(ReceivedPost(post, self.etiquette_outbox.clock.now(), is_bot))
        await self._meet(post)

    async def _meet(self, post: Notification) -> None:
        """The mind wants everything at once, but mostly asks first whether it must wait."""
        age = self.etiquette_outbox.clock.now() - datetime.fromisoformat(post.indexed_at)
        if self.rng.random() < 0.9 and age < timedelta(days=1):
            outlook = await self.etiquette_outbox.etiquette.before_reply(post, [])
            if outlook.act == "later":
                self.refused[outlook.reason.split(":")[0]] += 1
                self._in(max(outlook.retry_in_s, 2 * HOUR), lambda: self._meet(post))
                return
        hold = "the owner wants to see it" if self.rng.random() < 0.05 else ""
        draft = reply_to(post, self._answer_text(post))
        accepted = await self._try(replace(draft, hold=hold))
        if not accepted and self.rng.random() < 0.25:
            accepted = await self._try(reply_to(post, self._sentence()))
        if not accepted or self.rng.random() < 0.1:
            await self._try(like(post.uri))
        if self.rng.random() < 0.03:
            await self._mischief()

    async def _mischief(self) -> None:
        """What nobody asked for."""
        stranger = f"stranger{self.rng.randrange(10**6)}"
        unknown_post = uri(stranger, "post")
        fan = f"fan{self.rng.randrange(30)}"
        text = f"@{stranger}.example {self._sentence()}"
        for draft in (
            like(unknown_post),
            ProposedAction(RepostBody(uri=unknown_post, cid="cid")),
            ProposedAction(reply_body(text, unknown_post)),
            ProposedAction(FollowBody(did=did(stranger))),
            ProposedAction(FollowBody(did=did(fan))),
            ProposedAction(PostBody(text=text), cause_id="expression"),
        ):
            await self._try(draft)

    async def _try(self, draft: ProposedAction) -> bool:
        submitted = await self.etiquette_outbox.outbox.submit(draft)
        if not submitted.accepted:
            self.refused[submitted.reason.split(":")[0]] += 1
        return submitted.accepted

    async def _bots_answer(self) -> None:
        """Most replies of ours to bots are thanked for at once, in the same thread; people mostly let it be."""
        fresh = self.etiquette_outbox.sender.departures[self._seen :]
        self._seen += len(fresh)
        for _, intent in fresh:
            if intent.kind != "reply":
                continue
            name = intent.target.split("/")[2].removeprefix("did:plc:")
            is_bot = name.startswith("bot")
            if self.rng.random() > (0.6 if is_bot else 0.2):
                continue
            thanks = partial(
                self._reach_us,
                name,
                f"Thank you so much! {self._sentence()}",
                is_bot=is_bot,
                root=root_of(intent),
                parent=f"at://did:plc:soul/app.bsky.feed.post/{intent.rkey}",
            )
            self._in(self.rng.uniform(5, MINUTE) if is_bot else self.rng.uniform(MINUTE, 2 * HOUR), thanks)

    async def _approve_all(self) -> None:
        for intent in await self.etiquette_outbox.outbox.held():
            if datetime.fromisoformat(intent.expires_at) > self.etiquette_outbox.clock.now():
                await self.etiquette_outbox.outbox.approve(intent.id)
                self.approved.add(intent.id)

    async def _has_waiting(self) -> bool:
        counts = await self.etiquette_outbox.outbox.counts()
        return bool(counts.get("pending") or counts.get("sending"))

    def _answer_text(self, post: Notification) -> str:
        chance = self.rng.random()
        if chance < 0.15:
            number = self.rng.randrange(10**6)
            return self.rng.choice(_CANNED).format(self.rng.choice(_SIGNS).format(number))
        if chance < 0.2:
            return f"{self._sentence()} What do you say, @fan{self.rng.randrange(10**5)}.example?"
        if chance < 0.3:
            return f"@{post.author.handle} {self._sentence()}"
        return self._sentence()

    def _sentence(self) -> str:
        words = ("".join(self.rng.choices(_SOUNDS, k=self.rng.randint(1, 4))) for _ in range(self.rng.randint(6, 12)))
        return " ".join(words).capitalize() + "."

    def _now(self) -> float:
        return self.etiquette_outbox.clock.monotonic() - self._began

    def _in(self, seconds: float, what: Callable[[], Awaitable[None]]) -> None:
        self._at(self._now() + seconds, what)

    def _at(self, moment: float, what: Callable[[], Awaitable[None]]) -> None:
        heapq.heappush(self._events, (moment, next(self._order), what))
