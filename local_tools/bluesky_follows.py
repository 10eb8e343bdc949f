"""Tools with which the owner has the SOUL follow accounts, and follow them no more."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.atproto.client import Atproto
from common.result import ApiResult, Err, Ok
from common.text.untrusted import one_line
from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_inputs import DidInput, UnfollowInput
from local_tools.bluesky_turns import is_by_owner, named_in_request, request_tool
from local_tools.words import ToolWords, failed
from modules.lives.bluesky.publish import Publisher
from modules.services.agent.skills.skills import Skills
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.peers.own_records import FOLLOWS, find_own_record

_ERROR_CHARS = 300


class FollowTools:
    """What follows, and ends follows. `on_bluesky` says what became of an act."""

    def __init__(self, atproto: Atproto, publisher: Publisher, on_bluesky: BlueskyTools, words: ToolWords) -> None:
        self._atproto = atproto
        self._publisher = publisher
        self._on_bluesky = on_bluesky
        self._words = words

    async def follow(self, args: DidInput, turn: Turn) -> ToolResult:
        """Follow an account."""
        if wrong := self._not_named(args.did, turn):
            return wrong
        did = await self._did(args.did)
        if isinstance(did, Err):
            return failed(one_line(did.error, _ERROR_CHARS))
        published = await self._publisher.follow(
            did.data, cause_id=turn.cause_id, by_owner=is_by_owner(turn), hold=turn.hold
        )
        return self._on_bluesky.answered(published, "followed", ends=False)

    async def unfollow(self, args: UnfollowInput, turn: Turn) -> ToolResult:
        """Delete a follow record of ours: the one given, or that of the account."""
        uri = args.follow_uri
        if args.did and not uri:
            if wrong := self._not_named(args.did, turn):
                return wrong
            found = await self._record_of(args.did)
            if isinstance(found, Err):
                return failed(one_line(found.error, _ERROR_CHARS))
            uri = found.data
            if not uri:
                return self._words.error("Not Followed")
        if f"{FOLLOWS}/" not in uri:
            return self._words.error("No Follow Record")
        published = await self._publisher.delete(
            uri, cause_id=turn.cause_id, by_owner=is_by_owner(turn), hold=turn.hold
        )
        return self._on_bluesky.answered(published, "unfollowed", ends=False)

    def _not_named(self, account: str, turn: Turn) -> ToolResult | None:
        """Return the error where a request names accounts, and this is none of them."""
        names = [name for name in named_in_request(turn) if name != self._atproto.handle.lower()]
        if names and account.removeprefix("@").lower() not in names:
            return self._words.error("Not Named", names=", ".join(f"@{name}" for name in names))
        return None

    async def _did(self, account: str) -> ApiResult[str]:
        return (
            Ok(account) if account.startswith("did:") else await self._atproto.resolve_handle(account.removeprefix("@"))
        )

    async def _record_of(self, account: str) -> ApiResult[str]:
        """Return the uri of our newest follow of an account; "" if there is none."""
        did = await self._did(account)
        if isinstance(did, Err):
            return did
        found = await find_own_record(self._atproto, FOLLOWS, lambda record: record.value.get("subject") == did.data)
        return found if isinstance(found, Err) else Ok(found.data.uri if found.data else "")


def follow_tools(atproto: Atproto, publisher: Publisher, on_bluesky: BlueskyTools, skills: Skills) -> Sequence[Tool]:
    """Return the tools, for the owner alone: also in a turn about a public post of theirs that asks for it."""
    words = ToolWords(skills, "bluesky-tools")
    tools = FollowTools(atproto, publisher, on_bluesky, words)
    return (
        request_tool(words, "bluesky_follow", DidInput, tools.follow),
        request_tool(words, "bluesky_unfollow", UnfollowInput, tools.unfollow),
    )
