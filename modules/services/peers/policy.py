"""The records and rules of the registry of peers. Pure: a registry and an event in, the next registry out.

Linked peers are stored under their GitHub username in lower case, candidates under their handle.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from common.clock import Since
from modules.runtime.record_file import FileRecord, Moment
from modules.services.outbox.types import ActStanding, Intent, standing_of

Via = Literal["workspace", "plan", "owner_mention", "thread", "social"]
"""How an account was found."""
Confidence = Literal["low", "medium", "high"]
Linked = Literal["linked", "known", "contested", "taken", "reserved"]
"""The result of a claim: `linked` is new, `known` existed before; `contested`: two accounts claim the name, and neither
has it; `taken`: another account has it; `reserved`: it is ours or the owner's."""


class Peer(FileRecord):
    """One SOUL, or a candidate: an account whose identity post has not been found.

    Attributes:
        github_username: the name in its identity post; the Bluesky handle if there is none.
        bluesky_handle: its handle when it was last seen.
        bluesky_did: its account; a link without a DID does not count.
        discovered_via: how it was first found; `vias` has every way.
        contexts: the uris at which it was seen, newest last.
        identity_uri: the uri of its identity post when it was last seen.
        last_verified_at: when its identity post was last seen.
        last_scan_at: when its feed was last read; `failed_scans` counts readings in a row without an identity post.
        github_id: the numeric id of the GitHub account if that names `bluesky_did`; if None, nothing is said or done
            under that name.
        contested_by: DIDs of other accounts that claim the same GitHub name.
        follows_us: whether it followed us when its profile was last read.
        profile_read_at: when its profile was last read.
        claims_github: a GitHub name in its identity post that is ours or the owner's; else None.
        unfollowed_at: when we last noticed that it unfollowed us, or that our follow was taken back.

    """

    github_username: str
    bluesky_handle: str | None = None
    bluesky_did: str | None = None
    identity_uri: str | None = None
    discovered_at: Moment
    discovered_via: Via
    vias: tuple[Via, ...] = ()
    confidence: Confidence
    last_seen_at: Moment
    contexts: tuple[str, ...] = ()
    followed_on_bluesky: bool = False
    announced_on_bluesky: bool = False
    last_verified_at: Moment | None = None
    last_scan_at: Moment | None = None
    failed_scans: int = 0
    contested_by: tuple[str, ...] = ()
    follows_us: bool = False
    profile_read_at: Moment | None = None
    github_id: int | None = None
    unfollowed_at: Moment | None = None
    claims_github: str | None = None

    @property
    def is_linked(self) -> bool:
        """Whether its GitHub username is known; a handle contains a dot, a GitHub username never does."""
        return "." not in self.github_username

    @property
    def stands(self) -> bool:
        """Whether its own feed showed an identity post with a name that no other account claims."""
        return self.is_linked and bool(self.bluesky_did and self.last_verified_at) and not self.contested_by

    @property
    def was_introduced(self) -> bool:
        """Whether the owner named it, or we worked together; only then is it followed and announced."""
        return not {"owner_mention", "workspace", "plan"}.isdisjoint({self.discovered_via, *self.vias})


@dataclass(frozen=True, slots=True)
class Sighting:
    """An account that was seen; `context` is the uri at which it was seen."""

    handle: str
    via: Via
    context: str


@dataclass(frozen=True, slots=True)
class PeerClaim:
    """The claim in the identity post on an account's own feed: this DID, with this handle, is `username` on GitHub.

    `uri` is the address of the post.
    """

    handle: str
    did: str
    username: str
    uri: str = ""


@dataclass(frozen=True, slots=True)
class PeerSummary:
    """The counts of the registry."""

    total: int
    linked: int
    candidates: int
    unfollowed: int


VERIFY_AFTER = timedelta(hours=24)
PROFILE_AGAIN_AFTER = timedelta(hours=24)
STANDS_FOR = timedelta(days=7)
"""How long a link counts after its identity post was last seen."""
RETRY_FIRST = timedelta(minutes=15)
RETRY_LAST = timedelta(hours=6)
KEPT_PEERS = 500
_KEPT_CONTEXTS = 10
_DOUBLINGS = 5
_CONFIDENCE: Mapping[Via, Confidence] = {
    "workspace": "high",
    "plan": "high",
    "owner_mention": "medium",
    "social": "medium",
    "thread": "low",
}
_RANK: Mapping[Confidence, int] = {"low": 1, "medium": 2, "high": 3}


Peers = Mapping[str, Peer]
T = TypeVar("T")


