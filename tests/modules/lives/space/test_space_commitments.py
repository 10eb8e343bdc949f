"""A SOUL acts on a host's request, end to end: one commitment, by its owner, whatever the model does in between."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import pytest

from adapters.space.types import ActionDone, Claimed
from common.schemas import Commitment
from modules.lives.space.commitment_filter import assign_repo
from modules.lives.space.host_request import is_open
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.speak import SPACE_FORCED_ACTION_CYCLES
from modules.lives.space.types import HistoryEntry
from tests.hasty_clock import HastyClock
from tests.modules.lives.space.soul_in_room import (
    REQUEST,
    Room,
    an_issue,
    declines,
    in_turn,
    open_room,
    speaks,
    summaries,
)
from tests.patience import until
from tests.running_town import RunningTown
from tests.shipped_skills import phrase
from town.model.types import ChatRequest, Completion


async def test_a_request_becomes_a_claim_words_and_a_commitment_on_the_disk(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        await until(lambda: room.host.said("marvin") == ["The clock issue is mine now."])
        (commitment,) = marvin.queued_commitments()
        assert commitment.params.as_json()["target"] == "acme/site#Clock stops"
        assert (commitment.params.as_json()["owner"], commitment.params.as_json()["repoName"]) == ("acme", "site")
        assert commitment.params.as_json()["hostRequest"] is True
        assert "undelivered" not in commitment.params.as_json()
        claims = [event for event in room.host.seen if isinstance(event, Claimed)]
        assert [(claim.action, claim.target) for claim in claims] == [("create_issue", "acme/site#Clock stops")]
        marvin.later(60)
        assert (await marvin.check()).reason == "nothing new was said"
        assert "YOU are the assignee" in room.running_town.mind.asked[0].messages[-1].text
        assert "Structured commitments" in await summaries(marvin)


async def test_a_request_that_its_owner_declines_is_refused_once_and_nothing_is_made_of_it(room: Room) -> None:
    cannot = "That clock runs on a chip whose program I cannot read, so I leave it alone."
    async with room.soul("marvin", lambda _: speaks(cannot, declines=True)) as marvin:
        heard: list[str] = []
        for _ in range(2):
            heard.append(cannot)
            await room.says(REQUEST, marvin)
            await marvin.check()
            await until(lambda: room.host.said("marvin") == heard)
            for _ in range(SPACE_FORCED_ACTION_CYCLES + 1):
                marvin.later(60)
                assert (await marvin.check()).reason == "nothing new was said"
        assert marvin.queued_commitments() == []
        assert len(room.running_town.mind.asked) == 2


async def test_a_request_that_a_peer_declined_is_open_for_nobody(room: Room) -> None:
    cannot = "That clock runs on a chip whose program I cannot read, so I leave it alone."
    async with (
        room.soul("marvin", lambda _: declines()) as marvin,
        room.soul("rebecca", lambda _: declines()) as rebecca,
    ):
        await until(lambda: all(len(soul.client.peers()) == 1 for soul in (marvin, rebecca)))
        await room.says(f"marvin, {REQUEST[0].lower()}{REQUEST[1:]}", marvin, rebecca)
        await rebecca.check()
        assert is_open(rebecca.space.participation.talk.state.request)
        room.running_town.mind.answer = lambda _: speaks(cannot, declines=True)
        await marvin.check()
        room.running_town.mind.answer = lambda _: declines()
        await until(lambda: any(isinstance(one, ActionDone) for one in room.host.seen))

        async def is_heard() -> bool:
            rebecca.later(60)
            await rebecca.check()
            return not is_open(rebecca.space.participation.talk.state.request)

        await until(is_heard)


@pytest.mark.parametrize("name", ["marvin", "rebecca"])
async def test_whom_the_host_addresses_alone_acts(room: Room, name: str) -> None:

    def eager(_: ChatRequest) -> Completion:
        return speaks("The clock issue is mine now.", an_issue())

    async with AsyncExitStack() as stack:
        souls = [
            await stack.enter_async_context(room.soul("marvin", eager)),
            await stack.enter_async_context(room.soul("rebecca", eager)),
        ]
        await until(lambda: all(len(soul.client.peers()) == 1 for soul in souls))
        await room.says(f"{name}, {REQUEST[0].lower()}{REQUEST[1:]}", *souls)
        for soul in souls:
            await soul.check()
        assert [soul.space.participation.talk.state.me for soul in souls if soul.queued_commitments()] == [name]


async def test_what_the_room_never_heard_is_not_committed(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        life = marvin.space.participation
        await room.says(REQUEST, marvin)
        await marvin.check()
        snapshot, commitment_maker = life.snapshots.build_snapshot(()), life.speaker.commitment_maker
        issue = Commitment.model_validate(an_issue())
        planned = commitment_maker.plan((issue,), snapshot)
        lost = await commitment_maker.enqueue(planned, "The clock issue is mine.", delivered=False)
        assert [one.params.as_json()["undelivered"] for one in lost] == [True]
        await commitment_maker.withdraw(lost)
        assert marvin.queue.live() == []
        again = await commitment_maker.enqueue(planned, "The clock issue is mine now.", delivered=False)
        await commitment_maker.settle(again, echoed=True)
        assert ["undelivered" in one.params.as_json() for one in marvin.queue.live()] == [False]


async def test_what_is_promised_without_a_repository_goes_to_the_one_workspace_in_which_peers_work(room: Room) -> None:
    promise = speaks("The clock issue is mine now.", an_issue(repo=""))
    async with room.soul("marvin", lambda _: promise) as marvin, room.member("rebecca") as rebecca:
        await rebecca.send_workspace_state("acme/py-workspace-clock", plan_number=1, total=3, completed=1)
        await until(lambda: bool(marvin.client.workspace_states()))
        await room.says("The clock stops at midnight, marvin.", marvin)
        await marvin.check()
        (commitment,) = marvin.queued_commitments()
        assert (commitment.params.as_json()["owner"], commitment.params.as_json()["repoName"]) == (
            "acme",
            "py-workspace-clock",
        )


QUESTION = "Where does the clock live, which repository is it?"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Please open an issue about the clock.", speaks("I open it right now.", an_issue(repo=""))),
        ("The clock stops at midnight, marvin.", speaks(QUESTION)),
    ],
)
async def test_whoever_hears_a_promise_that_names_no_repository_is_asked_for_it_at_once_and_once(
    room: Room, said: str, answer: Completion
) -> None:
    minds = in_turn(speaks("The clock issue is mine now.", an_issue(repo="")), answer, declines())
    async with room.soul("marvin", minds) as marvin:
        await room.says(said, marvin)
        await marvin.check()
        words = QUESTION if answer.calls[0].input.get("message") == QUESTION else phrase("space.which_repo")
        await until(lambda: room.host.said("marvin") == [words])
        assert marvin.queued_commitments() == []
        marvin.later(60)
        await marvin.check()
        assert room.host.said("marvin") == [words]


async def test_words_that_promise_what_no_repository_is_known_for_are_followed_by_the_question(room: Room) -> None:
    spoken = "I plan to write down what the clock does at midnight."
    found = [{"description": "Clock", "type": "create_issue", "params": {"title": "Clock"}, "confidence": "high"}]
    minds = in_turn(speaks(spoken), Completion(text=json.dumps(found)), speaks(QUESTION), declines())
    async with room.soul("marvin", minds) as marvin:
        await room.says("The clock stops at midnight, marvin.", marvin)
        await marvin.check()
        await until(lambda: room.host.said("marvin") == [spoken, QUESTION])


async def test_of_two_souls_exactly_one_acts_on_a_request(room: Room) -> None:
    def eager(request: ChatRequest) -> Completion:
        name = "marvin" if "You are marvin" in request.messages[0].text else "rebecca"
        return speaks(f"{name} takes the clock apart and puts it down in an issue.", an_issue(f"Clock by {name}"))

    async with room.soul("marvin", eager) as marvin, room.soul("rebecca") as rebecca:
        await room.says(REQUEST, marvin, rebecca)
        await until(lambda: len(marvin.client.peers()) == len(rebecca.client.peers()) == 1)
        await marvin.check()
        await rebecca.check()
        assert len(marvin.queued_commitments()) + len(rebecca.queued_commitments()) == 1
        other = rebecca if marvin.queued_commitments() else marvin
        assert "Commitment dropped" in await summaries(other)


async def test_commitments_of_words_that_may_not_be_said_are_kept(room: Room) -> None:
    listing = "Here is my plan:\n- the clock\n- the moss"
    async with room.soul("marvin", lambda _: speaks(listing, an_issue())) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        assert room.host.said("marvin") == ["On it \u2014 create issue incoming."]
        assert [one.type for one in marvin.queued_commitments()] == ["create_issue"]
        told = await summaries(marvin)
    assert told.index("Validation rejected (list)") < told.index("Salvaging commitments from rejected message")


async def test_a_thing_that_a_peer_claims_is_not_committed_again(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks("Mine.", an_issue())) as marvin:
        await rebecca.send_claim("create_issue", "acme/site#Clock that stops")
        await until(lambda: bool(marvin.client.claims()))
        await room.says("Thoughts about github.com/acme/site?", marvin)
        await marvin.check()
        assert room.host.said("marvin") == []
        assert marvin.queued_commitments() == []
        assert "Overtaken" in await summaries(marvin)


async def test_a_restart_never_repeats_what_was_asked_before(running_town: RunningTown) -> None:
    async with open_room(running_town, log=True) as room:
        async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
            await room.says(REQUEST, marvin)
            await marvin.check()
            assert len(marvin.queued_commitments()) == 1
        async with room.soul("marvin") as again:
            await until(lambda: again.client.joins > 0)
            for _ in range(5):
                await again.check()
                again.later(10)
            assert len(again.queued_commitments()) == 1
            assert len(again.space.participation.talk.state.history) == 2
        assert room.host.said("marvin") == ["The clock issue is mine now."]
        assert len(running_town.mind.asked) == 1


@pytest.mark.parametrize(
    ("repo", "talk", "known", "kept"),
    [
        ("acme/site", ("see github.com/Acme/Site",), None, "acme/site"),
        ("acme/site", (), "acme/site", "acme/site"),
        ("made/up", ("see github.com/acme/site",), "acme/site", "acme/site"),
        ("", (), "acme/site", "acme/site"),
        ("made/up", (), None, None),
        ("", ("hello",), None, None),
    ],
    ids=["named", "known", "invented", "left out", "nowhere", "none"],
)
def test_a_commitment_lies_where_somebody_said(
    repo: str, talk: tuple[str, ...], known: str | None, kept: str | None
) -> None:
    now = HastyClock().now()
    snapshot = RoomSnapshot(
        now, "marvin", repo=known, history=tuple(HistoryEntry("m", "host", text, now, is_host=True) for text in talk)
    )
    found = assign_repo(Commitment(type="create_issue", repo=repo, title="x"), snapshot)
    assert (found.repo if found else None) == kept


def test_our_own_words_name_no_repository_and_a_post_needs_none() -> None:
    now = HastyClock().now()
    snapshot = RoomSnapshot(
        now, "marvin", history=(HistoryEntry("m", "marvin", "I think of made/up", now, is_me=True),)
    )
    assert assign_repo(Commitment(type="create_issue", repo="made/up", title="x"), snapshot) is None
    post = Commitment(type="post_bluesky", content="moss")
    assert assign_repo(post, snapshot) == post


async def test_a_commitment_that_was_given_up_opens_the_request_again_and_the_room_hears_nothing(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        (commitment,) = marvin.queued_commitments()
        for _ in range(3):
            await marvin.queue.mark_failed(commitment.id, "the repository is gone")
        request = marvin.space.participation.talk.state.request
        assert (request.fulfilled, request.reopened) == (False, 1)
        assert len(room.host.said("marvin")) == 1
