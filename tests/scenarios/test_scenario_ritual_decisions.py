"""A ritual's decision is kept as one file of its workspace, by a reviewed pull request; the memo links it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from tests.adapters.results import ok
from tests.loopback import github_at
from tests.patience import until
from tests.scenarios.ritual_town import MONDAY, QUAY, RitualTown, open_ritual_town, think
from tests.town.github_place import needs_git
from town.github.values import GitHubEvent
from town.model.types import ChatRequest, Completion

pytestmark = [needs_git, pytest.mark.slow]

DECIDED = "The staff at the mole is read twice a day, because one reading hid the wake of the ferry."
PATH = f"decisions/{MONDAY:%Y-%m-%d}-harbour-watch.md"


@dataclass
class Decisions:
    """A ritual whose runs decide what `decided` says; `kill_at` are the events at which its opener is killed."""

    town: RitualTown
    kit: GitHub
    decided: str = DECIDED
    asked: list[str] = field(default_factory=list)
    kill_at: list[str] = field(default_factory=list)
    _running: asyncio.Task[object] | None = None

    def think(self, request: ChatRequest) -> Completion:
        """Answer as the town's model, and add a decision to a memo that may hold one."""
        answer, offer = think(request), next((one for one in request.offers if one.name == "write_memo"), None)
        if offer is None:
            return answer
        name = request.facts.agent.handle.removesuffix(".test")
        if "decision" not in offer.parameters["properties"]:
            return answer
        self.asked.append(name)
        (call,) = answer.calls
        return Completion(answer.text, (replace(call, input={**call.input, "decision": self.decided}),))

    def met(self, event: GitHubEvent) -> None:
        """Kill the opener when its own act has arrived and before it gets the answer."""
        if event.by == "rowan" and self._running and self.kill_at[:1] == [event.kind]:
            self.kill_at.pop(0)
            self._running.cancel()

    async def files(self) -> None:
        """Let the opener do what its tasks and pull requests need, despite all kills."""
        for loop in ("tasks", "merges") * 2:
            while not await self._ran(loop):
                await self.town.souls["rowan"].end()
                await self.town.souls["rowan"].wake()
            self.town.clock.stride(180)

    async def _ran(self, loop: str) -> bool:
        app = self.town.souls["rowan"].app
        await app.scheduler.run_guarded("home-lease")
        with self.town.clock.alone():
            running = self._running = asyncio.ensure_future(app.scheduler.run_guarded(loop))

            async def is_over() -> bool:
                if not running.done():
                    report = await app.services.outbox.deliver_due()
                    self.town.clock.stride(report.next_in_s or 0.0)
                return running.done()

            await until(is_over, what="an end of the loop")
        self._running = None
        return not running.cancelled()

    async def approves(self) -> None:
        """Let kit, who may push there, approve the only pull request."""
        (pull,) = self.town.repo.pulls.values()
        ok(await self.kit.pulls.create_review(QUAY, pull.number, event="APPROVE", commit_id=pull.head))


@asynccontextmanager
async def deciding(root: Path) -> AsyncIterator[Decisions]:
    async with open_ritual_town(root, ("rowan", "wren")) as town:
        town.github.create_account("kit", token="t-kit")
        town.repo.collaborators.add("kit")
        kit = github_at(town.urls["github"], "kit", town.clock)
        decisions = Decisions(town, kit)
        town.mind.answer = decisions.think
        town.github.subscribe(decisions.met)
        yield decisions
        await kit.aclose()


async def test_a_decision_is_one_file_over_kills_and_its_owner_is_heard_at_the_next_opening(tmp_path: Path) -> None:
    async with deciding(tmp_path) as decisions:
        town = decisions.town
        await town.live(150, step_s=600)
        assert decisions.asked == ["rowan"], "who opened the run says what it decided, and nobody else"
        (memo,) = town.memos
        said = "\n".join([memo.body or "", *(one.body for one in memo.comments)])
        assert said.count(f"/blob/HEAD/{PATH}") == 1
        decisions.kill_at = ["pushed", "pull_opened"]
        await decisions.files()
        assert decisions.kill_at == []
        (pull,) = town.repo.pulls.values()
        assert pull.is_open
        assert f"Part of #{memo.number}" in (pull.issue.body or "")
        await decisions.approves()
        decisions.kill_at = ["pull_merged"]
        await decisions.files()
        assert pull.merged_at is not None
        listed = ok(await decisions.kit.contents.list(QUAY, "decisions"))
        assert [one.path for one in listed] == [PATH]
        assert DECIDED in ok(await decisions.kit.contents.read(QUAY, PATH)).text
        owner = town.github.find("owner")
        assert owner
        town.sleep_until(MONDAY + timedelta(days=1))
        decisions.decided = ""
        await town.live(150, step_s=600)
        town.github.write_comment(town.repo, pull.issue, owner, "Twice is too often in winter.")
        town.sleep_until(MONDAY + timedelta(days=2))
        await town.live(60, step_s=600)
        _, quiet, heard = town.threads()
        assert "The owner says" not in quiet[0]
        assert "The owner says: Twice is too often in winter." in heard[0]
        await decisions.files()
        assert list(town.repo.pulls.values()) == [pull], "a run that decided nothing leaves no file"
