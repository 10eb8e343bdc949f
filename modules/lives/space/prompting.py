"""What a model is told of a moment in the room. Every word of ours comes from the skill; everybody else's is framed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from common.clock import local, spoken
from common.constants import SPACE_DIGEST_ABOVE_TOKENS
from modules.lives.space.config import SpaceConfig, format_space_config_for_prompt
from modules.lives.space.context import foreign_context, listed, own_context
from modules.lives.space.names import listed as listed_names
from modules.lives.space.notes import SKILL, notes
from modules.lives.space.scene import Scene
from modules.lives.space.transcript import transcript
from modules.services.agent.framing import Framer
from modules.services.agent.skills.skills import Skills
from modules.services.peers.room_members import PeerRelationships

_LEAST_TOKENS = 200
_HOST = "host"


@dataclass(frozen=True, slots=True)
class Prompting:
    """Puts a scene into words.

    Attributes:
        skills: have the words.
        relationships: whom we know.
        rng: draws the boundary around foreign words.
        estimate: tokens of a text.
        timezone: of the SOUL's day; "" for the machine's own.

    """

    skills: Skills
    relationships: PeerRelationships
    rng: random.Random
    estimate: Callable[[str], int]
    timezone: str = ""

    def user_message(self, scene: Scene, config: SpaceConfig, *, room_tokens: int) -> str:
        """The message that the turn answers; `room_tokens` is all the space that there is for it."""
        framer = Framer(self.skills, self.rng)
        pressing = [format_space_config_for_prompt(config, self.skills), *notes(scene, self.skills)]
        told = "\n".join(filter(None, pressing))
        theirs = foreign_context(scene, self.skills, self.relationships)
        context = [own_context(scene, self.skills), self._framed(framer, scene, theirs)]
        beside = self.estimate(self._rendered(scene, context, "", told))
        left = max(_LEAST_TOKENS, min(SPACE_DIGEST_ABOVE_TOKENS, room_tokens - beside))
        talk = transcript(scene.history, estimate=self.estimate, tokens=left, timezone=self.timezone)
        context.append(self._framed(framer, scene, listed(self.skills, "Digest", talk.digest)))
        said = "\n".join(talk.lines)
        conversation = framer.frame("conversation", author="several", uri=scene.thread_uri, text=said) if said else "-"
        return self._rendered(scene, context, conversation, told)

    def framed_post(self, scene: Scene, text: str) -> str:
        """One message of the host, framed."""
        return Framer(self.skills, self.rng).frame("post", author=_HOST, uri=scene.thread_uri, text=text)

    def _rendered(self, scene: Scene, context: list[str], conversation: str, told: str) -> str:
        return self.skills.render(
            SKILL,
            "User Message Template",
            today=spoken(local(scene.now, self.timezone)),
            agent_name=scene.me,
            present=", ".join(filter(None, (listed_names(scene.room.peers), _HOST))),
            typing=listed_names(scene.room.typing) or "-",
            context="\n\n".join(filter(None, context)),
            conversation=conversation,
            notes=told,
        )

    @staticmethod
    def _framed(framer: Framer, scene: Scene, text: str) -> str:
        return framer.frame("reading", author="several", uri=scene.thread_uri, text=text) if text else ""
