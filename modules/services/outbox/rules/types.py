"""The values that the rooms of etiquette hand each other."""

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
        name: as the journal shows it.
        limit: the number that it holds to.
        unit: what the number counts.
        window_s: in how many seconds it is counted; None where time plays no part.
        source: where the number comes from, in words.
        explanation: what it is for, in one line.
        instead: what is done when the rule forbids a reply.

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
    """Whom we know, each by did and by handle in lower case.

    Attributes:
        own: ourselves.
        owner: the owner.
        peers: the peers that the owner lists in the settings.
        github: our account on GitHub and the owner's, in lower case.
        found: peers that said on their own who they are, as we did. They may be reached and named. In all else they
            are strangers: for what waits for the owner's approval, for the counters, and for the day's budget.
        workspaces: those of the owner's organisation that are watched, `owner/name` in lower case.

    """

    own: Collection[str]
    owner: Collection[str]
    peers: Collection[str]
    github: Collection[str] = frozenset()
    found: Collection[str] = frozenset()
    workspaces: Collection[str] = frozenset()

    def is_stranger(self, who: str) -> bool:
        """Whether `who` (a did, or a handle in lower case) is neither owner nor listed peer nor ourselves."""
        return not any(who in known for known in (self.own, self.owner, self.peers))

    def is_peer(self, who: str) -> bool:
        """Whether `who` (a did, or a handle in lower case) is a listed or a found peer."""
        return who in self.peers or who in self.found

    def is_automated(self, did: str, *, is_bot: bool) -> bool:
        """Whether a program speaks for `did`, whose profile says so if `is_bot`. The owner is a person."""
        return did not in self.owner and (is_bot or any(did in known for known in (self.own, self.peers, self.found)))


@dataclass(frozen=True, slots=True)
class World:
    """What the rules must know of the world. Each function is asked anew for each action, in the database's thread.

    Attributes:
        own_did: our did; "" before login.
        own_handle: our handle.
        owner: did and handle of the owner.
        peers: dids and handles of the listed peers.
        follows_us: whether the account with this did follows us.
        we_follow: whether we follow it, as the network last told.
        born_at: when our account was made; None if nobody knows.
        github: the logins of our account and of the owner's on GitHub, without those that passed on to somebody else.
        found: dids and handles of the peers that were found by identity posts on both sides.
        watched: the workspaces that are watched, `owner/name` in lower case.
        leads_to: whether something led us to the thread in this repository with this number, in this transaction.
        organisation: whose workspaces are the owner's; "" for none.
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
        """Whom we know at this moment."""
        own = (self.own_did(), self.own_handle)
        place = f"{self.organisation.lower()}/"
        workspaces = [name for name in self.watched() if self.organisation and name.startswith(place)]
        known = (own, self.owner, self.peers(), self.github(), self.found(), workspaces)
        return TrustCircle(*(_names(names) for names in known))


@dataclass(frozen=True, slots=True)
class ReplyAdvice:
    """How to meet a post as far as etiquette go: freely, with a like, in silence, or in `retry_in_s` seconds."""

    act: Literal["free", "later", "like", "silence"] = "free"
    reason: str = ""
    retry_in_s: float = 0.0


def lower(who: str) -> str:
    """A handle in lower case; a did as it is."""
    return who if who.startswith("did:") else who.lower()


def _names(names: Collection[str]) -> frozenset[str]:
    return frozenset(lower(name) for name in names if name)
