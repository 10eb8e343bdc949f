"""Lives that maintain their pull request for a task, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.merge_child FOLDER GITHUB_URL

Loads everything once, then forks a life for each line on stdin, as `crash_child` does. A life looks at the pull request
named in `FOLDER/place` (`repository number`), and ends with code 0.
"""

import asyncio
import sys
from pathlib import Path

from adapters.github.types import Repo
from common.redact import Redactor
from modules.lives.tasks.merge.handle import CONFLICT, MergeHandler
from modules.lives.tasks.merge.perceive import MERGE
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.journal.rows import Journal
from modules.runtime.scheduler.scheduler import Attention
from modules.services.claims.lease_store import TaskOrders
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.github import github_senders
from modules.services.outbox.types import Pacing
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork
from tests.crash.lives import MortalDatabase, github_at, live_on_request, say
from tests.hasty_clock import HastyClock
from tests.shipped_skills import phrase
from tests.trusting import identity_of, trust_without_owner

HASTE = 200
_EVER_S = 1e9


async def live(folder: Path, url: str, fate: list[str]) -> None:
    name, number = (folder / "place").read_text().split()
    repo, clock = Repo("ada", name), HastyClock(HASTE)
    database = await MortalDatabase.opened(folder / f"{name}.db", fate)
    github = github_at(url, "ada", "t-ada", clock, timeout_s=60)
    journal = Journal(database, SilentConsole(), clock, Redactor())
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders=github_senders(identity_of(github, clock)),
        pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
        own_did=lambda: "did:plc:ada",
    )
    table = WorkTable(database, clock)
    handler = MergeHandler(
        github=github,
        trust=trust_without_owner(github, clock),
        table=table,
        orders=TaskOrders(table, lambda _: None),
        outbox=outbox,
        journal=journal,
        clock=clock,
        publish=lambda _: None,
        peers=lambda: ("bea",),
        seen=lambda _: (),
        phrase=phrase,
        by=lambda: "rowan:scripted",
        may_merge_alone=False,
        failing=_nothing,
    )
    loop = WorkLoop(
        table=table,
        handlers=(handler,),
        perceivers=(),
        accepted=outbox.accepted,
        journal=journal,
        attention=Attention(),
        clock=clock,
        standing=Control(folder).standing,
    )
    say("awake")
    key = f"{repo.full_name}#{number}"
    await table.add(NewWork(MERGE, key, {"owner": repo.owner, "repo": repo.name, "number": int(number)}))
    for _ in range(8):
        item = await table.get(MERGE, key)
        if item is None or item.state != "pending":
            break
        clock.ahead += 600
        running = asyncio.ensure_future(loop.run())
        while not running.done():
            if not await _sends(outbox, clock):
                proposed = asyncio.ensure_future(outbox.wait_for_work(_EVER_S))
                await asyncio.wait({running, proposed}, return_when=asyncio.FIRST_COMPLETED)
                proposed.cancel()
        await running
        for conflict in await table.newest(CONFLICT, 1):
            # NOTE(self): nobody codes here, so a conflicting pull request is taken back.
            await table.settle(conflict, "done", "no-code")
    while await _sends(outbox, clock):
        continue
    await github.aclose()
    await database.close()


async def _nothing(*_: object) -> tuple[str, ...]:
    """Return that nothing fails, as no program runs here."""
    return ()


async def _sends(outbox: Outbox, clock: HastyClock) -> bool:
    """Send what is due, and move the time to the next intent; return whether there is one."""
    report = await outbox.deliver_due()
    clock.ahead += report.next_in_s or 0
    return report.next_in_s is not None


def main() -> None:
    folder, url = sys.argv[1:]
    live_on_request(lambda fate: live(Path(folder), url, fate))


if __name__ == "__main__":
    from adapters.github import calls as _loaded  # noqa: F401 - before the first fork, not in each life

    main()
