"""Proves that each new notification is taken in once, however it arrives.

A session that cannot be renewed is reported once, with what to do.
"""

import json
import random
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from common.clock import SystemClock, iso
from common.result import Err, Ok
from modules.lives.bluesky.perceive import PerceivedPosts, SessionLoop
from modules.services.explanation.rendering import lines, story_of
from modules.services.explanation.story import Story
from tests.journals import told_of
from tests.running_town import RunningSoul, RunningTown, awake
from tests.security.spoiling_proxy import open_proxy
from town.atproto.service import Fault


async def look(life: RunningSoul) -> PerceivedPosts:
    result = await life.app.lives.bluesky.perceiver.look()
    assert not isinstance(result, Err), result
    return result.data


async def test_what_was_stored_but_not_yet_marked_as_seen_is_not_new_after_a_crash(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    running_town.network.post_as(kit, "@rowan.test nice")
    async with awake(home) as life:
        assert await look(life) == PerceivedPosts(2, 1, 1)
    (home.memory / "relationships.json").unlink()
    async with awake(home) as life:
        assert await look(life) == PerceivedPosts(0, 0, 0)
        assert (await life.app.services.situation()).waits.posts == 1


async def test_a_start_still_knows_whom_an_earlier_version_met(running_town: RunningTown) -> None:
    home, kit, now = running_town.make_home("rowan"), running_town.account("kit"), iso(SystemClock().now())
    async with awake(home) as life:
        assert await life.app.services.relationships.get(kit) is None
    met = {kit: {"handle": "kit.test", "did": kit, "firstSeen": now, "lastInteraction": now}}
    (home.memory / "relationships.json").write_text(json.dumps({"relationships": met}))
    async with awake(home) as life:
        assert await life.app.services.relationships.get(kit) is not None


async def test_thanks_end_a_conversation_of_two_and_not_that_of_others(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    root, _ = running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.look()
        conversations = life.app.lives.bluesky.tidying.conversations
        own = next(post for post in running_town.network.posts() if post.author.handle == "rowan.test")
        for name, state in (("wren", "awaiting_response"), ("kit", "concluded")):
            thanks, _ = running_town.network.post_as(running_town.account(name), "thanks!", reply_to_uri=own.uri)
            await life.look()
            await life.send()
            assert running_town.likers(thanks) == ["rowan.test"]
            conversation = conversations.get_conversation(root)
            assert conversation is not None
            assert conversation.state == state


async def test_likes_and_follows_are_remembered_and_wait_for_nobody(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    uri, cid = running_town.network.post_as(running_town.account("rowan"), "Tin sings.")
    like = {"subject": {"uri": uri, "cid": cid}, "createdAt": iso(SystemClock().now())}
    running_town.network.create(kit, "app.bsky.feed.like", like)
    async with awake(home) as life:
        assert await look(life) == PerceivedPosts(1, 0, 0)
        known = await life.app.services.relationships.get(running_town.account("kit"))
        assert known is not None
        assert [interaction.type for interaction in known.interactions] == ["like"]


async def test_a_network_that_does_not_answer_is_an_error_and_marks_nothing_as_seen(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        running_town.faults.arm(Fault("server_error", "app.bsky.notification.listNotifications"))
        outcome = await life.app.scheduler.run_guarded("awareness")
        assert not outcome.ran
        (told,) = await life.app.services.journal.recent(9, kinds=["error"])
        assert told.entry.summary.startswith("Notifications could not be read: ")
        assert life.app.services.relationships.seen_at is None
        assert await look(life) == PerceivedPosts(1, 1, 0)


class _Unlucky(random.Random):
    """Random numbers that always decide for a pause."""

    def random(self) -> float:
        return 0.0


async def test_chance_keeps_no_soul_deaf_after_a_long_outage(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        perceiver = replace(life.app.lives.bluesky.perceiver, rng=_Unlucky())
        running_town.faults.arm(Fault("server_error", "*", times=1000))
        during = [await perceiver.read() for _ in range(40)]
        running_town.faults.clear()
        after = [await perceiver.read() for _ in range(9)]
    assert all(isinstance(one, Err) for one in during)
    assert any(isinstance(one, Ok) for one in after)


async def test_a_mention_under_a_burst_of_likes_is_not_missed(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    uri, cid = running_town.network.post_as(running_town.account("rowan"), "Tin sings.")
    for number in range(220):
        like = {"subject": {"uri": uri, "cid": cid}, "createdAt": iso(SystemClock().now())}
        running_town.network.create(running_town.account(f"fan{number}"), "app.bsky.feed.like", like)
    async with awake(home) as life:
        assert (await look(life)).waiting == 1


async def test_a_post_made_hours_ago_that_arrives_only_now_is_not_missed(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await look(life)
        facet = {
            "index": {"byteStart": 0, "byteEnd": 11},
            "features": [{"$type": "app.bsky.richtext.facet#mention", "did": running_town.account("rowan")}],
        }
        late = {"text": "@rowan.test sent late: tin or slate?", "facets": [facet]}
        made_at = iso(SystemClock().now() - timedelta(hours=3))
        running_town.network.create(running_town.account("sam"), "app.bsky.feed.post", {**late, "createdAt": made_at})
        assert await look(life) == PerceivedPosts(1, 1, 0)


def post_of_yesterday(running_town: RunningTown, text: str, *, author: str = "sam", hours: float = 30) -> str:
    facet = {
        "index": {"byteStart": 0, "byteEnd": 11},
        "features": [{"$type": "app.bsky.richtext.facet#mention", "did": running_town.account("rowan")}],
    }
    made_at = iso(SystemClock().now() - timedelta(hours=hours))
    record = {"text": text, "facets": [facet], "createdAt": made_at}
    return running_town.network.create(running_town.account(author), "app.bsky.feed.post", record).record.uri


@pytest.mark.parametrize(("hours", "answered"), [(6 * 24, True), (8 * 24, False)])
async def test_the_owner_is_answered_also_after_some_days(
    running_town: RunningTown, hours: float, *, answered: bool
) -> None:
    home = running_town.make_home("rowan")
    post_of_yesterday(running_town, "@rowan.test which roof is louder?", author="owner", hours=hours)
    async with awake(home) as life:
        await life.look()
    assert len(running_town.texts("rowan")) == answered


async def test_after_a_pause_the_owners_posts_are_found_behind_many_others(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        life.app.services.relationships.advance_seen_at(iso(SystemClock().now() - timedelta(hours=70)))
        post_of_yesterday(running_town, "@rowan.test which roof is louder?", author="owner", hours=60)
        for number in range(60):
            post_of_yesterday(running_town, f"@rowan.test which roof has {number} slates?", hours=50)
        await look(life)
        waiting = await life.app.lives.bluesky_state.pending.waiting()
    assert [item.notification.author.handle for item in waiting] == ["owner.test"]


async def test_what_comes_too_late_is_passed_over_once_and_with_its_reason(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    uri = post_of_yesterday(running_town, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        assert (await look(life)).waiting == 0
        await look(life)
        (entry,) = await told_of(life.app.services.journal, uri)
        assert (await life.app.services.situation()).waits.posts == 0
    assert entry.entry.reason == "it was seen only after 30 hours; an answer would come too late"
    assert entry.entry.author == "sam.test"


async def test_what_was_answered_before_the_database_was_lost_is_answered_no_second_time(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    uri, _ = running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.look()
    home.database.unlink()
    async with awake(home) as life:
        await life.look()
        (entry,) = await told_of(life.app.services.journal, uri)
    assert entry.entry.reason == "it has a reply of ours already"
    assert len(running_town.texts("rowan")) == 1


INVENTED = (
    *("poke", "verified", "unverified", "starterpack-joined", "like-via-repost", "repost-via-repost"),
    *("contact-match", "community-invite", "", "reply "),
)


async def test_kinds_that_nobody_knows_yet_never_break_the_loop(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    invented = [running_town.network.post_as(kit, f"@rowan.test number {number}")[0] for number in range(10)]

    def with_invented_kinds(method: str, content: bytes) -> bytes:
        if method != "app.bsky.notification.listNotifications":
            return content
        answer = json.loads(content)
        for item in answer["notifications"]:
            if item["uri"] in invented:
                item["reason"] = INVENTED[invented.index(item["uri"])]
                item["record"] = {"$type": "app.bsky.nobody.knows", "text": ["no", {"text": 1}], "createdAt": 7}
        return json.dumps(answer).encode()

    async with open_proxy(running_town.atproto_url) as proxy:
        proxy.rewrite = with_invented_kinds
        (home.env).write_text(home.env.read_text().replace(running_town.atproto_url, proxy.url))
        async with awake(home) as life:
            outcome = await life.app.scheduler.run_guarded("awareness")
            assert outcome.ran, outcome.reason
            assert await life.app.lives.bluesky_state.pending.known(invented) == set()
            assert running_town.network.posts(1)[0].author.did == kit
            await life.send()
            assert len(running_town.texts("rowan")) == 1
            assert await look(life) == PerceivedPosts(0, 0, 0)


async def test_a_like_is_told_of_the_like_itself_and_of_the_post_that_it_is_for(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.look()
        (ours,) = [post for post in running_town.network.posts(10) if post.author.did == running_town.account("rowan")]
        made_at = iso(SystemClock().now())
        like = {"subject": {"uri": ours.uri, "cid": ours.cid}, "createdAt": made_at}
        liked = running_town.network.create(kit, "app.bsky.feed.like", like).record.uri
        follow = {"subject": running_town.account("rowan"), "createdAt": made_at}
        followed = running_town.network.create(kit, "app.bsky.graph.follow", follow).record.uri
        assert await look(life) == PerceivedPosts(2, 0, 0)
        database = life.app.services.database
        stories = [await database.run(partial(story_of, what=what)) for what in (ours.uri, liked, followed)]
    told = ["\n".join(lines(story)) for story in stories if isinstance(story, Story)]
    assert len(told) == 3
    assert "@kit.test liked a post of ours" in told[0]
    assert "Why it did not answer @kit.test" in told[1]
    assert "a like asks for no answer" in told[1]
    assert "@kit.test follows us" in told[2]


MENTION = "app.bsky.richtext.facet#mention"


def marked(text: str, *spans: tuple[int, int, str], beside: tuple[dict[str, object], ...] = ()) -> dict[str, object]:
    """Return a post with a mention facet for each of `spans`: start byte, end byte, DID."""
    facets = [
        {"index": {"byteStart": start, "byteEnd": end}, "features": [*beside, {"$type": MENTION, "did": did}]}
        for start, end, did in spans
    ]
    return {"text": text, "facets": facets, "createdAt": iso(SystemClock().now())}


async def test_a_mention_that_no_reader_sees_gets_neither_a_turn_nor_a_like(running_town: RunningTown) -> None:
    home, kit, rowan = running_town.make_home("rowan"), running_town.account("kit"), running_town.account("rowan")
    others = [running_town.account(f"other{number}") for number in range(29)]
    hers, _ = running_town.network.post_as(running_town.account("sam"), "Tin sings.")
    reply = {"uri": hers, "cid": running_town.network.index.posts[hers].cid}
    spam = [
        marked("Which roof is louder?", *((0, 1, did) for did in (*others, rowan))),
        marked("Which roof\u200b is louder?", (10, 13, rowan)),
        marked("Which roof is louder?", (3, 3, rowan)),
        marked("Which roof is louder?", (0, 10, rowan)),
        marked("Which roof is louder?", (0, 1_000, rowan)),
        marked("@kit.test which roof is louder?", (0, 9, kit), (0, 9, rowan), (4, 9, rowan)),
        {**marked("Slate, you bot.", (0, 5, rowan)), "reply": {"root": reply, "parent": reply}},
    ]
    for number, record in enumerate(spam):
        running_town.network.create(running_town.account(f"spammer{number}"), "app.bsky.feed.post", record)
    async with awake(home) as life:
        assert await look(life) == PerceivedPosts(0, 0, 0)
        assert (await life.app.services.situation()).waits.posts == 0
        told = await life.app.services.journal.recent(99, kinds=["decision"])
        passed_over = [one.entry for one in told if one.entry.data.get("act") == "passed_over"]
        assert len(passed_over) == len(spam)
        assert await life.app.services.relationships.get(running_town.account("spammer0")) is None


async def test_a_mention_that_a_reader_sees_is_met_however_it_is_marked(running_town: RunningTown) -> None:
    home, rowan = running_town.make_home("rowan"), running_town.account("rowan")
    isolated = "\u2068@rowan.test\u2069 which roof is louder?"
    link: dict[str, object] = {"$type": "app.bsky.richtext.facet#link", "uri": "https://tin.test/"}
    seen = [
        marked("@rowan.test which roof is louder?", (0, 11, rowan)),
        marked(isolated, (0, len("\u2068@rowan.test\u2069".encode()), rowan)),
        marked("@rowan.test which roof is louder?", (0, 11, rowan), (0, 1, rowan)),
        marked("@rowan.test which roof is louder?", (0, 11, rowan), beside=(link,)),
        marked("@rowan-of-old.test which roof is louder?", (0, 18, rowan)),
    ]
    for number, record in enumerate(seen):
        running_town.network.create(running_town.account(f"person{number}"), "app.bsky.feed.post", record)
    async with awake(home) as life:
        assert (await look(life)).waiting == len(seen)


class Renewing(SessionLoop):
    """A session loop that renews the session in each run."""

    renewed_before_ms = 10**9


async def test_a_login_that_is_refused_while_it_lives_is_told_once(
    running_town: RunningTown,
) -> None:
    sessions, did = running_town.network.sessions, running_town.account("rowan")
    first = sessions.create_app_password(did, "first")
    home = running_town.make_home("rowan", AGENT_BLUESKY_PASSWORD=first["password"])
    async with awake(home) as soul:
        services = soul.app.services
        loop = Renewing(services.atproto, services.journal)
        assert (await loop.run()).ran
        sessions.revoke_app_password(did, "first")
        assert not (await loop.run()).ran
        assert not (await loop.run()).ran
        told = [one.entry for one in await services.journal.recent(50) if one.entry.loop == loop.name]
    assert [(entry.kind, "AGENT_BLUESKY_PASSWORD" in entry.reason) for entry in told] == [
        ("error", True),
        ("life", False),
    ]
