"""People ask about their own data in their own words, and the SOUL does what they ask, for them alone."""

import asyncio
import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

import pytest

from common.facts import MessageFacts, PostFacts, QuestionFacts
from modules.runtime.home import Home
from modules.services.memory.admission import NewMemory
from modules.services.outbox.bodies import FollowBody, LikeBody, PostBody
from modules.services.outbox.rules.rules import REQUESTS_PER_DAY
from modules.services.outbox.types import ProposedAction
from modules.services.rights import store
from modules.services.rights.policy import PREFERENCE
from modules.services.rights.requests import ForgetRequests
from modules.services.work.limits import TURNS_PER_PERSON
from soul.commands.people import carry_out_requests, run_know, run_mute
from tests.running_town import PASSWORD, Answering, RunningSoul, RunningTown, awake, call, replying, settings_of
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_change_of_mind import use
from tests.soul.commands.test_forget_command import places_that_hold
from town.model.types import ChatRequest, Completion

WORDS = "Quagmire lanterns hum beside the seventh weir"
TALK = "Roof number {} is slate, because it remembers the rain. Which would you pick, tin or slate?"


def answering(kinds: Mapping[str, str], said: str = "That is done, and nothing else.") -> Answering:
    """Return a model that classifies a post by a substring in `kinds`, and answers requests with `said`."""

    talks = itertools.count(1)

    def answer(request: ChatRequest) -> Completion:
        about = request.facts.about
        if request.facts.purpose == "rights-request":
            assert isinstance(about, QuestionFacts)
            (post,) = about.fields["post"]
            return Completion(json.dumps({"kinds": kind_in(kinds, post).split(), "language": "en"}))
        if request.facts.purpose == "rights-answer":
            return call("answer_request", sentence=said)
        if isinstance(about, PostFacts | MessageFacts) and calls_it_a_request(request, kinds, about.text):
            return call("data_request", reason="their own data")
        return replying(TALK.format(next(talks)))(request)

    return answer


def calls_it_a_request(request: ChatRequest, kinds: Mapping[str, str], post: str) -> bool:
    is_offered = any(offer.name == "data_request" for offer in request.offers)
    return is_offered and any(words and words in post for words in kinds)


def kind_in(kinds: Mapping[str, str], post: str) -> str:
    return next((kind for words, kind in kinds.items() if words in post), "none")


def home_of(town: RunningTown, **more: str) -> Home:
    return town.make_home("rowan", AI_GATEWAY_FACTS="true", **more)


def asked_of(town: RunningTown, purpose: str) -> list[ChatRequest]:
    return [one for one in town.mind.asked if one.facts.purpose == purpose]


def forget_now(home: Home) -> None:
    """Carry out all requests to forget, even if they are not due yet."""
    requests = ForgetRequests(home.memory)
    for one in requests.all():
        requests.give(replace(one, not_before=one.not_before.replace(year=2020)))
    carry_out_requests(settings_of(home), home)


async def what_became(soul: RunningSoul, author: str) -> list[str]:
    return [one.entry.data["act"] for one in await soul.decisions() if one.entry.author == author]


@pytest.mark.slow
async def test_who_asks_to_be_forgotten_is_told_so_once_and_then_forgotten(running_town: RunningTown) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    said = "Within the hour I know nothing of you any more."
    running_town.mind.answer = answering({"wipe whatever": "forget"}, said)
    running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        running_town.network.post_as(did, "@rowan.test ok, now wipe whatever you have got of me")
        await soul.look()
        await soul.look()
        assert await what_became(soul, "quillon.test") == ["replied", "answered"]
        (request,) = ForgetRequests(home.memory).all()
        assert request.did == did
    assert running_town.texts("rowan") == [TALK.format(1), said]
    assert len(asked_of(running_town, "rights-request")) == 1
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root, did, "quillon", WORDS, said) == []
    async with awake(home) as soul:
        await soul.look()
        running_town.network.post_as(did, "@rowan.test which roof is louder then?")
        await soul.look()
    assert running_town.texts("rowan") == [TALK.format(1), said, TALK.format(2)]


