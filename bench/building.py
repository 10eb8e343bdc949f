"""Two SOULs work on plans in real repositories with a model of your choice; reports the progress of each task.

Run: `python bench/building.py FOLDER MODEL_URL… [--minutes 60] [--speed 5] [--set NAME=VALUE]` (needs git, bubblewrap).

FOLDER holds one folder for each repository: `files/` is its main branch; `plan.md` is a plan, its title in the first
line. MODEL_URL is any service with the chat-completions API; a second one serves the second SOUL. Bluesky
and GitHub are those of the town, on loopback; the SOULs are processes of the unmodified program, whose homes stay in
FOLDER/homes.

Prints every half minute, and at the end, the pull requests of each task with their verdicts, the comments on each plan,
and the calls and tokens of each SOUL by purpose. `FOLDER/town.txt` has the addresses and tokens, so that a person can
comment and merge meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from adapters.github.types import Repo
from common.clock import SystemClock
from modules.runtime.home import Home
from modules.services.plans.plan_text import parse_plan
from modules.services.workspaces.addresses import WORKSPACE_PREFIX
from modules.services.workspaces.watched import WatchedWorkspaces
from tests.program import started
from tests.running_town import RunningTown, open_running_town
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

if TYPE_CHECKING:
    from town.github.values import GitHubAccount, StoredIssue, StoredRepo


OWNER = "owner"
_SPENT = """SELECT purpose, count(*), total(input_tokens), total(output_tokens), max(input_tokens) FROM model_calls
    WHERE state = 'settled' GROUP BY purpose ORDER BY 3 DESC"""


class PurposeSpent(NamedTuple):
    """The calls for one purpose, and their tokens; `largest` is the largest input of a call."""

    purpose: str
    calls: int
    taken: float
    given: float
    largest: int


def github_home(town: RunningTown, network: GitHubNetwork, name: str, watched: Sequence[Repo], **more: str) -> Home:
    """Make the home of a SOUL that also has the account `name` on GitHub, and watches these repositories.

    Raises `LookupError` if GitHub has no such account.
    """
    account = network.find(name)
    if account is None:
        raise LookupError(f"{name} has no account")
    settings = {
        "GITHUB_API_URL": town.github_url,
        "AGENT_GITHUB_USERNAME": name,
        "AGENT_GITHUB_TOKEN": account.token,
        "OWNER_GITHUB_USERNAME": OWNER,
        "SOUL_ALLOW_PRIVATE_NET": "on",
        "BUDGET_TOKENS_PER_DAY": "100000000",
    }
    home = town.make_home(name, **(settings | more))
    home.memory.mkdir(parents=True, exist_ok=True)
    workspaces = WatchedWorkspaces(home.memory / "watched_workspaces.json", SystemClock(), town.github_url)
    for repo in watched:
        workspaces.watch(repo)
    return home


def spent_by_purpose(home: Home) -> list[PurposeSpent]:
    """Return the model calls by purpose, most input tokens first."""
    with closing(read_only(home)) as connection:
        return [PurposeSpent(*row) for row in connection.execute(_SPENT)]


def told_spent(home: Home) -> Iterator[str]:
    """Yield a line with the total, and one for each purpose."""
    spent = spent_by_purpose(home)
    tokens = sum(one.taken + one.given for one in spent)
    yield f"{home.root.name}: {sum(one.calls for one in spent)} calls, {tokens:,.0f} tokens"
    yield from (f"  {one.purpose}: {one.calls} calls, {one.taken:,.0f} in, {one.given:,.0f} out" for one in spent)


def read_only(home: Home) -> sqlite3.Connection:
    """Open the database of a living SOUL for reading."""
    return sqlite3.connect(f"file:{home.memory / 'soul.db'}?mode=ro", uri=True)


sys.path.insert(0, str(Path(__file__).parents[1]))

NAMES = ("rowan", "wren")
_TOLD_EVERY_S = 30.0


@dataclass(frozen=True)
class Site:
    """A repository with its plan."""

    repo: StoredRepo
    plan: StoredIssue

    def told(self) -> Iterator[str]:
        """Yield a line for the plan, and one for each task."""
        plan = parse_plan(self.plan.body or "", self.plan.title)
        tasks = plan.tasks if plan else ()
        yield f"{self.repo.full_name}#{self.plan.number} {self.plan.state}, {len(self.plan.comments)} comments"
        for task in tasks:
            pulls = [one for one in self.repo.pulls.values() if one.head_ref.startswith(f"task-{task.number}-")]
            told = [
                f"#{one.number} {'merged' if one.merged_at else one.issue.state}"
                f"{' as a draft' if one.draft else ''}"
                f" ({', '.join(f'{given.author.login} {given.state.lower()}' for given in one.reviews)})"
                f", {len(one.issue.comments)} comments"
                for one in pulls
            ]
            yield f"  {task.number}. {task.title[:60]}: {task.status} {task.assignee or ''} {'; '.join(told)}"


async def _open_site(network: GitHubNetwork, owner: GitHubAccount, url: str, folder: Path) -> Site:
    """Make the repository of a folder, with its files and its plan."""
    repo = network.create_repo(owner, f"{WORKSPACE_PREFIX}{folder.name}", collaborators=NAMES)
    address = f"{url.replace('http://', f'http://{owner.login}:{owner.token}@')}/{repo.full_name}.git"
    await asyncio.to_thread(_push, folder / "files", folder.parent / ".imports" / folder.name, address)
    title, _, body = (folder / "plan.md").read_text("utf-8").partition("\n")
    return Site(repo, network.open_issue(repo, owner, title=f"[PLAN] {title}", body=body.strip(), labels=["plan"]))


def _push(files: Path, copy: Path, address: str) -> None:
    """Push a copy of the files as the first commit of the main branch."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(files, copy, symlinks=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(copy), "GIT_CONFIG_GLOBAL": os.devnull}
    env |= {f"GIT_{who}_{what}": OWNER for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("commit", "--quiet", "--message=Import"),
        ("push", "--quiet", address, "main"),
    ):
        subprocess.run(["git", *arguments], cwd=copy, env=env, check=True)  # noqa: S607 - no shell reads it


