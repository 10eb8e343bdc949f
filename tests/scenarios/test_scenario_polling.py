"""Every loop that looks at GitHub, run for hours: an unchanged resource costs no request, and no change is missed."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapters.github.types import Repo
from modules.lives.github.respond import LOOP as GITHUB_AWARENESS
from modules.services.claims.lease_store import PLAN_AWARENESS
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task, TaskStatus
from tests.adapters.results import ok
from tests.hasty_clock import HastyClock
from tests.running_town import HASTE_STEP_BY_STEP, RunningSoul, RunningTown, awake
from tests.scenarios.github_talk import minding
from tests.town.github_place import needs_git
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOURS = int(os.environ.get("POLL_HOURS", "6"))
MENTION_EVERY_MIN, CHANGE_EVERY_MIN = 90, 120
FLOOR = 200
SITES = (Repo("acme", "www-lil-intdev-site"), Repo("acme", "www-lil-intdev-shop"))
STATUSES: tuple[TaskStatus, ...] = ("pending", "claimed", "in_progress", "completed")


@dataclass
class Counted:
    """An application that counts its reads by what was read and by status code."""

    app: ASGIApp
    read: Counter[tuple[str, int]] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def look(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["method"] == "GET":
                self.read[_kind(scope["path"]), message["status"]] += 1
            await send(message)

        await self.app(scope, receive, look)

    @property
    def unchanged(self) -> float:
        """The share of reads that cost no request."""
        return sum(count for (_, status), count in self.read.items() if status == 304) / self.read.total()


def _kind(path: str) -> str:
    parts = path.strip("/").split("/")
    return parts[3] if parts[0] == "repos" and len(parts) > 3 else parts[0]


@needs_git
@pytest.mark.slow
@pytest.mark.timeout(60 + HOURS * 20)
async def test_four_of_five_looks_at_github_cost_no_request(
    running_town: RunningTown, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = HastyClock(HASTE_STEP_BY_STEP)
    network = GitHubNetwork(clock=clock, git_folder=tmp_path / "git-of-the-town")
    rowan, kit = network.create_account("rowan"), network.create_account("kit")
    acme = network.create_account("acme", kind="Organization")
    repos = [network.create_repo(acme, site.name, collaborators=["rowan", "kit"]) for site in SITES]
    thread = network.open_issue(repos[0], kit, title="Which layout?", body="Narrow or wide?")
    plans = [
        network.open_issue(repo, kit, title="[PLAN] A page", body=_plan(0), labels=["plan", "plan:active"])
        for repo in repos
    ]
    counted = Counted(github_app(network, meter=GitHubMeter(clock)))
    running_town.mind.answer = minding(*(f"Number {number} of the narrow one." for number in range(HOURS + 1)))
    least, mentions = 5000, 0
    async with serve(counted) as url:
        home = running_town.make_home(
            "rowan",
            GITHUB_API_URL=url,
            AGENT_GITHUB_USERNAME="rowan",
            AGENT_GITHUB_TOKEN=rowan.token,
            OWNER_GITHUB_USERNAME="acme",
            SOUL_ALLOW_PRIVATE_NET="on",
            SOUL_SPEED="1",
        )
        async with awake(home, clock=clock) as soul:
            for site in SITES:
                soul.app.services.workspaces.watch(site)
                ok(await soul.app.services.github.contents.write(site, "README.md", "# A page\n", message="Begin"))
            for minute in range(HOURS * 60):
                if minute % MENTION_EVERY_MIN == 30:
                    network.write_comment(repos[0], thread, kit, f"@rowan and what of number {mentions}?")
                    mentions += 1
                if minute % CHANGE_EVERY_MIN == 60:
                    network.change_issue(repos[1], plans[1], acme, body=_plan(minute // CHANGE_EVERY_MIN + 1))
                await _minute(soul, minute)
                least = min(least, soul.app.services.github.rate.remaining)
            soul.passes(300)
            await _minute(soul, 0)
            told = await soul.decisions()
    answered = sum(one.author == rowan for one in thread.comments)
    with capfd.disabled():
        sys.stdout.write(
            f"\n{HOURS} h of looks at GitHub: {counted.read.total()} reads, {counted.unchanged:.1%} of them unchanged, "
            f"at least {least} of 5,000 requests left; {answered} comments after {mentions} mentions; "
            f"{_by_kind(counted.read)}\n"
        )
    assert counted.unchanged >= 0.8
    assert least >= FLOOR
    assert mentions > 0
    assert len([one for one in told if one.entry.loop == GITHUB_AWARENESS]) >= min(mentions, 50)


async def _minute(soul: RunningSoul, minute: int) -> None:
    """Run one minute of a life on GitHub: each loop at its interval, and send the resulting intents."""
    for loop, every in ((GITHUB_AWARENESS, 2), (PLAN_AWARENESS, 3)):
        if minute % every == 0:
            await soul.app.scheduler.run_guarded(loop)
    await soul.app.services.outbox.deliver_due()
    soul.passes(60)


def _plan(number: int) -> str:
    status = STATUSES[number % len(STATUSES)]
    assignee = None if status in {"pending", "completed"} else "kit"
    tasks = (Task(1, "Begin", status=status, assignee=assignee), Task(2, "Go on", dependencies=("Task 1",)))
    return generate_plan_markdown(Plan("A page", "Visitors read it", tasks=tasks))


def _by_kind(read: Counter[tuple[str, int]]) -> str:
    kinds = sorted({kind for kind, _ in read})
    each = {kind: sum(count for (one, _), count in read.items() if one == kind) for kind in kinds}
    return ", ".join(f"{kind} {read[kind, 304]} of {count}" for kind, count in each.items())
