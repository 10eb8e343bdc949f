"""A request needs no second telling: the watched workspace counts as named, and a yes to a question as its go-ahead."""

from __future__ import annotations

import pytest

from adapters.github.types import Repo
from adapters.space.types import ELECTION_RULES
from modules.lives.space.policy import elect_action_owner
from tests.modules.lives.space.soul_in_room import Agent, Room, an_issue, decision, in_turn, labelling, speaks
from tests.patience import until
from tests.running_town import RunningTown

CLOCK = "The clock stops at midnight. Please open an issue for it."
OFFER = "That clock bothers me as well. Shall I open an issue for it?"
GO_AHEAD = "Yes, go ahead"
PROMISE = "The clock at midnight is mine, and I describe how to see it."
KNOWING = ("social", "github", "code", *ELECTION_RULES)


def watches(agent: Agent, *names: str) -> None:
    for name in names:
        agent.life.app.services.workspaces.watch(Repo(*name.split("/")))


def prompts(running_town: RunningTown) -> list[str]:
    return [request.messages[-1].text for request in running_town.mind.asked]


async def sent_to(agent: Agent) -> tuple[str, bool]:
    """Where its only commitment belongs, and whether the host counts as having named that place."""
    (made,) = agent.queued_commitments()
    params = made.params.as_json()
    return f"{params['owner']}/{params['repoName']}", params.get("hostNamedRepo", False) and params["hostRequest"]


@pytest.mark.parametrize("named", ["acme/site", "site", ""])
async def test_the_only_watched_workspace_counts_as_named_in_full_in_short_and_not_at_all(
    room: Room, named: str
) -> None:
    async with room.soul("marvin", lambda _: speaks(PROMISE, an_issue(repo=named))) as marvin:
        watches(marvin, "acme/site")
        await room.says(CLOCK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [PROMISE]
        assert await sent_to(marvin) == ("acme/site", True)
    assert len(prompts(room.running_town)) == 1


async def test_the_host_may_say_that_the_only_workspace_is_not_meant(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(PROMISE, an_issue())) as marvin:
        watches(marvin, "acme/site")
        await room.says(f"{CLOCK} But not in acme/site.", marvin)
        await marvin.check()
        assert await sent_to(marvin) == ("acme/site", False)


async def test_of_several_workspaces_the_host_is_asked_by_name_and_may_answer_in_short(room: Room) -> None:
    ask = "Is that for the site, or for the api?"
    async with room.soul("marvin", in_turn(speaks(PROMISE, an_issue(repo="")), speaks(ask))) as marvin:
        watches(marvin, "acme/site", "acme/api")
        await room.says(CLOCK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [ask]
        asked = prompts(room.running_town)[-1]
        assert "acme/site, acme/api" in asked
        assert "YOU are the assignee" not in asked
        assert '"Clock stops": create_issue: no repository is known' in asked
        room.running_town.mind.answer = lambda _: speaks(PROMISE, an_issue(repo="api"))
        marvin.later(30)
        await room.says("The api, of course.", marvin)
        await marvin.check()
        assert await sent_to(marvin) == ("acme/api", True)


async def test_in_a_room_that_was_only_found_no_workspace_is_known(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(PROMISE, an_issue())) as marvin:
        marvin.found.append("found")
        watches(marvin, "acme/site")
        await room.says(CLOCK, marvin)
        await marvin.check()
        assert marvin.queued_commitments() == []
        assert "acme/site" not in prompts(room.running_town)[0]


async def test_who_asked_acts_on_the_hosts_yes_whoever_would_have_been_elected(room: Room) -> None:
    assert elect_action_owner(["marvin", "ana"], f"marvin: {OFFER}\nhost: {GO_AHEAD}") == "ana"
    minds = in_turn(speaks(OFFER), speaks(PROMISE, an_issue()))
    async with (
        room.member("ana", KNOWING) as ana,
        room.soul("marvin", labelling("GO_AHEAD", OFFER, GO_AHEAD, decide=minds), asks_intents=True) as marvin,
    ):
        watches(marvin, "acme/site")
        await room.says("I wonder what the clock does at midnight.", marvin)
        await marvin.check()
        assert room.host.said("marvin") == [OFFER]
        await ana.send_chat("Mine rings.")
        await marvin.receives("Mine rings.")
        marvin.later(30)
        await room.says(GO_AHEAD, marvin)
        await marvin.check()
        await until(lambda: room.host.said("marvin") == [OFFER, PROMISE])
        assert await sent_to(marvin) == ("acme/site", True)
        entry = await decision(marvin, "Structured commitments")
    assert entry.data["owner"] == "marvin"
    assert "YOU are the assignee" in prompts(room.running_town)[-1]


async def test_what_was_refused_is_told_with_its_reason_in_the_next_prompt_alone(room: Room) -> None:
    listed = "Two things:\n- the hand\n- the spring"
    minds = in_turn(speaks(listed), speaks("The spring is what I would look at first."), speaks("Then the hand."))
    async with room.soul("marvin", minds) as marvin:
        for question in ("What is wrong with the clock?", "And what else?", "What if it is neither?"):
            await room.says(question, marvin)
            await marvin.check()
            marvin.later(60)
    first, second, third = prompts(room.running_town)
    reason = "a list, where talk is prose"
    assert [reason in text for text in (first, second, third)] == [False, True, False]
