"""Tells a turn about a person the last two exchanges with them.

Nothing is stored for it: what we said comes from the outbox, what they said is read from the network (`PublicPosts`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from adapters.atproto.types import Post
from common.clock import Clock, age, parse_iso
from common.provenance import Provenance
from common.text.untrusted import clean
from modules.services.agent.prompt.types import ToldBefore
from modules.services.exchanges.public_posts import PublicPosts
from modules.services.identity.identity import Me
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills

MOST_EXCHANGES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidBefore:
    """Reads the exchanges. The owner, too, is told of in public words only."""

    outbox: Outbox
    posts: PublicPosts
    skills: Skills
    rng: random.Random
    clock: Clock
    me: Me

    async def told(self, did: str, *, apart_from: str, least: Provenance) -> ToldBefore:
        """Return the last exchanges with an account.

        Args:
            did: the account; "" for a turn that is about nobody.
            apart_from: the root of a thread that the turn shows anyway; "" if there is none.
            least: nothing is told where their words are less trusted than these.

        """
        provenance = Provenance.OWNER if self.me.is_owner(did) else Provenance.STRANGER
        if not did or provenance < least:
            return ToldBefore()
        ours = await self.outbox.said_to(did, apart_from=apart_from, most=MOST_EXCHANGES)
        posts = await self.posts.readable({uri for one in ours for uri in (one.target, one.result_uri) if uri})
        lines = [line for intent in reversed(ours) for line in self._lines(intent, did, posts)]
        if not lines:
            return ToldBefore()
        framer = Framer(self.skills, self.rng)
        framed = framer.frame("conversation", author="several", uri=did, text="\n".join(lines))
        return ToldBefore(self.skills.render("memory", "Said Before", exchanges=framed).strip(), provenance)

    def _lines(self, intent: Intent, did: str, posts: Mapping[str, Post]) -> Iterator[str]:
        """Yield what they said, and what we answered; of an exchange of which a part is gone, nothing."""
        is_gone = intent.state == "done" and intent.result_uri not in posts
        theirs = posts.get(intent.target)
        if is_gone or theirs is None:
            return
        now = self.clock.now()
        if theirs.author.did == did:
            when = age(parse_iso(theirs.indexed_at or theirs.created_at), now)
            yield f"[{when}] @{theirs.author.handle}: {' '.join(clean(theirs.text).split())}"
        yield self._own_line(intent)

    def _own_line(self, intent: Intent) -> str:
        sent = intent.sent_at if intent.state == "done" else None
        when = age(parse_iso(sent), self.clock.now()) if sent else self.skills.section("memory", "Not Sent")
        return f"[{when}] YOU: {' '.join(intent.body.public_text.split())}"
