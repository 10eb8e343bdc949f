"""Who the SOUL is, as data beside a prompt. Pure but for reading SELF.md."""

from __future__ import annotations

from common.facts import AgentFacts
from modules.services.agent.identity.identity import Identity, Me


def agent_facts(me: Me, identity: Identity, soul: str) -> AgentFacts:
    """The facts about `me`; `soul` is the text of SOUL.md."""
    extract = identity.extract()
    return AgentFacts(
        name=identity.display_name,
        handle=me.bluesky_username,
        soul=soul,
        self_lines={
            "purpose": (extract.purpose,) if extract.purpose else (),
            "values": extract.values,
            "questions": extract.questions,
            "patterns": extract.patterns,
            "learnings": extract.learnings,
            "explorations": extract.explorations,
            "currentFocus": extract.current_focus,
            "relationships": extract.relationships,
        },
    )
