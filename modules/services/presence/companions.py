"""Whose posts may concern us: the owner, and the peers with whom we did not part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from modules.services.identity.identity import Me
from modules.services.outbox.account import AccountContext
from modules.services.peers.registry import PeerRegistry


class CompanionServices(Protocol):
    """Who knows of them."""

    me: Me
    account: AccountContext
    peer_registry: PeerRegistry


def companions_of(services: CompanionServices) -> Callable[[], frozenset[str]]:
    """Return what tells their dids: the owner, listed peers, and found ones, as they are known at that moment."""

    def companions() -> frozenset[str]:
        registry = services.peer_registry
        peers = (services.account.peers() | registry.found()) - registry.parted()
        return frozenset(name for name in (services.me.owner_did, *peers) if name.startswith("did:"))

    return companions
