"""Checks whether the GitHub token works, belongs to the account that is set, and has the rights that are needed."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import TokenRights
from common.result import Err
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.peers.policy import Peer

_DEADLINE_S = 10.0
_HOW_TO_MAKE_ONE = "Make one at https://github.com/settings/tokens/new with the scopes"
_SCOPES_NEEDED = ("repo", "notifications", "read:org", "user:follow")


@dataclass(frozen=True, slots=True)
class AccountProblem:
    """A problem of the GitHub account, in words, and how the owner fixes it."""

    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Need:
    """An activity of a SOUL on GitHub, and the scopes of a classic token of which it needs one."""

    what: str
    scopes: tuple[str, ...]
    is_vital: bool = False


_NEEDS = (
    _Need("write in public repositories", ("public_repo", "repo"), is_vital=True),
    _Need("work in private repositories", ("repo",)),
    _Need("read its notifications", ("notifications", "repo")),
    _Need("see the organisations it belongs to", ("read:org", "write:org", "admin:org")),
    _Need("follow accounts", ("user:follow", "user")),
)
_TOO_MUCH = ("delete_repo", "admin:enterprise", "site_admin", "admin:org_hook", "admin:public_key", "admin:gpg_key")


async def check_account(github: GitHub) -> TokenRights | AccountProblem:
    """Ask GitHub for the account and the rights of the token, within 10 s; return a problem if it does not tell."""
    try:
        async with asyncio.timeout(_DEADLINE_S):
            found = await github.rights()
    except TimeoutError:
        return AccountProblem(f"no answer within {_DEADLINE_S:g} s", "Check GITHUB_API_URL and the network.")
    if isinstance(found, Err):
        remedy = "Check AGENT_GITHUB_TOKEN." if found.kind == "auth" else "Check GITHUB_API_URL and the network."
        return AccountProblem(found.error, remedy)
    return found.data


def problem_of_login(github: GitHub) -> AccountProblem | None:
    """Return the problem if the settings name another account than GitHub told for the token; None if not."""
    if github.login.lower() == github.login_as_set.lower():
        return None
    message = f"the token is {github.login}'s, but .env says {github.login_as_set}"
    return AccountProblem(message, f"It acts as {github.login}. Correct AGENT_GITHUB_USERNAME or AGENT_GITHUB_TOKEN.")


def told_rights(rights: TokenRights) -> str:
    """Return what a token may do, for the owner; for a classic token by scope."""
    if rights.kind == "classic":
        listed = ", ".join(rights.scopes) or "none"
        can = [need.what for need in _NEEDS if _lets(rights, need)]
        return f"a classic token with the scopes {listed}: it may {_and(can) or 'read what is public'}"
    if rights.kind == "app":
        return "a token of a GitHub App: what it may do is set where the App is installed, and GitHub does not tell it"
    kind = "a fine-grained token" if rights.kind == "fine_grained" else "a token of unknown kind"
    return f"{kind}: it may do what was chosen for the repositories of one owner, and GitHub does not tell what"


def problems_of_rights(rights: TokenRights) -> list[AccountProblem]:
    """Return the rights that a token lacks, and those that no SOUL should have, one problem each."""
    if rights.kind != "classic":
        return _problems_of_other_tokens(rights)
    remedy = f"{_HOW_TO_MAKE_ONE} {', '.join(_SCOPES_NEEDED)}, and put it into AGENT_GITHUB_TOKEN."
    found = [
        AccountProblem(f"the token lacks the scope {' or '.join(need.scopes)}: it may not {need.what}", remedy)
        for need in _NEEDS
        if not _lets(rights, need)
    ]
    found += [
        AccountProblem(f"the token has the scope {scope}, which nothing here needs", "Take it away from the token.")
        for scope in rights.scopes
        if scope in _TOO_MUCH
    ]
    return found


def lacks_vital_right(rights: TokenRights) -> bool:
    """Return whether a token is known to allow no writing."""
    return rights.kind == "classic" and not all(_lets(rights, need) for need in _NEEDS if need.is_vital)


def problem_of_shared_account(login: str, peers: Iterable[Peer]) -> AccountProblem | None:
    """Return the problem if another SOUL says that it is `login` on GitHub too; None if none does."""
    others = sorted({peer.bluesky_handle or peer.github_username for peer in peers if _claims(peer, login)})
    if not others:
        return None
    names = _and([f"@{other}" for other in others])
    message = f"{names} says to be {login} on GitHub too: SOULs with one account cannot review each other's work"
    return AccountProblem(message, "Give each SOUL an account of its own on GitHub.")


async def warn_of_account(github: GitHub, peers: Iterable[Peer], journal: Journal) -> None:
    """Journal one warning for each problem with the token's rights, and one for SOULs in `peers` with our account.

    If the account cannot be used at all, only that is reported. Without an account nothing is asked.
    """
    if not github.configured:
        return
    found = await check_account(github)
    if isinstance(found, AccountProblem):
        await _warn(journal, "The account on GitHub cannot be used", found)
        return
    if other := problem_of_login(github):
        await _warn(journal, "The account on GitHub is another one than in .env", other)
    for problem in problems_of_rights(found):
        await _warn(journal, "The token for GitHub does not have the rights that it should", problem)
    if shared := problem_of_shared_account(github.login, peers):
        await _warn(journal, "The account on GitHub is shared", shared)


async def _warn(journal: Journal, summary: str, problem: AccountProblem) -> None:
    reason = f"{problem.message}. {problem.remedy}"
    await journal.record(Entry("error", "start", summary, line="warn", reason=reason))


def _problems_of_other_tokens(rights: TokenRights) -> list[AccountProblem]:
    if rights.kind == "app":
        return [
            AccountProblem(
                "what several SOULs do by one GitHub App is done by one account: they cannot review each other",
                "Give each SOUL an account of its own, or an App of its own.",
            )
        ]
    remedy = f"For these take a classic token. {_HOW_TO_MAKE_ONE} {', '.join(_SCOPES_NEEDED)}."
    return [
        AccountProblem(message, remedy)
        for message in (
            "a fine-grained token may not read notifications: nobody's mention on GitHub is noticed by them",
            "a fine-grained token may not write to public repositories of others, nor as an outside collaborator",
        )
    ]


def _lets(rights: TokenRights, need: _Need) -> bool:
    return not set(need.scopes).isdisjoint(rights.scopes)


def _claims(peer: Peer, login: str) -> bool:
    return login.lower() in {(peer.claims_github or "").lower(), peer.github_username.lower()}


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
