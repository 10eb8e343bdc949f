"""Who may reply in a thread of its own: as the owner says it, once, in the network's own record."""

from __future__ import annotations

import asyncio

import pytest

from common.errors import SoulError
from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.outbox.bodies import PostBody, ThreadgateBody
from modules.services.outbox.types import ProposedAction
from modules.services.own_feed.reply_limits import Audience, allowed_replies
from soul.commands.run import owner_commands
from tests.outbox_rows import counted
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.index import POST, THREADGATE
from town.atproto.service import Fault, FaultKind


def gates(town: RunningTown, name: str = "rowan") -> dict[str, list[str]]:
    """Who may reply to what, by the key of the post."""
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
        await use(life, "bluesky_limit_replies", who=["nobody"], post=uri)
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


@pytest.mark.parametrize("kind", ["lost_answer"])
async def test_a_post_and_who_may_reply_to_it_arrive_together_and_once(
    running_town: RunningTown, kind: FaultKind
) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        running_town.faults.arm(Fault(kind, "com.atproto.repo.applyWrites"))
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
        told = await use(life, "bluesky_limit_replies", who=["nobody"], post=theirs)
        assert told.is_error
        assert await counted(life.app.services.outbox) == {}
