"""What the page may ask of a resident beyond reading its status: why, approving or rejecting a draft, a pause.

The town knows no SOUL from inside; whoever opens it hands in something that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ToldStep:
    """One thing that happened: `at` is ISO-8601 UTC or "", `details` are lines below it."""

    at: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """Why a resident did something, in plain words; `ending` says where it stands now, if it is not over.

    `lead` is one sentence that says it all to somebody in a hurry.
    """

    title: str
    steps: tuple[ToldStep, ...]
    ending: str = ""
    lead: str = ""


class Controls(Protocol):
    """Each raises `SoulError`, in one line for people, for what is not known or cannot be done."""

    async def why(self, handle: str, uri: str) -> Told:
        """Why the resident wrote the post `uri`, or did not answer it."""
        ...

    async def decide(self, handle: str, draft_id: str, *, yes: bool) -> None:
        """The owner's answer to a draft."""
        ...

    async def pause(self, handle: str, *, paused: bool) -> None:
        """Nothing public leaves any more, or may leave again."""
        ...