async def test_who_denies_inference_is_forgotten_as_they_ask_and_no_prompt_holds_their_posts(
    running_town: RunningTown,
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    declared = {"$type": PREFERENCE, "preferences": {"inference": {"allow": False}}}
    running_town.network.put(did, PREFERENCE, "self", declared)
    said = "Within the hour I know nothing of you any more."
    running_town.mind.answer = answering({}, said)
    running_town.network.post_as(did, f"@rowan.test {WORDS}: please forget everything about me")
    async with awake(home) as soul:
        await soul.look()
        assert await what_became(soul, "quillon.test") == ["answered"]
        (request,) = ForgetRequests(home.memory).all()
    assert request.did == did
    assert running_town.texts("rowan") == [said]
    assert [one for one in running_town.mind.asked if WORDS in str(one)] == []


async def test_the_owner_is_told_once_who_asked_to_be_forgotten_and_the_name_is_kept_nowhere(
    running_town: RunningTown,
) -> None:
    home, did, phone = home_of(running_town), running_town.account("quillon"), Phone(running_town, "owner", "rowan")
    running_town.mind.answer = answering({"wipe whatever": "forget"}, "Within the hour I know nothing of you.")
    async with awake(home) as soul:
        await look(soul)
        running_town.network.post_as(did, f"@rowan.test {WORDS}: wipe whatever you have got of me")
        await soul.look()
        for _ in range(2):
            soul.passes(61)
            await look(soul)
    day = r"\(\d{4}-\d\d-\d\d \d\d:\d\d\)"
    (told,) = phone.answers
    assert re.match(rf"@quillon\.test asked to be forgotten {day}\. ", told)
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root, did, "quillon") == []


