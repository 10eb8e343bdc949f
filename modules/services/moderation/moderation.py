"""Our account's choices on Bluesky, read once a day; whom it follows, and mutes and blocks between others and us.

Nothing is stored: each start reads again, and a known barrier stays known until the process ends. Until the choices
could be read once, posts of others wait; afterwards the last known choices hold.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from cachetools import LRUCache

from adapters.atproto.client import Atproto
from adapters.atproto.types import AccountPreferences, Actor, Barrier, Notification, Post, Profile
from common.clock import Clock
from common.result import Err
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.identity.owner import Me
from modules.services.moderation.policy import BARRIERS, shown, why_unseen, with_defaults
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.rules.policy import named_in, who_is_told
from modules.services.outbox.types import Intent, ProposedAction, Verdict, Wait

READ_AGAIN_S = 24 * 3600.0
TRY_AGAIN_S = 60.0
READ_WITHIN_S = 40.0

_RULE = "moderation"
_ASK_AGAIN_S = 60.0
_MOST_ACCOUNTS = 10_000
_NO_SUCH_METHOD = frozenset({"invalid", "not_found"})


class Moderation:
    """Applies the choices, but not to the owner. The outbox may call `rule` and `gate` from any thread."""

    def __init__(self, *, atproto: Atproto, journal: Journal, clock: Clock, me: Me) -> None:
        self._atproto = atproto
        self._journal = journal
        self._clock = clock
        self._me = me
        self._chosen = AccountPreferences()
        self._barriers = LRUCache[str, Barrier](_MOST_ACCOUNTS)
        self._followed = LRUCache[str, bool](_MOST_ACCOUNTS)
        self._not_before = clock.monotonic()
        self._reading = asyncio.Lock()
        self.is_known = False

    async def refresh(self) -> None:
        """Read the choices, if it is time."""
        async with self._reading:
            now = self._clock.monotonic()
            if now < self._not_before or not self._atproto.did:
                return
            try:
                async with asyncio.timeout(READ_WITHIN_S):
                    read = await self._atproto.get_preferences()
            except TimeoutError:
                read = Err(f"no answer within {READ_WITHIN_S:.0f} s", kind="transient")
            if isinstance(read, Err):
                self._not_before = now + self._clock.real(TRY_AGAIN_S)
                self.is_known = self.is_known or read.kind in _NO_SUCH_METHOD
                summary = "The preferences of the account could not be read"
                await self._journal.record(Entry("error", _RULE, summary, line="warn", reason=read.error))
                return
            self._chosen, self.is_known = read.data, True
            self._not_before = now + self._clock.real(READ_AGAIN_S)

    def note(self, *actors: Actor | Profile) -> None:
        """Store how we stand with these accounts, from data that the network just returned."""
        for actor in actors:
            if actor.is_followed:
                self._followed[actor.did] = True
            else:
                self._followed.pop(actor.did, None)
            if self._me.is_owner(actor.did):
                continue
            for name in filter(None, (actor.did, actor.handle.lower())):
                if actor.barrier:
                    self._barriers[name] = actor.barrier
                else:
                    self._barriers.pop(name, None)

    def why_unseen(self, item: Post | Notification | Profile) -> str:
        """Return why a post or an account is neither shown to a model nor answered; "" for the owner's and ours."""
        did = item.did if isinstance(item, Profile) else item.author.did
        if did in {self._me.owner_did, self._atproto.did}:
            return ""
        return why_unseen(shown(item), self._chosen, self._clock.now())

    def follows(self, did: str) -> bool:
        """Return whether we follow an account, by the latest data."""
        return did in self._followed

    def why_left_alone(self, names: Iterable[str]) -> tuple[str, str]:
        """Return which of these accounts (DIDs or handles) must not be addressed, and why; both "" if all may be."""
        for name in names:
            if barrier := self._barriers.get(name, ""):
                return name, BARRIERS[barrier]
        return "", ""

    def as_chosen(self, body: PostBody) -> PostBody:
        """Return a post with the account's defaults."""
        return with_defaults(body, self._chosen)

    def rule(self, connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
        """Refuse what would reach or name such an account; what the owner asked for passes."""
        who, reason = self._against(action, action.text)
        return [Verdict(_RULE, "block", reason, who, instead="silence")] if reason else [Verdict(_RULE)]

    def gate(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
        """Hold an intent that was accepted before an obstacle was known, until the obstacle ends or it expires.

        A post of our own waits until it is known who may reply to it and quote it.
        """
        if intent.kind == "post" and not (intent.by_owner or self.is_known):
            return Wait("what our account chose for its own posts could not be read", _ASK_AGAIN_S)
        _, reason = self._against(intent, intent.body.public_text)
        return Wait(reason, _ASK_AGAIN_S) if reason else None

    def _against(self, act: ProposedAction | Intent, text: str) -> tuple[str, str]:
        if act.by_owner or act.kind == "delete":
            return "", ""
        return self.why_left_alone((who_is_told(act), *named_in(text)))
