"""Looks for other SOULs, also in their feeds. Follows and announces each one once, at most one of each per cycle."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from adapters.atproto.client import Atproto
from adapters.atproto.types import FeedItem, ListPage, Post, Profile, Record
from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock, parse_iso
from common.errors import BudgetExceeded, Transient
from common.intervals import Pace
from common.result import GONE, ApiResult, Err, Ok, answering
from common.settings import Settings
from modules.runtime.control import Standing
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome, is_quiet
from modules.runtime.scheduler.scheduler import Attention
from modules.services.identity.identity import Me
from modules.services.outbox.bodies import FollowBody, PostBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.peers.histories import HISTORIES_FILE, PeerHistories
from modules.services.peers.own_identity import FOLLOWS, LOOP, POSTS, OwnIdentity, PeerVoice, find_own_record, text_of
from modules.services.peers.policy import Linked, Peer, PeerClaim, Sighting, retry_after, standing_by
from modules.services.peers.registry import (
    REGISTRY_FILE,
    Ourselves,
    PeerRegistry,
    extract_github_username_from_text,
    find_identity_post,
    github_url,
    is_identity_post,
    names_did,
)
from modules.services.pinned_names import PinnedNames

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
    ourselves: Callable[[], Ourselves]
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
        if not self.ourselves().may_be_peer(post.author, self.atproto.did):
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


CAUSE = "peer-announcement"
_OVER = frozenset({"done", "refused"})
"""An act that is done, or that the owner refused."""
ANNOUNCEMENTS_PER_DAY = 3


@dataclass(slots=True, kw_only=True)
class Introductions:
    """Proposes the next follow and the next announcement; `note` receives the profiles that are read.

    Nothing is announced in the quiet hours of `timezone`.
    """

    atproto: Atproto
    outbox: Outbox
    registry: PeerRegistry
    voice: PeerVoice
    attention: Attention
    journal: Journal
    clock: Clock
    pace: Pace
    left_alone: Callable[[Iterable[str]], Awaitable[Collection[str]]]
    note: Callable[[Profile], None]
    timezone: str = ""
    _wordless: dict[str, tuple[int, datetime | None]] = field(default_factory=dict, init=False)

    async def follow_next(self) -> bool:
        """Follow the first peer that is due; return whether a follow was proposed."""
        await self._note_parting()
        unfollowed = self.registry.get_unfollowed_peers()
        left_alone = await self.left_alone(peer.bluesky_did or "" for peer in unfollowed)
        for peer in unfollowed:
            did = peer.bluesky_did or ""
            if did in left_alone or await self._is_unwanted(did):
                continue
            code = standing_by(await self._follows_since(peer), self.clock.since).code
            if code == "free":
                follows = await find_own_record(self.atproto, FOLLOWS, _subject_is(did))
                if isinstance(follows, Err):
                    return False
                code = "done" if follows.data else "free"
            if code in _OVER:
                self.registry.mark_peer_followed(peer.github_username)
            elif code == "free":
                profile = await self.atproto.get_profile(did)
                if isinstance(profile, Err):
                    if profile.kind in GONE:
                        continue
                    return False
                self.note(profile.data)
                follow = FollowBody(did=did, handle=profile.data.handle)
                submitted = await self.outbox.submit(ProposedAction(follow, cause_id=LOOP))
                if submitted.accepted:
                    await self._tell(f"Follows @{peer.bluesky_handle}", peer, submitted.intent, "followed")
                return submitted.accepted
        return False

    async def announce_next(self) -> bool:
        """Announce the first peer that is due; return whether an announcement was proposed.

        Raises:
            SoulError: the model or the budget does not allow it now.

        """
        told, unannounced = await self.outbox.by_cause(CAUSE), self.registry.get_unannounced_peers()
        left_alone = await self.left_alone(peer.bluesky_did or "" for peer in unannounced)
        for peer in unannounced:
            if peer.bluesky_did in left_alone or await self._is_unwanted(peer.bluesky_did or ""):
                continue
            of_peer = [one for one in told if one.dedup_key == f"once:{_once(peer)}"]
            code = standing_by(of_peer, self.clock.since).code
            if code == "free" and self._waits_for_words(peer):
                continue
            if code == "free":
                if not await self._may_post(told):
                    return False
                posts = await find_own_record(self.atproto, POSTS, _tells_of(peer))
                if isinstance(posts, Err):
                    return False
                code = "done" if posts.data else "free"
            if code in _OVER:
                self.registry.mark_peer_announced(peer.github_username)
            elif code in {"waits", "held"}:
                return False
            elif code == "free":
                return await self._announce(peer)
        return False

    async def _note_parting(self) -> None:
        """Read the profile of one peer: whether it follows us, and whether our follow was taken back."""
        peer = self.registry.due_for_profile()
        if peer is None or peer.bluesky_did is None:
            return
        did = peer.bluesky_did
        profile = await self.atproto.get_profile(did)
        if isinstance(profile, Err):
            if profile.kind in GONE:
                self.registry.note_profile(
                    peer.github_username, is_followed=peer.followed_on_bluesky, follows_us=peer.follows_us
                )
            return
        self.note(profile.data)
        is_followed = profile.data.is_followed
        if peer.followed_on_bluesky and not is_followed:
            # NOTE(self): the service that shows profiles lags behind; our own records decide.
            stands = await find_own_record(self.atproto, FOLLOWS, _subject_is(did))
            if isinstance(stands, Err):
                return
            is_followed = stands.data is not None
        if not self.registry.note_profile(
            peer.github_username, is_followed=is_followed, follows_us=profile.data.follows_us
        ):
            return
        if not is_followed:
            followed = (await self.outbox.standing("follow", did)).active
            if followed:
                await self.outbox.note_undone(followed.result_uri or "")
        who = "it unfollowed us" if is_followed else "our follow of it was taken back"
        summary = f"Does not follow @{peer.bluesky_handle} for now"
        entry = Entry("decision", LOOP, summary, line="social", reason=who, author=peer.bluesky_handle)
        await self.journal.record(entry)

    async def _is_unwanted(self, did: str) -> bool:
        """Return whether the owner ordered the end of our last follow of an account."""
        return await self.outbox.is_taken_back(await self.outbox.by_target("follow", did))

    async def _follows_since(self, peer: Peer) -> list[Intent]:
        """Return the intents to follow a peer, newest first, without those that were done before we parted."""
        intents = await self.outbox.by_target("follow", peer.bluesky_did or "")
        parted = peer.unfollowed_at
        return [one for one in intents if parted is None or one.state != "done" or parse_iso(one.created_at) > parted]

    async def _announce(self, peer: Peer) -> bool:
        async with self.attention.take(LOOP):
            text = await self.voice.announce(peer)
        if not text:
            tries = self._wordless.get(_once(peer), (0, None))[0] + 1
            self._wordless[_once(peer)] = tries, self.clock.now() + self.clock.real(retry_after(tries))
            summary = f"No word about @{peer.bluesky_handle}: the model found none"
            await self.journal.record(Entry("decision", LOOP, summary, line="warn", reason="will retry"))
            return False
        submitted = await self.outbox.submit(ProposedAction(PostBody(text=text), once=_once(peer), cause_id=CAUSE))
        if submitted.accepted:
            await self._tell(f"Tells of @{peer.bluesky_handle}", peer, submitted.intent, "posted")
        return submitted.accepted

    async def _may_post(self, told: Sequence[Intent]) -> bool:
        """Return whether an announcement may be posted now: it must delay no other post, and three a day are enough."""
        now, day = self.clock.now(), timedelta(days=1)
        if is_quiet(now, self.timezone, keeps_hours=self.clock.keeps_hours):
            return False
        counted = [one for one in told if one.state not in {"failed", "blocked"}]
        if sum(self.clock.since(parse_iso(one.created_at)) < day for one in counted) >= ANNOUNCEMENTS_PER_DAY:
            return False
        last = await self.outbox.last_done_or_accepted("post")
        return last is None or self.clock.real(self.clock.since(last)).total_seconds() >= self.pace.post_cooldown_s

    def _waits_for_words(self, peer: Peer) -> bool:
        _, until = self._wordless.get(_once(peer), (0, None))
        return until is not None and self.clock.now() < until

    async def _tell(self, summary: str, peer: Peer, intent: Intent, act: str) -> None:
        reason = f"a peer by identity posts on both sides: github.com/{peer.github_username}"
        await self.journal.record(
            Entry(
                "decision",
                LOOP,
                summary,
                line="social",
                reason=reason,
                author=peer.bluesky_handle,
                intent_id=intent.id,
                data={"act": act},
            )
        )


def _once(peer: Peer) -> str:
    return f"{CAUSE}:{peer.bluesky_did}"


def _subject_is(did: str) -> Callable[[Record], bool]:
    return lambda record: record.value.get("subject") == did


def _tells_of(peer: Peer) -> Callable[[Record], bool]:
    """Return a test whether a post of ours names the handle and the GitHub URL of a peer already."""
    handle, url = f"@{peer.bluesky_handle}".lower(), github_url(peer.github_username).lower()

    def matches(record: Record) -> bool:
        text = text_of(record).lower()
        return "reply" not in record.value and handle in text and url in text

    return matches


_LISTED = "SOUL_PEERS"


@dataclass(slots=True)
class PeerLoop(Loop):
    """Posts who we are, looks for identity posts, follows and announces. Runs in every mode.

    Nothing happens before `ready`, and nothing is said or done in public while `standing` forbids it. Nothing is posted
    once `is_day_full` returns that there were enough posts. `listed` are the peers' handles in the owner's settings.
    """

    name = LOOP
    at_start = True

    own: OwnIdentity
    registry: PeerRegistry
    scanner: PeerScanner
    introductions: Introductions
    pace: Pace
    listed: tuple[str, ...]
    standing: Callable[[], Standing]
    ready: Callable[[], bool]
    is_day_full: Callable[[], Awaitable[bool]]

    @property
    def interval_ms(self) -> float:
        return self.pace.peers_ms

    async def run(self) -> Outcome:
        if not self.ready():
            wait_s = self.pace.atproto_spacing_ms / 1000
            return Outcome(ran=False, reason="its own feed is still to be read", next_in_s=wait_s)
        self.registry.ensure_peer_registry_clean()
        listed, self.listed = self.listed, ()
        self.registry.register_peer_by_bluesky_handle(Sighting(one, "owner_mention", _LISTED) for one in listed)
        linked = await self.scanner.scan_due()
        may_act = self.standing().may_act
        may_post = may_act and not await self.is_day_full()
        try:
            own = await self.own.ensure(may_speak=may_post)
            may_meet = may_act and self.registry.is_mutual
            followed = may_meet and await self.introductions.follow_next()
            announced = may_meet and may_post and await self.introductions.announce_next()
        except (BudgetExceeded, Transient) as error:
            return Outcome(ran=True, reason=f"{linked} linked; no words for now: {error}")
        did = ", ".join(word for word, done in (("followed one", followed), ("announced one", announced)) if done)
        known = self.registry.get_peer_announcement_summary()
        peers = f"{known.linked} peers, {known.candidates} candidates, {linked} newly linked"
        return Outcome(ran=True, reason=f"{peers}; {own}{'; ' + did if did else ''}")


def ourselves_of(me: Me, settings: Settings) -> Ourselves:
    """Return the accounts that are never peers: ours and the owner's."""
    return Ourselves(
        handle=me.bluesky_username,
        owner_handle=me.owner_handle,
        owner_did=me.owner_did,
        github=(me.github_username, settings.owner_github_username),
    )


def open_peers(
    memory: Path, settings: Settings, me: Me, clock: Clock, names: PinnedNames
) -> tuple[PeerRegistry, PeerHistories]:
    """Return the registry of peers and the histories with them, from the `.memory` folder of a home.

    A peer that the owner listed is the account for which its handle stands in `names`.
    """
    registry = PeerRegistry(
        memory / REGISTRY_FILE,
        clock,
        listed=lambda: [did for one in settings.soul_peers if (did := names.get("bluesky", one))],
        reserved=lambda: ourselves_of(me, settings).github,
        unfollow_cooldown_days=settings.peer_unfollow_cooldown,
    )
    return registry, PeerHistories(memory / HISTORIES_FILE, clock)