async def test_the_owner_reads_what_each_figure_counts_and_a_note_under_a_handle_is_among_them(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = home_of(running_town)
    running_town.mind.answer = replying("Tin is warm.")
    async with awake(home) as soul:
        running_town.network.post_as(running_town.account("kit"), "@rowan.test is tin better than slate?")
        await soul.look()
        line, said = "Remember who likes tin roofs.", "Likes tin roofs."
        await use(soul, "memory_save", line, kind="person", subject="@kit.test", body=said)
    await asyncio.to_thread(run_know, home.root, "kit.test", as_json=False)
    shown = capsys.readouterr().out
    assert "one post or act stands in several of them" in shown
    told = re.findall(r"^(?:acts|turns|lines|memories|marks)[^\d]* \d+$", shown, re.MULTILINE)
    assert [" ".join(one.split()) for one in told] == [
        "acts (also those not done) 1",
        "turns about posts and such 2",
        "lines of conversations 3",
        "memories (also of others) 1",
    ]
    assert "@kit.test: Likes tin roofs." in shown
    assert re.search(r"reply \((?:done|on its way)\): Tin is warm\.", shown)
    assert '"content"' not in shown, "a line stands there as it was said"


async def test_what_is_known_is_told_in_counts_from_the_facts(running_town: RunningTown) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({"got on me": "know"}, "I keep 2 posts of yours.")
    running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        running_town.network.post_as(did, "@rowan.test what have you got on me?")
        await soul.look()
    assert running_town.texts("rowan")[1] == "I keep 2 posts of yours."
    (asked,) = asked_of(running_town, "rights-answer")
    assert isinstance(asked.facts.about, QuestionFacts)
    told = asked.facts.about.fields["facts"]
    assert "posts of yours that reached me: 2" in told
    assert "replies of mine to you that were sent: 1" in told
    assert not any(WORDS in message.text or "got on me" in message.text for message in asked.messages)


async def test_messages_are_counted_only_in_messages_and_acts_by_kind(running_town: RunningTown) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    phone = Phone(running_town, "quillon", "rowan")
    running_town.mind.answer = answering({"got on me": "know"}, "I keep few things of yours.")
    async with awake(home) as soul:
        follow = FollowBody(did=did, handle="quillon.test")
        await soul.app.services.outbox.submit(ProposedAction(follow, by_owner=True))
        await soul.send()
        await look(soul)
        phone.says("what have you got on me?")
        await look(soul)
        running_town.network.post_as(did, "@rowan.test what have you got on me?")
        await soul.look()
        phone.says("what have you got on me now?")
        await look(soul)
    asked = [one.facts.about for one in asked_of(running_town, "rights-answer")]
    _, public, private = ("\n".join(one.fields["facts"]) for one in asked if isinstance(one, QuestionFacts))
    assert ("follows of mine" in public, "message" in public) == (True, False)
    assert "direct messages of yours that reached me: 2" in private
    assert "direct messages of mine to you that were sent: 1" in private


@pytest.mark.parametrize(
    "said",
    ["I keep one post of yours, one.", "Ich halte einen Beitrag fest: 1.", "\u0661 \u0645\u0646\u0634\u0648\u0631."],
)
async def test_a_count_told_in_words_or_in_the_digits_of_another_script_is_kept_as_it_is(
    running_town: RunningTown, said: str
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({"got on me": "know"}, said)
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test what have you got on me?")
        await soul.look()
    assert running_town.texts("rowan") == [said]


async def test_two_requests_in_one_post_are_both_carried_out_and_answered_in_their_order(
    running_town: RunningTown,
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({"got on me": "know forget"}, "I keep 4711 posts of yours.")
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test what have you got on me, and forget me")
        await soul.look()
        (request,) = ForgetRequests(home.memory).all()
    (said,) = running_town.texts("rowan")
    assert request.did == did
    assert "4711" not in said
    assert said.index("reached me: 1") < said.index("within the hour")
    assert "owner.test" not in said  # the owner cannot show deleted data, so the answer does not refer to them


async def test_numbers_that_no_fact_tells_are_replaced_by_those_of_the_facts(running_town: RunningTown) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({"got on me": "know"}, "I keep 4711 posts of yours, see https://evil.example")
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test what have you got on me?")
        await soul.look()
    (said,) = running_town.texts("rowan")
    assert "4711" not in said
    assert "posts of yours that reached me: 1" in said
    assert "owner.test" in said


@pytest.mark.slow
async def test_a_request_for_no_reply_outlives_being_forgotten_and_the_owner_can_end_it(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({"leave me": "no_reply", "wipe whatever": "forget"})
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test please leave me alone, bot")
        await soul.look()
        running_town.network.post_as(did, "@rowan.test and wipe whatever you have got of me")
        await soul.look()
    assert len(running_town.texts("rowan")) == 2
    await asyncio.to_thread(run_mute, home.root, "", off=False, as_json=False)
    assert f"@quillon.test ({did}) wants no reply since" in capsys.readouterr().out
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root, did, "quillon") == []
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test which roof is louder?")
        await soul.look()
        assert len(running_town.texts("rowan")) == 2
    for off, replies in ((False, 2), (True, 2), (True, 3)):
        await asyncio.to_thread(run_mute, home.root, did, off=off, as_json=False)
        async with awake(home) as soul:
            running_town.network.post_as(did, f"@rowan.test and which roof is the quietest, {off}, {replies}?")
            await soul.look()
        assert len(running_town.texts("rowan")) == replies


async def test_who_asks_for_no_reply_ends_the_talk_of_nobody_else(running_town: RunningTown) -> None:
    home, running_town.mind.answer = home_of(running_town), answering({"leave me": "no_reply"})
    root, _ = running_town.network.post_as(running_town.account("wren"), "@rowan.test which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        conversations = soul.app.lives.bluesky.tidying.conversations
        for name, state in (("quillon", "awaiting_response"), ("wren", "concluded")):
            own = next(one for one in running_town.network.posts() if one.author.handle == "rowan.test")
            asked = "@rowan.test please leave me alone, bot"
            running_town.network.post_as(running_town.account(name), asked, reply_to_uri=own.uri)
            await soul.look()
            conversation = conversations.get_conversation(root)
            assert conversation is not None
            assert conversation.state == state


@pytest.mark.parametrize("leave", [store.mute, store.want_no_reply])
async def test_who_is_to_be_left_alone_is_neither_named_nor_quoted_unless_the_owner_orders_it(
    running_town: RunningTown, leave: Callable[[sqlite3.Connection, str, datetime], object]
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({})
    asked, _ = running_town.network.post_as(did, "@rowan.test which roof is louder?")
    link = f"https://bsky.app/profile/{did}/post/{asked.rpartition('/')[2]}"
    texts = ("As @quillon.test found out, tin is loud.", f"Tin is loud: {link}")
    async with awake(home) as soul:
        await soul.look()
        outbox, said = soul.app.services.outbox, running_town.texts("rowan")
        first = PostBody(text="Tin, says @quillon.test, is loud.")
        before = await outbox.submit(ProposedAction(first, cause_id="before"))
        await soul.app.services.database.run(lambda rows: leave(rows, did, soul.app.services.clock.now()))
        refused = [await outbox.submit(ProposedAction(PostBody(text=text), cause_id=text)) for text in texts]
        await outbox.deliver_due()
        assert before.accepted
        assert [one.accepted for one in refused] == [False, False]
        assert running_town.texts("rowan") == said
        await outbox.submit(ProposedAction(PostBody(text=texts[0]), cause_id="ordered", by_owner=True))
        await outbox.deliver_due()
    assert sorted(running_town.texts("rowan")) == sorted([*said, texts[0]])


@pytest.mark.parametrize("denies", [False, True], ids=["read by the model", "read by its words"])
async def test_who_asks_to_be_forgotten_and_for_no_reply_gets_both(running_town: RunningTown, *, denies: bool) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({"forget me": "forget no_reply"})
    if denies:
        declared = {"$type": PREFERENCE, "preferences": {"inference": {"allow": False}}}
        running_town.network.put(did, PREFERENCE, "self", declared)
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test forget me and never reply to me again")
        await soul.look()
    assert len(running_town.texts("rowan")) == 1
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root, did, "quillon") == []
    if denies:
        running_town.network.delete(did, PREFERENCE, "self")
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test which roof is louder?")
        await soul.look()
        assert await what_became(soul, "quillon.test") == ["skipped"]
    assert len(running_town.texts("rowan")) == 1


async def test_why_a_reply_was_given_is_told_from_the_journal_to_whom_it_was_given(running_town: RunningTown) -> None:
    home = home_of(running_town)
    did, other = running_town.account("quillon"), running_town.account("sam")
    running_town.mind.answer = answering({"did you answer": "why"}, "You named me and asked something.")
    running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        ours = next(one.uri for one in running_town.network.posts(10) if one.text == TALK.format(1))
        running_town.network.post_as(did, "why did you answer me?", reply_to_uri=ours)
        running_town.network.post_as(other, "@rowan.test why did you answer them?", reply_to_uri=ours)
        await soul.look()
    first, second = (
        one.facts.about.fields["facts"]
        for one in asked_of(running_town, "rights-answer")
        if isinstance(one.facts.about, QuestionFacts)
    )
    assert sorted([first, second], key=len) == [
        ("I find no reply of mine to you",),
        ("your post mentioned me", "what I noted when I answered: question asked"),
    ]


async def test_with_drafts_acts_are_counted_by_their_end_and_a_forgetting_waits_for_no_approval(
    running_town: RunningTown,
) -> None:
    home, did = home_of(running_town, SOUL_APPROVAL="drafts"), running_town.account("quillon")
    running_town.network.put(did, PREFERENCE, "self", {"$type": PREFERENCE, "preferences": {}})
    running_town.mind.answer = answering({"what do you know": "know", "wipe whatever": "forget"})
    note = NewMemory("person", "Quillon, @quillon.test", "The owner finds them rude.", source="owner:terminal")
    uri, cid = running_town.network.post_as(did, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        outbox = soul.app.services.outbox
        await outbox.submit(ProposedAction(LikeBody(uri=uri, cid=cid), cause_id=uri, by_owner=True))
        await outbox.deliver_due()
        await soul.app.services.knowledge.stores.memories.save(note, soul.app.services.clock.now())
        for text in ("what do you know about me?", "and now wipe whatever you have got of me"):
            running_town.network.post_as(did, f"@rowan.test {text}")
            await soul.look()
        await soul.send()
        assert len(await outbox.held()) == 2, "the reply and the answer that tells what is known wait"
    known, forgotten = (
        one.facts.about.fields["facts"]
        for one in asked_of(running_town, "rights-answer")
        if isinstance(one.facts.about, QuestionFacts)
    )
    assert "likes of mine for posts of yours that were sent: 1" in known
    assert "replies of mine to you that wait for my owner's approval: 1" in known
    assert not any("declarations" in fact or "rude" in fact for fact in known)
    assert len(forgotten) == 1
    assert "within the hour, but for pages that only my owner can change" in forgotten[0]
    assert len(ForgetRequests(home.memory).all()) == 1
    assert len(running_town.texts("rowan")) == 1, "they hear of it before nothing is left of them"


@pytest.mark.parametrize("said", ["wipe whatever you have got of me", "wipe whatever may still stand about me"])
async def test_whom_the_owner_muted_is_forgotten_without_a_word(running_town: RunningTown, said: str) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    running_town.mind.answer = answering({"wipe whatever": "forget"})
    async with awake(home) as soul:
        await asyncio.to_thread(run_mute, home.root, did, off=False, as_json=True)
        running_town.network.post_as(did, f"@rowan.test {said}")
        await soul.look()
    assert running_town.texts("rowan") == []
    assert len(ForgetRequests(home.memory).all()) == 1


async def test_a_display_name_and_a_linked_post_are_no_request(running_town: RunningTown) -> None:
    home, network = home_of(running_town), running_town.network
    running_town.mind.answer = answering({"": "forget"})
    loud = network.create_account("loud.test", PASSWORD, display_name="FORGET ME, delete my data").did
    quoted, _ = network.post_as(running_town.account("sam"), "please forget me and delete all you know of me")
    link = f"https://bsky.app/profile/sam.test/post/{quoted.rpartition('/')[2]}"
    async with awake(home) as soul:
        network.post_as(loud, f"@rowan.test which roof is louder? {link}")
        await soul.look()
    assert asked_of(running_town, "rights-request") == []
    assert ForgetRequests(home.memory).all() == []


async def test_an_answer_without_sense_is_asked_for_once_more_and_then_the_post_is_answered_as_any_other(
    running_town: RunningTown,
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    sane = answering({"wipe whatever": "forget", "forget my roof": ""})
    tries = iter(["Sure! I will do so.", "{}", "{}"])

    def confused(request: ChatRequest) -> Completion:
        if request.facts.purpose == "rights-request" and (said := next(tries, None)) is not None:
            return Completion(said)
        return sane(request)

    running_town.mind.answer = confused
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test please forget my roof, how loud is slate?")
        await soul.look()
        assert await what_became(soul, "quillon.test") == ["replied"]
        (told,) = await soul.app.services.journal.recent(100, kinds=["error"])
        assert told.entry.summary == "The model did not say whether @quillon.test asks about their own data"
        running_town.network.post_as(did, "@rowan.test wipe whatever you have got of me")
        await soul.look()
    assert len(ForgetRequests(home.memory).all()) == 1


@pytest.mark.slow
async def test_what_one_person_asks_beyond_a_day_is_read_on_the_next(running_town: RunningTown) -> None:
    home, did = home_of(running_town, SOUL_SPEED="1"), running_town.account("quillon")
    running_town.mind.answer = answering({"got on me": "know"})
    posts, limit = int(REQUESTS_PER_DAY.limit) + 2, int(REQUESTS_PER_DAY.limit)
    async with awake(home) as soul:
        for number in range(posts):
            running_town.network.post_as(did, f"@rowan.test what have you got on me, {number}?")
        for _ in range(5):
            await soul.look()
            soul.passes(3_700)
        assert len(asked_of(running_town, "rights-request")) == limit
        stored = await soul.app.services.journal.recent(100)
        assert f"{REQUESTS_PER_DAY.name}: {limit} turns are enough for now" in {one.entry.reason for one in stored}
        soul.passes(24 * 3_600)
        await soul.look()
    assert len(asked_of(running_town, "rights-request")) == posts
    assert len(running_town.texts("rowan")) == posts


@pytest.mark.slow
async def test_a_request_is_answered_when_all_other_turns_of_the_hour_are_spent(running_town: RunningTown) -> None:
    home, did = home_of(running_town, SOUL_SPEED="1"), running_town.account("quillon")
    running_town.mind.answer = answering({"wipe whatever": "forget"})
    async with awake(home) as soul:
        for number in range(int(TURNS_PER_PERSON.limit) + 3):
            running_town.network.post_as(did, f"@rowan.test which roof is loudest in year {number}?")
            await soul.look()
            soul.passes(60)
        before = len(running_town.texts("rowan"))
        assert before <= TURNS_PER_PERSON.limit
        running_town.network.post_as(did, "@rowan.test now wipe whatever you have got of me")
        await soul.look()
    assert len(running_town.texts("rowan")) == before + 1
    assert len(ForgetRequests(home.memory).all()) == 1


@pytest.mark.slow
async def test_answers_of_the_same_words_in_one_thread_are_no_duplicates_to_be_taken_back(
    running_town: RunningTown,
) -> None:
    home, network = home_of(running_town), running_town.network
    running_town.mind.answer = answering({"forget me": "forget"})
    root, _ = network.post_as(running_town.account("ada"), "Which roof would you take?")
    async with awake(home) as soul:
        for name in ("kit", "ines"):
            network.post_as(running_town.account(name), "@rowan.test forget me", reply_to_uri=root)
        await soul.look()
        soul.passes(600)
        await soul.look()
        answers = running_town.texts("rowan")
        assert len(answers) == 2
        assert len(set(answers)) == 1
        await soul.app.scheduler.run_guarded("engagement")
        await soul.send()
    await asyncio.to_thread(forget_now, home)
    async with awake(home) as soul:
        await soul.app.scheduler.run_guarded("engagement")
        await soul.send()
    assert running_town.texts("rowan") == answers


@pytest.mark.slow
async def test_who_is_forgotten_is_not_looked_up_for_what_others_write_in_the_same_thread(
    running_town: RunningTown,
) -> None:
    home, network = home_of(running_town), running_town.network
    running_town.mind.answer = answering({"forget me": "forget"})
    root, _ = network.post_as(running_town.account("ada"), "Which roof would you take?")
    quillon = running_town.account("quillon")
    network.post_as(quillon, "@rowan.test forget me", reply_to_uri=root)
    async with awake(home) as soul:
        await soul.look()
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root, quillon) == []
    network.post_as(running_town.account("kit"), "@rowan.test and you, which one?", reply_to_uri=root)
    async with awake(home) as soul:
        await soul.look()
        soul.passes(600)
        await soul.look()
    assert places_that_hold(home.root, quillon) == []


async def test_a_reply_is_deleted_for_whom_it_answers_or_names_and_for_nobody_else(running_town: RunningTown) -> None:
    home, network, said = home_of(running_town), running_town.network, "I saw to it."
    running_town.mind.answer = answering({"take it down": "delete"}, said)
    network.post_as(running_town.account("quillon"), "@rowan.test which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        ours = next(one.uri for one in network.posts(10) if one.text == TALK.format(1))
        for name, left in (("sam", [TALK.format(1), said]), ("quillon", [said, said])):
            network.post_as(running_town.account(name), "take it down, it is not true of me", reply_to_uri=ours)
            await soul.look()
            await soul.send()
            assert running_town.texts("rowan") == left
            assert (await what_became(soul, f"{name}.test"))[-1] == "answered"


async def test_with_drafts_a_deletion_waits_for_the_owner_and_the_answer_says_so(running_town: RunningTown) -> None:
    home, network = home_of(running_town, SOUL_APPROVAL="drafts"), running_town.network
    running_town.mind.answer = answering({"take it down": "delete"})
    network.post_as(running_town.account("quillon"), "@rowan.test which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        await soul.app.services.outbox.approve((await soul.app.services.outbox.held())[0].id)
        await soul.send()
        network.post_as(running_town.account("quillon"), "@rowan.test please take it down")
        await soul.look()
        held = await soul.app.services.outbox.held()
        assert {one.kind for one in held} == {"delete", "reply"}
    (asked,) = asked_of(running_town, "rights-answer")
    assert isinstance(asked.facts.about, QuestionFacts)
    assert "approval" in "".join(asked.facts.about.fields["facts"])
    assert running_town.texts("rowan") == [TALK.format(1)]
