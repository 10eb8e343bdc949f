"""Follows the owner once, at start.

Being named as the owner is consent enough, so the follow needs no approval. The owner still has the last word: a follow
that once existed, whoever made it, is never made again for the same account, nor is one that the owner refused; the
owner is then told what is missing. Past acts are read from the outbox, our own records, and one mark.
"""

from dataclasses import dataclass, field
from functools import partial

from adapters.atproto.client import Atproto
from common.clock import Clock
from common.provenance import Provenance
from common.settings import Settings
from modules.runtime.control import Control
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import FollowBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.peers.own_identity import FOLLOWS, find_own_record
from modules.services.peers.policy import standing_by
from modules.services.presence.policy import message_problem

CAUSE = "owner-follow"

_LOOP = "heartbeat"
_FOLLOWED = "owner_followed_by"
_REASON = "your SOUL follows you, its owner, to receive your direct messages"


@dataclass(slots=True)
class OwnerFollow:
    """Proposes the follow, once, while the SOUL may act."""

    settings: Settings
    clock: Clock
    database: Database
    journal: Journal
    control: Control
    outbox: Outbox
    atproto: Atproto
    owner_did: str
    _is_settled: bool = field(default=False, init=False)

    async def ensure_once(self) -> None:
        """Follow the owner unless that was done or refused before."""
        owner, own_did = self.owner_did, self.atproto.did
        if self._is_settled or owner in {"", own_did} or not own_did:
            return
        if not self.control.standing().may_act:
            return
        followed, kept = f"{own_did} {owner}", await self.database.run(partial(marks.get, name=_FOLLOWED))
        if kept == followed:
            await self._settle()
            return
        intents = [one for one in await self.outbox.by_target("follow", owner) if _is_ours(one, own_did)]
        code = standing_by(intents, self.clock.since).code
        if code == "free":
            follows = await find_own_record(self.atproto, FOLLOWS, lambda record: record.value.get("subject") == owner)
            if not follows.success:
                return
            code = "done" if follows.data or kept == own_did else "free"  # an earlier version stored no owner
        if code in {"done", "refused"}:
            await self.database.run(lambda connection: marks.put(connection, {_FOLLOWED: followed}))
            await self._settle()
        elif code == "free":
            await self._follow(owner)

    async def _settle(self) -> None:
        """Report, once in this life, what keeps the owner's messages from reaching us now."""
        if (profile := (await self.atproto.get_profile(self.owner_did)).or_else(None)) is None:
            return
        self._is_settled = True
        if problem := message_problem(profile, self.settings):
            entry = Entry("error", "start", problem.message, line="warn", reason=problem.remedy)
            await self.journal.record(entry)

    async def _follow(self, owner: str) -> None:
        handle = self.settings.owner_bluesky_social_handle
        follow = FollowBody(did=owner, handle=handle)
        submitted = await self.outbox.submit(
            ProposedAction(follow, cause_id=CAUSE, by_owner=True, provenance=Provenance.SELF)
        )
        if submitted.accepted:
            entry = Entry(
                "decision",
                _LOOP,
                f"Follows @{handle}",
                line="social",
                reason=_REASON,
                author=handle,
                intent_id=submitted.intent.id,
                data={"act": "followed"},
                provenance=Provenance.SELF,
            )
            await self.journal.record(entry)


def _is_ours(intent: Intent, own_did: str) -> bool:
    """Return whether an intent was carried out by this account, and not by an earlier one of the home."""
    return intent.state != "done" or (intent.result_uri or "").startswith(f"at://{own_did}/")
