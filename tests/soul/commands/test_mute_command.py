"""Whom the owner muted is left alone, whether the SOUL was awake when that was said or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial

import pytest

from common.errors import UsageError
from modules.services.explanation.why import tell
from modules.services.outbox.bodies import FollowBody, LikeBody
from modules.services.outbox.types import ProposedAction
from modules.services.rights import store
from soul.commands.mute import run_mute
from soul.commands.run import owner_commands, phone_commands
from tests.outbox_rows import newest_intents
from tests.running_town import RunningTown, awake, call
from town.model.types import ChatRequest, Completion


async def test_a_muted_account_gets_nothing_until_the_mute_ends(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        await asyncio.to_thread(run_mute, home.root, kit, off=False, as_json=False)
        running_town.network.post_as(kit, "@rowan.test which roof is louder?")
        await life.look()
        (decision,) = await life.decisions()
        assert decision.entry.reason == "the owner muted the author"
        assert not running_town.mind.asked
        outbox = life.app.services.outbox
        refused = await outbox.submit(ProposedAction(FollowBody(did=kit)))
        assert (refused.accepted, refused.advice.code) == (False, "silence")
        assert (await outbox.submit(ProposedAction(FollowBody(did=kit), by_owner=True))).accepted
        await asyncio.to_thread(run_mute, home.root, kit, off=True, as_json=False)
        running_town.network.post_as(kit, "@rowan.test and which one is cheaper?")
        life.passes(60)
        await life.look()
    assert len(running_town.texts("rowan")) == 1


async def test_the_owner_mutes_and_unmutes_from_the_terminal_and_the_phone(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        for typed in (owner_commands(life.app, asyncio.Event()), phone_commands(life.app)):
            assert (await typed.answer("/mute @kit.test"))[0].startswith("Muted @kit.test")
            assert await life.app.services.database.run(store.muted)
            assert await typed.answer(f"/unmute {kit}") == [f"Unmuted {kit}"]
            assert not await life.app.services.database.run(store.muted)


def _next(steps: Iterator[Completion], request: ChatRequest) -> Completion:
    done = call("bluesky_reply", text="Done.")
    return next(steps, done) if any(one.name == "mute_account" for one in request.offers) else done


async def test_the_owner_mutes_and_unmutes_by_word(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        muted = life.app.services.database
        for word, off, expected in (("mute", False, {kit}), ("unmute", True, set())):
            steps = iter((call("mute_account", did="@kit.test", off=off),))
            running_town.mind.answer = partial(_next, steps)
            running_town.network.post_as(running_town.account("owner"), f"@rowan.test please {word} @kit.test")
            for _ in range(2):  # others who are addressed go first
                life.passes(600)
                await life.look()
            assert (await muted.run(store.muted)).keys() == expected


async def test_a_mute_withdraws_what_was_to_reach_the_account_and_had_not_left_also_what_was_ordered(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, kit, ada = running_town.make_home("rowan"), running_town.account("kit"), running_town.account("ada")
    uri, cid = running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.look()
        outbox = life.app.services.outbox
        follow = ProposedAction(FollowBody(did=kit, handle="kit.test"), by_owner=True)
        like = ProposedAction(LikeBody(uri=uri, cid=cid), cause_id=uri)
        other = ProposedAction(FollowBody(did=ada), by_owner=True)
        accepted = [(await outbox.submit(action)).intent.id for action in (follow, like, other)]
        await asyncio.to_thread(run_mute, home.root, kit, off=False, as_json=False)
        assert "follow @kit.test" in capsys.readouterr().out
        life.passes(600)
        await outbox.deliver_due()
        states = {one.id: one.state for one in await newest_intents(outbox, 10)}
        assert [states[one] for one in accepted] == ["blocked", "blocked", "done"]
        assert "the owner muted this account" in "\n".join(await tell(life.app.services.database, accepted[0]))


async def test_the_posts_of_a_muted_account_are_left_out_of_a_thread(running_town: RunningTown) -> None:
    home, sam = running_town.make_home("rowan"), running_town.account("sam")
    top, _ = running_town.network.post_as(sam, "The heron at the weir counts to nine.")
    running_town.network.post_as(running_town.account("kit"), "What do you say, @rowan.test?", reply_to_uri=top)
    async with awake(home) as life:
        await asyncio.to_thread(run_mute, home.root, sam, off=False, as_json=False)
        await life.look()
    assert len(running_town.texts("rowan")) == 1
    assert "heron" not in "".join(str(request) for request in running_town.mind.asked)


async def test_a_handle_will_do(running_town: RunningTown, capsys: pytest.CaptureFixture[str]) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home):
        for off in (False, True):
            await asyncio.to_thread(run_mute, home.root, "@kit.test", off=off, as_json=True)
            assert [one["did"] for one in json.loads(capsys.readouterr().out)] == ([] if off else [kit])


@pytest.mark.parametrize(("did", "off"), [("", True), ("nobody-there.test", False)])
async def test_a_wrong_name_is_refused(running_town: RunningTown, did: str, *, off: bool) -> None:
    home = running_town.make_home("rowan")
    async with awake(home):
        with pytest.raises(UsageError):
            await asyncio.to_thread(run_mute, home.root, did, off=off, as_json=False)
