"""Lives that carry out a command of the owner from a direct message, each in its own process, to be killed.

Usage: python -m tests.crash.command_child FOLDER

Forks a life for each line on stdin (`DATABASE DIE_AT_TRANSACTION inside|after`; 0: no death).
The only effect of the command is a line in the file `DATABASE.done` in the folder.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.atproto.types import DirectMessage
from common.clock import iso
from common.redact import Redactor
from modules.lives.messages.alarms import Orders
from modules.lives.messages.respond import OwnerMessageHandler
from modules.lives.messages.state import MessageState
from modules.runtime.console import SilentConsole
from modules.runtime.control import Standing
from modules.runtime.journal.rows import Journal
from modules.runtime.scheduler.scheduler import Attention
from modules.services.identity.identity import Me
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Pacing
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem
from tests.crash.lives import MortalDatabase, live_on_request
from tests.hasty_clock import HastyClock

OWNER = "did:plc:owner"
SENT = DirectMessage("m1", "1", OWNER, iso(datetime.now(UTC) - timedelta(minutes=1)), text="/publish the figures")


class Doing:
    """A handler whose commands append a line each."""

    def __init__(self, done: Path) -> None:
        self._done = done

    def takes_a_while(self, line: str) -> bool:
        return False

    async def obey(self, line: str) -> str:
        with self._done.open("a") as file:
            file.write(f"{line}\n")
        return "It is published."

    async def answer(self, item: WorkItem, text: str, sent_at: str) -> str:
        raise AssertionError(f"{item.key} is no talk: {text}")


async def live(folder: Path, name: str, *fate: str) -> None:
    clock, path = HastyClock(), folder / name
    database = await MortalDatabase.opened(path)
    journal = Journal(database, SilentConsole(), clock, Redactor())
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders={},
        pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
        own_did=lambda: "did:plc:soul",
    )
    state = MessageState(database, clock, Redactor(), Me("rowan", "rowan.test", "owner.test", OWNER))
    await state.take_in([("c1", SENT)], "1")
    table = WorkTable(database, clock)
    handler = OwnerMessageHandler(
        state=state,
        work=table,
        outbox=outbox,
        orders=Orders(table, outbox),
        handler=Doing(path.with_suffix(".done")),
        journal=journal,
        clock=clock,
        standing=Standing,
        timezone="UTC",
    )
    loop = WorkLoop(
        table=table,
        handlers=(handler,),
        perceivers=(),
        accepted=outbox.accepted,
        journal=journal,
        attention=Attention(),
        clock=clock,
        standing=Standing,
    )
    database.await_death(fate)
    await loop.run()
    await database.close()


def main() -> None:
    live_on_request(lambda words: live(Path(sys.argv[1]), *words))


if __name__ == "__main__":
    main()
