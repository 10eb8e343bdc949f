"""Direct messages between a person and a SOUL as the person's phone shows them, and one pass of the SOUL over them."""

from tests.running_town import RunningSoul, RunningTown
from town.atproto.chat import Convo
from town.atproto.index import FOLLOW


class Phone:
    """A person's direct messages with a SOUL."""

    def __init__(self, town: RunningTown, name: str, soul: str = "rebecca") -> None:
        self.town, self.did, self.soul = town, town.account(name), town.account(soul)
        for did in (self.did, self.soul):
            town.network.put(did, "chat.bsky.actor.declaration", "self", {"allowIncoming": "all"})

    @property
    def convo(self) -> Convo:
        return self.town.network.chat.begin(self.did, self.soul)

    def says(self, *texts: str) -> None:
        for text in texts:
            self.town.network.chat.send(self.did, self.convo, text, {})

    def is_followed(self) -> None:
        """Make the SOUL follow this person."""
        self.town.network.create(self.soul, FOLLOW, {"subject": self.did, "createdAt": "2026-01-01T00:00:00.000Z"})

    @property
    def answers(self) -> list[str]:
        return [message.text for message in self.convo.messages if message.sender == self.soul]

    @property
    def last(self) -> str:
        """The name of the newest message in the form that `soul why` takes."""
        return f"chat:{self.convo.id}/{self.convo.messages[-1].id}"


async def look(soul: RunningSoul) -> None:
    """Run the message loops once and send every resulting intent."""
    for name in ("messages", "message-talk"):
        await soul.app.scheduler.run_guarded(name)
    soul.passes(1)
    await soul.app.scheduler.run_guarded("message-others")
    await soul.send()
