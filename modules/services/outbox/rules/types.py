"""The types of the etiquette rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from modules.services.outbox.types import Instead


@dataclass(frozen=True, slots=True)
class EtiquetteRule:
    """One rule, as data.

    Attributes:
        name: the name that the journal shows.
        limit: the limit.
        unit: what the limit counts.
        window_s: the window of the count in seconds; None if time does not matter.
        source: where the number comes from, in words.
        explanation: its purpose, in one line.
        instead: what is done if the rule forbids a reply.

    """

    name: str
    limit: float
    unit: str
    window_s: float | None
    source: str
    explanation: str
    instead: Instead = "silence"


@dataclass(frozen=True, slots=True)
class TrustCircle:
    """Whom the SOUL knows, each by DID and by handle in lower case.

    Attributes:
        own: the SOUL itself.
        owner: the owner.
        peers: the peers that the owner lists in the settings.
        github: the logins of the SOUL and the owner on GitHub, in lower case.
        found: peers found by identity posts on both sides. They may be reached and named. In all else they are
            strangers: for what waits for the owner's approval, for the counters, and for the day's budget.
        workspaces: the watched ones of the owner's organisation, `owner/name` in lower case.

    """

    own: Collection[str]
    owner: Collection[str]
    peers: Collection[str]
    github: Collection[str] = frozenset()
    found: Collection[str] = frozenset()
    workspaces: Collection[str] = frozenset()

    def is_stranger(self, who: str) -> bool:
        """Return whether `who` (a DID, or a handle in lower case) is not the SOUL, the owner or a listed peer."""
        return not any(who in known for known in (self.own, self.owner, self.peers))

    def is_peer(self, who: str) -> bool:
        """Return whether `who` (a DID, or a handle in lower case) is a listed or a found peer."""
        return who in self.peers or who in self.found

    def is_automated(self, did: str, *, is_bot: bool) -> bool:
        """Return whether `did` is automated; `is_bot` if its profile says so. The owner counts as a person."""
        return did not in self.owner and (is_bot or any(did in known for known in (self.own, self.peers, self.found)))


@dataclass(frozen=True, slots=True)
class World:
    """What the rules must know of the world. Each function is called for each action, in the database's thread.

    Attributes:
        own_did: returns the SOUL's DID; "" before login.
        own_handle: the SOUL's handle.
        owner: DID and handle of the owner.
        peers: returns DIDs and handles of the listed peers.
        follows_us: whether the account with this DID follows the SOUL.
        we_follow: whether the SOUL follows it, as last seen on the network.
        born_at: returns when the SOUL's account was created; None if that is not known.
        github: returns the logins of the SOUL and the owner on GitHub, without those that somebody else took over.
        found: returns DIDs and handles of the peers that were found by identity posts on both sides.
        watched: returns the watched workspaces, `owner/name` in lower case.
        leads_to: whether something led the SOUL to the thread with this number in this repository.
        organisation: the organisation whose workspaces are the owner's; "" for none.
        program: the repository of the SOUL's own program, `owner/name`; "" for none.

    """

    own_did: Callable[[], str]
    own_handle: str
    owner: Collection[str]
    peers: Callable[[], Collection[str]]
    follows_us: Callable[[str], bool]
    born_at: Callable[[], datetime | None]
    github: Callable[[], Collection[str]] = tuple
    found: Callable[[], Collection[str]] = tuple
    watched: Callable[[], Collection[str]] = tuple
    leads_to: Callable[[sqlite3.Connection, str, int], bool] = lambda *_: False
    we_follow: Callable[[str], bool] = lambda _: False
    organisation: str = ""
    program: str = ""

    def circle(self) -> TrustCircle:
        """Return whom the SOUL knows at this moment."""
        own = (self.own_did(), self.own_handle)
        place = f"{self.organisation.lower()}/"
        workspaces = [name for name in self.watched() if self.organisation and name.startswith(place)]
        known = (own, self.owner, self.peers(), self.github(), self.found(), workspaces)
        return TrustCircle(*(_names(names) for names in known))


@dataclass(frozen=True, slots=True)
class ReplyAdvice:
    """How etiquette allows to respond to a post: freely, with a like, in silence, or in `retry_in_s` seconds."""

    act: Literal["free", "later", "like", "silence"] = "free"
    reason: str = ""
    retry_in_s: float = 0.0


def lower(who: str) -> str:
    """Return a handle in lower case, or a DID unchanged."""
    return who if who.startswith("did:") else who.lower()


def _names(names: Collection[str]) -> frozenset[str]:
    return frozenset(lower(name) for name in names if name)
