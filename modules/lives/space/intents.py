"""Understands what the host wants: by the form of the words where it shows, else by asking the model.

Each text is understood once while the process lives and the conversation lasts. Where the model fails, the words count
as talk, from which nothing follows, and the next look asks again; where it answers without sense, three times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from common.errors import Fatal, SoulError
from common.text.host_intent import classify_host_intent_structural
from common.text.untrusted import one_line
from modules.lives.space.remembered import Remembered
from modules.lives.space.telling import LOOP
from modules.lives.space.types import Intent
from modules.lives.space.verdicts import Verdicts
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry

MOST_INTENTS = 200

_LABELS: dict[str, Intent] = {"ACTION_REQUEST": "action_request", "FOLLOW_UP": "follow_up", "DISCUSSION": "discussion"}
_SHOWN_CHARS = 80
_ASKED_CHARS = 4_000
_MOST_TRIES = 3


class HostIntents:
    """Understands by form, then by the skill `space-judgement`.

    Args:
        verdicts: who is asked.
        journal: hears what the model decided, and of its failures.

    """

    def __init__(self, verdicts: Verdicts, journal: Journal) -> None:
        self._verdicts = verdicts
        self._journal = journal
        self._known: Remembered[Intent] = Remembered(MOST_INTENTS)
        self._tries: Remembered[int] = Remembered(MOST_INTENTS)

    async def classify_host_message(self, content: str) -> Intent:
        """What `content` wants; `discussion` when in doubt."""
        known = self._known.get(content)
        if known is not None:
            return known
        form = classify_host_intent_structural(content)
        if form.confidence == "high" or not content.strip():
            return self._known.put(content, form.intent)
        try:
            answer = await self._verdicts.ask("Intent", content=content[:_ASKED_CHARS])
        except Fatal:
            raise
        except SoulError as error:
            await self._tell("Intent could not be classified", content, str(error), failed=True)
            return form.intent
        intent = next((intent for label, intent in _LABELS.items() if label in answer), None)
        if intent is None:
            await self._tell("Intent could not be classified", content, "the model gave no label", failed=True)
            return self._unlabelled(content, form.intent)
        await self._tell("Intent classified via LLM", content, intent)
        return self._known.put(content, intent)

    async def classify_host_messages(self, contents: Sequence[str]) -> list[Intent]:
        """What each wants, in the order given; the model is asked about all of them at once, about equal ones once."""
        distinct = list(dict.fromkeys(contents))
        intents = await asyncio.gather(*map(self.classify_host_message, distinct))
        found = dict(zip(distinct, intents, strict=True))
        return [found[content] for content in contents]

    def get_cached_intent(self, content: str) -> Intent | None:
        """What `content` was understood to want, if it was."""
        return self._known.get(content)

    def clear(self) -> None:
        """Forget what was understood: another conversation begins."""
        self._known.clear()
        self._tries.clear()

    def _unlabelled(self, content: str, form: Intent) -> Intent:
        """Whoever writes so that a model loses its thread is asked about three times, not at every look."""
        tries = self._tries.put(content, (self._tries.get(content) or 0) + 1)
        return form if tries < _MOST_TRIES else self._known.put(content, form)

    async def _tell(self, summary: str, content: str, reason: str, *, failed: bool = False) -> None:
        await self._journal.record(
            Entry(
                "error" if failed else "decision",
                LOOP,
                f"[space] {summary}",
                line="warn" if failed else "social",
                reason=reason,
                data={"content": one_line(content, _SHOWN_CHARS)},
            )
        )
