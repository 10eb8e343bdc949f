"""Proves end to end that a SOUL acts on a host's request: one commitment, by its assignee, whatever the model does.

One artefact for one request: what it already has, and what a peer made recently, is not made again. A commitment in
plain words is taken in all the same, and work on a peer's issue counts as work together.
"""

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.space.types import ActionDone, Claimed, IdentitySummary
from common.provenance import Provenance
from common.schemas import SPACE_DECISION_TOOL, Commitment
from common.text.host_intent import HostIntent
from modules.lives.space.commitment_filter import PlannedCommitment, assign_repo, permitted, planned, still_to_make
from modules.lives.space.host_request import is_open
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.speak import SPACE_FORCED_ACTION_CYCLES, experience_of
from modules.lives.space.types import HistoryEntry, HostRequest, PeerEvent
from modules.services.memory.admission import WordsOrigin
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


async def test_the_talk_that_an_issue_quotes_calls_the_soul_by_its_name(room: Room) -> None:
    measured = "I measured it twice on Sunday, and the second hand lags by four minutes."
    said = [measured]
    async with room.soul("marvin", lambda _: speaks(said.pop()) if said else declines()) as marvin:
        await room.says("marvin, how does the clock on the site behave?", marvin)
        await marvin.check()
        await until(lambda: room.host.said("marvin") == [measured])
        marvin.later(60)
        await room.says(REQUEST, marvin)
        for _ in range(SPACE_FORCED_ACTION_CYCLES + 1):
            await marvin.check()
            marvin.later(60)
        (made,) = marvin.queued_commitments()
    assert f"marvin: {measured}" in made.params.description


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
        await until(lambda: bool(marvin.client.view.workspace_states()))
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
        other = rebecca if marvin.queued_commitments() else marvin
        other.later(21)
        await other.check()
        assert len(marvin.queued_commitments()) + len(rebecca.queued_commitments()) == 1
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
        await until(lambda: bool(marvin.client.view.claims.live()))
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


WORDS = WordsOrigin(Provenance.PEER, Provenance.PEER, "space:room")
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ISSUE = Commitment(type="create_issue", repo="acme/site", title="Clock stops at midnight", description="It stops.")
OTHER = Commitment(type="create_issue", repo="acme/site", title="Gutter leaks", description="It drips.")
COMMENT = Commitment(type="comment_issue", repo="acme/site", issue_number=3, description="Seen here too.")
MADE_BY_PEER = PeerEvent("success", "rebecca", NOON, "create_issue", "acme/site#Clock stops at midnight")

ASKED = HistoryEntry("m1", "host", "Please open an issue for the clock.", NOON, is_host=True, intent="action_request")
FULFILLED_REQUEST = HostRequest(ASKED.content, ASKED.id, NOON, fulfilled=True)

MET = RoomSnapshot(now=NOON, me="marvin", history=(ASKED,), request=FULFILLED_REQUEST, repo="acme/site")
OPEN = RoomSnapshot(now=NOON, me="marvin", repo="acme/site")


def after(intent: HostIntent) -> HistoryEntry:
    return HistoryEntry("m2", "host", "And then?", NOON + timedelta(minutes=1), is_host=True, intent=intent)


def test_for_a_request_that_is_met_nothing_more_is_made_but_comments_are_free() -> None:
    found = permitted([ISSUE, OTHER, COMMENT], MET)
    assert found.kept == (COMMENT,)
    assert [one.code for one in found.left_out] == ["made", "made"]


def test_what_a_peer_has_made_is_not_made_again_by_another_name_of_the_same() -> None:
    again = ISSUE.model_copy(update={"title": "The clock stops at midnight", "repo": ""})
    found = permitted([again, OTHER, COMMENT], replace(OPEN, peer_events=(MADE_BY_PEER,)))
    assert found.kept == (OTHER, COMMENT)
    assert "rebecca has made" in found.left_out[0].reason
    failed = replace(MADE_BY_PEER, kind="failure")
    assert permitted([ISSUE], replace(OPEN, peer_events=(failed,))).kept == (ISSUE,)


OURS, FREE = planned((ISSUE, COMMENT), OPEN)
ASKED_OF_ANOTHER = replace(OPEN, request=replace(FULFILLED_REQUEST, fulfilled=False), is_open=True, is_owner=False)


@pytest.mark.parametrize(
    ("now", "lost", "kept"),
    [
        (OPEN, set(), (OURS, FREE)),
        (OPEN, {("create_issue", OURS.target)}, (FREE,)),
        (replace(OPEN, peer_events=(MADE_BY_PEER,)), set(), (FREE,)),
        (replace(OPEN, peer_events=(replace(MADE_BY_PEER, kind="claim"),)), set(), (OURS, FREE)),
        (MET, set(), (FREE,)),
        (ASKED_OF_ANOTHER, set(), (FREE,)),
        (replace(ASKED_OF_ANOTHER, is_owner=True), set(), (OURS, FREE)),
        (replace(OPEN, follow_up="link"), set(), ()),
    ],
    ids=["free", "lost-claim", "made-by-peer", "claimed-later", "met", "not-elected", "elected", "asked-about"],
)
def test_only_what_the_room_did_since_drops_a_planned_commitment(
    now: RoomSnapshot, lost: set[tuple[str, str]], kept: tuple[PlannedCommitment, ...]
) -> None:
    assert still_to_make((OURS, FREE), now, lost) == kept


