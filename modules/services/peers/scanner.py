"""Reads the feeds of candidates, and of known peers once a day: an account can say who it is only there."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.atproto.client import Atproto
from adapters.atproto.types import FeedItem, ListPage, Post
from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.result import GONE, ApiResult, Err, Ok, answering
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.peers.own_identity import LOOP
from modules.services.peers.registry import (
    Ourselves,
    PeerRegistry,
    extract_github_username_from_text,
    find_identity_post,
    is_identity_post,
    names_did,
)
from modules.services.peers.types import Linked, Peer, PeerClaim
from modules.services.pinned_names.store import PinnedNames

FEED_FETCH_LIMIT = 50
_FEEDS_PER_CYCLE = 5
_PAGES_FURTHER_BACK = 5
_FURTHER_LIMIT = 100
_NO_HANDLE = "handle.invalid"
_PROFILE = "README.md"
_UNANSWERED = "that account does not name it back: nothing is said or done under that name"
_DOUBTS: dict[Linked, str] = {
    "contested": "two accounts claim it; it is nobody's until SOUL_PEERS or the page on GitHub names one of them",
    "taken": "it belongs to a peer that the owner listed, or that the GitHub page names",
    "reserved": "it is ours or the owner's; SOULs with one account on GitHub cannot review each other's work",
}


@dataclass(slots=True, kw_only=True)
class PeerScanner:
    """Looks for identity posts on the feeds that are due."""

    atproto: Atproto
    github: GitHub
    registry: PeerRegistry
    names: PinnedNames
    ourselves: Ourselves
    journal: Journal

    async def scan_due(self) -> int:
        """Read the feeds that are due, a few at a time; return how many peers were newly linked."""
        linked = 0
        for peer in self.registry.due_for_scan(_FEEDS_PER_CYCLE):
            key = peer.github_username.lower()
            found = await self._identity_post_of(peer)
            if isinstance(found, Err):
                self.registry.mark_unread(key)
                if found.kind == "transient":
                    break
                continue
            if found.data is None:
                self.registry.mark_identity_not_found(key)
                await self._tell_missing(peer)
                continue
            linked += await self._link(found.data)
        return linked

    @answering
    async def _identity_post_of(self, peer: Peer) -> ApiResult[PeerClaim | None]:
        """Return the claim in the identity post of an account; `Ok(None)` if it has none or the account is gone."""
        post = (await self._find_post(peer)).or_else(None, *GONE)
        username = extract_github_username_from_text(post.text) if post else None
        if not (post and username and self._is_of(post, peer)):
            return Ok(None)
        named = post.author.handle if post.author.handle not in {"", _NO_HANDLE} else peer.bluesky_handle or ""
        return Ok(PeerClaim(named, post.author.did, username, post.uri))

    @answering
    async def _find_post(self, peer: Peer) -> ApiResult[Post | None]:
        """Return an account's newest identity post: among its latest posts, where it was last seen, or further back.

        Only introduced accounts are read further back, as most others are no SOULs.
        """
        first = (await self._page(peer, FEED_FETCH_LIMIT, None)).or_raise()
        if post := find_identity_post(first.items):
            return Ok(post)
        if seen := await self._seen_again(peer):
            return Ok(seen)
        return await self._further_back(peer, first.cursor) if peer.was_introduced else Ok(None)

    async def _seen_again(self, peer: Peer) -> Post | None:
        """Return the identity post where it was last seen; None if it is gone or was never seen."""
        if not peer.identity_uri:
            return None
        read = await self.atproto.get_post_thread(peer.identity_uri, depth=0, parent_height=0)
        thread = read.or_else(None, *GONE)
        return thread.post if thread and is_identity_post(thread.post) else None

    @answering
    async def _further_back(self, peer: Peer, cursor: str | None) -> ApiResult[Post | None]:
        for _ in range(_PAGES_FURTHER_BACK):
            if not cursor:
                break
            page = (await self._page(peer, _FURTHER_LIMIT, cursor)).or_raise()
            if post := find_identity_post(page.items):
                return Ok(post)
            cursor = page.cursor
        return Ok(None)

    async def _page(self, peer: Peer, limit: int, cursor: str | None) -> ApiResult[ListPage[FeedItem]]:
        actor = peer.bluesky_did or peer.bluesky_handle or ""
        return await self.atproto.get_author_feed(actor, limit=limit, cursor=cursor, filter="posts_no_replies")

    def _is_of(self, post: Post, peer: Peer) -> bool:
        """Return whether the post is by the account that was requested, which is neither ours nor the owner's."""
        if not self.ourselves.may_be_peer(post.author, self.atproto.did):
            return False
        if peer.bluesky_did:
            return post.author.did == peer.bluesky_did
        return post.author.handle.lower() == peer.bluesky_handle

    async def _link(self, claim: PeerClaim) -> bool:
        github_id = await self._account_that_names(claim)
        if isinstance(github_id, Err):
            known = self.registry.get(claim.username)
            is_same = known is not None and known.bluesky_did == claim.did
            github_id = Ok(known.github_id if known and is_same else None)
        outcome = self.registry.link_bluesky_handle_to_github(claim, github_id=github_id.data)
        if outcome == "linked":
            summary = f"Linked @{claim.handle} → github.com/{claim.username}"
            reason = "" if github_id.data else _UNANSWERED
            entry = Entry("life", LOOP, summary, line="social", reason=reason, author=claim.handle, dids=(claim.did,))
            await self.journal.record(entry)
        elif outcome != "known":
            summary = f"@{claim.handle} is not linked to github.com/{claim.username}"
            entry = Entry("decision", LOOP, summary, line="warn", reason=_DOUBTS[outcome], dids=(claim.did,))
            await self.journal.record(entry)
        return outcome == "linked"

    @answering
    async def _account_that_names(self, claim: PeerClaim) -> ApiResult[int | None]:
        """Return the id of the GitHub account in an identity post, if that account names the DID that claims it.

        The DID may be on its page, or in the README.md of its profile repository. None if it is in neither, or if the
        login belonged to another account before.
        """
        if not self.github.configured:
            return Ok(None)
        if (page := (await self.github.get_user(claim.username)).or_else(None, *GONE)) is None:
            return Ok(None)
        if not (names_did(page.website, claim.did) or names_did(page.bio, claim.did)):
            read = await self.github.contents.read(Repo(claim.username, claim.username), _PROFILE)
            if (profile := read.or_else(None, *GONE)) is None or not names_did(profile.text, claim.did):
                return Ok(None)
        is_same = await self.names.check("github", claim.username, str(page.id))
        return Ok(page.id if is_same and page.id else None)

    async def _tell_missing(self, peer: Peer) -> None:
        summary = "Peer identity post not found — will retry"
        reason = f"none of the newest posts of @{peer.bluesky_handle} is one"
        await self.journal.record(Entry("decision", LOOP, summary, None, reason, author=peer.bluesky_handle))
