"""Whether the token for GitHub works, and is that of the account that was set."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from adapters.github.client import GitHub
from common.result import Err
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry

_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class AccountProblem:
    """What is wrong with the account on GitHub, in words, and how the owner mends it."""

    message: str
    remedy: str


async def check_account(github: GitHub) -> str | AccountProblem:
    """Ask GitHub who we are, 10 s at most. Returns the login where it is the account that was set."""
    try:
        async with asyncio.timeout(_DEADLINE_S):
            who = await github.whoami()
    except TimeoutError:
        return AccountProblem(f"no answer within {_DEADLINE_S:g} s", "Check GITHUB_API_URL and the network.")
    if isinstance(who, Err):
        remedy = "Check AGENT_GITHUB_TOKEN." if who.kind == "auth" else "Check GITHUB_API_URL and the network."
        return AccountProblem(who.error, remedy)
    if who.data.lower() != github.login.lower():
        message = f"the token is {who.data}'s, but .env says {github.login}"
        return AccountProblem(message, "Correct AGENT_GITHUB_USERNAME: what it wrote is found by it.")
    return who.data


async def warn_of_account(github: GitHub, journal: Journal) -> None:
    """Journal a warning where `check_account` finds a problem; says nothing where no account is set."""
    if not github.configured:
        return
    found = await check_account(github)
    if isinstance(found, AccountProblem):
        summary = "The account on GitHub cannot be used"
        reason = f"{found.message}. {found.remedy}"
        await journal.record(Entry("error", "start", summary, line="warn", reason=reason))
