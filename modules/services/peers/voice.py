"""Asks the model for the SOUL's own words about itself and about a peer, and puts the fixed parts around them.

Keeps nothing. Each call is one request with its deadline at the gateway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from common.clock import Clock
from common.facts import AgentFacts, QuestionFacts
from common.text.graphemes import fit_post_text
from common.text.untrusted import one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.one_sentence import MOST_CHARS, SentenceQuestion, ask_for_sentence, fitting_words
from modules.services.agent.prompt.prompter import Prompter
from modules.services.peers.identity_post import (
    IDENTITY_POST_MARKER,
    build_identity_post_text,
    extract_github_username_from_text,
    github_url,
)
from modules.services.peers.types import Peer
from modules.services.skills.skills import Skills

SKILL = "peer-awareness"
_TOKENS = 300


@dataclass(frozen=True, slots=True)
class PeerVoice:
    """What the SOUL says of itself and of its peers; `agent` tells who that is, as data beside the prompt."""

    bluesky_username: str
    gateway: LLMGateway
    prompter: Prompter
    skills: Skills
    clock: Clock
    agent: Callable[[], AgentFacts] = AgentFacts

    async def introduce(self, username: str) -> str:
        """The identity post; "" if what the model wrote cannot be one.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        asked = self.skills.render(SKILL, "Introduction", github_username=username)
        said = await self._ask(asked, "say_who_you_are", "Introduction Tool", QuestionFacts("introduction"))
        words = fitting_words(_bare(said.replace(f"`{username}`", " ")), told=asked)
        text = build_identity_post_text(username, words) if words else ""
        return text if is_identity_text(text, username) else ""

    async def announce(self, peer: Peer) -> str:
        """The post that tells of `peer`; "" if what the model wrote cannot be one.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        handle, url = peer.bluesky_handle or "", github_url(peer.github_username)
        asked = self.skills.render(SKILL, "Announcement", handle=handle)
        about = QuestionFacts("peer-announcement", {"handle": (handle,)})
        said = await self._ask(asked, "tell_of_peer", "Announcement Tool", about)
        words = fitting_words(_bare(said), handle, told=asked)
        if not words:
            return ""
        return fit_post_text(words if f"@{handle}" in words.lower() else f"@{handle} {words}", url)

    async def _ask(self, asked: str, tool: str, description: str, about: QuestionFacts) -> str:
        return await ask_for_sentence(
            SentenceQuestion(asked, tool, description, about, _TOKENS),
            skill=SKILL,
            bluesky_username=self.bluesky_username,
            gateway=self.gateway,
            prompter=self.prompter,
            skills=self.skills,
            clock=self.clock,
            agent=self.agent,
        )


def _bare(said: str) -> str:
    """The model's words on one line, without the signs that only the fixed parts have."""
    return one_line(said, MOST_CHARS).replace(IDENTITY_POST_MARKER, " ").replace("`", "")


def is_identity_text(text: str, username: str) -> bool:
    """Whether a text keeps the form that others read: marker, the username in backticks, the link last."""
    return (
        text.startswith(f"{IDENTITY_POST_MARKER}`{username}`")
        and text.endswith(github_url(username))
        and extract_github_username_from_text(text) == username
    )
