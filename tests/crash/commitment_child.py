"""Lives that keep commitments, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.commitment_child FOLDER GITHUB_URL TOKEN SPACE_PORT

Loads everything once, then forks a life for each line on stdin (`DIE_AT_TRANSACTION inside|after`, or nothing). It
prints `born PID`, `awake` and `ended CODE`. A life commits to what is new in `FOLDER/wanted.jsonl`,
and ends with code 0 when all of it is kept and reported in the room.
"""

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.space.client import SpaceClient
from common.clock import SystemClock
from common.redact import Redactor
from common.result import ApiResult, Ok
from modules.runtime.console import SilentConsole
from modules.runtime.control import Standing
from modules.runtime.journal.rows import Journal
from modules.runtime.scheduler.scheduler import Attention
from modules.services.commitments.handle import CommitmentHandler, CommitmentPresence
from modules.services.commitments.naming import CommitmentRequest, read_params
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.writer import Announcer
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.github import GitHubSender
from modules.services.outbox.senders.space import EchoLog, SpaceSender
from modules.services.outbox.types import Pacing
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from tests.crash.lives import MortalDatabase, github_at, live_on_request, say
from tests.outbox_rows import counted
from tests.shipped_skills import phrase
from tests.trusting import identity_of

LOGIN, NAME = "rowan-soul", "rowan"
SPEED = 5.0


class FastClock(SystemClock):
    """A clock faster than the machine's and equal in all processes, so that tests do not wait for limiters."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return super().monotonic() * SPEED

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / SPEED)


async def live(folder: Path, github_url: str, token: str, port: int, fate: list[str]) -> None:
    clock = FastClock()
    database = await MortalDatabase.opened(folder / "soul.db", fate)
    journal = Journal(database, SilentConsole(), clock, Redactor())
    github = github_at(github_url, LOGIN, token, clock, timeout_s=2)
    echo_log = EchoLog(NAME)
    room = SpaceClient(
        agent_name=NAME,
        agent_version="1",
        capabilities=lambda: None,
        discover=_at(port),
        clock=FastClock(),
        rng=random.Random(1),
        on_event=echo_log.receive,
    )
    to_github, to_room = GitHubSender(identity_of(github, clock)), SpaceSender(room, echo_log, journal)
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders={"issue": to_github, "issue_comment": to_github, "space_chat": to_room},
        pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
        gates=(to_room.gate,),
        own_did=lambda: "did:plc:rowan",
    )
    table = WorkTable(database, clock)
    queue = CommitmentQueue(folder, table, clock)
    await queue.open()
    handler = CommitmentHandler(
        queue=queue,
        outbox=outbox,
        clock=clock,
        phrase=phrase,
        announcer=Announcer(outbox, clock, phrase=phrase),
        presence=CommitmentPresence(room, clock),
        journal=journal,
        has_github=True,
    )
    loop = WorkLoop(
        table=table,
        handlers=(handler,),
        perceivers=(handler,),
        accepted=outbox.accepted,
        journal=journal,
        attention=Attention(),
        clock=clock,
        standing=Standing,
    )
    living = asyncio.create_task(room.run())
    say("awake")
    for line in (folder / "wanted.jsonl").read_text().splitlines():
        wanted = json.loads(line)
        params = read_params("create_issue", wanted["params"])
        await queue.enqueue_commitment(CommitmentRequest(**{**wanted, "params": params}))
    while not await _all_told(queue, outbox):
        await loop.run()
        await outbox.deliver_due()
        await asyncio.sleep(0.02)
    await room.close()
    await living
    await github.aclose()
    await database.close()


async def _all_told(queue: CommitmentQueue, outbox: Outbox) -> bool:
    if queue.live():
        return False
    counts = await counted(outbox)
    return set(counts) <= {"done"}


def _at(port: int) -> Callable[[], Awaitable[ApiResult[str]]]:
    async def discover() -> ApiResult[str]:
        return Ok(f"ws://127.0.0.1:{port}")

    return discover


def main() -> None:
    folder, github_url, token, port = sys.argv[1:]
    live_on_request(lambda fate: live(Path(folder), github_url, token, int(port), fate))


if __name__ == "__main__":
    from adapters.github import calls as _loaded  # noqa: F401 - before the first fork, not in each life

    main()
