"""What this life asks of whoever understands the host and tells repetition in other words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from modules.lives.space.types import Intent


class Understanding(Protocol):
    """Says what the host's messages mean."""

    async def classify_host_messages(self, contents: Sequence[str]) -> Sequence[Intent]:
        """What each means, in the order given."""
        ...

    def get_cached_intent(self, content: str) -> Intent | None:
        """What it was understood to mean; None if that is not settled."""
        ...

    def clear(self) -> None:
        """Forget what was understood: another conversation begins."""
        ...


class Judging(Protocol):
    """Says whether words repeat others."""

    async def is_echo_by_llm_judge(self, candidate: str, peers: Sequence[str]) -> bool:
        """Whether `candidate` makes the point of one of `peers` again; False when in doubt."""
        ...

    def clear(self) -> None:
        """Forget what was judged: another conversation begins."""
        ...
