"""The doctor looks whether the room is there, and whether GitHub knows us by the name that is set."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from adapters.space.server import SpaceServer
from common.clock import SystemClock
from common.result import Ok
from soul.commands.doctor import examine_outside
from soul.commands.findings import Finding
from tests.program import one_clear_line, soul
from tests.running_town import RunningTown, settings_of
from tests.town_github import TownGitHub
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve


@pytest.fixture
async def github_url() -> AsyncIterator[str]:
    network = GitHubNetwork(clock=SystemClock())
    network.create_account("rowan", token="ghp_rowan")
    async with serve(github_app(network)) as url:
        yield url


async def examined(running_town: RunningTown, **settings: str) -> dict[str, Finding]:
    home = running_town.make_home("rowan", SOUL_ALLOW_PRIVATE_NET="on", **settings)
    return {found.check: found for found in await examine_outside(settings_of(home), home)}


async def test_without_room_and_account_nothing_is_wrong(running_town: RunningTown) -> None:
    found = await examined(running_town)
    assert {name: one.level for name, one in found.items()} == {"GitHub": "ok"}


async def test_a_room_that_listens_is_seen_without_joining_it_and_one_that_does_not_has_a_remedy(
    running_town: RunningTown,
) -> None:
    server = SpaceServer()
    started = await server.start(0)
    assert isinstance(started, Ok)
    url = f"ws://127.0.0.1:{started.data}?token=hush-hush-hush"
    there = (await examined(running_town, SPACE_URL=url))["room"]
    assert server.get_connected_agents() == ()
    await server.stop()
    gone = (await examined(running_town, SPACE_URL=url))["room"]
    assert (there.level, gone.level, gone.remedy) == ("ok", "warn", "Start it: soul space")
    assert "hush" not in there.message + gone.message


@pytest.mark.parametrize(("url", "asked"), [("ws://127.0.0.1", "127.0.0.1:80"), ("wss://127.0.0.1", "127.0.0.1:443")])
async def test_a_room_is_looked_for_at_the_port_where_it_would_be_joined(
    running_town: RunningTown, url: str, asked: str
) -> None:
    assert asked in (await examined(running_town, SPACE_URL=url))["room"].message


@pytest.mark.parametrize(
    ("port", "security"), [("99999", ()), ("abc", ()), ("abc", ("--security",))], ids=["too_large", "word", "security"]
)
@pytest.mark.slow
async def test_a_port_that_is_none_is_one_finding_with_a_remedy(
    running_town: RunningTown, port: str, security: tuple[str, ...]
) -> None:
    home = running_town.make_home("rowan", SPACE_URL=f"ws://127.0.0.1:{port}")
    found = await soul("doctor", *security, "--home", str(home.root))
    one_clear_line(found, "✗ settings: SPACE_URL must be a URL", ".env")


@pytest.mark.parametrize(
    ("login", "token", "level", "says"),
    [
        ("rowan", "ghp_rowan", "ok", "logged in as rowan"),
        ("Rowan", "ghp_rowan", "ok", "logged in as rowan"),
        ("maren", "ghp_rowan", "fail", "the token is rowan's, but .env says maren"),
        ("rowan", "", "fail", "AGENT_GITHUB_TOKEN is missing"),
        ("", "ghp_rowan", "fail", "AGENT_GITHUB_USERNAME is missing"),
    ],
)
async def test_github_is_asked_who_we_are(
    running_town: RunningTown, github_url: str, *, login: str, token: str, level: str, says: str
) -> None:
    found = (
        await examined(running_town, GITHUB_API_URL=github_url, AGENT_GITHUB_USERNAME=login, AGENT_GITHUB_TOKEN=token)
    )["GitHub"]
    assert (found.level, found.message) == (level, says)


async def test_a_token_that_github_refuses_is_one_line_with_a_remedy(
    running_town: RunningTown, github_url: str
) -> None:
    found = (
        await examined(
            running_town, GITHUB_API_URL=github_url, AGENT_GITHUB_USERNAME="rowan", AGENT_GITHUB_TOKEN="ghp_old"
        )
    )["GitHub"]
    assert (found.level, found.remedy) == ("fail", "Check AGENT_GITHUB_TOKEN.")
    assert "ghp_old" not in found.message


async def test_the_workspace_of_an_organisation_is_looked_for_and_what_it_would_be_made_from(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async def found(**settings: str) -> Finding:
        home = town_github.make_home(**settings)
        (one,) = [one for one in await examine_outside(settings_of(home), home) if one.check == "workspace"]
        return one

    acme = {"WORKSPACE_ORG": "acme", "WORKSPACE_TEMPLATE": "acme/site"}
    assert (await found(**acme | {"WORKSPACE_ORG": "nobody"})).remedy == "Check WORKSPACE_ORG."
    assert (await found(**acme)).message == "acme has none, and none can be made: acme/site is no template repository"
    town_github.repo.is_template = True
    assert (await found(**acme)).message == "acme has none; it can be made from acme/site when you ask for it"
    town_github.add_repo("www-lil-intdev-garden")
    there = await found(**acme)
    assert (there.level, there.message) == ("ok", f"that of acme is {town_github.url}/acme/www-lil-intdev-garden")


async def test_what_a_token_may_do_is_told_scope_by_scope_and_another_soul_with_the_account_is_named(
    running_town: RunningTown,
) -> None:
    network = GitHubNetwork(clock=SystemClock())
    rowan = network.create_account("rowan", token="ghp_rowan")
    network.issue_token(rowan, "ghp_little", ("public_repo", "delete_repo"))
    network.issue_token(rowan, "ghp_reader", ("notifications",))
    network.issue_token(rowan, "github_pat_rowan")
    account = {"AGENT_GITHUB_USERNAME": "rowan", "SOUL_ALLOW_PRIVATE_NET": "on"}

    async def findings(token: str) -> list[Finding]:
        home = running_town.make_home("rowan", GITHUB_API_URL=url, AGENT_GITHUB_TOKEN=token, **account)
        peers = {
            "maren.test": {**_PEER, "github_username": "maren.test", "claims_github": "Rowan"},
            "ilse": {**_PEER, "github_username": "ilse"},
            "bad": 7,
        }
        home.memory.mkdir(exist_ok=True)
        (home.memory / "discovered_peers.json").write_text(json.dumps({"peers": peers}))
        return [one for one in await examine_outside(settings_of(home), home) if one.check.startswith("GitHub")]

    async with serve(github_app(network)) as url:
        whole, little, reader, fine = [
            await findings(token) for token in ("ghp_rowan", "ghp_little", "ghp_reader", "github_pat_rowan")
        ]
    assert [one.level for one in whole] == ["ok", "ok", "warn"]
    assert "repo, notifications, read:org, user" in whole[1].message
    assert "@maren.test" in whole[2].message
    assert "cannot review each other" in whole[2].message
    assert [one.level for one in little[2:-1]] == ["warn"] * 5
    lacking = ("repo", "notifications or repo", "read:org", "user:follow", "delete_repo")
    for scope, one in zip(lacking, little[2:-1], strict=True):
        assert f"the scope {scope}" in one.message
    assert {one.level for one in reader[2:-1]} == {"fail"}
    assert "public_repo or repo" in reader[2].message
    assert "notifications" in fine[2].message
    assert all("classic token" in one.remedy for one in fine[2:-1])


_PEER = {
    "bluesky_handle": "maren.test",
    "discovered_at": "2026-01-05T12:00:00Z",
    "discovered_via": "social",
    "confidence": "low",
    "last_seen_at": "2026-01-05T12:00:00Z",
}
