"""Facts about the SOUL, as data beside a prompt. Pure except for reading SELF.md."""

from __future__ import annotations

from common.facts import AgentFacts
from modules.services.identity.identity import Identity, self_lines
from modules.services.identity.owner import Me


def agent_facts(me: Me, identity: Identity, soul: str) -> AgentFacts:
    """Return the facts about `me`; `soul` is the text of SOUL.md."""
    return AgentFacts(
        name=identity.display_name,
        handle=me.bluesky_username,
        soul=soul,
        self_lines=self_lines(identity.extract()),
    )