def sighted(peers: Peers, seen: Sighting, now: datetime) -> dict[str, Peer]:
    """Return the registry after an account was seen: its entry is updated, or added as a candidate."""
    key = key_of(peers, seen.handle) or seen.handle.lower()
    known = peers.get(key) or _new(key, seen.via, now)
    # NOTE(self): who speaks to us again may be looked at again soon, but not at each word.
    after = known.replace(
        confidence=max(known.confidence, _CONFIDENCE[seen.via], key=_RANK.__getitem__),
        vias=_with(known.vias, seen.via),
        contexts=_with(known.contexts, seen.context)[-_KEPT_CONTEXTS:],
        last_seen_at=max(now, known.last_seen_at),
        failed_scans=min(known.failed_scans, 1),
    )
    return _within_measure({**peers, key: after})


def worked_with(peers: Peers, login: str, via: Via, context: str, now: datetime) -> dict[str, Peer]:
    """Return the registry after a GitHub account worked with us; that says nothing about its account on Bluesky."""
    key = login.lower()
    known = peers.get(key) or _new(login, via, now).replace(bluesky_handle=None)
    after = known.replace(
        confidence=max(known.confidence, _CONFIDENCE[via], key=_RANK.__getitem__),
        vias=_with(known.vias, via),
        contexts=_with(known.contexts, context)[-_KEPT_CONTEXTS:],
        last_seen_at=max(now, known.last_seen_at),
    )
    return _within_measure({**peers, key: after})


def link(
    peers: Peers,
    claim: PeerClaim,
    now: datetime,
    *,
    listed: Collection[str] = (),
    reserved: Collection[str] = (),
    github_id: int | None = None,
) -> tuple[dict[str, Peer], Linked]:
    """Return the registry after an identity post was seen, and the result of its claim.

    Args:
        peers: the registry.
        claim: the claim in the post.
        now: when it was seen.
        listed: DIDs of the peers in the owner's settings: if two accounts claim a name, it is theirs.
        reserved: GitHub names that nobody else may have: ours and the owner's, in lower case.
        github_id: the GitHub account, if it names the account that claims it; else None. That decides between two who
            are not listed.

    """
    confirmed = github_id is not None
    name = claim.username.lower()
    if name in reserved:
        return _demoted(_without_rival(peers, claim.did), claim, now, claims=claim.username), "reserved"
    peers = {key: peer if key == name else _uncontested(peer, claim.did) for key, peer in peers.items()}
    holder = peers.get(name)
    if holder is None or _is_free(holder) or _is_of(holder, claim):
        return _linked(peers, claim, now, github_id)
    right = 2 if claim.did in listed else int(confirmed)
    held = 2 if holder.bluesky_did in listed else int(holder.github_id is not None)
    if right > held or (confirmed and right == held == 1):
        return _linked(_without_holder(peers, name), claim, now, github_id)
    if held > right:
        return _demoted(peers, claim, now), "taken"
    rivals = _with(holder.contested_by, claim.did)
    return _demoted({**peers, name: holder.replace(contested_by=rivals)}, claim, now), "contested"


def not_found(peers: Peers, key: str, now: datetime) -> dict[str, Peer]:
    """Return the registry after a feed without an identity post was read: the entry is no longer verified."""
    known = peers[key]
    after = known.replace(last_scan_at=now, failed_scans=known.failed_scans + 1, last_verified_at=None)
    return {**_without_rival(peers, known.bluesky_did), key: after}


def unread(peers: Peers, key: str, now: datetime) -> dict[str, Peer]:
    """Return the registry after a feed could not be read, which says nothing about its identity post."""
    return {**peers, key: peers[key].replace(last_scan_at=now, failed_scans=max(1, peers[key].failed_scans))}


def clean(peers: Peers) -> dict[str, Peer]:
    """Return the registry with one entry for each handle: the best one, with what the others knew.

    An account that is no longer known contests no name.
    """
    cleaned: dict[str, Peer] = {}
    by_handle: dict[str, str] = {}
    dids = {peer.bluesky_did for peer in peers.values()}
    for key, peer in sorted(peers.items(), key=lambda item: -_score(*item)):
        other = cleaned.get(by_handle.get(_handle(peer), ""))
        if other and not (other.bluesky_did and peer.bluesky_did and other.bluesky_did != peer.bluesky_did):
            cleaned[by_handle[_handle(peer)]] = merge(other, peer)
            continue
        cleaned[key] = peer.replace(contested_by=tuple(did for did in peer.contested_by if did in dids))
        if peer.bluesky_handle:
            by_handle[_handle(peer)] = key
    return {key: cleaned[key] for key in peers if key in cleaned}


