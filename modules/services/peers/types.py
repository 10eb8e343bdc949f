"""The record of another SOUL, with the field names that other programs know from `discovered_peers.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modules.runtime.record_file import FileRecord, Moment

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
