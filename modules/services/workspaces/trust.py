"""Decides which accounts and pull requests count in a workspace, as SOULs run commands for a plan.

The accounts are ours, the owner's, those of the peers that the owner listed, and those that may push to the repository
now. GitHub shows the latter only to those who may push themselves; if they cannot be read, none count. Accounts and
repositories are identified by numeric ids: if a name now belongs to another one, nobody counts.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from adapters.github.client import GitHub
from adapters.github.types import Account, PullRequest, Repo
from common.clock import Clock
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok, answering
from modules.services.pinned_names import AnotherRepositoryErr, PinnedNames, RepositoryIdentity

T = TypeVar("T")

MOST_PEOPLE = 20
"""The most accounts whose older writings are requested if there are more than one request returns."""
READ_AGAIN_S = 900.0
"""The seconds for which the list of accounts that may push is valid."""

Right = Literal["us", "owner", "peer", "push"]
"""The reasons why an account counts: it is ours, the owner's, that of a peer whom the owner listed, or may push."""

_PROVENANCE: dict[Right | None, Provenance] = {
    "us": Provenance.SELF,
    "owner": Provenance.OWNER,
    "peer": Provenance.PEER,
}


@dataclass(frozen=True, slots=True)
class TrustedAccounts:
    """The accounts that count in one workspace. `owner` is None if none is set.

    `is_whole` is False if not all of them could be read; then nothing may be concluded from silence.
    """

    us: Account
    owner: Account | None = None
    peers: frozenset[Account] = field(default_factory=frozenset)
    pushers: frozenset[Account] = field(default_factory=frozenset)
    is_whole: bool = True

    def why(self, account: Account) -> Right | None:
        """Return why an account counts, or None."""
        if not account.id:
            return None
        if account == self.us:
            return "us"
        if account == self.owner:
            return "owner"
        if account in self.peers:
            return "peer"
        return "push" if account in self.pushers else None

    def provenance(self, account: Account) -> Provenance:
        """Return how far the words of an account are trusted."""
        return _PROVENANCE.get(self.why(account), Provenance.STRANGER)

    @property
    def editors(self) -> Provenance:
        """The highest trust of anything in the repository, whoever wrote it, as everybody who may push may edit it.

        GitHub shows the author's name all the same. If it is unknown who may push, anybody may.
        """
        if not self.is_whole:
            return Provenance.STRANGER
        return min(map(self.provenance, self.pushers), default=Provenance.STRANGER)

    def covers(self, account: Account) -> bool:
        """Return whether an account counts."""
        return self.why(account) is not None

    def covers_besides_us(self, account: Account) -> bool:
        """Return whether an account other than ours counts: our own acts make nobody's words count."""
        return self.why(account) not in {None, "us"}

    def is_program(self, account: Account) -> bool:
        """Return whether an account is a SOUL's: ours, or that of a peer whom the owner listed."""
        return self.why(account) in {"us", "peer"}

    def is_owner(self, account: Account) -> bool:
        """Return whether an account is the owner's."""
        return bool(account.id) and account == self.owner

    def others(self) -> list[Account]:
        """Return the accounts that count except ours, each once, in the order of their ids."""
        owner = () if self.owner is None else (self.owner,)
        return sorted({*owner, *self.peers, *self.pushers} - {self.us}, key=lambda one: one.id)

    def lets_close(self, author: Account) -> bool:
        """Return whether GitHub lets us close an issue of `author`: our own, or any if we may push."""
        return bool(self.us.id) and (author == self.us or self.us in self.pushers)


def by_login(answer: ApiResult[tuple[T, ...]]) -> tuple[T, ...]:
    """Return what a search by an account's login found; nothing if nobody has that login any more.

    Accounts count by id, so whoever takes over a login is a stranger. Raises what `or_raise` raises.
    """
    return answer.or_else((), "invalid")


