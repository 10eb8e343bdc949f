"""Of our duplicate posts the oldest stays, and so does each post that differs in anything.

A thought is examined three times, and the reactions to it say where the next one should start. The owner decides who
may reply in a thread of the SOUL's own: this is written once, in the network's own record.
"""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.atproto.types import FeedItem, Post
from common.errors import SoulError
from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.outbox.bodies import PostBody, ThreadgateBody
from modules.services.outbox.types import ProposedAction
from modules.services.own_feed.expressions import Expression, ExpressionEngagement
from modules.services.own_feed.policy import (
    LOOKS,
    MOST_DELETIONS,
    Deletion,
    answered_sources,
    get_engagement_patterns,
    insight_of,
    is_due,
    own_posts,
    plan_closing_deletions,
    plan_deletions,
    plan_duplicate_deletions,
    unanswered_sources,
)
from modules.services.own_feed.reply_limits import Audience, allowed_replies
from soul.commands.run import owner_commands
from tests.modules.lives.bluesky.bluesky_values import ME, START, actor, at, post, uri
from tests.outbox_rows import counted
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.index import POST, THREADGATE
from town.atproto.service import Fault

TALK, OTHER = post("ada", "A talk about weirs.", key="talk"), post("bob", "Another talk.", key="other")
THANKS = "Perfect, thank you! Stopping here, see you on Monday, and thanks again to all of you."


def mine(text: str, number: int, parent: Post | None = None) -> Post:
    return post("me", text, key=f"m{number}", minutes=number, parent=parent)


def keys(deletions: list[Deletion]) -> list[str]:
    return [deletion.uri.rpartition("/")[2] for deletion in deletions]


def test_the_oldest_of_several_duplicates_stays_whatever_others_made_of_the_newer() -> None:
    posts = [replace(mine("Slate remembers THE rain.", 3), like_count=9), mine("slate  remembers the rain.", 1)]
    posts.insert(1, mine("Slate remembers the rain.", 2))
    found = plan_duplicate_deletions(posts)
    assert keys(found) == ["m2", "m3"]
    assert {deletion.kept.uri for deletion in found} == {posts[-1].uri}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (mine("Read https://a.example/1", 1), mine("Read https://a.example/2", 2)),
        (mine("Welcome @alice.test, good to have you here!", 1), mine("Welcome @bob.test, good to have you here!", 2)),
        (mine("Thank you, @alice.test!", 1, TALK), mine("Thank you, @bob.test!", 2, TALK)),
        (mine("Yes, the old one.", 1, TALK), mine("Yes, the old one.", 2, OTHER)),
        (mine("Yes, the old one.", 1), mine("Yes, the old one.", 2, TALK)),
        (replace(mine("Look.", 1), embed_digest="aa"), replace(mine("Look.", 2), embed_digest="bb")),
        (
            replace(mine("Here", 1), links=("https://a.example",)),
            replace(mine("Here", 2), links=("https://b.example",)),
        ),
        (replace(mine("The same.", 1), created_at="some day"), mine("The same.", 2)),
    ],
)
def test_what_differs_in_words_link_picture_or_thread_is_no_duplicate(first: Post, second: Post) -> None:
    assert plan_deletions([second, first]) == []


def test_the_older_of_two_identity_posts_stays_and_one_in_other_words_too() -> None:
    first, second = (mine("🔗—`ada` Hello. https://github.com/ada", number) for number in (1, 2))
    other = mine("🔗—`ada` I fix clocks. https://github.com/ada", 3)
    assert keys(plan_deletions([other, second, first])) == ["m2"]


def test_in_each_thread_the_first_thanks_stay() -> None:
    posts = [
        mine(THANKS, 1, TALK),
        mine("Sounds good, looking forward to it!", 2, TALK),
        mine("Thank you, likewise.", 3, TALK),
        mine("Thank you very much, likewise.", 4, OTHER),
        mine("Thanks, everybody, for this week.", 5),
        mine("Great, let us agree on that.", 6),
        mine("Danke sch\u00f6n!", 7, TALK),
        mine("\U0001f64f", 8, TALK),
    ]
    assert keys(plan_closing_deletions(posts[::-1])) == ["m2", "m3", "m7", "m8"]


@pytest.mark.parametrize(
    "text",
    [
        "Thanks! Which of the two would you keep?",
        "Thanks, and here is the recipe: ```flour, water```",
        "Great, it took 25 minutes and the second bread came out lighter than the first.",
        "Thanks, but the second figure is wrong.",
        "The weir held because its builders left a gap below the sluice.",
    ],
)
def test_what_says_something_is_never_taken_for_thanks(text: str) -> None:
    assert plan_closing_deletions([mine("Thanks a lot!", 1, TALK), mine(text, 2, TALK)]) == []


