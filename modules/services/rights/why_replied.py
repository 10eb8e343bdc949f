"""Why we replied to somebody, as facts for an answer: what reached us, and what was noted when it was weighed.

Only of replies to whoever asks: what was said to others is not told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from common.errors import SoulError
from common.text.untrusted import one_line
from modules.services.explanation.story import Story
from modules.services.explanation.why import story_of
from modules.services.inbox.messages import MESSAGES
from modules.services.outbox.people import messages_to, replies_to
from modules.services.rights.types import Addressed
from modules.services.rights.voice import SKILL
from modules.services.skills.skills import Skills

_REASON_CHARS = 160
_CAME = {"mention": "mention", "reply": "reply", "quote": "quote", "message": "message"}
"""How a post reached us, and the fact in the skill that says so."""


@dataclass(frozen=True, slots=True)
class ReplyStory:
    """Reads the journal, in a transaction that its caller opened; `own_did` is our account.

    Of direct messages it tells in direct messages only.
    """

    skills: Skills
    own_did: Callable[[], str]

    def facts(self, connection: sqlite3.Connection, asked: Addressed) -> list[str]:
        """Return why the reply was given that `asked` answers, else the newest one to its author."""
        stories = (self._story(connection, what, asked.did) for what in self._replies(connection, asked))
        story = next(filter(None, stories), None)
        if story is None or story.trigger is None:
            return [self.skills.render(SKILL, "Facts", "no reply")]
        came = _CAME.get(story.trigger.reason)
        facts = [self.skills.render(SKILL, "Facts", came)] if came else []
        noted = next((one.reason for one in story.decisions if one.act in {"replied", "answered"} and one.reason), "")
        if noted:
            reason = one_line(noted, _REASON_CHARS)
            facts.append(self.skills.render(SKILL, "Facts", "weighed", reason=reason))
        return facts or [self.skills.render(SKILL, "Facts", "no reply")]

    def _replies(self, connection: sqlite3.Connection, asked: Addressed) -> list[str]:
        if asked.uri.startswith(MESSAGES):
            return [*messages_to(connection, asked.did), *replies_to(connection, asked.did)]
        ours = [asked.answers] if asked.answers.startswith(f"at://{self.own_did()}/") else []
        return [*ours, *replies_to(connection, asked.did)]

    def _story(self, connection: sqlite3.Connection, what: str, did: str) -> Story | None:
        try:
            story = story_of(connection, what)
        except SoulError:
            return None
        return story if story.trigger and story.trigger.did == did else None