@dataclass(slots=True)
class WorkspaceTrust:
    """Knows the accounts that count in each workspace.

    Attributes:
        github: our account.
        owner: the owner's login as set; "" for none.
        peers: returns the accounts of the peers that the owner listed.
        clock: the time.
        names: the ids of names when they were first seen.

    """

    github: GitHub
    owner: str
    peers: Callable[[], Collection[Account]]
    clock: Clock
    names: PinnedNames
    _identity: RepositoryIdentity = field(init=False)
    _us: Account | None = field(default=None, init=False)
    _us_asked_s: float = field(default=-READ_AGAIN_S, init=False)
    _owner_asked_s: float = field(default=-READ_AGAIN_S, init=False)
    _pushers: dict[str, tuple[float, frozenset[Account] | None]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._identity = RepositoryIdentity(self.github, self.names)

    async def people(self) -> TrustedAccounts:
        """Return the accounts that count everywhere: ours, the owner's, and those of the listed peers.

        Raises `Unable` while ours is unknown, as our own words would count as a stranger's.
        """
        us, owner = await self._our_account(), await self._owners_account()
        if us is None:
            return Err("our account on GitHub cannot be read now", "transient").or_raise()
        return TrustedAccounts(us, owner.or_else(None), frozenset(self.peers()))

    async def accounts(self, repo: Repo) -> TrustedAccounts:
        """Return the accounts that count in a workspace; the repository is read at most every quarter of an hour.

        Nobody counts if it cannot be read, or if its name belongs to another repository than first seen.
        """
        us = await self._our_account()
        if us is None:
            return TrustedAccounts(Account(0, self.github.login), is_whole=False)
        pushers, owner = await self._who_may_push(repo), await self._owners_account()
        if pushers is None or isinstance(owner, Err):
            return TrustedAccounts(us, is_whole=False)
        if isinstance(pushers, Err):
            return TrustedAccounts(us, owner.data, frozenset(self.peers()), is_whole=False)
        return TrustedAccounts(us, owner.data, frozenset(self.peers()), pushers)

    async def whole(self, repo: Repo) -> TrustedAccounts:
        """Return the accounts that count in a workspace. Raises `Unable` if not all of them can be read now."""
        trusted = await self.accounts(repo)
        if not trusted.is_whole:
            Err(f"who may push to {repo.full_name} cannot be read now", "transient").or_raise()
        return trusted

    async def renamed(self, repo: Repo) -> Repo | None:
        """Return the present name of a repository that its owner renamed, and pin it; None if it is another one."""
        found = (await self._identity.check(repo, follow=True)).or_else(None)
        return found.repo if found else None

    def has_passed_on(self, repo: Repo) -> bool:
        """Return whether at the last look the name belonged to another repository, which waits for the owner."""
        return self.names.has_passed_on("repository", repo.full_name)

    async def _who_may_push(self, repo: Repo) -> frozenset[Account] | Err | None:
        """Return those who may push there, nobody if we may not ask, or an `Err` if it cannot be read now.

        Return None if it may be another repository than before.
        """
        key, now = repo.full_name.lower(), self.clock.monotonic()
        read_at, known = self._pushers.get(key, (now - READ_AGAIN_S, None))
        if now - read_at < READ_AGAIN_S:
            return known
        found = await self._identity.check(repo)
        if isinstance(found, Err):
            if isinstance(found, AnotherRepositoryErr):
                self._pushers[key] = (now, None)
            return None
        pushers = await self.github.repositories.pushers(repo)
        if isinstance(pushers, Err):
            if pushers.kind == "transient":
                return pushers
            pushers = Ok(())
        self._pushers[key] = (now, frozenset(pushers.data))
        return frozenset(pushers.data)

    async def _our_account(self) -> Account | None:
        """Return our account, as the token tells it; None while unknown. A rename is noticed at a later look."""
        now = self.clock.monotonic()
        if self._us is None or now - self._us_asked_s >= READ_AGAIN_S:
            rights = (await self.github.rights()).or_else(None)
            if rights and rights.id:
                self._us, self._us_asked_s = Account(rights.id, rights.login), now
        return self._us

    @answering
    async def _owners_account(self) -> ApiResult[Account | None]:
        """Return the owner's account as first seen; None if none is set."""
        known = self.names.get("github", self.owner)
        if self.owner and self.clock.monotonic() - self._owner_asked_s >= READ_AGAIN_S:
            found = await self.github.get_user(self.owner)
            user = found.or_else(None) if known else found.or_else(None, "not_found")
            self._owner_asked_s = self.clock.monotonic()
            if user:
                await self.names.check("github", self.owner, str(user.id))
                known = self.names.get("github", self.owner)
        return Ok(Account(int(known), self.owner) if known else None)


MOST_PULLS = 100
"""The number of newest pull requests read in one request; if there are more, each trusted account is searched."""
_MOST_WRITTEN = 1_000

_PART_OF = re.compile(r"\bpart of #([0-9]{1,9})(?![0-9])", re.IGNORECASE)


def plan_of(text: str) -> int | None:
    """Return the number of the issue that a pull request says it is part of, or None."""
    part = _PART_OF.search(text)
    return int(part[1]) if part else None


def pulls_for(plan: int, pulls: Iterable[PullRequest], trusted: TrustedAccounts) -> list[PullRequest]:
    """Return the pull requests for the plan, by trusted accounts and from branches of the repository itself.

    Anybody can write any number into theirs, and choose the name of a fork's branch.
    """
    return [one for one in pulls if plan_of(one.body) == plan and trusted.covers(one.account) and not one.is_from_fork]


@answering
async def read_pulls(
    github: GitHub, repo: Repo, plan: int | None, trusted: TrustedAccounts
) -> ApiResult[tuple[PullRequest, ...]]:
    """Return the pull requests in any state that are newer than a plan and may be for it; without a plan the open ones.

    If there are more than one request returns, they are searched by author, so that no number of others hides one.
    """
    state: Literal["open", "all"] = "open" if plan is None else "all"
    newest = (await github.pulls.list(repo, state=state, limit=MOST_PULLS)).or_raise()
    if len(newest) < MOST_PULLS or (plan and newest[-1].number <= plan):
        return Ok(newest)
    found = {one.number: one for one in newest}
    for person in [trusted.us, *trusted.others()][:MOST_PEOPLE]:
        written = await github.list_issues(repo, state=state, creator=person.login, limit=_MOST_WRITTEN)
        for one in by_login(written):
            if one.is_pull_request and one.number not in found and plan in {None, plan_of(one.body)}:
                found[one.number] = (await github.pulls.get(repo, one.number)).or_raise()
    return Ok(tuple(found[number] for number in sorted(found, reverse=True)))