def merge(kept: Peer, other: Peer) -> Peer:
    """Return one entry made of two: name, account and verification of `kept`; what was done with either stays done."""
    first = min(kept, other, key=lambda one: one.discovered_at)
    return kept.replace(
        discovered_at=first.discovered_at,
        discovered_via=first.discovered_via,
        vias=tuple(dict.fromkeys((*kept.vias, *other.vias, kept.discovered_via, other.discovered_via))),
        confidence=max(kept.confidence, other.confidence, key=_RANK.__getitem__),
        last_seen_at=max(kept.last_seen_at, other.last_seen_at),
        contexts=tuple(dict.fromkeys((*other.contexts, *kept.contexts)))[-_KEPT_CONTEXTS:],
        followed_on_bluesky=kept.followed_on_bluesky or other.followed_on_bluesky,
        announced_on_bluesky=kept.announced_on_bluesky or other.announced_on_bluesky,
        follows_us=kept.follows_us or other.follows_us,
        unfollowed_at=max(filter(None, (kept.unfollowed_at, other.unfollowed_at)), default=None),
    )


def related(peers: Peers, key: str, now: datetime, *, is_followed: bool, follows_us: bool) -> dict[str, Peer]:
    """Return the registry after a profile was read; `is_followed`: our follow of it exists."""
    known = peers[key]
    parted = (known.followed_on_bluesky and not is_followed) or (known.follows_us and not follows_us)
    after = known.replace(
        followed_on_bluesky=is_followed,
        follows_us=follows_us,
        profile_read_at=now,
        unfollowed_at=now if parted else known.unfollowed_at,
    )
    return {**peers, key: after}


def is_profile_due(peer: Peer, since: Since) -> bool:
    """Return whether its profile is to be read now, which is once a day."""
    return peer.profile_read_at is None or since(peer.profile_read_at) >= PROFILE_AGAIN_AFTER


def may_follow(peer: Peer, since: Since, cooldown: timedelta) -> bool:
    """Return whether it may be followed now: it is not followed, and any parting is at least `cooldown` ago."""
    return not peer.followed_on_bluesky and not is_parted(peer, since, cooldown)


def is_parted(peer: Peer, since: Since, cooldown: timedelta) -> bool:
    """Return whether there was a parting less than `cooldown` ago."""
    return peer.unfollowed_at is not None and since(peer.unfollowed_at) < cooldown


def scan_due(peer: Peer, since: Since) -> bool:
    """Return whether its feed is due: not within 24 hours of a verification, nor soon after a failed reading."""
    if not peer.bluesky_handle:
        return False
    if peer.last_verified_at is not None and since(peer.last_verified_at) <= VERIFY_AFTER:
        return False
    if peer.last_scan_at is None or not peer.failed_scans:
        return True
    return since(peer.last_scan_at) >= retry_after(peer.failed_scans)


def retry_after(failed: int) -> timedelta:
    """Return how long to leave a feed alone after `failed` vain readings: 15 minutes, doubled up to 6 hours."""
    doublings: int = min(max(failed, 1) - 1, _DOUBLINGS)
    return min(RETRY_LAST, RETRY_FIRST * (1 << doublings))


def standing_by(intents: Sequence[Intent], since: Since) -> ActStanding:
    """Return the state of an act that is done once, by its intents, newest first; each further try waits longer."""
    return standing_of(intents, 1, retry_after(len(intents)), since)


def due_for_scan(peers: Peers, since: Since, most: int) -> list[str]:
    """Return the keys of the entries whose feeds are due, at most `most`.

    Introduced peers come first, then those read longest ago, so that many strangers cannot delay them.
    """
    due = [(key, peer) for key, peer in peers.items() if scan_due(peer, since)]
    due.sort(key=lambda item: (not item[1].was_introduced, item[1].last_scan_at or item[1].discovered_at))
    return [key for key, _ in due[:most]]


def standing(peers: Peers, since: Since) -> frozenset[str]:
    """Return the DIDs and handles of peers whose identity posts were seen within the last week."""
    found = [
        peer
        for peer in peers.values()
        if peer.stands and peer.last_verified_at and since(peer.last_verified_at) <= STANDS_FOR
    ]
    return frozenset(name for peer in found for name in (peer.bluesky_did, _handle(peer)) if name)


def key_of(peers: Peers, handle: str) -> str | None:
    """Return the key of the entry with a handle, a linked entry before a candidate; None if it is unknown."""
    wanted = handle.lower()
    keys = [key for key, peer in peers.items() if _handle(peer) == wanted]
    return min(keys, key=lambda key: not peers[key].is_linked, default=None)


def summary(peers: Peers) -> PeerSummary:
    """Return the counts of the registry."""
    linked = [peer for peer in peers.values() if peer.stands]
    return PeerSummary(
        total=len(peers),
        linked=len(linked),
        candidates=sum(not peer.is_linked for peer in peers.values()),
        unfollowed=sum(not peer.followed_on_bluesky for peer in linked),
    )