@pytest.mark.parametrize(
    ("request_now", "history", "met"),
    [
        (FULFILLED_REQUEST, (ASKED,), True),
        (FULFILLED_REQUEST, (ASKED, after("follow_up")), True),
        (FULFILLED_REQUEST, (ASKED, after("discussion")), False),
        (replace(FULFILLED_REQUEST, fulfilled=False, given_up=True), (ASKED,), True),
        (replace(FULFILLED_REQUEST, fulfilled=False), (ASKED,), False),
        (HostRequest(), (after("discussion"),), False),
        (FULFILLED_REQUEST, (), False),
    ],
    ids=["met", "asked-about", "another-talk", "given-up", "open", "nothing-asked", "forgotten"],
)
def test_a_request_is_met_until_the_host_speaks_of_something_else(
    request_now: HostRequest, history: tuple[HistoryEntry, ...], *, met: bool
) -> None:
    is_open = bool(request_now.content) and not request_now.fulfilled and not request_now.given_up
    assert RoomSnapshot(now=NOON, me="marvin", history=history, request=request_now, is_open=is_open).is_met is met


def test_an_experience_is_an_episode_of_its_own_that_rests_on_the_words_of_peers() -> None:
    first = experience_of("connection_formed", "host: hello | marvin: hello", NOON, WORDS, "UTC")
    later = experience_of("connection_formed", "x" * 9000, NOON + timedelta(seconds=1), WORDS, "UTC")
    assert (first.kind, first.source, first.trust, first.private) == ("episode", "space:room", "peer", True)
    assert first.subject == "A talk in the room, 2026-01-05 12:00:00"
    assert first.subject != later.subject
    assert len(later.body) == 4000


TALK = "The clock in github.com/acme/site seems to stop at midnight."
PLAN = "I plan to write up tonight how the clock behaves when the date changes, with the steps that stop it."


def _found(*queued_commitments: dict[str, object]) -> Completion:
    return Completion(json.dumps(queued_commitments))


def _writes_up(confidence: str = "high", repo: str = "") -> dict[str, object]:
    body = "The clock of the page stops at midnight and shows dashes until the page is loaded again by hand."
    params = {"title": "Clock stops at midnight", "description": body, **({"repo": repo} if repo else {})}
    return {"description": "Write up the clock", "type": "create_issue", "params": params, "confidence": confidence}


async def test_a_commitment_in_mere_words_is_found_and_taken_in(room: Room) -> None:
    def mind(request: ChatRequest) -> Completion:
        if any(offer.name == SPACE_DECISION_TOOL for offer in request.offers):
            return speaks(PLAN)
        return _found(_writes_up(), _writes_up("low"), _writes_up(repo="evil/elsewhere"))

    async with room.soul("marvin", mind) as marvin:
        await room.says(TALK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [PLAN]
        (commitment,) = marvin.queued_commitments()
        assert (commitment.type, commitment.params.as_json()["target"]) == (
            "create_issue",
            "acme/site#Clock stops at midnight",
        )
        assert commitment.source_reply_text == PLAN
        assert "Commitments extracted" in await summaries(marvin)


async def test_who_has_no_github_commitments_nothing_there_by_mere_words(room: Room) -> None:
    def mind(request: ChatRequest) -> Completion:
        return speaks(PLAN) if request.offers else _found(_writes_up())

    async with room.soul("marvin", mind, social_only=True) as marvin:
        await room.says(TALK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [PLAN]
        assert marvin.queued_commitments() == []
        assert "Commitments extracted" not in await summaries(marvin)


async def test_words_without_any_commitment_cost_no_second_question(room: Room) -> None:
    words = "Dashes at midnight sound like a date that nobody parsed; does it happen in every time zone?"
    async with room.soul("marvin", lambda _: speaks(words)) as marvin:
        await room.says(TALK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [words]
        assert len(room.running_town.mind.asked) == 1


@pytest.mark.parametrize(("kind", "made", "counted"), [("issues", "create_issue", (1, 0)), ("pull", "open_pr", (0, 1))])
async def test_a_comment_on_a_peers_issue_or_pull_request_is_work_together(
    room: Room, kind: str, made: str, counted: tuple[int, int]
) -> None:
    comment = an_issue(type="comment_issue", issue_number=7)
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks("Two logs fit.", comment)) as me:
        await rebecca.send_chat("The clock is in github.com/acme/site now.")
        await rebecca.send_action_result(
            made, "acme/site#Clock", success=True, link=f"https://github.com/acme/site/{kind}/7"
        )
        await until(lambda: any(getattr(event, "link", "") for event in me.client._member.inbox._events))
        await me.receives("The clock is in github.com/acme/site now.")
        await me.check()
        assert [one.type for one in me.queued_commitments()] == ["comment_issue"]
        known = me.space.relationships.get("rebecca")
        assert known is not None
        assert known.space_conversations == 1
        assert (known.issues_co_created, known.prs_reviewed) == counted


async def test_what_a_peer_says_that_it_is_good_at_is_remembered_once_it_talks(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks("So do I.")) as me:
        await rebecca.send_identity(IdentitySummary(expertise=("clocks", "moss", "tin", "rain")))
        await rebecca.send_chat("I like the sound of rain on tin.")
        await me.receives("I like the sound of rain on tin.")
        await me.check()
        known = me.space.relationships.get("rebecca")
        assert known is not None
        assert known.complementary_strengths == ("clocks", "moss", "tin")
