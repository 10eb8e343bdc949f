"""What changes GitHub, by a process that is killed again and again: none of it is done twice, and none is lost.

Issues, comments, labels, changes, branches, files, updates of a plan, pull requests, reviews and merges.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import sys
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo
from common.clock import SystemClock
from modules.services.outbox.github_bodies import body_digest
from modules.services.plans.render import generate_plan_markdown
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from tests.adapters.results import ok
from tests.children import child_of
from tests.crash.crash_rig import MOMENTS, Nursery, Spread, Watch, live_and_die
from tests.loopback import to_loopback
from tests.town.github_place import needs_git
from town.github.faults import Fault, FaultKind, Faults
from town.github.limits import Meter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import StoredRepo
from town.serving import serve

KILLS = max(10, int(os.environ.get("CRASH_KILLS", "100")) // 2)
SEED = int(os.environ.get("CRASH_SEED", str(random.SystemRandom().randrange(10**6))))
TURNS = (
    "issue",
    "issue_comment",
    "label",
    "issue_update",
    "ref",
    "contents",
    "plan",
    "pull_request",
    "review",
    "merge",
)
AT_A_TIME = 6
LIFE_S = 4.0
LAST_LIFE_S = 300.0
SPREAD = Spread(commits=60, requests=12, any_time_s=1.5, life_s=LIFE_S)
REPO = Repo("rowan", "site")
_FAULTS: tuple[FaultKind, ...] = ("lost_answer", "lost_request", "server_error")


@dataclass
class Work:
    """What is to be done, and what came of it. `kit` is somebody else who may write in the repository."""

    folder: Path
    repo: StoredRepo
    main: str
    rowan: GitHub
    kit: GitHub
    wanted: list[dict[str, Any]] = field(default_factory=list)
    plans: dict[int, str] = field(default_factory=dict)
    """What is to stand in the issue of a plan, by its number."""

    async def refill(self) -> None:
        while len(self.wanted) - self._settled() < AT_A_TIME:
            number = len(self.wanted)
            turn = TURNS[number % len(TURNS)]
            body = {"repo": REPO.full_name, **await self._fields(turn, number)}
            kind = "issue_update" if turn == "plan" else turn
            self.wanted.append({"kind": kind, "turn": turn, "body": body, "cause_id": f"act-{number}"})
        (self.folder / "wanted.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in self.wanted))

    async def _fields(self, turn: str, number: int) -> dict[str, Any]:  # noqa: PLR0911 - a line for each kind
        name = f"Act {number}"
        match turn:
            case "issue":
                return {"title": name, "body": "…"}
            case "issue_comment":
                return {"number": 1, "body": name}
            case "label":
                return {"number": 1, "add": [f"act-{number}"]}
            case "issue_update":
                return {"number": 2, "labels": [f"act-{number}"]}
            case "ref":
                return {"action": "create", "branch": f"act-{number}", "sha": self.main, "own_commit": True}
            case "contents":
                return {"path": f"act-{number}.md", "content": f"{name}\n", "message": f"act-{number}"}
            case "plan":
                return await self._plan(number)
            case "pull_request":
                head = await self._branch(number)
                return {"title": name, "body": "…", "head": head, "base": "main"}
            case "review":
                return {"number": (await self._pull(self.kit, number)).number, "event": "APPROVE", "body": name}
            case _:
                pull = await self._pull(self.rowan, number)
                return {"number": pull.number, "title": f"act-{number}", "head_sha": pull.head.sha}

    async def _plan(self, number: int) -> dict[str, Any]:
        """A plan of a person's, of which one task is to be claimed."""
        plan = Plan(f"Plan {number}", "A goal", tasks=(Task(1, "Begin"), Task(2, "Go on")))
        issue = ok(await self.kit.create_issue(REPO, f"[PLAN] {plan.title}", generate_plan_markdown(plan)))
        body = update_task_in_plan_body(issue.body, 1, TaskChange("claimed", "rowan")).body
        self.plans[issue.number] = body
        return {"number": issue.number, "body": body, "over": body_digest(issue.body)}

    async def _branch(self, number: int) -> str:
        """A branch with one commit of its own."""
        branch = f"branch-{number}"
        ok(await self.kit.refs.create(REPO, branch, self.main))
        path, message = f"branch-{number}.md", f"Branch {number}"
        ok(await self.kit.contents.write(REPO, path, "A line.\n", message=message, branch=branch))
        return branch

    async def _pull(self, author: GitHub, number: int) -> PullRequest:
        head = await self._branch(number)
        return ok(await author.pulls.create(REPO, title=f"Pull {number}", body="…", head=head, base="main"))

    def _settled(self) -> int:
        states = self.states()
        return states.total() - states["pending"] - states["sending"]

    def states(self) -> Counter[str]:
        """How many acts are in each state."""
        path = self.folder / "soul.db"
        if not path.exists():
            return Counter()
        with closing(sqlite3.connect(path, timeout=10)) as connection:
            return Counter(row[0] for row in connection.execute("SELECT state FROM intents"))

    def unfinished(self) -> bool:
        return self._settled() < len(self.wanted)

    def expected(self) -> Counter[str]:
        return Counter(one["cause_id"] for one in self.wanted if one["turn"] != "issue_update")

    async def found(self) -> Counter[str]:
        """What stands on GitHub, by the act that it came from."""
        issues = [issue for issue in self.repo.issues.values() if issue]
        reviews = [review.body for pull in self.repo.pulls.values() for review in pull.reviews]
        said = [comment.body for comment in issues[0].comments]
        names = [issue.title for issue in issues] + [text.partition("\n")[0] for text in said + reviews]
        found = Counter(name.lower().replace(" ", "-") for name in names if name.startswith("Act "))
        found += Counter(label.name for label in issues[0].labels if label.name.startswith("act-"))
        branches = ok(await self.rowan.refs.branches(REPO))
        found += Counter(one.name for one in branches if one.name.startswith("act-"))
        for one in self.wanted:
            issue = self.repo.issues[one["body"]["number"]] if one["turn"] == "plan" else None
            found[one["cause_id"]] += issue is not None and issue.body == self.plans[issue.number]
        return found + await self._commits()

    async def _commits(self) -> Counter[str]:
        """The commits on the default branch that an act made, a file or a merge, by their messages."""
        found: Counter[str] = Counter()
        sha = ok(await self.rowan.refs.get(REPO, "main")).sha
        while sha:
            commit = ok(await self.rowan.refs.commit(REPO, sha))
            if commit.message.startswith("act-"):
                found[commit.message.split()[0]] += 1
            sha = commit.parents[0] if commit.parents else ""
        return found


