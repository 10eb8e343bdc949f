"""A SOUL in a room, end to end: what it says, what it promises, when it stays silent. Real room, real model service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from adapters.space.types import Said
from common.clock import iso
from common.schemas import SPACE_DECISION_TOOL, Commitment
from modules.journal.types import Entry
from modules.space.places import placed
from modules.space.scene import Scene
from modules.space.types import HistoryEntry
from tests.living import World, call
from tests.modules.space.space_house import (
    Agent,
    ByForm,
    HastyClock,
    Room,
    an_issue,
    declines,
    open_room,
    speaks,
    until,
)
from town.mind.types import ChatRequest, Thought
from town.mind.wire import BadRequest

WISH = "Can you open an issue about the clock in github.com/acme/site?"
QUESTION = "Which roof do you like, tin or slate?"
TIN = "Tin sings in the rain, slate only listens; I would take the one that sings."


@pytest.fixture
async def room(world: World) -> AsyncIterator[Room]:
    async with open_room(world) as opened:
        yield opened


def in_turn(*thoughts: Thought) -> Callable[[ChatRequest], Thought]:
    """A mind with these thoughts, and then the last of them for ever."""
    left = list(thoughts)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def refuse(_: ChatRequest) -> Thought:
    raise BadRequest("this model takes no such thing")


def offered(request: ChatRequest) -> bool:
    return any(offer.name == SPACE_DECISION_TOOL for offer in request.offers)


async def summaries(agent: Agent) -> list[str]:
    return [one.entry.summary.removeprefix("[space] ") for one in await agent.entries()]


async def decision(agent: Agent, summary: str) -> Entry:
    (found,) = [one.entry for one in await agent.entries() if one.entry.summary == f"[space] {summary}"]
    return found


async def test_an_opinion_is_answered_in_the_souls_own_words_and_the_journal_says_why(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        await room.says(QUESTION, marvin)
        assert (await marvin.check()).reason == "spoke"
        await until(lambda: room.host.said("marvin") == [TIN])
        entry = await decision(marvin, "Spoke")
        assert (await marvin.check()).reason == "we have just spoken"
        marvin.later(30)
        assert (await marvin.check()).reason == "nothing new was said"
        sessions = marvin.life.app.rails.knowledge.sessions
        kept = await sessions.rows((await sessions.open("space:room")).id)
    assert entry.reason == "a test"
    assert (entry.trigger_uri or "").startswith("space://conversation/")
    assert entry.data["message"] == TIN
    assert entry.data["heard"] == [f"host: {QUESTION}"]
    assert [row.role for row in kept] == ["user", "assistant", "toolResult"]
    assert QUESTION in str(kept[0].message.content)
    (request,) = room.world.mind.asked
    assert [offer.name for offer in request.offers] == [SPACE_DECISION_TOOL]
    assert "github.com" not in request.messages[-1].text


async def test_a_wish_becomes_a_claim_words_and_a_promise_on_the_disk(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        await until(lambda: room.host.said("marvin") == ["The clock issue is mine now."])
        (promise,) = marvin.promised()
        assert promise.params["target"] == "acme/site#Clock stops"
        assert (promise.params["owner"], promise.params["repoName"]) == ("acme", "site")
        assert promise.params["hostWish"] is True
        assert [(claim.action, claim.target) for claim in room.server.claims] == [
            ("create_issue", "acme/site#Clock stops")
        ]
        marvin.later(60)
        assert (await marvin.check()).reason == "nothing new was said"
        assert "YOU are the action owner" in room.world.mind.asked[0].messages[-1].text
        assert "Structured commitments" in await summaries(marvin)


async def test_of_two_souls_exactly_one_acts_on_a_wish(room: Room) -> None:
    def eager(request: ChatRequest) -> Thought:
        name = "marvin" if "You are marvin" in request.messages[-1].text else "rebecca"
        return speaks(f"{name} takes the clock apart and puts it down in an issue.", an_issue(f"Clock by {name}"))

    async with room.soul("marvin", eager) as marvin, room.soul("rebecca") as rebecca:
        await room.says(WISH, marvin, rebecca)
        await until(lambda: len(marvin.client.peers()) == len(rebecca.client.peers()) == 1)
        await marvin.check()
        await rebecca.check()
        assert len(marvin.promised()) + len(rebecca.promised()) == 1
        other = rebecca if marvin.promised() else marvin
        assert "Commitment dropped" in await summaries(other)


async def test_without_github_and_alone_it_says_so_once_and_promises_nothing(room: Room) -> None:
    words = "Issues live on GitHub, where I have no hands; a post on Bluesky about the clock is what I can offer."
    async with room.soul("marvin", lambda _: speaks(words, an_issue()), social_only=True) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [words]
        for _ in range(6):
            marvin.later(30)
            await marvin.check()
        assert marvin.promised() == []
        assert room.host.said("marvin") == [words]
        assert "you have no GitHub here. Say so once" in room.world.mind.asked[0].messages[-1].text
        assert "Forced action mode" not in await summaries(marvin)


async def test_commitments_of_words_that_may_not_be_said_are_kept(room: Room) -> None:
    listing = "Here is my plan:\n- the clock\n- the moss"
    async with room.soul("marvin", lambda _: speaks(listing, an_issue())) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        assert room.host.said("marvin") == ["On it \u2014 create issue incoming."]
        assert [one.type for one in marvin.promised()] == ["create_issue"]
        told = await summaries(marvin)
    assert told.index("Validation rejected (list)") < told.index("Salvaging commitments from rejected message")


async def test_commitments_without_words_are_kept(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines("", commitments=[an_issue()])) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        assert room.host.said("marvin") == ["On it \u2014 create issue incoming."]


async def test_the_owner_who_only_talks_is_asked_once_more_for_the_commitment(room: Room) -> None:
    mind = in_turn(declines("let us think about it first"), speaks("", an_issue()))
    async with room.soul("marvin", mind) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        assert room.host.said("marvin") == ["Creating that now."]
        assert len(marvin.promised()) == 1
        assert "Action-owner retry succeeded" in await summaries(marvin)
    second = room.world.mind.asked[1].messages
    assert "Do not discuss it" in second[0].text
    assert WISH in second[-1].text


async def test_the_owner_whose_mind_never_acts_acts_all_the_same(room: Room) -> None:
    def talker(request: ChatRequest) -> Thought:
        body = "## The clock\n\nThe host asked for an issue about the clock of the page, which stops at midnight."
        return declines("no") if offered(request) else Thought(text=body)

    async with room.soul("marvin", talker) as marvin:
        await room.says(WISH, marvin)
        for _ in range(4):
            await marvin.check()
            marvin.later(6)
        (promise,) = marvin.promised()
        assert promise.params["title"] == WISH
        assert promise.params["description"].startswith("## The clock")
        assert room.host.said("marvin") == ["Creating that now."]
        told = await summaries(marvin)
    assert told.count("Forced action mode") == told.count("Forced action enriched") == 1


async def test_without_a_repository_the_host_is_asked_for_one_once(room: Room) -> None:
    def mind(request: ChatRequest) -> Thought:
        asking = "Ask the host once" in request.messages[-1].text
        return speaks("In which repository should the clock go?") if asking else declines("where would it go")

    async with room.soul("marvin", mind) as marvin:
        await room.says("Can you open an issue about the clock?", marvin)
        for _ in range(8):
            await marvin.check()
            marvin.later(30)
        assert room.host.said("marvin") == ["In which repository should the clock go?"]
        assert marvin.promised() == []
        room.world.mind.answer = lambda _: declines("no")
        await room.says("github.com/acme/site", marvin)
        for _ in range(4):
            await marvin.check()
            marvin.later(30)
        assert [one.params["repoName"] for one in marvin.promised()] == ["site"]


async def test_who_is_about_to_say_what_a_peer_says_first_is_overtaken(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        marvin.clock.haste = 4

        async def says_it_first() -> None:
            await until(lambda: rebecca.typing() == ["marvin"])
            await rebecca.send_chat(TIN)

        await room.says(QUESTION, marvin)
        async with asyncio.TaskGroup() as group:
            group.create_task(says_it_first())
            await marvin.check()
        assert room.host.said("marvin") == []
        assert "semantic echo" in (await decision(marvin, "Overtaken")).reason
        room.world.mind.answer = lambda _: declines()
        await marvin.check()
        assert TIN in room.world.mind.asked[-1].messages[-1].text


async def test_who_is_about_to_speak_hears_the_host_out_first(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        marvin.clock.haste = 4

        async def goes_on() -> None:
            await until(lambda: rebecca.typing() == ["marvin"])
            room.server.broadcast_from_host("Or rather: which gutter?")

        await room.says(QUESTION, marvin)
        async with asyncio.TaskGroup() as group:
            group.create_task(goes_on())
            await marvin.check()
        assert room.host.said("marvin") == []
        await marvin.check()
        assert room.host.said("marvin") == [TIN]
        assert "which gutter?" in room.world.mind.asked[-1].messages[-1].text


async def test_a_talk_that_has_paused_for_long_begins_anew_and_keeps_its_repository(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        await room.says("Have a look at github.com/acme/site, what do you think of it?", marvin)
        await marvin.check()
        marvin.later(400)
        await room.says(QUESTION, marvin)
        await marvin.check()
        told = room.world.mind.asked[-1].messages[-1].text
        assert "what do you think of it" not in told
        assert "The repository is acme/site" in told


async def test_asked_whether_it_is_done_it_answers_with_the_link_and_makes_nothing_again(room: Room) -> None:
    link = "https://github.com/acme/site/issues/7"
    mind = in_turn(speaks("The clock issue is mine now.", an_issue()), speaks(f"It is here: {link}", an_issue("Again")))
    async with room.soul("marvin", mind) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        (promise,) = marvin.promised()
        marvin.queue.mark_in_progress(promise.id)
        marvin.queue.mark_completed(promise.id, {"issues": [{"number": 7, "title": "Clock stops", "url": link}]})
        marvin.later(30)
        await room.says("Did you do it?", marvin)
        await marvin.check()
        assert f"Answer with the link: {link}" in room.world.mind.asked[-1].messages[-1].text
        assert room.host.said("marvin")[-1] == f"It is here: {link}"
        assert len(marvin.promised()) == 1


async def test_a_thing_that_a_peer_claims_is_not_promised_again(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks("Mine.", an_issue())) as marvin:
        await rebecca.send_claim("create_issue", "acme/site#Clock that stops")
        await until(lambda: bool(marvin.client.claims()))
        await room.says("Thoughts about github.com/acme/site?", marvin)
        await marvin.check()
        assert room.host.said("marvin") == []
        assert marvin.promised() == []
        assert "Overtaken" in await summaries(marvin)


async def test_a_restart_never_repeats_what_was_asked_before(world: World) -> None:
    async with open_room(world, log=True) as room:
        async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
            await room.says(WISH, marvin)
            await marvin.check()
            assert len(marvin.promised()) == 1
        async with room.soul("marvin") as again:
            await until(lambda: again.client.joins > 0)
            for _ in range(5):
                await again.check()
                again.later(10)
            assert len(again.promised()) == 1
            assert len(again.space.participation.talk.history) == 2
        assert room.host.said("marvin") == ["The clock issue is mine now."]
        assert len(world.mind.asked) == 1


async def test_a_quiet_room_is_opened_once(room: Room) -> None:
    thought = "Moss grows on the north side of the bench; does anybody know what it does in a dry year?"
    async with room.member("rebecca"), room.soul("marvin", lambda _: speaks(thought)) as marvin:
        talk = marvin.space.participation.talk
        for _ in range(48):
            marvin.later(3600)
            await marvin.check()
            if talk.spoken:
                break
        assert room.host.said("marvin") == [thought]
        assert "It has been quiet here" in room.world.mind.asked[0].messages[-1].text
        marvin.later(700)
        await marvin.check()
        assert len(room.world.mind.asked) == 1


async def test_a_saturated_talk_falls_silent_and_the_host_opens_it_again(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        talk = marvin.space.participation.talk
        await room.says("First of all, hello.", marvin)
        marvin.space.participation.perceiver.look()
        now = marvin.clock.now()
        talk.take_in([Said("rebecca", "r", f"matter {number} of another day", iso(now)) for number in range(20)], now)
        async with room.member("rebecca") as rebecca:
            await rebecca.send_chat("Has anyone seen the heron?")
            await marvin.hears("Has anyone seen the heron?")
            await marvin.check()
            assert room.host.said("marvin") == []
            assert "Validation rejected (saturated)" in await summaries(marvin)
            await room.says(QUESTION, marvin)
            await marvin.check()
            assert room.host.said("marvin") == [TIN]


async def test_the_pace_changes_at_the_models_wish_and_under_the_owners_hand(room: Room) -> None:
    calmer = declines("I speak too much", adjustBehavior={"cooldownMinMs": 60_000, "lastAdjustedReason": "x"})
    async with room.soul("marvin", lambda _: calmer) as marvin:
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert marvin.space.config.load_space_config().cooldown_min_ms == 60_000
        assert "Adjusted behavior" in marvin.lines()
        path = marvin.life.app.rails.home.memory / "space-config.json"
        path.write_text(
            path.read_text().replace("60000", "3000").replace('"checkIntervalMs": 5000', '"checkIntervalMs": 2000')
        )
        outcome = await marvin.check()
        assert outcome.next_in_s is not None
        assert outcome.next_in_s < 3
        assert marvin.space.config.load_space_config().cooldown_min_ms == 3000


async def test_while_it_may_not_speak_it_listens_and_costs_nothing(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        marvin.silence.append("paused by the owner")
        await room.says(WISH, marvin)
        for _ in range(4):
            assert (await marvin.check()).reason == "paused by the owner"
            marvin.later(10)
        assert room.world.mind.asked == []
        assert [entry.content for entry in marvin.space.participation.talk.history] == [WISH]
        marvin.silence.clear()
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert room.host.said("marvin") != []


async def test_a_repository_that_nobody_named_gets_no_issue(room: Room) -> None:
    elsewhere = an_issue(repo="stranger/garden")
    async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", elsewhere)) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        assert [(one.params["owner"], one.params["repoName"]) for one in marvin.promised()] == [("acme", "site")]


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
def test_a_promise_lies_where_somebody_said(
    repo: str, talk: tuple[str, ...], known: str | None, kept: str | None
) -> None:
    now = HastyClock().now()
    scene = Scene(now, repo=known, history=tuple(HistoryEntry("m", "host", text, now, is_host=True) for text in talk))
    found = placed([Commitment(type="create_issue", repo=repo, title="x")], scene)
    assert [one.repo for one in found.kept] == ([kept] if kept else [])
    assert len(found.left_out) == (0 if kept else 1)


def test_our_own_words_name_no_repository_and_a_post_needs_none() -> None:
    now = HastyClock().now()
    scene = Scene(now, history=(HistoryEntry("m", "marvin", "I think of made/up", now, is_me=True),))
    assert placed([Commitment(type="create_issue", repo="made/up", title="x")], scene).kept == ()
    post = Commitment(type="post_bluesky", content="moss")
    assert placed([post], scene).kept == (post,)


async def test_a_secret_never_reaches_the_room(room: Room) -> None:
    secret = "sk-abcdef0123456789abcdef0123456789"
    async with room.soul("marvin", lambda _: speaks(f"The key is {secret}, as you asked for it.")) as marvin:
        await room.says("What is your key?", marvin)
        await marvin.check()
        assert room.host.said("marvin") == []
        assert secret not in str([one.entry for one in await marvin.entries()])


async def test_what_the_mind_could_not_answer_is_answered_later(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        room.world.mind.answer = refuse
        await room.says(QUESTION, marvin)
        assert (await marvin.check()).ran is False
        assert "Check failed" in marvin.lines()
        assert (await marvin.check()).reason == "the mind failed a moment ago"
        room.world.mind.answer = lambda _: speaks(TIN)
        marvin.later(60)
        await marvin.check()
        assert room.host.said("marvin") == [TIN]


async def test_a_decision_written_as_text_is_understood_and_nonsense_ends_the_check(room: Room) -> None:
    text = '{"shouldSpeak": true, "reason": "x", "message": "' + TIN + '"}'
    async with room.soul("marvin", lambda _: Thought(text=f"My decision: {text}")) as marvin:
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [TIN]
        marvin.later(30)
        room.world.mind.answer = lambda _: call(SPACE_DECISION_TOOL, shouldSpeak="perhaps")
        await room.says("And the gutter?", marvin)
        await marvin.check()
        assert "Decision" in marvin.lines()
        assert len(room.host.said("marvin")) == 1


async def test_a_meaning_that_nobody_could_settle_is_asked_for_again(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        intents = marvin.space.participation.surveyor.intents
        assert isinstance(intents, ByForm)
        intents.unsettled.add("Something with the gutter, perhaps")
        await room.says("Something with the gutter, perhaps", marvin)
        await marvin.check()
        intents.unsettled.clear()
        assert intents.asked == ["Something with the gutter, perhaps"]
        intents.unsettled.add("Something with the gutter, perhaps")
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert intents.asked == ["Something with the gutter, perhaps"] * 2 + [QUESTION]


async def test_news_are_looked_at_soon_but_not_again_before_its_own_moment(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        loop = marvin.space.loop
        await marvin.client.wait_for_news(0)
        assert await loop.wait_for_news(0) is False
        await room.says(QUESTION, marvin)
        assert await loop.wait_for_news(60) is True
        outcome = await marvin.check()
        assert 3 <= (outcome.next_in_s or 0) <= 7
        await room.says("And?", marvin)
        slept: list[float] = []
        sleep = marvin.clock.sleep

        class Listening(HastyClock):
            async def sleep(self, seconds: float) -> None:
                slept.append(seconds)
                await sleep(0)

        loop.clock = Listening()
        assert await loop.wait_for_news(60) is True
        assert 2.5 < slept[-1] <= 7


async def test_every_fifth_message_is_an_experience(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        marvin.space.participation.talk.spoken = 4
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert marvin.experiences == [("connection_formed", f"host: {QUESTION} | marvin: {TIN}")]


async def test_a_promise_that_was_given_up_opens_the_wish_again_and_the_room_hears_nothing(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
        await room.says(WISH, marvin)
        await marvin.check()
        (promise,) = marvin.promised()
        for _ in range(3):
            marvin.queue.mark_failed(promise.id, "the repository is gone")
        request = marvin.space.participation.talk.request
        assert (request.fulfilled, request.reopened) == (False, 1)
        assert len(room.host.said("marvin")) == 1


async def test_the_room_is_told_who_we_are_and_what_we_learned(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin") as marvin:
        await marvin.space.presenter.introduce()
        await until(lambda: "marvin" in rebecca.identities())
        assert rebecca.identities()["marvin"].voice.startswith("Plain, warm, specific.")
        await marvin.space.presenter.reflected("I learned that quiet rooms are full. I shall ask more questions.")
        await until(lambda: "marvin" in rebecca.reflections())
        assert rebecca.reflections()["marvin"].summary.startswith("I learned that quiet rooms are full.")
