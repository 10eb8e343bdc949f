"""Asks the model for the SOUL's own words about itself and about a peer, and puts the fixed parts around them.

Keeps nothing. Each call is one request with its deadline at the gateway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from common.facts import QuestionFacts
from common.text.graphemes import fit_post_text
from common.text.untrusted import one_line
from modules.services.agent.one_sentence import MOST_CHARS, SentenceAsker, SentenceQuestion, fitting_words
from modules.services.identity.self_document import SelfExtract
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
_MOST_OF_A_KIND, _LINE_CHARS = 2, 200


@dataclass(frozen=True, slots=True)
class PeerVoice:
    """What the SOUL says of itself and of its peers; `read_self` reads SELF.md."""

    sentences: SentenceAsker
    skills: Skills
    read_self: Callable[[], SelfExtract]

    async def introduce(self, username: str) -> str:
        """The identity post; "" if what the model wrote cannot be one.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        bare, asked = (
            self.skills.render(SKILL, "Introduction", github_username=username, pages=pages)
            for pages in ("", _pages(self.read_self()))
        )
        said = await self._ask(asked, "say_who_you_are", "Introduction Tool", QuestionFacts("introduction"))
        words = fitting_words(_bare(said.replace(f"`{username}`", " ")), told=bare)
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
        return await self.sentences.ask(SentenceQuestion(SKILL, asked, tool, description, about, _TOKENS))


def _pages(known: SelfExtract) -> str:
    """Return what SELF.md says of what the SOUL is there for and busy with, a few lines."""
    lists = (known.current_focus, known.explorations, known.questions, known.values)
    lines = [known.purpose, *(line for each in lists for line in each[:_MOST_OF_A_KIND])]
    return "\n".join(f"- {one_line(line, _LINE_CHARS)}" for line in lines if line)


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
