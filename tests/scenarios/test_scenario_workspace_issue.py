"""An open issue of a workspace is met once without a notification, and closed on leaving where nobody waits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.github.types import Repo
from modules.services.claims.offers import PLAN_AWARENESS
from modules.services.peers.types import PeerClaim
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.github_talk import CLOCK, SAID, Place, acts, look, minding, open_place
from town.model.types import ChatRequest, Completion


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[Place]:
    async with open_place(running_town, "owner") as found:
        yield found


async def look_around(soul: RunningSoul, place: Place) -> None:
    soul.app.services.workspaces.watch(Repo("owner", place.repo.name))
    await soul.app.scheduler.run_guarded(PLAN_AWARENESS)
    await look(soul)


def leaving(request: ChatRequest) -> Completion:
    names = {offer.name for offer in request.offers}
    if "github_graceful_exit" in names:
        return call("github_graceful_exit", closing_type="like", reason="it is settled")
    return call("stay_silent", reason="nothing to add") if "stay_silent" in names else Completion(text="[]")


@pytest.mark.slow
async def test_an_issue_that_names_nobody_gets_one_comment_in_a_workspace(place: Place) -> None:
    place.town.mind.answer = minding()
    async with awake(place.home(), clock=CLOCK) as soul:
        await look(soul)
        assert await acts(soul) == []
        for _ in range(2):
            await look_around(soul, place)
        assert place.comments == [SAID]
        assert (await acts(soul))[0] == ("commented", "workspace-issue")
        assert [one.code for one in soul.app.services.relationships.reflection.insights] == ["Commented"]


@pytest.mark.parametrize(
    ("by_soul", "is_planned"), [(True, False), (False, False), pytest.param(True, True, marks=pytest.mark.slow)]
)
async def test_an_issue_that_it_leaves_is_closed_unless_a_person_waits_or_a_plan_names_it(
    place: Place, *, by_soul: bool, is_planned: bool
) -> None:
    place.town.mind.answer = leaving
    if is_planned:
        body = f"# [PLAN] Mine\n\n## Context\nAsked for in #{place.issue.number}\n"
        owner = place.network.find("owner")
        assert owner
        place.network.open_issue(place.repo, owner, title="[PLAN] Mine", body=body, labels=["plan"])
    if by_soul:
        wren = place.network.create_account("wren")
        place.network.write_comment(place.repo, place.issue, wren, "@rowan that is done, is it not?")
    did = place.town.account("wren")
    async with awake(place.home(SOUL_PEERS="wren.test"), clock=CLOCK) as soul:
        registry = soul.app.services.peer_registry
        peer = place.network.find("wren")
        claim = PeerClaim("wren.test", did, "wren")
        registry.link_bluesky_handle_to_github(claim, github_id=peer.id if peer else None)
        await look_around(soul, place)
        assert (await acts(soul))[0][0] == "left"
        assert len(place.issue.reactions) == 1
        assert place.issue.state == ("closed" if by_soul and not is_planned else "open")
