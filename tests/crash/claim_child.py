"""Lives that claim a task on GitHub and give it back, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.claim_child FOLDER GITHUB_URL LOGIN TOKEN

Loads everything once, then forks a life for each line on stdin, as `crash_child` does. A life undoes what is left of
earlier claims; if `FOLDER/claims` exists, it then claims the first task of the plan in issue 1, starts work on it,
renews the claim, gives the task back, and ends with code 0.
"""

import sys
from datetime import timedelta
from pathlib import Path

from adapters.github.types import Repo
from modules.services.claims.claim_requests import PlanReader
from modules.services.claims.claimer import Claimer
from modules.services.claims.lease_store import TaskLeases
from modules.services.claims.policy import RENEWED_AFTER
from tests.adapters.results import ok
from tests.crash.lives import MortalDatabase, github_at, live_on_request, say
from tests.hasty_clock import HastyClock
from tests.trusting import gone_of, trust_without_owner

REPO = Repo("ada", "garden")
HASTE = 10_000
_LATER = RENEWED_AFTER + timedelta(seconds=1)


async def live(folder: Path, url: str, login: str, token: str, fate: list[str]) -> None:
    clock = HastyClock(HASTE)
    database = await MortalDatabase.opened(folder / "soul.db", fate)
    github = github_at(url, login, token, clock, timeout_s=5)
    leases = TaskLeases(database, folder, clock)
    reader = PlanReader(github, leases, trust_without_owner(github, clock), clock, gone_of(github, clock))
    claimer = Claimer(github, leases, reader, lambda task: f"{task.name} is taken.", clock, released=str)
    say("awake")
    await claimer.settle()
    for lease in await claimer.held():
        await claimer.release(lease, "pending")
    if (folder / "claims").exists():
        outcome = await claimer.claim(REPO, ok(await reader.read(REPO, 1)), 1)
        assert outcome.lease is not None, outcome
        assert await claimer.start_work(outcome.lease)
        clock.ahead += _LATER.total_seconds()
        renewed = await claimer.check(outcome.lease)
        assert renewed is not None
        await claimer.release(renewed, "pending")
    await github.aclose()
    await database.close()


def main() -> None:
    folder, url, login, token = sys.argv[1:]
    live_on_request(lambda fate: live(Path(folder), url, login, token, fate))


if __name__ == "__main__":
    from adapters.github import calls as _loaded  # noqa: F401 - before the first fork, not in each life

    main()
