"""Tells a turn about a person the last two exchanges with them, and what we replied to others on the same subject.

Nothing is stored for it: what we said comes from the outbox, what they said is read from the network (`PublicPosts`).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from adapters.atproto.types import Post
from common.clock import Clock, age, parse_iso
from common.provenance import Provenance
from common.text.closings import content_words
from common.text.untrusted import clean
from modules.services.agent.prompt.types import ToldBefore
from modules.services.exchanges.public_posts import PublicPosts
from modules.services.identity.identity import Me
from modules.services.outbox.bodies import ReplyBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills

MOST_EXCHANGES = 2
_MOST_ELSEWHERE, _LEAST_SHARED, _ELSEWHERE_SINCE = 2, 2, timedelta(days=1)
"""Replies to others that are shown, how many telling words of the turn each has at least (and a third), their age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidBefore:
    """Reads the exchanges. The owner, too, is told of in public words only."""

    outbox: Outbox
    posts: PublicPosts
    skills: Skills
    rng: random.Random
    clock: Clock
    me: Me

    async def told(self, did: str, *, apart_from: str, least: Provenance, query: str) -> ToldBefore:
        """Return the last exchanges with an account.

        Args:
            did: the account; "" for a turn that is about nobody.
            apart_from: the root of a thread that the turn shows anyway; "" if there is none.
            least: nothing is told where their words are less trusted than these.
            query: what the turn is about; our newest replies to others with the same words are told, without theirs.

        """
        provenance = Provenance.OWNER if self.me.is_owner(did) else Provenance.STRANGER
        if not did or provenance < least:
            return ToldBefore()
        ours = await self.outbox.said_to(did, apart_from=apart_from, most=MOST_EXCHANGES)
        # NOTE(self): what we wrote to strangers may repeat them, so it stands in no turn that others may not shape.
        is_for_anyone = least is Provenance.STRANGER
        others = await self._on_subject(query, {one.id for one in ours}, apart_from) if is_for_anyone else []
        uris = {uri for one in ours for uri in (one.target, one.result_uri) if uri}
        posts = await self.posts.readable(uris | {one.result_uri for one in others if one.result_uri})
        lines = [line for intent in reversed(ours) for line in self._lines(intent, did, posts)]
        elsewhere = [self._own_line(one) for one in reversed(others) if one.state != "done" or one.result_uri in posts]
        parts: list[str] = []
        framer = Framer(self.skills, self.rng)
        if lines:
            framed = framer.frame("conversation", author="several", uri=did, text="\n".join(lines))
            parts.append(self.skills.render("memory", "Said Before", exchanges=framed).strip())
        if elsewhere:
            framed = framer.frame("conversation", author="YOU", uri="", text="\n".join(elsewhere))
            parts.append(self.skills.render("memory", "Said Elsewhere", lines=framed).strip())
        return ToldBefore("\n\n".join(parts), Provenance.STRANGER if elsewhere else provenance if lines else None)

    async def _on_subject(self, query: str, known: Collection[str], apart_from: str) -> list[Intent]:
        """Return our latest replies elsewhere that share telling words with what the turn is about, newest first."""
        wanted = set(content_words(query))
        found = [
            one
            for one in await self.outbox.since(["reply"], self.clock.now() - _ELSEWHERE_SINCE)
            if isinstance(one.body, ReplyBody)
            and one.state in ACTIVE_STATES
            and one.id not in known
            and one.body.root.uri != apart_from
            and not one.body.about_rights
            and len(wanted.intersection(content_words(one.body.public_text))) >= max(_LEAST_SHARED, len(wanted) / 3)
        ]
        return found[:_MOST_ELSEWHERE]

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