@needs_git
@pytest.mark.crash
@pytest.mark.timeout(LAST_LIFE_S + KILLS * 20)
async def test_a_process_killed_at_random_does_every_act_on_github_exactly_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng, kills, lives = random.Random(SEED), Counter[str](), 0
    (tmp_path / "git").mkdir()
    async with AsyncExitStack() as stack:
        network, faults = GitHubNetwork(clock=SystemClock(), git_folder=tmp_path / "git"), Faults(rng)
        rowan = network.create_account("rowan", token="ghp_rowan")
        network.create_account("kit", token="ghp_kit")
        repo = network.create_repo(rowan, "site", collaborators=["kit"])
        watch = Watch(github_app(network, faults=faults, meter=Meter(network.clock, known=10**6)))
        url = await stack.enter_async_context(serve(watch))
        github, other = _client(url, "rowan", "ghp_rowan"), _client(url, "kit", "ghp_kit")
        stack.push_async_callback(github.aclose)
        stack.push_async_callback(other.aclose)
        for title in ("One", "Two"):
            ok(await github.create_issue(REPO, title, "…"))
        ok(await github.contents.write(REPO, "README.md", "Hello.\n", message="Begin"))
        main = ok(await github.refs.get(REPO, "main")).sha
        process = await stack.enter_async_context(
            child_of("tests.crash.github_child", str(tmp_path), url, "rowan", "ghp_rowan")
        )
        nursery, work = Nursery(process), Work(tmp_path, repo, main, github, other)
        while kills.total() < KILLS:
            faults.clear()
            await work.refill()
            if rng.random() < 0.3:
                fault = rng.choice(_FAULTS)
                faults.arm(Fault(fault, rng.choice(["POST *", "PUT *", "PATCH *"])))
            lives += 1
            moment = rng.choice(MOMENTS)
            if await live_and_die(watch, nursery, moment, rng, SPREAD):
                kills[moment] += 1
        faults.clear()
        while work.unfinished():
            lives += 1
            await nursery.birth()
            assert await nursery.receive() == "awake"
            assert await nursery.receive(LAST_LIFE_S) == "ended 0"
        expected, found = work.expected(), await work.found()
        acts = Counter(one["turn"] for one in work.wanted)
        with capfd.disabled():
            sys.stdout.write(
                f"\n{kills.total()} SIGKILLs ({dict(kills)}) over {lives} lives; {dict(acts)}; "
                f"{(found - expected).total()} done twice, {(expected - found).total()} lost; seed {SEED}\n"
            )
        assert found == expected
        assert set(work.states()) == {"done"}
        changed = {label.name for label in repo.issues[2].labels} if repo.issues[2] else set()
        assert len(changed) == 1


def _client(url: str, login: str, token: str) -> GitHub:
    return GitHub(api_url=url, login=login, token=token, clock=SystemClock(), min_spacing_s=0, transport=to_loopback)
