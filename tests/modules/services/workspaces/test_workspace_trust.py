"""Whose plans are executed: ours, the owner's, those of listed peers, and of whoever may push. Of nobody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from adapters.github.client import GitHub
from adapters.github.types import Account, Repo
from common.clock import FakeClock
from modules.runtime.journal.types import Entry
from modules.services.pinned_names.store import PinnedNames
from modules.services.workspaces.trust import READ_AGAIN_S, TrustedAccounts, WorkspaceTrust
from tests.github_moves import delete_repo, rename_account, transfer_repo
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import StoredRepo

SITE = Repo("acme", "www-lil-intdev-site")


def test_accounts_are_told_apart_by_their_ids_alone() -> None:
    us, kit = Account(1, "rowan"), Account(2, "kit")
    trusted = TrustedAccounts(us, pushers=frozenset({kit}))
    assert trusted.why(Account(2, "renamed")) == "push"
    assert trusted.why(Account(3, "kit")) is None
    assert (trusted.covers(us), trusted.covers_besides_us(us)) == (True, False)


def test_an_account_that_is_gone_never_counts() -> None:
    ghost = Account(0, "ghost")
    assert not TrustedAccounts(ghost, ghost, frozenset({ghost}), frozenset({ghost})).covers(ghost)


@dataclass
class Workspace:
    network: GitHubNetwork
    repo: StoredRepo
    clock: FakeClock
    names: PinnedNames
    told: list[Entry]

    def account(self, login: str) -> Account:
        found = self.network.find(login)
        assert found
        return Account(found.id, found.login)

    def trust_of(self, login: str) -> WorkspaceTrust:
        account = self.network.find(login)
        assert account
        github = GitHub(
            api_url="http://github.test",
            login=login,
            token=account.token,
            clock=self.clock,
            min_spacing_s=0,
            transport=lambda: httpx.ASGITransport(github_app(self.network)),
        )
        return WorkspaceTrust(github, "owner", lambda: [self.account("wren")], self.clock, self.names)

    async def counted(self, trust: WorkspaceTrust, *logins: str) -> list[bool]:
        trusted = await trust.accounts(SITE)
        return [trusted.covers(self.account(login)) for login in logins]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    clock = FakeClock()
    network = GitHubNetwork(clock=clock, git_folder=tmp_path)
    for login in ("rowan", "kit", "mallory", "owner", "wren"):
        network.create_account(login)
    acme = network.create_account("acme", kind="Organization")
    repo = network.create_repo(acme, SITE.name, collaborators=["rowan", "kit"])
    told: list[Entry] = []

    async def record(entry: Entry) -> None:
        told.append(entry)

    return Workspace(network, repo, clock, PinnedNames(tmp_path / "names.json", clock, record), told)


async def test_who_may_push_counts_until_that_is_known_to_have_changed(workspace: Workspace) -> None:
    trust = workspace.trust_of("rowan")
    assert await workspace.counted(trust, "rowan", "owner", "wren", "kit", "mallory") == [True] * 4 + [False]
    workspace.repo.collaborators.discard("kit")
    assert await workspace.counted(trust, "kit") == [True]
    await workspace.clock.advance(READ_AGAIN_S)
    assert await workspace.counted(trust, "kit") == [False]


async def test_where_we_may_not_ask_who_may_push_nobody_counts_for_it(workspace: Workspace) -> None:
    assert await workspace.counted(workspace.trust_of("mallory"), "mallory", "owner", "kit") == [True, True, False]
    gone = await workspace.trust_of("rowan").accounts(Repo("acme", "gone"))
    assert not gone.covers(workspace.account("kit"))


async def test_a_login_that_somebody_else_took_over_has_no_rights(workspace: Workspace) -> None:
    trust = workspace.trust_of("rowan")
    assert await workspace.counted(trust, "owner", "kit") == [True, True]
    old = workspace.account("owner")
    for login in ("owner", "kit"):
        account = workspace.network.find(login)
        assert account
        rename_account(workspace.network, account, f"{login}-2")
        workspace.network.create_account(login)
    await workspace.clock.advance(READ_AGAIN_S)
    assert await workspace.counted(trust, "owner", "owner-2", "kit", "kit-2") == [False, True, False, True]
    assert old == workspace.account("owner-2")
    everywhere = await trust.people()
    assert (everywhere.is_owner(old), everywhere.is_owner(workspace.account("owner"))) == (True, False)
    assert workspace.names.has_passed_on("github", "owner")
    assert len(workspace.told) == 1


def transfer(workspace: Workspace) -> None:
    mallory = workspace.network.find("mallory")
    assert mallory
    transfer_repo(workspace.network, workspace.repo, mallory)


def recreate(workspace: Workspace) -> None:
    delete_repo(workspace.network, workspace.repo)
    workspace.network.create_repo(workspace.repo.owner, SITE.name, collaborators=["rowan", "mallory"])


@pytest.mark.parametrize("change", [transfer, recreate], ids=["transferred", "recreated"])
async def test_where_another_repository_answers_nobody_counts(
    workspace: Workspace, change: Callable[[Workspace], None]
) -> None:
    trust = workspace.trust_of("rowan")
    assert await workspace.counted(trust, "owner", "kit") == [True, True]
    change(workspace)
    await workspace.clock.advance(READ_AGAIN_S)
    assert await workspace.counted(trust, "owner", "wren", "kit", "mallory") == [False] * 4
