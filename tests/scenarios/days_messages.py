"""What came of the direct messages of the fortnight, and who else was told of them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.scenarios.days_audit import Days
from tests.scenarios.days_events import COMMANDED, Events, Written

_OF_MESSAGES = ("message", "direct-message", "owner")
"""How the purposes of prompts about direct messages begin: those of others, and the owner's."""


@dataclass(frozen=True)
class Messages:
    """Counts answers in the conversations, and looks for what was said there in all prompts."""

    days: Days
    events: Events

    @property
    def asked(self) -> int:
        """How often somebody wrote who wanted an answer."""
        return sum(one.wants for one in self.events.written)

    def not_answered_once(self) -> list[tuple[str, str, int, int]]:
        """Conversations with another number of answers than of questions: author, SOUL, questions, answers."""
        found = []
        for author, soul in sorted({(one.author, one.soul) for one in self.events.written}):
            asked = [one for one in self._between(author, soul) if one.wants]
            wanted = len(asked) + ((author, soul) == ("owner", COMMANDED))
            answered = len(self.events.answers(author, soul))
            if wanted != answered:
                found.append((author, soul, wanted, answered))
        return found

    def told_in_prompts(self) -> int:
        """How often the words of a message stood in a prompt."""
        return len(self.days.town.mind.prompts.holding(self._words()))

    def told_elsewhere(self) -> list[tuple[str, str]]:
        """Prompts that are not about the talk whose words they hold: author, purpose."""
        of = self._words()
        return [
            (of[words].author, prompt.purpose)
            for words, prompt in self.days.town.mind.prompts.holding(of)
            if not prompt.purpose.startswith(_OF_MESSAGES)
        ]

    def _words(self) -> dict[str, Written]:
        return {words: one for one in self.events.written for words in one.words}

    def _between(self, author: str, soul: str) -> list[Written]:
        return [one for one in self.events.written if (one.author, one.soul) == (author, soul)]
