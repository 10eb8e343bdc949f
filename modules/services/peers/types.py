"""What is remembered of another SOUL, under the names that other programs know from `discovered_peers.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modules.runtime.record_file import FileRecord, Moment

Via = Literal["workspace", "plan", "owner_mention", "thread", "social"]
"""How somebody came to our notice."""
Confidence = Literal["low", "medium", "high"]
Linked = Literal["linked", "known", "contested", "taken", "reserved"]
"""What came of a claim: `linked` is new, `known` stood before; `contested`: two accounts claim the name, and nobody has
it; `taken`: it is another account's; `reserved`: it is ours or the owner's."""


class Peer(FileRecord):
    """One SOUL, or a candidate: an account whose identity post has not been found.

    Attributes:
        github_username: as its identity post says; the Bluesky handle while there is none.
        bluesky_handle: its handle as it was last seen.
        bluesky_did: its account; only a link that knows it counts.
        discovered_via: how it first came to our notice; `vias` holds every way.
        contexts: the uris at which it was seen, newest last.
        identity_uri: where its identity post stood when it was last seen.
        last_verified_at: when its identity post was last seen.
        last_scan_at: when its feed was last read, with `failed_scans` readings in a row that found no identity post.
        github_id: the numeric id of the account on GitHub, where that names `bluesky_did`; None where it does not: then
            nothing is said or done under that name.
        contested_by: dids of other accounts that claim the same GitHub name.
        follows_us: whether it followed us when its profile was last read.
        profile_read_at: when that was.
        claims_github: a name on GitHub that its identity post says and that is ours or the owner's; else None.
        unfollowed_at: when it was last noticed that it unfollowed us, or that our follow of it was taken back.

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
        """Whether its GitHub username is known; a handle has a dot, such a name never."""
        return "." not in self.github_username

    @property
    def stands(self) -> bool:
        """Whether its own feed showed an identity post, for a name that no other account claims."""
        return self.is_linked and bool(self.bluesky_did and self.last_verified_at) and not self.contested_by

    @property
    def was_introduced(self) -> bool:
        """Whether the owner named it, or work brought us together; only then is it followed and announced."""
        return not {"owner_mention", "workspace", "plan"}.isdisjoint({self.discovered_via, *self.vias})


@dataclass(frozen=True, slots=True)
class Sighting:
    """An account that came to our notice; `context` is the uri of what it was seen in."""

    handle: str
    via: Via
    context: str


@dataclass(frozen=True, slots=True)
class PeerClaim:
    """What the identity post on an account's own feed says: this did, with this handle, is `username` on GitHub.

    `uri` is where the post stands.
    """

    handle: str
    did: str
    username: str
    uri: str = ""


@dataclass(frozen=True, slots=True)
class PeerSummary:
    """Numbers of the registry."""

    total: int
    linked: int
    candidates: int
    unfollowed: int
