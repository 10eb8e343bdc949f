"""A row whose body cannot be read is refused for good with one line, and hinders nothing else. Bluesky is the town."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.wording import deed
from modules.services.outbox.bodies import IntentKind, PostBody
from modules.services.outbox.senders.bluesky import UNREADABLE
from modules.services.outbox.types import Intent, ProposedAction
from tests.modules.services.outbox.body_values import body_of, reply_body
from tests.modules.services.pictures.sharing import Sharing, open_sharing
from tests.outbox_rows import newest_intents
from town.atproto.service import Fault

KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")


@pytest.fixture
async def outbox_in_town(tmp_path: Path) -> AsyncIterator[Sharing]:
    async with open_sharing(tmp_path, KINDS) as opened:
        yield opened


async def submitted(sharing: Sharing, kind: IntentKind) -> Intent:
    own_post = f"at://{sharing.town.did('alice')}/app.bsky.feed.post/3kaaaaaaaaa2a"
    return (await sharing.outbox.submit(ProposedAction(body_of(kind, own_post), by_owner=True))).intent


async def spoil(sharing: Sharing, intent: Intent, stored: str, state: str = "pending") -> None:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE intents SET body = ?, state = ? WHERE id = ?", (stored, state, intent.id))

    await sharing.database.run(write)


def errors(sharing: Sharing) -> list[str]:
    return [f"{message} | {detail}" for kind, message, detail in sharing.console.lines if kind == "error"]


@pytest.mark.parametrize(
    ("kind", "stored"), [(kind, '{"text": 7, "uri": 7, "did": 7}') for kind in KINDS] + [("post", '{"text": "cut o')]
)
async def test_an_act_whose_body_cannot_be_read_is_refused_for_good_and_all_else_leaves(
    outbox_in_town: Sharing, kind: IntentKind, stored: str
) -> None:
    spoilt = await submitted(outbox_in_town, kind)
    await spoil(outbox_in_town, spoilt, stored)
    good = (await outbox_in_town.outbox.submit(ProposedAction(PostBody(text="Tin sings.")))).intent
    await outbox_in_town.outbox.deliver_due()
    refused = await outbox_in_town.now(spoilt)
    assert (refused.state, refused.error, refused.attempts) == ("failed", UNREADABLE, 0)
    assert (await outbox_in_town.now(good)).state == "done"
    (line,) = errors(outbox_in_town)
    assert line.startswith(f"Failed: {deed(kind)}")
    assert line.endswith(UNREADABLE)
    report = await outbox_in_town.outbox.deliver_due()
    assert (report.failed, report.next_in_s) == (0, None)
    assert len(errors(outbox_in_town)) == 1


async def test_what_was_on_its_way_is_looked_for_before_it_is_refused(outbox_in_town: Sharing) -> None:
    spoilt = await submitted(outbox_in_town, "post")
    await spoil(outbox_in_town, spoilt, "[1]", "sending")
    await outbox_in_town.outbox.deliver_due()
    assert (await outbox_in_town.now(spoilt)).state == "failed"
    assert [one.id for one in await newest_intents(outbox_in_town.outbox, 9)] == [spoilt.id]


async def test_a_reply_that_waited_is_given_up_where_the_post_that_it_answers_is_gone(outbox_in_town: Sharing) -> None:
    network, outbox, bob = outbox_in_town.town.network, outbox_in_town.outbox, outbox_in_town.town.did("bob")
    asked = [network.post_as(bob, f"Which roof is louder, {roof} or tin?") for roof in ("slate", "copper", "zinc")]
    held = [
        (await outbox.submit(ProposedAction(reply_body(f"Tin, {number} times.", uri, cid=cid), hold="drafts"))).intent
        for number, (uri, cid) in enumerate(asked)
    ]
    network.delete(bob, "app.bsky.feed.post", asked[0][0].rpartition("/")[2])
    await outbox_in_town.town.clock.advance(3600)
    for one in held[:2]:
        await outbox.approve(one.id)
    await outbox.deliver_due()
    outbox_in_town.town.faults.arm(Fault("bad_gateway", "app.bsky.feed.getPostThread", times=9))
    await outbox.approve(held[2].id)
    await outbox.deliver_due()
    assert [(await outbox_in_town.now(one)).state for one in held] == ["failed", "done", "done"]
    (line,) = errors(outbox_in_town)
    assert line.endswith(f"the post that it answers is gone: {asked[0][0]}")
