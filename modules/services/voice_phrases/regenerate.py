"""Has the operational texts written anew when the part of SELF.md on the SOUL's voice has changed.

The model is shown that part and the texts of the skill, and nothing that others wrote. What of its answers can be used
replaces `voice-phrases.json` in one step; where nothing can, nothing changes. The file says which voice it was written
for, so that each is asked about once, also after a restart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.clock import Clock, iso
from common.errors import Fatal, SoulError
from common.facts import QuestionFacts, TurnFacts
from common.files import write_atomic
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Message
from modules.runtime.scheduler.attention import Attention
from modules.services.identity.keeper import SelfChanged
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.phrases import FORMS, VOICED, as_object, problem_of
from modules.services.voice_phrases.store import SKILL, VoicePhrases, load_object

_TOKENS = 1_000
_TEMPERATURE = 0.7


@dataclass(slots=True)
class VoiceWriter:
    """Writes `path`. `voice` returns the part of SELF.md, "" if there is none; `names` may stand in no text."""

    path: Path
    phrases: VoicePhrases
    voice: Callable[[], str]
    names: tuple[str, ...]
    gateway: LLMGateway
    skills: Skills
    journal: Journal
    attention: Attention
    clock: Clock
    _refused: str = field(default="", init=False)

    async def keep_to_the_voice(self, _: SelfChanged) -> None:
        """Write the texts anew where SELF.md has changed. Raises as `regenerate`."""
        await self.regenerate()

    async def regenerate(self) -> bool:
        """Write the texts for the voice of now; return whether that was done. Why not is told by the journal.

        Raises:
            Fatal: the process must end.

        """
        voice = self.voice().strip()
        digest = hashlib.sha256(voice.encode(errors="replace")).hexdigest()
        if not voice or digest in {self._refused, self._written_for()}:
            return False
        try:
            async with self.attention.take(SKILL):
                answered = {key: text for group in VOICED for key, text in (await self._ask(voice, group)).items()}
            texts, refused = self._usable(answered)
            stamped = {**as_object(texts), "generatedAt": iso(self.clock.now()), "voiceDigest": digest}
            write_atomic(self.path, json.dumps(stamped, ensure_ascii=False, indent=2) + "\n")
        except Fatal:
            raise
        except SoulError as error:
            await self._tell("The voice phrases were not written anew", str(error), warns=True)
            return False
        except ValueError as error:
            self._refused = digest
            await self._tell(
                "The voice phrases stay as they are: the model's texts cannot be used", str(error), warns=True
            )
            return False
        left = f"; as they were: {'; '.join(refused)}" if refused else ""
        await self._tell("The voice phrases are written anew", f"for the voice in SELF.md{left}")
        return True

    async def _ask(self, voice: str, group: Sequence[str]) -> dict[str, object]:
        """The texts of a group as the model puts them, by their names; few at a time, or a small model copies them."""
        given = {key: self.phrases.default(key) for key in group}
        shown = json.dumps(given, ensure_ascii=False, indent=1)
        about = QuestionFacts(SKILL, {key: (text,) for key, text in given.items()})
        answer = await self.gateway.chat(
            [Message("user", self.skills.render(SKILL, "Message", voice=voice, phrases=shown))],
            system=self.skills.render(SKILL, "System Prompt"),
            max_tokens=_TOKENS,
            temperature=_TEMPERATURE,
            purpose=SKILL,
            importance="own",
            facts=TurnFacts(about),
        )
        return {key: text for key, text in _object_in(answer).items() if key in given}

    def _usable(self, answered: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
        """The texts for the file, and what is wrong with those that stay as the skill has them.

        Raises `ValueError` where no new text can be used.
        """
        problems = {key: problem_of(key, text, names=self.names) for key, text in answered.items()}
        new = {
            key: str(text) for key, text in answered.items() if not problems[key] and text != self.phrases.default(key)
        }
        refused = [problem for problem in problems.values() if problem]
        if not new:
            raise ValueError("; ".join(refused) or "they are those that it was shown")
        return {key: new.get(key, self.phrases.default(key)) for key in FORMS}, refused

    def _written_for(self) -> str:
        """The voice that the file was written for; "" if it does not say so, or is none."""
        try:
            held = load_object(self.path) if self.path.exists() else None
        except ValueError:
            return ""
        return str(held.get("voiceDigest", "")) if isinstance(held, Mapping) else ""

    async def _tell(self, summary: str, reason: str, *, warns: bool = False) -> None:
        entry = Entry("life", SKILL, summary, line="warn" if warns else "refl", reason=reason)
        await self.journal.record(entry)


def _object_in(answer: str) -> dict[str, object]:
    """The JSON object in a model's answer, whatever stands around it. Raises `ValueError` if there is none."""
    begins = answer.find("{")
    if begins < 0:
        raise ValueError("the answer holds no JSON object")
    try:
        found = json.JSONDecoder().raw_decode(answer, begins)[0]
    except (ValueError, RecursionError):
        raise ValueError("the answer holds no valid JSON") from None
    return dict(found)
