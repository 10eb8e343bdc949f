"""An identity post counts for GitHub only while the account there names the SOUL back, and stays the same account."""

from __future__ import annotations

import pytest

from tests.github_moves import rename_account
from tests.hasty_clock import HastyClock
from tests.running_town import RunningTown, awake
from tests.scenarios.peers_github import page_of
from tests.scenarios.test_scenario_peers import announcements, cycle, follows, home_of, introduces_itself, speaking
from town.github.network import GitHubNetwork

DAY_S = 25 * 3600.0
pytestmark = pytest.mark.usefixtures("peers_github")


async def test_under_a_name_on_github_that_does_not_name_it_back_nothing_is_said_or_done(
    running_town: RunningTown, peers_github: GitHubNetwork
) -> None:
    running_town.mind.answer = speaking
    home = home_of(running_town, "rowan", SOUL_PEERS="wren.test")
    peers_github.create_account("famous-person", website="https://famous.example")
    introduces_itself(running_town, "wren", "famous-person")
    running_town.network.post_as(running_town.account("owner"), "@rowan.test meet @wren.test !")
    async with awake(home, clock=HastyClock()) as soul:
        for _ in range(6):
            await cycle(soul)
        registry = soul.app.services.peer_registry
        assert (registry.get_linked_peers(), registry.get_listed_accounts()) == ([], [])
    assert follows(running_town, "rowan") == announcements(running_town, "rowan") == []


async def test_a_login_that_somebody_else_took_over_is_no_peers_until_the_owner_says_so(
    running_town: RunningTown, peers_github: GitHubNetwork
) -> None:
    running_town.mind.answer = speaking
    home, clock = home_of(running_town, "rowan", SOUL_PEERS="wren.test"), HastyClock()
    introduces_itself(running_town, "wren")
    async with awake(home, clock=clock) as soul:
        await cycle(soul)
        services = soul.app.services
        assert [one.login for one in services.peer_registry.get_listed_accounts()] == ["sh-wren"]
        before = peers_github.find("sh-wren")
        assert before
        rename_account(peers_github, before, "gone")
        new = peers_github.create_account("sh-wren", website=page_of(running_town.account("wren")))
        clock.ahead += DAY_S
        await cycle(soul)
        assert services.peer_registry.get_listed_accounts() == []
        assert [one.name for one in services.pinned_names.waiting()] == ["sh-wren"]
        assert await services.pinned_names.accept("SH-wren") == "accepted"
        clock.ahead += DAY_S
        await cycle(soul)
        assert [one.id for one in services.peer_registry.get_listed_accounts()] == [new.id]
