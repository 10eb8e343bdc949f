"""What this life hands around between its rooms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from modules.services.inbox.messages import WaitingMessage


@dataclass(frozen=True, slots=True)
class Perceived:
    """One look at the log: how many messages of the owner are new, and how many of others were left unread."""

    new: int = 0
    of_others: int = 0


@dataclass(frozen=True, slots=True)
class ToldDrafts:
    """The ids of the drafts in a message to the owner, in its order; `is_latest`: nothing was said to them since."""

    ids: tuple[str, ...] = ()
    is_latest: bool = False


@dataclass(frozen=True, slots=True)
class DraftAnswer:
    """The owner's yes or no to drafts, by id. No id: it is not said which of several is meant."""

    is_yes: bool
    ids: tuple[str, ...]
    reason: str = ""


def key_of(message: WaitingMessage) -> str:
    """The key by which the talk with the owner knows a message."""
    return f"direct-message:{message.conversation_id}/{message.id}"


class OwnerHandler(Protocol):
    """Answers what the owner writes, as the terminal does. Built by whoever composes a SOUL."""

    async def obey(self, line: str) -> str:
        """Do what a line that begins with a slash asks; what to say to it."""
        ...

    async def answer(self, key: str, text: str) -> str:
        """The SOUL's answer to a message; the same `key` gets the same answer while it is kept.

        Raises:
            BudgetExceeded: not today.
            Fatal: the process must stop.
            Transient: the model gives no answer now.

        """
        ...

    async def keep_only(self, keys: Collection[str]) -> None:
        """The answers to all other messages were handed over."""
        ...
