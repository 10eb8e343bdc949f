"""What the owner can do from afar, in direct messages: the commands of the terminal, and talk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modules.runtime.scheduler.types import Loop
from modules.services.identity.identity import Me
from modules.services.outbox.act_words import end_of
from modules.services.outbox.outbox import Outbox
from modules.services.owner.owner import OwnerTalk, problem_of
from modules.services.rights.answering import PersonRequests
from modules.services.rights.types import Addressed
from soul.composition.services import Services
from soul.composition.wiring.messages import message_loops
from soul.composition.wiring.turns import TurnServices
from soul.terminal.commands import Commands

_NO_WORDS = "The model ended without an answer. Ask again, in other words."

PhoneCommands = Callable[[Any], Commands]
"""Builds the commands that the owner can give by direct message to the living SOUL that it is given."""


@dataclass
class OwnerMessages:
    """Answers what the owner writes; `owner` and `commands` are asked once the SOUL is put together.

    What they ask about their own data goes to `requests` first.
    """

    me: Me
    outbox: Outbox
    requests: PersonRequests
    owner: Callable[[], OwnerTalk]
    commands: Callable[[], Commands]

    @cached_property
    def _built(self) -> Commands:
        return self.commands()

    def takes_a_while(self, line: str) -> bool:
        """Whether later commands are not to wait for what a line that begins with a slash asks."""
        return bool(self._built.begins(line))

    async def obey(self, line: str) -> str:
        """Do what a line that begins with a slash asks; what to say to it, "" where there is nothing to say."""
        lines, *problem = await self._built.obey(line)
        return "\n".join((*lines, *filter(None, problem)))

    async def answer(self, key: str, text: str) -> str:
        """The SOUL's answer, or why there will be none. Raises as `OwnerTalk.answer_via`."""
        asked = Addressed(key, self.me.owner_did, self.me.owner_handle, text, "owner")
        requested = await self.requests.carry_out(asked)
        if requested and requested.code == "answer":
            return requested.text
        answer = await self.owner().answer_via(key, text)
        if answer.text:
            return answer.text
        problem = problem_of(answer.failed) if answer.failed else (_NO_WORDS, "")
        acts = [end_of(one) for one in reversed(await self.outbox.by_cause(answer.message.cause))]
        return "\n".join(filter(None, (*problem, *acts)))

    async def forget(self, key: str) -> None:
        """Forget the answer to a message, which was handed over."""
        await self.owner().inbox.forget(key)


def loops_for_messages(
    services: Services,
    turn_services: TurnServices,
    requests: PersonRequests,
    owner: Callable[[], OwnerTalk],
    commands: Callable[[], Commands],
) -> list[Loop]:
    """Return the loops that read and answer what the owner and others write; the last two as in `OwnerMessages`."""
    return message_loops(
        services, turn_services, requests, OwnerMessages(services.me, services.outbox, requests, owner, commands)
    )
