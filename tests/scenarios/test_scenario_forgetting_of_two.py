"""Of two people in one thread or under one handle one is forgotten: all data of theirs goes, and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
from contextlib import closing

import pytest

from common.errors import UsageError
from modules.runtime.home import Home
from soul.commands.people import run_forget
from tests.running_town import RunningTown, awake, replying
from tests.soul.commands.test_forget_command import places_that_hold
from town.model.types import ChatRequest, Completion

pytestmark = pytest.mark.slow

WORDS, OTHER_WORDS = "Quagmire lanterns hum beside the weir", "Zinc gutters sing above the orchard"


def answers(town: RunningTown, *texts: str) -> None:
    said = iter(texts)

    def answer(request: ChatRequest) -> Completion:
        return replying(next(said))(request)

    town.mind.answer = answer


def rows_of(home: Home, query: str) -> list[str]:
    with closing(sqlite3.connect(home.database)) as connection:
        return [str(row[0]) for row in connection.execute(query)]


@pytest.mark.parametrize("handle", ["handle.invalid", "given.up.test"])
async def test_two_accounts_seen_under_one_handle_are_two(running_town: RunningTown, handle: str) -> None:
    town, network = running_town, running_town.network
    home, ada, bob = town.make_home("rowan"), town.account("ada"), town.account("bob")
    answers(town, "Tin is louder, I think. And you?", "Inwards: the rain stays outside. Which do you like?")
    async with awake(home) as life:
        for did, words in ((ada, WORDS), (bob, OTHER_WORDS)):
            network.post_as(did, f"@rowan.test {words}: which roof is louder?")
            # NOTE(self): the town itself does not give an account the handle of another one.
            object.__setattr__(network.find(did), "handle", handle)
            await life.look()
        assert await life.app.services.relationships.get(bob) is not None
    assert len(town.texts("rowan")) == 2
    with pytest.raises(UsageError):
        await asyncio.to_thread(run_forget, home.root, handle, as_json=False)
    await asyncio.to_thread(run_forget, home.root, ada, as_json=False, yes=True)
    assert places_that_hold(home.root, ada, WORDS) == []
    assert rows_of(home, "SELECT author_did FROM pending_notifications") == [bob]
    assert rows_of(home, "SELECT kind FROM intents WHERE kind = 'reply'") == ["reply"]
    assert [OTHER_WORDS in one for one in rows_of(home, "SELECT content FROM session_messages WHERE seq = 1")] == [True]
    assert rows_of(home, "SELECT did FROM interactions") == rows_of(home, "SELECT did FROM people_met") == [bob]


@pytest.mark.parametrize("archived", [False, True], ids=["going on", "archived"])
async def test_in_one_thread_what_the_other_said_and_was_answered_stays(
    running_town: RunningTown, *, archived: bool
) -> None:
    town, network = running_town, running_town.network
    home, ada, bob = town.make_home("rowan"), town.account("ada"), town.account("bob")
    ours = "Inwards: the rain stays outside. Which do you like?"
    answers(town, "Tin is louder, I think. And you?", ours, *["Nothing of it matters."] * 9)
    async with awake(home) as life:
        root, _ = network.post_as(ada, f"@rowan.test {WORDS}: which roof is louder?")
        await life.look()
        network.post_as(bob, f"@rowan.test {OTHER_WORDS}: do doors open inwards?", reply_to_uri=root)
        life.passes(700)
        await life.look()
        if archived:
            life.passes(26 * 3600)
            await life.app.scheduler.run_guarded("heartbeat")
            await life.app.scheduler.run_guarded("sessions")
    assert len(places_that_hold(home.memory, OTHER_WORDS)) > 0
    await asyncio.to_thread(run_forget, home.root, ada, as_json=False, yes=True)
    assert places_that_hold(home.root, ada, "ada.test", WORDS, "Tin is louder") == []
    assert rows_of(home, "SELECT json_extract(payload, '$.text') FROM pending_notifications") == [
        f"@rowan.test {OTHER_WORDS}: do doors open inwards?"
    ]
    assert ours in " ".join(rows_of(home, "SELECT body FROM intents"))
    if archived:
        (kept,) = home.store.rglob("sessions/*.jsonl.gz")
        said = gzip.decompress(kept.read_bytes()).decode()
    else:
        said = " ".join(rows_of(home, "SELECT content FROM session_messages"))
    assert OTHER_WORDS in said
    assert ours in said
