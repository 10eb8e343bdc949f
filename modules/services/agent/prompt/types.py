"""The parts of a prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from common.provenance import Provenance
from modules.runtime.llm.types import CacheGroup, PromptBlock

Audience = Literal["owner", "bluesky", "space"]
"""Who may read what comes of a turn. Only with `owner` may private things be in the prompt."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One part that wants to be in the prompt.

    Attributes:
        name: as the owner knows it, for example `SOUL.md`.
        content: its text, as it will stand in the prompt.
        priority: lower goes first, and stays longest.
        group: how often it changes.
        whole: never cut and never dropped, whatever the budget says.

    """

    name: str
    content: str
    priority: float
    group: CacheGroup
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Truncated:
    """A text cut at its headings: complete sections from the top, and how many were left out."""

    text: str
    sections_left_out: int


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """What came of an assembly.

    Attributes:
        included: the parts as they go into the prompt, by group and then by priority; cut ones as they were cut.
        truncated: names of those that were cut.
        dropped_files: names of those that had no room.
        tokens: estimated tokens of each part that is in.
        over_budget: whether what must be whole is alone larger than the budget.

    """

    included: tuple[PromptFile, ...]
    truncated: tuple[str, ...] = ()
    dropped_files: tuple[str, ...] = ()
    tokens: dict[str, int] = field(default_factory=dict)
    over_budget: bool = False

    @property
    def total(self) -> int:
        """Estimated tokens in all."""
        return sum(self.tokens.values())


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of a prompt for the journal: its name, its length in characters, and the first digits of its SHA-256."""

    name: str
    chars: int
    sha256: str = ""
    tokens: int = 0
    group: str = ""


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """What a model is told before anything else, and of what it was put together."""

    blocks: tuple[PromptBlock, ...]
    parts: tuple[PromptPart, ...]
    dropped: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()
    memories: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """All of it as one text."""
        return "\n\n".join(block.text for block in self.blocks if block.text)


@dataclass(frozen=True, slots=True)
class ToldBefore:
    """What was said with a person before, as a prompt tells it; "" for nothing.

    `provenance` is whose words it brings in; None where it holds only ours.
    """

    text: str = ""
    provenance: Provenance | None = None
