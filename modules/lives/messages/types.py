"""The types of the messages life."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from adapters.atproto.types import Actor
from modules.services.agent.tools.types import Revision
from modules.services.inbox.messages import ReceivedMessage, Talk
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.work.types import WorkItem

MESSAGE = "message"
"""The kind of the rows of work for others: one for each conversation in which they wait for an answer."""


@dataclass(frozen=True, slots=True)
class Burst:
    """The unanswered messages of one person in one conversation, oldest first; they get one answer."""

    talk: Talk
    messages: tuple[ReceivedMessage, ...]

    @property
    def newest(self) -> ReceivedMessage:
        return self.messages[-1]

    @property
    def uri(self) -> str:
        """The name by which the journal and the outbox know the burst: that of its newest message."""
        return self.newest.name

    @property
    def text(self) -> str:
        """The texts of the messages, a line each."""
        return "\n".join(message.text for message in self.messages)

    @property
    def author(self) -> Actor:
        """The author."""
        return Actor(self.talk.did, self.talk.handle, is_bot=self.talk.is_bot)

    def answer(self, text: str, *, about_rights: bool = False, is_last_word: bool = False) -> DirectMessageBody:
        """Return the answer with this text; the other arguments are fields of `DirectMessageBody`."""
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
    """A message of a conversation; `who` is "" for us, `rev` its place in the order.

    `at` is when it was sent, ISO-8601; "" if it was not sent yet.
    """

    who: str
    text: str
    rev: str
    at: str


@dataclass(frozen=True, slots=True)
class MessageTurn:
    """The subject of a turn about direct messages: one burst, whose answer is checked against `said` and `told`.

    `told` is the text of our own prompt, without the words of others.
    """

    burst: Burst
    said: tuple[str, ...] = ()
    told: str = ""
    revision: Revision = field(default_factory=Revision)


Reach = Literal["all", "requests", "none"]
"""Which of somebody's messages are read: all, those that may be a request about their own data, or none."""


@dataclass(frozen=True, slots=True)
class ToldDrafts:
    """The ids of the drafts in a message to the owner, in its order; `is_latest`: it is our last message to them.

    `at` is when the message was accepted, `rev` its revision.
    """

    ids: tuple[str, ...] = ()
    is_latest: bool = False
    at: str = ""
    rev: str = ""


@dataclass(frozen=True, slots=True)
class DraftAnswer:
    """The owner's yes or no to drafts, by id. Without ids, it is unclear which drafts are meant."""

    is_yes: bool
    ids: tuple[str, ...]
    reason: str = ""


class OwnerHandler(Protocol):
    """Answers what the owner writes, as the terminal does. The composition root builds it."""

    def takes_a_while(self, line: str) -> bool:
        """Return whether a command (a line that begins with a slash) may have to wait, or needs a turn."""
        ...

    async def obey(self, line: str) -> str:
        """Carry out a command (a line that begins with a slash); return the answer to it."""
        ...

    async def answer(self, item: WorkItem, text: str, sent_at: str) -> str:
        """Return the SOUL's answer to a message; the same row gets the same answer.

        Raises:
            BudgetExceeded: the budget does not allow it now.
            Fatal: the process must stop.
            Transient: the model gives no answer now.

        """
        ...
