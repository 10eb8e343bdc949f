"""Tools with which the owner makes the SOUL follow, unfollow, mute and unmute accounts.

The model names the account; code checks whether the owner could mean it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from adapters.atproto.client import Atproto
from common.clock import Clock
from common.settings import Approval
from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_turns import DidInput, MuteInput, act_terms, request_tool
from local_tools.words import ToolWords
from modules.lives.bluesky.publish import Publisher
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.agent.tools.executor import look_up_named
from modules.services.agent.tools.types import OwnerRequest, Tool, ToolResult, Turn
from modules.services.outbox import approval
from modules.services.outbox.bodies import DeleteBody, FollowBody
from modules.services.peers.own_identity import FOLLOWS, find_own_record
from modules.services.rights import store
from modules.services.rights.mute import change_mute, withdrawn_line
from modules.services.skills.skills import Skills

_SENDING_S = 45.0
"""How long an unfollow waits for a follow that is being sent; less than a tool may take."""


@dataclass(frozen=True, slots=True)
class MeantAccount:
    """The account of an act for the owner; `handle` is "" if it cannot be read.

    `is_named`: the owner's words name it, or it is the owner's own account.
    """

    did: str
    handle: str
    is_named: bool


class MeantAccounts:
    """Finds the account of an act for the owner: one that the owner's words name, or the owner's own.

    Any other is accepted only for an act that waits for the owner's approval: by the turn's `hold`, or by `approval`.
    """

    def __init__(self, atproto: Atproto, owner_did: str, approval: Approval, words: ToolWords) -> None:
        self._atproto = atproto
        self._owner_did = owner_did
        self._approval = approval
        self._words = words

    async def find(self, account: str, turn: Turn, *, is_shown: bool = True) -> MeantAccount:
        """Return the account of the handle or DID `account`. Raises `ToolStopped`, `Unable`, `Undone`.

        The owner's words of the turn name it by DID, by a mention that their program marked, or by a handle, which
        stands for the account that had it when the turn began. `is_shown`: the act goes through the outbox, so it can
        wait for the owner's approval, which shows the account's name; then "me" may also mean the owner's own account.
        """
        if turn.request:
            await look_up_named(turn.request, partial(self._atproto.resolve_handle, fresh=True))
        did = await self._resolved(account, turn.request)
        is_owner, is_me = did == self._owner_did, did == self._atproto.did
        is_named = is_shown if is_owner else turn.request is not None and not is_me and turn.request.names(did)
        waits = is_shown and self._approval == "drafts" and not is_me
        if not (is_named or waits or turn.hold):
            self._words.stop("Not Named")
        name = account.lower()
        if "." in name and not name.startswith("did:"):
            return MeantAccount(did, name, is_named)
        profile = (await self._atproto.get_profile(did)).or_else(None)
        return MeantAccount(did, profile.handle if profile else "", is_named)

    async def _resolved(self, account: str, request: OwnerRequest | None) -> str:
        known = account if account.startswith("did:") else request and request.named.get(account.lower())
        return known or (await self._atproto.resolve_handle(account, fresh=True)).or_raise()


@dataclass(slots=True)
class AccountTools:
    """The handlers. `on_bluesky` reports the result of an act."""

    atproto: Atproto
    publisher: Publisher
    on_bluesky: BlueskyTools
    meant: MeantAccounts
    database: Database
    journal: Journal
    clock: Clock

    async def follow(self, args: DidInput, turn: Turn) -> ToolResult:
        """Follow an account."""
        meant = await self.meant.find(args.did, turn)
        body = FollowBody(did=meant.did, handle=meant.handle)
        published = await self.publisher.follow(body, act_terms(turn, is_seen=meant.is_named, is_order=meant.is_named))
        followed = self.on_bluesky.answered(published, "followed", ends=False)
        is_muted = await self.database.run(partial(store.muted_among, dids=[meant.did]))
        muted = self.on_bluesky.words.answer("Muted Still") if is_muted else ""
        content = f"{followed.content}\n{muted}".strip()
        return replace(followed, content=content, told={**followed.told, "muted": muted})

    async def unfollow(self, args: DidInput, turn: Turn) -> ToolResult:
        """Delete our follow of an account; withdraw it if it was not sent yet."""
        meant = await self.meant.find(args.did, turn)
        looked = await find_own_record(self.atproto, FOLLOWS, lambda record: record.value.get("subject") == meant.did)
        if (found := looked.or_raise()) is None:
            # NOTE(self): a withdrawal happens at once and cannot be held, so others' words must not cause it.
            if turn.hold and not turn.is_ordered:
                self.on_bluesky.words.stop("Not Named")
            if await self._withdraw_follow(meant):
                return self.on_bluesky.words.done("Follow Withdrawn")
        uri = found.uri if found else await self._sent_follow(meant)
        body = DeleteBody(uri=uri, did=meant.did, handle=meant.handle)
        published = await self.publisher.delete(body, act_terms(turn, is_seen=meant.is_named, is_order=meant.is_named))
        return self.on_bluesky.answered(published, "unfollowed", ends=False)

    async def _withdraw_follow(self, meant: MeantAccount) -> bool:
        """Withdraw a follow that was not sent yet; return whether there was one."""
        withdrawn = await self.database.run(partial(approval.withdraw_follow, did=meant.did))
        for entry in withdrawn:
            await self.journal.record(entry)
        return bool(withdrawn)

    async def _sent_follow(self, meant: MeantAccount) -> str:
        """Return the record of a follow that is being sent, once it is there. Raises `ToolStopped` if none is."""
        outbox = self.publisher.outbox
        follows = await outbox.by_target("follow", meant.did)
        leaving = next((one for one in follows if one.state in {"pending", "sending"}), None)
        sent = await outbox.settled(leaving.id, _SENDING_S) if leaving else None
        if sent and sent.state in {"pending", "sending"}:
            self.on_bluesky.words.stop("Follow Leaves")
        return sent.result_uri if sent and sent.result_uri else self.on_bluesky.words.stop("Not Followed")

    async def mute(self, args: MuteInput, turn: Turn) -> ToolResult:
        """Mute or unmute an account, as `soul mute` does. The network is not told, so the outbox is not needed."""
        meant = await self.meant.find(args.did, turn, is_shown=False)
        change = partial(change_mute, did=meant.did, now=self.clock.now(), off=args.off, handle=meant.handle)
        withdrawn, entries = await self.database.run(change)
        for entry in entries:
            await self.journal.record(replace(entry, trigger_uri=entry.trigger_uri or turn.cause_id))
        words, who = self.on_bluesky.words, f"@{meant.handle}" if meant.handle else meant.did
        return words.done("Unmuted") if args.off else words.done("Muted", who=who, withdrawn=withdrawn_line(withdrawn))


def account_tools(tools: AccountTools, skills: Skills) -> Sequence[Tool]:
    """Return the tools, for the owner only."""
    words = ToolWords(skills, "bluesky-tools")
    family = (
        request_tool(words, "bluesky_follow", DidInput, tools.follow),
        request_tool(words, "bluesky_unfollow", DidInput, tools.unfollow),
        request_tool(words, "mute_account", MuteInput, tools.mute, holdable=False, named_only=True),
    )
    return [replace(tool, needs_name=True) for tool in family]
