"""Issues, comments, labels, changes, branches and files on GitHub, by a process that is killed again and again.

None is done twice, none is lost.
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
from adapters.github.types import Repo
from common.clock import SystemClock
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
KINDS = ("issue", "issue_comment", "label", "issue_update", "ref", "contents")
AT_A_TIME = 6
LIFE_S = 4.0
LAST_LIFE_S = 300.0
SPREAD = Spread(commits=60, requests=12, any_time_s=1.5, life_s=LIFE_S)
REPO = Repo("rowan", "site")
_FAULTS: tuple[FaultKind, ...] = ("lost_answer", "lost_request", "server_error")


@dataclass
class Work:
    """What is to be done, and what came of it."""

    folder: Path
    repo: StoredRepo
    main: str
    wanted: list[dict[str, Any]] = field(default_factory=list)

    def refill(self) -> None:
        while len(self.wanted) - self._settled() < AT_A_TIME:
            number = len(self.wanted)
            kind = KINDS[number % len(KINDS)]
            body = {"repo": REPO.full_name, **self._fields(kind, number)}
            self.wanted.append({"kind": kind, "body": body, "cause_id": f"act-{number}"})
        (self.folder / "wanted.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in self.wanted))

    def _fields(self, kind: str, number: int) -> dict[str, Any]:
        match kind:
            case "issue":
                return {"title": f"Act {number}", "body": "…"}
            case "issue_comment":
                return {"number": 1, "body": f"Act {number}"}
            case "label":
                return {"number": 1, "add": [f"act-{number}"]}
            case "issue_update":
                return {"number": 2, "labels": [f"act-{number}"]}
            case "ref":
                return {"action": "create", "branch": f"act-{number}", "sha": self.main, "own_commit": True}
            case _:
                return {"path": f"act-{number}.md", "content": f"Act {number}\n", "message": f"act-{number}"}

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
        return Counter(one["cause_id"] for one in self.wanted if one["kind"] != "issue_update")

    async def found(self, github: GitHub) -> Counter[str]:
        """What stands on GitHub, by the act that it came from."""
        issues = [issue for issue in self.repo.issues.values() if issue]
        names = [issue.title for issue in issues] + [comment.body.partition("\n")[0] for comment in issues[0].comments]
        found = Counter(name.lower().replace(" ", "-") for name in names if name.startswith("Act "))
        found += Counter(label.name for label in issues[0].labels if label.name.startswith("act-"))
        branches = ok(await github.refs.branches(REPO))
        found += Counter(one.name for one in branches if one.name.startswith("act-"))
        files = ok(await github.contents.list(REPO))
        found += Counter(one.name.removesuffix(".md") for one in files if one.name.startswith("act-"))
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
        repo = network.create_repo(rowan, "site")
        watch = Watch(github_app(network, faults=faults, meter=Meter(network.clock, known=10**6)))
        url = await stack.enter_async_context(serve(watch))
        github = GitHub(
            api_url=url,
            login="rowan",
            token="ghp_rowan",
            clock=SystemClock(),
            min_spacing_s=0,
            transport=to_loopback,
        )
        stack.push_async_callback(github.aclose)
        for title in ("One", "Two"):
            ok(await github.create_issue(REPO, title, "…"))
        ok(await github.contents.write(REPO, "README.md", "Hello.\n", message="Begin"))
        main = ok(await github.refs.get(REPO, "main")).sha
        process = await stack.enter_async_context(
            child_of("tests.crash.github_child", str(tmp_path), url, "rowan", "ghp_rowan")
        )
        nursery, work = Nursery(process), Work(tmp_path, repo, main)
        while kills.total() < KILLS:
            work.refill()
            faults.clear()
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
        expected, found = work.expected(), await work.found(github)
        acts = Counter(one["kind"] for one in work.wanted)
        with capfd.disabled():
            sys.stdout.write(
                f"\n{kills.total()} SIGKILLs ({dict(kills)}) over {lives} lives; {dict(acts)}; "
                f"{(found - expected).total()} done twice, {(expected - found).total()} lost; seed {SEED}\n"
            )
        assert found == expected
        assert set(work.states()) == {"done"}
        changed = {label.name for label in repo.issues[2].labels} if repo.issues[2] else set()
        assert len(changed) == 1
        listed = (await _commits(github, work)).total()
        assert listed == sum(one["kind"] == "contents" for one in work.wanted)


async def _commits(github: GitHub, work: Work) -> Counter[str]:
    """The commits on the default branch that an act made, by their messages."""
    found: Counter[str] = Counter()
    sha = ok(await github.refs.get(REPO, "main")).sha
    while sha:
        commit = ok(await github.refs.commit(REPO, sha))
        if commit.message.startswith("act-"):
            found[commit.message.strip()] += 1
        sha = commit.parents[0] if commit.parents else ""
    return found
