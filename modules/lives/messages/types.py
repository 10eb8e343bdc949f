"""What this life hands around between its rooms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from adapters.atproto.types import Actor
from modules.services.agent.tools.types import Revision
from modules.services.inbox.messages import ReceivedMessage, Talk
from modules.services.outbox.bodies import DirectMessageBody

MESSAGE = "message"
"""The kind of the rows of work: one for each conversation in which others wait for an answer."""
OWNER_MESSAGE, OWNER_TALK = "owner-message", "owner-talk"
"""The kinds of the rows of what the owner wrote, by the name of the message: as it came, and what needs a turn."""


@dataclass(frozen=True, slots=True)
class Burst:
    """What one person wrote in one conversation and nobody answered yet, oldest first; it gets one answer."""

    talk: Talk
    messages: tuple[ReceivedMessage, ...]

    @property
    def newest(self) -> ReceivedMessage:
        return self.messages[-1]

    @property
    def uri(self) -> str:
        """The name under which the journal and the outbox know it: that of its newest message."""
        return self.newest.name

    @property
    def text(self) -> str:
        """Its messages, a line each."""
        return "\n".join(message.text for message in self.messages)

    @property
    def author(self) -> Actor:
        """Who wrote it."""
        return Actor(self.talk.did, self.talk.handle, is_bot=self.talk.is_bot)

    def answer(self, text: str, *, about_rights: bool = False, is_last_word: bool = False) -> DirectMessageBody:
        """Return the answer with these words; the others as in the body."""
        given = {"about_rights": about_rights, "is_last_word": is_last_word}
        more = {name: True for name, value in given.items() if value}
        return DirectMessageBody(
            conversation_id=self.talk.id,
            to=self.talk.did,
            text=text,
            after_rev=self.newest.rev,
            answers=self.newest.id,
            **more,
        )


@dataclass(frozen=True, slots=True)
class Line:
    """Something that was said in a conversation; `who` is "" for us, `rev` its place in the order.

    `at` is when it was sent, ISO-8601; "" where it has not left yet.
    """

    who: str
    text: str
    rev: str
    at: str


@dataclass(frozen=True, slots=True)
class MessageTurn:
    """What a turn about a direct message may touch: its one answer, checked against what was said and told.

    `told` is what our own prompt said, without the words of others.
    """

    burst: Burst
    said: tuple[str, ...] = ()
    told: str = ""
    revision: Revision = field(default_factory=Revision)


Reach = Literal["all", "requests", "none"]
"""What of somebody's messages is read: all, what may be a request about their own data, or nothing."""


@dataclass(frozen=True, slots=True)
class ToldDrafts:
    """The ids of the drafts in a message to the owner, in its order; `is_latest`: nothing was said to them since.

    `at` is when the message was accepted, `rev` its revision.
    """

    ids: tuple[str, ...] = ()
    is_latest: bool = False
    at: str = ""
    rev: str = ""


@dataclass(frozen=True, slots=True)
class DraftAnswer:
    """The owner's yes or no to drafts, by id. No id: it is not said which of several is meant."""

    is_yes: bool
    ids: tuple[str, ...]
    reason: str = ""


class OwnerHandler(Protocol):
    """Answers what the owner writes, as the terminal does. Built by whoever composes a SOUL."""

    def takes_a_while(self, line: str) -> bool:
        """Whether what a line that begins with a slash asks may have to wait, or is thought about."""
        ...

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

    async def forget(self, key: str) -> None:
        """Forget the answer to a message, which was handed over."""
        ...