def _linked(peers: Peers, claim: PeerClaim, now: datetime, github_id: int | None) -> tuple[dict[str, Peer], Linked]:
    """Return the registry with an account's entry under its name, merged with its other entries, and the result."""
    name, handle = claim.username.lower(), claim.handle.lower()
    before = peers.get(name)
    others = [peer for key, peer in peers.items() if key != name and _is_of(peer, claim)]
    merged = before or (others.pop(0) if others else None) or _new(handle, "social", now)
    for peer in others:
        merged = merge(merged, peer)
    after = merged.replace(
        github_username=claim.username,
        bluesky_handle=handle,
        bluesky_did=claim.did,
        identity_uri=claim.uri or merged.identity_uri,
        last_verified_at=now,
        last_scan_at=now,
        failed_scans=0,
        github_id=github_id,
        contested_by=() if github_id else merged.contested_by,
        claims_github=None,
    )
    rest = {key: peer for key, peer in peers.items() if key != name and not _is_of(peer, claim)}
    known = before is not None and before.stands and _handle(before) == handle and not others
    return {**rest, name: after}, "contested" if after.contested_by else "known" if known else "linked"


def _demoted(peers: Peers, claim: PeerClaim, now: datetime, *, claims: str | None = None) -> dict[str, Peer]:
    """Return the registry in which the account of a failed claim is a candidate, left alone for a while."""
    handle = claim.handle.lower()
    own = [peer for peer in peers.values() if _is_of(peer, claim)]
    merged = own[0] if own else _new(handle, "social", now)
    for peer in own[1:]:
        merged = merge(merged, peer)
    after = merged.replace(
        github_username=handle,
        bluesky_handle=handle,
        bluesky_did=claim.did,
        last_verified_at=None,
        last_scan_at=now,
        failed_scans=merged.failed_scans + 1,
        github_id=None,
        claims_github=claims,
    )
    return {**{key: peer for key, peer in peers.items() if not _is_of(peer, claim)}, handle: after}


def _without_holder(peers: Peers, name: str) -> dict[str, Peer]:
    """Return the registry in which the holder of a name is a candidate again."""
    holder = peers[name]
    handle = _handle(holder) or name
    changes = {"last_verified_at": None, "contested_by": (), "github_id": None}
    demoted = holder.replace(github_username=handle, **changes)
    return {**{key: peer for key, peer in peers.items() if key != name}, handle: demoted}


def _new(handle: str, via: Via, now: datetime) -> Peer:
    return Peer(
        github_username=handle,
        bluesky_handle=handle,
        discovered_at=now,
        discovered_via=via,
        confidence=_CONFIDENCE[via],
        last_seen_at=now,
    )


def _without_rival(peers: Peers, did: str | None) -> dict[str, Peer]:
    """Return the registry in which an account contests no name."""
    return {key: _uncontested(peer, did) for key, peer in peers.items()}


def _uncontested(peer: Peer, did: str | None) -> Peer:
    if did not in peer.contested_by:
        return peer
    return peer.replace(contested_by=tuple(each for each in peer.contested_by if each != did))


def _is_free(peer: Peer) -> bool:
    """Return whether an entry names no account at all."""
    return not (peer.bluesky_did or peer.bluesky_handle)


def _is_of(peer: Peer, claim: PeerClaim) -> bool:
    """Return whether an entry is of the account that claims; without a DID its handle decides."""
    if peer.bluesky_did:
        return peer.bluesky_did == claim.did
    return _handle(peer) == claim.handle.lower()


def _handle(peer: Peer) -> str:
    return (peer.bluesky_handle or "").lower()


def _score(key: str, peer: Peer) -> int:
    real = 0 if "." in key else 10
    return real + 2 * (peer.announced_on_bluesky + peer.followed_on_bluesky) + _RANK[peer.confidence]


def _within_measure(peers: dict[str, Peer]) -> dict[str, Peer]:
    """Return at most `KEPT_PEERS`: candidates that nobody introduced go first, those seen longest ago before others."""
    if len(peers) <= KEPT_PEERS:
        return peers

    def worth(item: tuple[str, Peer]) -> tuple[bool, bool, bool, datetime]:
        peer = item[1]
        acted = peer.followed_on_bluesky or peer.announced_on_bluesky
        return (acted, peer.is_linked, peer.was_introduced, peer.last_seen_at)

    return dict(sorted(peers.items(), key=worth)[len(peers) - KEPT_PEERS :])


def _with(known: tuple[T, ...], one: T) -> tuple[T, ...]:
    """Return `known` with `one` as the newest element, each element once."""
    return (*(each for each in known if each != one), one)