def test_what_is_told_to_be_kept_is_kept_where_a_duplicate_repeats_a_closing_that_goes() -> None:
    first, *others = (mine(text, number, TALK) for number, text in enumerate(("Thanks a lot!", *("Thank you!",) * 2)))
    found = plan_deletions([first, *others])
    assert sorted(deletion.uri for deletion in found) == sorted(post.uri for post in others)
    assert {deletion.kept.uri for deletion in found} == {first.uri}


def test_reposts_and_the_posts_of_others_are_not_ours() -> None:
    own, reposted, theirs = mine("One.", 1), mine("Two.", 2), post("ada", "Three.")
    items = [FeedItem(own), FeedItem(reposted, actor("me")), FeedItem(theirs)]
    assert own_posts(items, ME) == (own,)


WORDS = st.sampled_from(["Slate.", "slate.", "Thanks a lot!", "Thank you!", "Tin sings at night.", ""])
PARENTS = st.sampled_from([None, TALK, OTHER])


@given(st.lists(st.tuples(WORDS, PARENTS, st.integers(0, 5), st.sampled_from(["", "aa", "bb"])), max_size=40))
@example([("Slate.", None, 0, "")] * (MOST_DELETIONS + 3))
def test_no_words_vanish_altogether_and_no_pass_takes_more_than_its_most(
    said: list[tuple[str, Post | None, int, str]],
) -> None:
    posts = [
        replace(post("me", text, key=f"m{number:02}", parent=parent), created_at=at(minutes), embed_digest=digest)
        for number, (text, parent, minutes, digest) in enumerate(said)
    ]
    found = plan_deletions(posts)
    gone = {deletion.uri for deletion in found}
    assert len(found) == len(gone) <= MOST_DELETIONS
    assert all(deletion.kept.created_at <= deletion.post.created_at for deletion in found)
    assert all(deletion.kept.uri not in gone for deletion in found)


def thought(source: str = "values", *, seen: datetime | None = None, replies: int = 0, likes: int = 0) -> Expression:
    engagement = ExpressionEngagement(likes=likes, replies=replies, reposts=0, checked_at=seen) if seen else None
    return Expression(
        timestamp=START,
        prompt="A prompt.",
        prompt_source=source,
        text="A thought.",
        post_uri=uri("me", "t1"),
        engagement=engagement,
    )


@pytest.mark.parametrize(
    ("now", "seen", "due"),
    [(29, None, False), (30, None, True), (360, 31, True), (1440, 361, True), (9000, 1441, False), (9000, 40, True)],
)
def test_a_thought_is_looked_at_once_after_each_time(now: float, seen: float | None, due: bool) -> None:  # noqa: FBT001
    assert is_due(timedelta(minutes=now), None if seen is None else timedelta(minutes=seen)) is due


@given(st.lists(st.floats(min_value=1, max_value=3000), max_size=40))
def test_however_often_one_asks_a_thought_is_looked_at_three_times_at_most(pauses: list[float]) -> None:
    age, seen, looks = timedelta(), None, 0
    for pause in pauses:
        age += timedelta(minutes=pause)
        if is_due(age, seen):
            seen, looks = age, looks + 1
    assert looks <= len(LOOKS)


@pytest.mark.parametrize(
    ("replies", "likes", "insight"),
    [(0, 0, None), (0, 4, None), (0, 5, "liked"), (1, 0, "answered"), (1, 9, "answered")],
)
def test_a_reply_or_five_likes_tell_something(replies: int, likes: int, insight: str | None) -> None:
    assert insight_of(ExpressionEngagement(likes=likes, replies=replies, reposts=0, checked_at=START)) == insight


def test_sources_are_ranked_by_replies_and_a_tenth_of_the_likes() -> None:
    seen = [
        thought("questions", seen=START, replies=3),
        thought("questions", seen=START, replies=1),
        thought("values+patterns", seen=START, replies=2),
        thought("values", seen=START, replies=1, likes=9),
        thought("learnings", seen=START, replies=1),
        thought("purpose", seen=START),
        thought("identity"),
    ]
    patterns = get_engagement_patterns(seen)
    assert answered_sources(seen) == ["questions", "values+patterns", "values"]
    assert patterns[0].about.replies == 2
    assert [(one.code, one.about.source) for one in patterns] == [
        ("Answered", "questions"),
        ("Unanswered", "purpose"),
        ("Two Lines", "values+patterns"),
    ]


def test_a_source_counts_as_unanswered_only_after_several_thoughts() -> None:
    once, answered = thought("once", seen=START), thought("answered", seen=START, replies=1)
    never = [thought("never", seen=START, likes=3)] * 2
    assert unanswered_sources([once, answered, thought("answered", seen=START), *never]) == {"never"}


