"""A real outbox on a real file, with the etiquette rules and their gate, and a sender that records departures."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from adapters.atproto.types import Actor, Notification, ReplyRefs, StrongRef
from common.clock import FakeClock, ScaledClock, iso
from common.redact import Redactor
from common.result import ApiResult, Ok
from modules.lives.bluesky.publish import PendingPosts
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.outbox.bodies import IntentKind, LikeBody
from modules.services.outbox.github_bodies import GITHUB_KINDS
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.rules import World
from modules.services.outbox.types import Intent, Pacing, ProposedAction, Rule, Sent, Verdict
from tests.fresh_database import open_database
from tests.modules.services.outbox.body_values import reply_body

OWN, OWNER, PEER, FOUND = "did:plc:soul", "did:plc:owner", "did:plc:peer", "did:plc:found"
WORKSPACE = "acme/www-lil-intdev-site"
KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete", *GITHUB_KINDS)
NO_PACING = Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0)
OLD = datetime(2020, 1, 1, tzinfo=UTC)


def did(name: str) -> str:
    return f"did:plc:{name}"


def uri(name: str, key: str) -> str:
    return f"at://{did(name)}/app.bsky.feed.post/{key}"


def ref(post_uri: str) -> StrongRef:
    return StrongRef(post_uri, "cid")


@dataclass
class RecordingSender:
    """Delivers every intent, and records it with the time at which it left."""

    clock: FakeClock
    departures: list[tuple[datetime, Intent]] = field(default_factory=list)

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        self.departures.append((self.clock.now(), intent))
        return Ok(Sent(f"at://{OWN}/{intent.kind}/{intent.rkey}", "record", "cid"))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        return Ok(None)


@dataclass
class EtiquetteOutbox:
    """An outbox with the etiquette rules, and the posts that reached it."""

    database: Database
    clock: FakeClock
    console: SilentConsole
    journal: Journal
    sender: RecordingSender
    etiquette: Etiquette
    outbox: Outbox
    pending: PendingPosts
    followers: set[str]
    _keys: itertools.count[int] = field(default_factory=itertools.count)

    async def receive(
        self,
        author: str,
        text: str = "What do you make of the old weir?",
        *,
        reason: str = "mention",
        parent: str = "",
        root: str = "",
        is_bot: bool = False,
    ) -> Notification:
        """Take in a post by `author` that reaches us now, and return its notification."""
        now = iso(self.clock.now())
        received = Notification(
            uri=uri(author, f"k{next(self._keys)}"),
            cid="cid",
            author=Actor(did(author), f"{author}.example", is_bot=is_bot),
            kind=reason,
            text=text,
            created_at=now,
            indexed_at=now,
            reply=ReplyRefs(ref(parent or root), ref(root or parent)) if parent or root else None,
        )
        await self.pending.take_in([received])
        return received

    async def verdicts(self, draft: ProposedAction) -> dict[str, Verdict]:
        """Return what the rules say now, by their names."""
        now = self.clock.now()
        said = await self.database.run(lambda connection: self.etiquette(connection, draft, now))
        assert len({verdict.rule for verdict in said}) == len(said)
        return {verdict.rule: verdict for verdict in said}

    async def blocked_by(self, draft: ProposedAction) -> set[str]:
        """Return the names of the rules that block an action."""
        return {name for name, verdict in (await self.verdicts(draft)).items() if verdict.says == "block"}

    async def answer(self, to: Notification, text: str = "") -> bool:
        """Reply at once, and return whether the reply left."""
        left = len(self.sender.departures)
        await self.outbox.submit(reply_to(to, text or words(next(self._keys))))
        await self.outbox.deliver_due()
        return len(self.sender.departures) > left

    async def spend(self, points: int, *, ago_s: float = 0) -> None:
        """Record `points` as spent outside of the outbox, `ago_s` seconds ago."""
        at = iso(datetime.fromtimestamp(self.clock.now().timestamp() - ago_s, UTC))
        await self.database.run(
            lambda connection: connection.execute(
                "INSERT INTO other_writes (at, what, points) VALUES (?, 'test', ?)", (at, points)
            )
        )

    async def drain(self, seconds: float, step_s: float = 60) -> None:
        """Let `seconds` pass, a step at a time, and deliver at each step."""
        for _ in range(int(seconds / step_s)):
            await self.outbox.deliver_due()
            await self.clock.advance(step_s)
        await self.outbox.deliver_due()


def words(number: int) -> str:
    """Return a text whose letters differ from those of other numbers."""
    return f"I hear {''.join(chr(ord('a') + int(digit)) for digit in str(number))} in the rain."


def reply_to(
    to: Notification, text: str = "Slate, since it remembers the rain.", *, by_owner: bool = False
) -> ProposedAction:
    return ProposedAction(reply_body(text, to.uri, root=to.root.uri), cause_id=to.uri, by_owner=by_owner)


def like(target: str, *, by_owner: bool = False) -> ProposedAction:
    return ProposedAction(LikeBody(uri=target, cid="cid"), cause_id=target, by_owner=by_owner)


@asynccontextmanager
async def open_etiquette_outbox(
    path: Path,
    *,
    speed: float = 1,
    born_at: datetime | None = OLD,
    pacing: Pacing = NO_PACING,
    more_rules: Sequence[Rule] = (),
) -> AsyncIterator[EtiquetteOutbox]:
    """Yield an outbox in which only the etiquette rules, `pacing` and `more_rules` hold an intent back."""
    clock, console, followers = FakeClock(), SilentConsole(), set[str]()
    database = await open_database(path / "soul.db")
    journal = Journal(database, console, clock, Redactor())
    sender = RecordingSender(clock)
    world = World(
        own_did=lambda: OWN,
        own_handle=lambda: "soul.example",
        owner=lambda: (OWNER, "owner.example"),
        peers=lambda: (PEER, "peer.example"),
        follows_us=lambda _, did: did in followers,
        born_at=lambda: born_at,
        found=lambda: (FOUND, "found.example"),
        watched=lambda: (WORKSPACE,),
    )
    etiquette = Etiquette(world=world, database=database, clock=ScaledClock(clock, speed))
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders=dict.fromkeys(KINDS, sender),
        pacing=pacing,
        rules=[etiquette, *more_rules],
        gates=[etiquette.gate],
        own_did=lambda: OWN,
    )
    pending = PendingPosts(database, clock)
    try:
        yield EtiquetteOutbox(database, clock, console, journal, sender, etiquette, outbox, pending, followers)
    finally:
        await database.close()
