"""Whose plans are executed: ours, the owner's, those of listed peers, and of whoever may push. Of nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import FakeClock
from modules.services.workspaces.trust import READ_AGAIN_S, WorkspaceTrust, trusted_accounts
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import StoredRepo

SITE = Repo("acme", "www-lil-intdev-site")


def test_only_who_is_named_is_trusted_whatever_the_capitals() -> None:
    trusted = trusted_accounts("rowan", "", ["Wren"], ["kit"])
    assert all(trusted.covers(one) for one in ("ROWAN", "wren", "Kit"))
    assert not any(trusted.covers(one) for one in ("", "mallory", "ghost"))
    assert trusted.covers("mallory", "kit")
    assert not trusted.covers()


def test_an_account_that_is_gone_is_never_trusted() -> None:
    assert not trusted_accounts("rowan", "ghost", [], ["ghost"]).covers("ghost")


@dataclass
class Workspace:
    network: GitHubNetwork
    repo: StoredRepo
    clock: FakeClock

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
        return WorkspaceTrust(github, "owner", lambda: ["wren"], self.clock)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    clock = FakeClock()
    network = GitHubNetwork(clock=clock, git_folder=tmp_path)
    for login in ("rowan", "kit", "mallory"):
        network.create_account(login)
    acme = network.create_account("acme", kind="Organization")
    return Workspace(network, network.create_repo(acme, SITE.name, collaborators=["rowan", "kit"]), clock)


async def test_who_may_push_is_trusted_until_that_is_known_to_have_changed(workspace: Workspace) -> None:
    trust = workspace.trust_of("rowan")
    trusted = await trust.accounts(SITE)
    assert [trusted.covers(one) for one in ("rowan", "owner", "wren", "kit", "mallory")] == [True] * 4 + [False]
    workspace.repo.collaborators.discard("kit")
    assert (await trust.accounts(SITE)).covers("kit")
    await workspace.clock.advance(READ_AGAIN_S)
    assert not (await trust.accounts(SITE)).covers("kit")


async def test_who_may_not_ask_trusts_nobody_for_it(workspace: Workspace) -> None:
    trusted = await workspace.trust_of("mallory").accounts(SITE)
    assert [trusted.covers(one) for one in ("mallory", "owner", "kit")] == [True, True, False]
    assert not (await workspace.trust_of("rowan").accounts(Repo("acme", "gone"))).covers("kit")