def gates(town: RunningTown, name: str = "rowan") -> dict[str, list[str]]:
    """Return who may reply to each post, by the key of the post."""
    records = town.network.records(town.account(name), THREADGATE)
    return {one.at.rkey: [rule["$type"].partition("#")[2] for rule in one.value["allow"]] for one in records}


def key(uri: str) -> str:
    return uri.rpartition("/")[2]


async def use(life: RunningSoul, name: str, **arguments: object) -> ToolResult:
    turn = Turn("owner", Provenance.OWNER, cause_id="owner")
    execute = life.app.lives.turn_services.turn_runner.executor.execute
    return await execute(ToolCall("1", name, dict(arguments)), turn)


@pytest.mark.parametrize(
    ("audience", "allowed"),
    [
        (["nobody"], ()),
        (["everybody"], None),
        (["following", "mentioned", "mentioned"], ("mentioned", "following")),
        (["nobody", "followers"], "Unclear Audience"),
        ([], "Unclear Audience"),
    ],
)
def test_nobody_and_everybody_stand_alone(audience: list[Audience], allowed: object) -> None:
    assert allowed_replies(audience) == allowed


async def test_the_owner_s_latest_word_on_a_post_holds_and_others_find_their_replies_refused(
    running_town: RunningTown,
) -> None:
    town, kit = running_town, running_town.account("kit")
    home, rowan = town.make_home("rowan"), town.account("rowan")
    uri, _ = town.network.post_as(rowan, "A gate is a promise with hinges.")
    async with awake(home) as life:
        await use(life, "bluesky_limit_replies", who=["nobody"], post_uri=uri)
        await life.send()
        assert gates(town) == {key(uri): []}
        assert not town.network.index.may_reply(kit, uri)
        town.network.post_as(kit, "Hinges rust.", reply_to_uri=uri)
        assert town.network.index.replies(uri) == []
        terminal = owner_commands(life.app, asyncio.Event())
        assert (
            await terminal.answer(f"/replies mentioned,followers https://bsky.app/profile/rowan.test/post/{key(uri)}")
            == []
        )
        await life.send()
        assert gates(town) == {key(uri): ["mentionRule", "followerRule"]}
        await terminal.answer(f"/replies everybody {uri}")
        await life.send()
        assert gates(town) == {}
        counts = await counted(life.app.services.outbox)
    assert counts == {"done": 3}


async def test_a_word_that_a_later_one_overtakes_is_never_sent_and_waits_for_its_post(
    running_town: RunningTown,
) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        outbox = life.app.services.outbox
        await outbox.submit(ProposedAction(PostBody(text="Doors are walls that changed their mind."), by_owner=True))
        for who in ("nobody", "followers"):
            await use(life, "bluesky_limit_replies", who=[who])
        await life.send()
        sent = [
            (one.state, one.body.replies)
            for one in await outbox.of_kind("threadgate", 9)
            if isinstance(one.body, ThreadgateBody)
        ]
    assert sent == [("done", ("followers",)), ("blocked", ())]
    assert list(gates(running_town).values()) == [["followerRule"]]


async def test_a_post_and_who_may_reply_to_it_arrive_together_and_once(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        running_town.faults.arm(Fault("lost_answer", "com.atproto.repo.applyWrites"))
        await use(life, "bluesky_post", text="Only friends may knock.", who=["mentioned"])
        for _ in range(3):
            await life.send()
            life.passes(60)
    (post,) = running_town.network.records(running_town.account("rowan"), POST)
    assert gates(running_town) == {post.at.rkey: ["mentionRule"]}


async def test_what_cannot_be_limited_is_refused_in_words(running_town: RunningTown) -> None:
    town = running_town
    home = town.make_home("rowan")
    theirs, _ = town.network.post_as(town.account("kit"), "Mine.")
    reply, _ = town.network.post_as(town.account("rowan"), "Yours indeed.", reply_to_uri=theirs)
    async with awake(home) as life:
        terminal = owner_commands(life.app, asyncio.Event())
        for line, problem in (
            ("/replies nobody", "no post of its own"),
            (f"/replies nobody {theirs}", "no post of the SOUL"),
            (f"/replies nobody {reply}", "is a reply"),
            ("/replies friends", "needs to know who"),
            ("/replies", "not complete"),
        ):
            with pytest.raises(SoulError, match=problem):
                await terminal.answer(line)
        told = await use(life, "bluesky_limit_replies", who=["nobody"], post_uri=theirs)
        assert told.is_error
        assert await counted(life.app.services.outbox) == {}
