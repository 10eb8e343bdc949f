"""Keeps all prompts sent to a model in a file, and searches them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from common.clock import Clock, parse_iso
from common.facts import QuestionFacts
from town.model.types import ChatRequest


@dataclass(frozen=True)
class KeptPrompt:
    """The full text and the time of one request; `question` is the name of a question about text, else ""."""

    at: datetime
    purpose: str
    text: str
    question: str


@dataclass
class KeptPrompts:
    """A file of JSON lines, one for each request. `count` is their number."""

    path: Path
    clock: Clock
    count: int = field(default=0, init=False)

    def keep(self, request: ChatRequest) -> None:
        """Store a request: each message, the arguments of its calls, and the descriptions of the tools."""
        said = [message.text for message in request.messages]
        said += [json.dumps(call.input, ensure_ascii=False) for one in request.messages for call in one.calls]
        said += [f"{offer.name} {offer.description} {offer.parameters}" for offer in request.offers]
        about = request.facts.about
        line = {
            "at": self.clock.now().isoformat(),
            "purpose": request.facts.purpose,
            "text": "\n".join(said),
            "question": about.question if isinstance(about, QuestionFacts) else "",
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.count += 1

    def forget(self) -> None:
        """Delete all stored prompts."""
        self.path.unlink(missing_ok=True)
        self.count = 0

    def __iter__(self) -> Iterator[KeptPrompt]:
        if not self.count:
            return
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                told: dict[str, Any] = json.loads(line)
                yield KeptPrompt(**told | {"at": parse_iso(told["at"])})

    def holding(self, words: Iterable[str]) -> list[tuple[str, KeptPrompt]]:
        """Return each prompt that contains one of these texts, paired with that text."""
        wanted = [one for one in words if one]
        return [(one, prompt) for prompt in self for one in wanted if one in prompt.text]