async def _run(options: argparse.Namespace) -> None:
    folder: Path = options.folder.resolve()
    homes_folder = folder / "homes"
    homes_folder.mkdir(exist_ok=True)
    given = dict(one.split("=", 1) for one in options.set)
    async with open_running_town(homes_folder) as town, AsyncExitStack() as stack:
        network = GitHubNetwork(clock=SystemClock(), git_folder=town.root / ".git-server")
        town.github = network
        town.github_url = await stack.enter_async_context(serve(github_app(network)))
        owner = network.create_account(OWNER)
        pages = {name: f"https://bsky.app/profile/{town.account(name)}" for name in NAMES}
        people = [network.create_account(name, website=page) for name, page in pages.items()]
        sites = [await _open_site(network, owner, town.github_url, one) for one in options.folders]
        repos = [Repo(OWNER, one.repo.name) for one in sites]
        urls = dict(zip(NAMES, [*options.models, *options.models], strict=False))
        more = {"SOUL_SPEED": f"{options.speed:g}", "AI_GATEWAY_MODEL": options.name, **given}
        peers = {name: ",".join(f"{one}.test" for one in NAMES if one != name) for name in NAMES}
        homes = [
            github_home(
                town, network, name, repos, **({"AI_GATEWAY_BASE_URL": urls[name], "SOUL_PEERS": peers[name]} | more)
            )
            for name in NAMES
        ]
        tokens = "\n".join(f"{one.login} {one.token}" for one in (owner, *people))
        (folder / "town.txt").write_text(f"github {town.github_url}\natproto {town.atproto_url}\n{tokens}\n", "utf-8")
        for home in homes:
            log = stack.enter_context((home.root / "life.log").open("wb"))
            await stack.enter_async_context(
                started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE, stdout=log.fileno())
            )
        clock = SystemClock()
        began = clock.monotonic()
        while (lived := clock.monotonic() - began) < options.minutes * 60:
            await asyncio.sleep(_TOLD_EVERY_S)
            told = [f"after {lived / 60:.1f} min", *(line for site in sites for line in site.told())]
            told += [line for home in homes for line in told_spent(home)]
            sys.stdout.write("\n".join(told) + "\n\n")
            sys.stdout.flush()
            if all(site.plan.state == "closed" for site in sites):
                return


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="+", metavar="MODEL_URL")
    parser.add_argument("--name", default="test-mind", help="the name of the model")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--speed", type=float, default=5.0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of both SOULs")
    options = parser.parse_args()
    options.folders = sorted(plan.parent for plan in options.folder.resolve().glob("*/plan.md"))
    asyncio.run(_run(options))


if __name__ == "__main__":
    main()
