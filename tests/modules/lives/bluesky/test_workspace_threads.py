"""A workspace that the owner or a peer names is watched, and its thread is one about work for everybody in it."""

from __future__ import annotations

import pytest

from adapters.github.types import Repo
from common.clock import SystemClock
from modules.services.peers.types import PeerClaim
from modules.services.pinned_names.store import FILE, PinnedNames
from tests.running_town import RunningTown, awake
from tests.trusting import told_nobody

ADDRESS = "https://github.com/owner-hub/www-lil-intdev-garden"
GARDEN = Repo("owner-hub", "www-lil-intdev-garden")


@pytest.mark.parametrize(("author", "is_watched"), [("owner", True), ("wren", True), ("kit", False)])
async def test_the_owner_and_peers_can_have_a_workspace_watched_and_nobody_else(
    running_town: RunningTown, author: str, *, is_watched: bool
) -> None:
    home = running_town.make_home("rowan", SOUL_PEERS="wren.test")
    root, _ = running_town.network.post_as(running_town.account(author), f"@rowan.test let us meet at {ADDRESS} today?")
    async with awake(home) as life:
        await life.look()
        watched = life.app.services.workspaces
        assert (watched.get(GARDEN) is not None) is is_watched
        assert watched.is_thread_of_one(root) is is_watched
        told = [line for _, line, _ in life.console.lines if "www-lil-intdev-garden" in line and "Watches" in line]
        assert len(told) == is_watched


async def test_a_found_peer_has_no_workspace_watched(running_town: RunningTown) -> None:
    kit = running_town.account("kit")
    async with awake(running_town.make_home("rowan")) as life:
        registry = life.app.services.peer_registry
        registry.link_bluesky_handle_to_github(PeerClaim("kit.test", kit, "kit"), github_id=7)
        registry.is_mutual = True
        running_town.network.post_as(kit, f"@rowan.test let us meet at {ADDRESS} today?")
        await life.look()
        assert kit in registry.found()
        assert life.app.services.workspaces.get(GARDEN) is None


async def test_a_listed_handle_that_somebody_else_took_over_gives_no_rights_until_the_owner_says_so(
    running_town: RunningTown,
) -> None:
    home, wren = running_town.make_home("rowan", SOUL_PEERS="wren.test"), running_town.account("wren")
    await PinnedNames(home.memory / FILE, SystemClock(), told_nobody).check("bluesky", "wren.test", "did:plc:former")
    running_town.network.post_as(wren, f"@rowan.test let us meet at {ADDRESS} today?")
    async with awake(home) as life:
        services = life.app.services
        await life.look()
        assert services.workspaces.get(GARDEN) is None
        assert services.account.peers() == {"did:plc:former"}
        assert any("wren.test is somebody else now" in line for _, line, _ in life.console.lines)
        assert await services.pinned_names.accept("wren.test") == "accepted"
        running_town.network.post_as(wren, f"@rowan.test is {ADDRESS} good?")
        await life.look()
        assert services.workspaces.get(GARDEN) is not None


@pytest.mark.parametrize("is_thread_of_workspace", [True, False])
async def test_the_thread_of_a_workspace_is_about_work_whoever_writes_in_it(
    running_town: RunningTown, *, is_thread_of_workspace: bool
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    root, _ = running_town.network.post_as(kit, "The weir was loud last night.")
    running_town.network.post_as(kit, "@rowan.test where does the water come from?", reply_to_uri=root)
    async with awake(home) as life:
        life.app.services.workspaces.watch(GARDEN, root if is_thread_of_workspace else "at://another")
        await life.look()
        known = life.app.lives.bluesky_state.conversations.get_conversation(root)
    assert known is not None
    assert known.is_project is is_thread_of_workspace
