"""Proves how one waiting post is handled, from its row to its disposition."""

import sqlite3
from datetime import timedelta

import pytest

from common.errors import Transient
from common.provenance import Provenance
from modules.lives.bluesky.types import UNSENT_REPLY
from modules.runtime.scheduler.policy import get_peer_delay
from modules.services.work.types import MOST_TRIES, PAUSE_S
from tests.hasty_clock import HastyClock
from tests.local_tools.test_bluesky_tools import thread, turn, use
from tests.outbox_rows import newest_intents
from tests.running_town import RunningTown, awake, call, prompt_of
from town.atproto.service import Fault
from town.model.types import ChatRequest, Completion


async def test_a_post_that_has_a_reply_of_ours_is_not_put_before_the_model(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    uri, _ = running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    running_town.network.post_as(running_town.account("rowan"), "Tin, by far.", reply_to_uri=uri)
    async with awake(home) as life:
        await life.look()
        (decision,) = await life.decisions()
    assert running_town.texts("rowan") == ["Tin, by far."]
    assert not running_town.mind.asked
    assert (decision.entry.reason, decision.entry.trigger_uri) == ("it has a reply of ours already", uri)


async def test_where_others_are_addressed_too_they_go_first_and_the_post_waits_its_turn(
    running_town: RunningTown,
) -> None:
    home, _ = running_town.make_home("rowan", SOUL_SPEED="1"), running_town.account("wren")
    running_town.network.post_as(running_town.account("kit"), "@rowan.test @wren.test which roof is louder?")
    async with awake(home) as life:
        outcome = await life.app.scheduler.run_guarded("awareness")
        assert life.app.services.attention.mode == "idle"
        assert not running_town.mind.asked
        assert outcome.next_in_s is None or 0 < outcome.next_in_s < life.app.lives.bluesky.awareness.interval_ms / 1000
        life.passes(90)
        await life.look()
        reasons = [item.entry.reason for item in await life.decisions()]
    assert len(running_town.texts("rowan")) == 1
    assert reasons[0] == "others are addressed too and go first"


async def test_an_order_of_the_owners_does_not_wait_for_a_plain_account_that_it_names(
    running_town: RunningTown,
) -> None:
    home, _ = running_town.make_home("rowan", SOUL_SPEED="1"), running_town.account("wren")
    running_town.network.post_as(running_town.account("owner"), "@rowan.test tell @wren.test which roof is louder")
    async with awake(home) as life:
        await life.app.scheduler.run_guarded("awareness")
        assert running_town.mind.asked


async def test_peers_that_are_named_together_go_twenty_seconds_apart_by_the_thread(running_town: RunningTown) -> None:
    names = ("ada", "rowan", "wren")
    handles = [f"{name}.test" for name in names]
    listed = ",".join(handles)
    homes = [running_town.make_home(name, SOUL_SPEED="1", SOUL_PEERS=listed) for name in names]
    asked = " ".join(f"@{handle}" for handle in handles)
    uri, _ = running_town.network.post_as(running_town.account("kit"), f"{asked} which roof is louder?")
    waits = []
    for home, handle in zip(homes, handles, strict=True):
        async with awake(home) as life:
            await life.app.lives.bluesky.perceiver.read_first()
            loop = life.app.lives.bluesky.awareness
            (item,) = await loop.table.due(["post"])
            disposition = await loop.handlers[0].handle(item)
            (waiting,) = await life.app.lives.bluesky_state.pending.waiting()
            assert disposition.act == "later"
            began = (life.app.services.clock.now() - waiting.received).total_seconds()
            waits.append(disposition.retry_in_s + began)
            reckoned = get_peer_delay(handle, handles, uri) / 1000
            assert waits[-1] == pytest.approx(reckoned, abs=14)
    assert [round((wait - 15) / 20) for wait in sorted(waits)] == [0, 1, 2]


@pytest.mark.parametrize(
    "stored", ["{cut o", "[]", '{"reason": 7}', '{"reason": "mention", "reply": 7, "author": null}']
)
async def test_a_stored_post_that_cannot_be_read_is_given_up_with_one_line_and_all_others_are_answered(
    running_town: RunningTown, stored: str
) -> None:
    def spoil(rows: sqlite3.Connection) -> None:
        rows.execute("UPDATE pending_notifications SET payload = ? WHERE uri = ?", (stored, spoilt))

    home = running_town.make_home("rowan")
    spoilt, _ = running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    running_town.network.post_as(running_town.account("wren"), "@rowan.test which moss grows on slate?")
    async with awake(home) as life:
        await life.app.lives.bluesky.perceiver.read_first()
        await life.app.services.database.run(spoil)
        await life.look()
        await life.look()
        assert (await life.app.services.situation()).waits.posts == 0
        told = [one.entry for one in await life.decisions() if one.entry.trigger_uri == spoilt]
    assert [(one.data["act"], one.data["code"]) for one in told] == [("dropped", "unreadable")]
    assert len(running_town.texts("rowan")) == 1


async def test_who_waited_for_a_day_in_vain_gets_one_like(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    asked = [
        running_town.network.post_as(running_town.account(name), f"@rowan.test which {roof} roof is louder?")[0]
        for name, roof in (("kit", "tin"), ("kit", "slate"), ("sam", "copper"))
    ]
    async with awake(home) as life:
        life.app.services.control.pause("a day off")
        await life.app.scheduler.run_guarded("awareness")
        life.passes(25 * 3600)
        life.app.services.control.resume()
        await life.look()
        reasons = [item.entry.reason for item in await life.decisions()]
    likes = [len(running_town.likers(uri)) for uri in asked]
    assert (sum(likes[:2]), likes[2]) == (1, 1)
    assert not running_town.mind.asked
    late = "it has waited 25 hours; an answer would come too late"
    assert sorted(reasons) == [late, late, f"{late}; its author got a reply or a like since it came"]


async def test_who_takes_back_the_newer_of_two_posts_is_answered_for_the_older_one(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    asked, _ = running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.app.lives.bluesky.perceiver.read_first()
        taken_back, _ = running_town.network.post_as(kit, "@rowan.test tin, I mean, or slate?", reply_to_uri=asked)
        await life.app.lives.bluesky.perceiver.read_first()
        running_town.network.delete(kit, "app.bsky.feed.post", taken_back.rpartition("/")[2])
        await life.look()
        await life.look()
        told = [(one.entry.trigger_uri, one.entry.data["act"]) for one in await life.decisions()]
        assert (await life.app.services.situation()).waits.posts == 0
    assert sorted(told) == sorted([(taken_back, "dropped"), (asked, "replied")])
    assert len(running_town.texts("rowan")) == 1


async def test_two_posts_that_the_owner_orders_in_two_posts_of_one_thread_both_leave(running_town: RunningTown) -> None:
    orders = ("Nine ferries sail.", "The heron is back at the quay.")

    def posting(request: ChatRequest) -> Completion:
        tried = sum(message.role == "tool" for message in request.messages)
        return call("bluesky_post", text=orders[tried]) if tried < 2 else call("bluesky_reply", text="Both fly.")

    running_town.mind.answer = posting
    home, owner = running_town.make_home("rowan", SOUL_APPROVAL="drafts"), running_town.account("owner")
    first, _ = running_town.network.post_as(owner, f'@rowan.test please post "{orders[0]}"')
    running_town.network.post_as(owner, f'@rowan.test and then "{orders[1]}"', reply_to_uri=first)
    async with awake(home, clock=HastyClock()) as life:
        await life.look()
        life.passes(90)
        await life.send()
        assert await life.app.services.outbox.held() == []
    assert first in prompt_of(running_town.mind.asked[0])
    assert {*orders} <= {*running_town.texts("rowan")}


async def test_a_post_whose_thread_cannot_be_read_takes_a_turn_of_its_author_only_once_it_is_read(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.app.lives.bluesky.perceiver.read_first()
        loop, journal, clock = life.app.lives.bluesky.awareness, life.app.services.journal, life.app.services.clock
        (item,) = await loop.table.due(["post"])
        running_town.faults.arm(Fault("server_error", "app.bsky.feed.getPostThread", times=99))
        with pytest.raises(Transient):
            await loop.handlers[0].handle(item)
        running_town.faults.clear()
        assert (await loop.handlers[0].handle(item)).act == "replied"
        turns = await journal.with_act(loop.name, "turn", clock.now() - timedelta(days=1), clock.now())
    assert len(turns) == 1


async def test_a_post_that_waits_for_a_rule_is_read_again_only_when_the_rule_allows_an_answer(
    running_town: RunningTown,
) -> None:
    home, mind = running_town.make_home("rowan", SOUL_SPEED="1"), running_town.mind
    roofs = ("Tin", "Slate", "Copper", "Thatch", "Glass", "Tile", "Lead")
    mind.answer = lambda _: call("bluesky_reply", text=f"{roofs[len(mind.asked) - 1]} is louder, I think.")
    for number in range(7):
        asker = running_town.account(f"kit{number}")
        running_town.network.post_as(asker, f"@rowan.test is roof {number} louder?")
    async with awake(home) as life:
        await life.look()
        await life.look()
        loop = life.app.lives.bluesky.awareness
        rows = await loop.table.newest("post", 7)
        (waiting,) = [one for one in rows if one.state == "pending"]
        running_town.faults.arm(Fault("server_error", "app.bsky.feed.getPostThread", times=99))
        again = await loop.handlers[0].handle(waiting)
        assert (again.act, again.reason) == ("later", "strangers-while-young: 6 people already, the limit is 6")
        life.passes(again.retry_in_s)
        with pytest.raises(Transient):
            await loop.handlers[0].handle(waiting)


async def test_a_question_that_no_try_could_decide_is_given_up_and_not_liked(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    running_town.mind.answer = lambda _: Completion(text="Tin, I think.")
    async with awake(home) as life:
        for _ in range(MOST_TRIES):
            await life.look()
            life.passes(PAUSE_S + 1)
        last = (await life.decisions())[-1].entry
        intents = await newest_intents(life.app.services.outbox, 10)
    assert not [one.kind for one in intents if one.kind in {"like", "reply"}]
    assert (last.summary, last.data["act"]) == ("Giving up on @kit.test", "dropped")
    assert f"{MOST_TRIES} times" in last.reason


@pytest.mark.parametrize("is_owner", [False, True])
async def test_a_reply_that_goes_back_is_told_only_the_ways_out_that_the_turn_offers(
    running_town: RunningTown,
    is_owner: bool,  # noqa: FBT001
) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        for tried in (False, True):
            about = thread(is_owner=is_owner)
            about.revisions.tried = tried
            told = (await use(life, "bluesky_reply", about, text="...")).content
            executor = life.app.lives.turn_services.turn_runner.executor
            names = {one.name for one in executor.registry.available(turn(Provenance.OWNER, about))}
            assert ("or like" in told, "silent" in told) == ("bluesky_like" in names, "stay_silent" in names)


async def test_the_number_of_a_waiting_reply_is_changed_by_the_tool_that_the_answer_names(
    running_town: RunningTown,
) -> None:
    uri, _ = running_town.network.post_as(running_town.account("kit"), "Which roof is louder?")
    async with awake(running_town.make_home("rowan")) as life:
        await use(life, "bluesky_reply", text="Tin, by far.", post_uri=uri)
        told = await use(life, "bluesky_post", text="Slate, by far.", changes=1)
        assert (told.is_error, f"bluesky_reply with post_uri {uri}" in told.content) == (True, True)
        await use(life, "bluesky_reply", text="Slate, by far.", post_uri=uri)
        waiting, _ = await life.app.services.outbox.waiting("1")
    assert waiting.body.public_text == "Slate, by far."


async def test_what_follows_from_an_answer_survives_a_kill_before_its_row_is_settled(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    uri, _ = running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.app.lives.bluesky.perceiver.read_first()
        loop = life.app.lives.bluesky.awareness
        (item,) = await loop.table.due(["post"])
        handler = next(one for one in loop.handlers if one.kind == "post")
        await handler.before_settling(item, await handler.handle(item))
    async with awake(home) as life:
        for _ in range(2):
            await life.look()
        assert [one.entry.data["act"] for one in await life.decisions()] == ["replied"]
        rows = [await life.app.lives.bluesky.awareness.table.get(kind, uri) for kind in ("post", UNSENT_REPLY)]
        assert all(rows)
        assert await life.app.lives.bluesky_state.pending.waiting() == []
    assert len(running_town.texts("rowan")) == 1
