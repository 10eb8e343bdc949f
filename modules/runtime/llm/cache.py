"""How much of what is sent the service had kept from an earlier call. In memory only: a start begins to count anew."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from modules.runtime.llm.types import Usage

REMEMBERED_CALLS = 200


@dataclass(frozen=True, slots=True)
class CacheRate:
    """The latest calls that the service counted: their number, and their tokens of input."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0

    @property
    def share(self) -> float | None:
        """The part of the input that was kept, 1 for all; None before the first counted call."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None


class CacheMeter:
    """Remembers the latest counted calls."""

    def __init__(self, calls: int = REMEMBERED_CALLS) -> None:
        self._seen: deque[tuple[int, int]] = deque(maxlen=calls)

    def note(self, usage: Usage) -> None:
        """One answer; one whose input was not counted says nothing."""
        if usage.input_tokens:
            self._seen.append((usage.input_tokens, usage.cached_tokens))

    @property
    def rate(self) -> CacheRate:
        """How it stands now."""
        return CacheRate(len(self._seen), sum(sent for sent, _ in self._seen), sum(kept for _, kept in self._seen))
