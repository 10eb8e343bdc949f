"""The operational texts in the SOUL's own voice, reworded when the part of SELF.md about its voice changes.

This is a row of work of low importance that makes one model call at a time, so everything that the owner or others
wrote meanwhile comes first. The model is shown that part and the texts of the skill, and nothing that others wrote. The
usable part of its answers replaces `voice-phrases.json` in one step; without any, nothing changes. The file says for
which voice it was written, so that each voice is asked about once, even after a restart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from common.clock import Clock, iso
from common.constants import TEXT_MAX_BYTES
from common.facts import QuestionFacts, TurnFacts
from common.files import read_bounded, write_atomic
from common.wording import LineKind
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from modules.services.identity.keeper import SelfChanged
from modules.services.skills.skills import PART, Skills
from modules.services.voice_phrases.phrases import FORMS, VOICED, as_object, interpolate, problem_of, read_phrases
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem

SKILL = "voice-phrases"
DEFAULTS = "Defaults"

_Stamp = tuple[int, int, int]


class Phrase(Protocol):
    """Returns an operational text by its name, such as `space.creating`, with its placeholders filled in."""

    def __call__(self, key: str, /, **values: object) -> str: ...


class VoicePhrases:
    """Returns operational texts. An unusable file is reported once for each of its versions."""

    def __init__(self, path: Path, skills: Skills, journal: Journal) -> None:
        self._path = path
        self._skills = skills
        self._journal = journal
        self._stamp: _Stamp | None = None
        self._own: Mapping[str, str] = {}

    def phrase(self, key: str, /, **values: object) -> str:
        """Return the text named `key` with `values` in it. Raises `SkillError` if there is no such text."""
        return interpolate(self.template(key), values)

    def template(self, key: str) -> str:
        """Return the text named `key`, placeholders unfilled. Raises `SkillError` if there is no such text."""
        own = self._read().get(key)
        return own if own is not None else self.default(key)

    def default(self, key: str) -> str:
        """Return the text of the skill, placeholders unfilled. Raises `SkillError` if there is no such text."""
        return self._skills.section(SKILL, f"{DEFAULTS}{PART}{key}")

    def _read(self) -> Mapping[str, str]:
        try:
            stat = self._path.stat()
        except OSError:
            self._stamp, self._own = None, {}
            return self._own
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            self._own = self._load()
        return self._own

    def _load(self) -> Mapping[str, str]:
        try:
            return load_phrases(self._path)
        except ValueError as error:
            summary = f"{self._path.name} is not used: {error}"
            reason = "mend it or delete it; until then the texts are those of the skill voice-phrases"
            self._journal.show(Entry("error", SKILL, summary, line="warn", reason=reason))
            return {}


def load_phrases(path: Path) -> dict[str, str]:
    """Return the texts of a file. Raises `ValueError` that says what is wrong with it."""
    return read_phrases(load_object(path))


def load_object(path: Path) -> object:
    """Return the content of a file. Raises `ValueError` if it is not JSON."""
    try:
        return json.loads(read_bounded(path, TEXT_MAX_BYTES).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be read as JSON: {error}") from None


_TOKENS = 1_000
_TEMPERATURE = 0.7
_WRITTEN, _UNUSABLE = "written", "unusable"
_LINES: dict[str, LineKind] = {_WRITTEN: "refl", _UNUSABLE: "warn"}
"""The kind of line that the owner sees in the terminal, by outcome."""
_RANK = 1_000
"""The rank after everything else that waits."""


@dataclass(kw_only=True)
class VoiceWriter(Handler):
    """Writes `path`. `voice` returns the part of SELF.md, "" if there is none; `names` may stand in no text."""

    kind = SKILL
    pause_s = 0.0
    tells = True

    path: Path
    phrases: VoicePhrases
    voice: Callable[[], str]
    names: tuple[str, ...]
    gateway: LLMGateway
    skills: Skills
    table: WorkTable
    journal: Journal
    clock: Clock

    def needs_attention(self, item: WorkItem) -> bool:
        return False

    async def keep_to_the_voice(self, _: SelfChanged) -> None:
        """Add a row that rewords the texts for the current voice, unless that was done or is impossible."""
        digest = self._digest()
        if not digest or digest == self._written_for():
            return
        known = await self.table.get(SKILL, digest)
        if known is None or known.outcome == _WRITTEN:
            await self.table.offer(NewWork(SKILL, digest, rank=_RANK))

    async def handle(self, item: WorkItem) -> Disposition:
        """Ask for the next few texts; write the file when the last are there. Raises as `Handler.handle`."""
        if item.key != self._digest():
            return Disposition("silent", "outdated", "the voice in SELF.md has changed since")
        answered, place = dict(item.payload.get("answered", {})), int(item.payload.get("place", 0))
        try:
            answered |= await self._ask(self.voice().strip(), VOICED[place])
            if place + 1 < len(VOICED):
                await self.table.note(item, place=place + 1, answered=answered)
                return Disposition("later", "going-on", "a few texts at a time, when nothing else waits")
            texts, refused = self._usable(answered)
        except ValueError as error:
            return Disposition("silent", _UNUSABLE, f"the model's texts cannot be used: {error}")
        stamped = {**as_object(texts), "generatedAt": iso(self.clock.now()), "voiceDigest": item.key}
        write_atomic(self.path, json.dumps(stamped, ensure_ascii=False, indent=2) + "\n")
        left = f"; as they were: {'; '.join(refused)}" if refused else ""
        return Disposition("done", _WRITTEN, f"for the voice in SELF.md{left}")

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal's summary, without the reason."""
        return "The texts that it writes on GitHub without asking the model are not reworded yet"

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Record the outcome; it is not a decision about anybody."""
        is_written = disposition.code == _WRITTEN
        told = "are reworded" if is_written else "stay as they are"
        summary = f"The texts that it writes on GitHub without asking the model {told}"
        line = _LINES.get(disposition.code)
        await self.journal.record(Entry("life", SKILL, summary, line=line, reason=disposition.reason))

    def _digest(self) -> str:
        """Return the hash of the current voice; "" if SELF.md describes none."""
        voice = self.voice().strip()
        return hashlib.sha256(voice.encode(errors="replace")).hexdigest() if voice else ""

    async def _ask(self, voice: str, group: Sequence[str]) -> dict[str, object]:
        """Return the model's texts of a group, by name; groups are small, as a small model would copy longer lists."""
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
        """Return the texts for the file, and the problems of those that stay as in the skill.

        Raises `ValueError` if no new text can be used.
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
        """Return the hash of the voice that the file was written for; "" if it has none."""
        try:
            held = load_object(self.path) if self.path.exists() else None
        except ValueError:
            return ""
        return str(held.get("voiceDigest", "")) if isinstance(held, Mapping) else ""


def _object_in(answer: str) -> dict[str, object]:
    """Return the JSON object in a model's answer, with any text around it. Raises `ValueError` if there is none."""
    begins = answer.find("{")
    if begins < 0:
        raise ValueError("the answer holds no JSON object")
    try:
        found = json.JSONDecoder().raw_decode(answer, begins)[0]
    except (ValueError, RecursionError):
        raise ValueError("the answer holds no valid JSON") from None
    return dict(found)
