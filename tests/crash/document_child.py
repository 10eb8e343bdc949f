"""Lives that write the document of a task and open its pull request, each in its own process, to be killed.

Usage: python -m tests.crash.document_child FOLDER GITHUB_URL MODEL_URL

Loads everything once, then forks a life for each line on stdin, as `crash_child` does. A life does the first task of
the plan in issue 1 of the repository named in `FOLDER/place`, under one claim, and ends with code 0 once its pull
request is open.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from random import Random

from adapters.github.types import Repo
from common.redact import Redactor
from modules.lives.tasks.documents import DocumentWork, DocumentWriter
from modules.lives.tasks.offering import Offering
from modules.lives.tasks.types import HeldTask, Opened
from modules.runtime.console import SilentConsole
from modules.runtime.journal.rows import Journal
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.prompt.sources import nothing
from modules.services.claims.lease_store import TaskLeases, lease_gate
from modules.services.claims.policy import LEASE, Lease
from modules.services.coding.trajectory import Trajectories
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.github import github_senders
from modules.services.outbox.types import Pacing
from modules.services.plans.types import FoundPlan
from modules.services.repository_rules.policy import Condition
from tests.adapters.results import ok
from tests.crash.lives import MortalDatabase, github_at, live_on_request, say
from tests.hasty_clock import HastyClock
from tests.modules.lives.tasks.workplace import PLAN
from tests.modules.runtime.llm.scripted_model import scripted_gateway
from tests.sending import sends
from tests.shipped_skills import SHIPPED, phrase
from tests.trusting import identity_of, trust_without_owner

HASTE = 200


async def _no_lines(_: Repo) -> tuple[Condition, ...]:
    return ()


async def live(folder: Path, url: str, model_url: str, fate: list[str]) -> None:
    repo = Repo("ada", (folder / "place").read_text())
    clock = HastyClock(HASTE)
    database = await MortalDatabase.opened(folder / f"{repo.name}.db", fate)
    github = github_at(url, "ada", "t-ada", clock, timeout_s=60)
    gateway = scripted_gateway(
        model_url,
        clock=clock,
    )
    outbox = Outbox(
        database=database,
        journal=Journal(database, SilentConsole(), clock, Redactor()),
        clock=clock,
        senders=github_senders(identity_of(github, clock)),
        pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
        gates=(lease_gate,),
        own_did=lambda: "did:plc:ada",
    )
    offering = Offering(
        github=github,
        trust=trust_without_owner(github, clock),
        outbox=outbox,
        clock=clock,
        phrase=phrase,
        peers=lambda: ("bea",),
        file_lines=_no_lines,
    )
    writer = DocumentWriter(gateway, SHIPPED, Random(1), lambda _: False, nothing)
    work = DocumentWork(offering, writer, Attention(), Trajectories(database))
    say("awake")
    now = clock.now()
    lease = Lease(
        *(repo.owner, repo.name, 1, 1, "ada", "held", 1), has_lock=False, since=now, renewed_at=now, until=now + LEASE
    )
    await TaskLeases(database, folder, clock).put(lease)
    found = FoundPlan(repo, ok(await github.get_issue(repo, 1)), PLAN)
    sending = asyncio.create_task(sends(outbox))
    done = await work.do(HeldTask(found, PLAN.tasks[0], 1))
    for request in await outbox.of_kind("review_request", 1):
        await outbox.settled(request.id)
    sending.cancel()
    assert isinstance(done, Opened), done
    await gateway.aclose()
    await github.aclose()
    await database.close()


def main() -> None:
    folder, url, model_url = sys.argv[1:]
    live_on_request(lambda fate: live(Path(folder), url, model_url, fate))


if __name__ == "__main__":
    from adapters.github import calls as _loaded  # noqa: F401 - before the first fork, not in each life

    main()
