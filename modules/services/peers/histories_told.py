"""Tells a prompt what the peers in its turn and we did together: only acts that stand in public."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from common.provenance import Provenance
from modules.services.peers.histories import PeerHistories, PeerHistory
from modules.services.peers.registry import PeerRegistry
from modules.services.rights.preferences import Preferences
from modules.services.skills.skills import Skills, interpolate

MOST_TOLD = 5
"""Of how many peers one prompt is told."""
_SKILL = "peer-awareness"
_SHOWN_PLACES = 3


@dataclass(frozen=True, slots=True)
class HistoriesTold:
    """Reads `histories`; a peer is named by its DID, or by its name on GitHub as `registry` links it."""

    histories: PeerHistories
    registry: PeerRegistry
    preferences: Preferences
    skills: Skills

    async def text(self, peers: Collection[str], *, least: Provenance) -> str:
        """Return a line for each of `peers` with whom there is something; "" where words of a peer may not be told."""
        if least > Provenance.PEER or not peers:
            return ""
        dids = list(dict.fromkeys(filter(None, map(self._did_of, peers))))
        hidden = await self.preferences.hidden(dids)
        found = [one for did in dids if did not in hidden and (one := self.histories.get(did)) is not None and one.acts]
        return "\n".join(map(self._line, found[:MOST_TOLD]))

    def _did_of(self, name: str) -> str:
        if name.startswith("did:"):
            return name
        peer = self.registry.get(name)
        return (peer.bluesky_did or "") if peer is not None and peer.stands and peer.github_id else ""

    def _line(self, one: PeerHistory) -> str:
        words = self.skills.subsections(_SKILL, "Relationship")
        values: dict[str, object] = {
            "Built On": one.built_on,
            "Agreements": one.agreements,
            "Disagreements": one.productive_disagreements,
            "Shared Work": ", ".join(one.shared_work[-_SHOWN_PLACES:]),
            "Reviews Given": one.reviews_given,
            "Reviews Received": one.reviews_received,
            "Claims Won": one.claims_won,
            "Followed": "yes" if one.followed else "",
            "Announced": "yes" if one.announced else "",
        }
        told = "; ".join(interpolate(words[part], {"value": value}) for part, value in values.items() if value)
        return interpolate(words["Peer"], {"handle": one.handle, "told": told})
