"""What the drivers of whole SOULs share: homes with an account on the town's GitHub, and the ledger of calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from adapters.github.types import Repo
from common.clock import SystemClock
from modules.runtime.home import Home
from modules.services.workspaces.watched import WatchedWorkspaces
from tests.running_town import RunningTown
from town.github.network import GitHubNetwork

OWNER = "owner"
_SPENT = """SELECT purpose, count(*), total(input_tokens), total(output_tokens), max(input_tokens) FROM model_calls
    WHERE state = 'settled' GROUP BY purpose ORDER BY 3 DESC"""


class PurposeSpent(NamedTuple):
    """The calls for one purpose, and their tokens; `largest` is the input of the largest."""

    purpose: str
    calls: int
    taken: float
    given: float
    largest: int


def github_home(town: RunningTown, network: GitHubNetwork, name: str, watched: Sequence[Repo], **more: str) -> Home:
    """Make the home of a SOUL that has the account `name` on GitHub too, and watches these repositories.

    Raises `LookupError` where GitHub has no such account.
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
    """Return what the model was called for, the most tokens first."""
    with closing(read_only(home)) as connection:
        return [PurposeSpent(*row) for row in connection.execute(_SPENT)]


def told_spent(home: Home) -> Iterator[str]:
    """Yield a line in all, and one for each purpose for which the model was called."""
    spent = spent_by_purpose(home)
    tokens = sum(one.taken + one.given for one in spent)
    yield f"{home.root.name}: {sum(one.calls for one in spent)} calls, {tokens:,.0f} tokens"
    yield from (f"  {one.purpose}: {one.calls} calls, {one.taken:,.0f} in, {one.given:,.0f} out" for one in spent)


def read_only(home: Home) -> sqlite3.Connection:
    """Open the database of a SOUL that lives."""
    return sqlite3.connect(f"file:{home.memory / 'soul.db'}?mode=ro", uri=True)
