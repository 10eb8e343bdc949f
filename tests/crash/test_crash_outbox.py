"""Posts, replies and likes through a real outbox, killed again and again: none twice, none lost."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import asdict
from pathlib import Path

import pytest

from modules.outbox.types import Draft
from tests.crash.crash_rig import MOMENTS, Figures, Moment, Nursery, Rig, disturb, kill, nursing, rig
from town.atproto.values import POST, Account

KILLS = int(os.environ.get("CRASH_KILLS", "100"))
SEED = int(os.environ.get("CRASH_SEED", str(random.SystemRandom().randrange(10**6))))
LIKE = "app.bsky.feed.like"
PASSWORD = "made-up-password"
ACTS_AT_A_TIME = 5
LIFE_S = 2.0
LAST_LIFE_S = 300.0


@pytest.mark.crash
@pytest.mark.timeout(LAST_LIFE_S + KILLS * 20)
async def test_a_process_killed_at_random_sends_every_act_exactly_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(SEED)
    figures = Figures()
    wanted: list[Draft] = []
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(rig(rng))
        soul = world.network.create_account("soul.test", PASSWORD)
        ada = world.network.create_account("ada.test", PASSWORD)
        nursery = await stack.enter_async_context(nursing(str(tmp_path), world.url, soul.handle, PASSWORD))
        while figures.kills.total() < KILLS:
            # NOTE(self): enough to do, and never so much that it grows old, for then it would leave slowly by design.
            while len(wanted) - _standing(world, soul).total() < ACTS_AT_A_TIME:
                wanted.append(_new_act(world, ada, len(wanted)))
            (tmp_path / "wanted.jsonl").write_text("".join(f"{json.dumps(asdict(draft))}\n" for draft in wanted))
            disturb(world.faults, rng)
            figures.lives += 1
            moment = rng.choice(MOMENTS)
            if await _live_and_die(world, nursery, moment, rng):
                figures.kills[moment] += 1
        world.faults.clear()
        figures.lives += 1
        await nursery.birth()
        assert await nursery.hear() == "awake"
        assert await nursery.hear(LAST_LIFE_S) == "ended 0"
        figures.acts = len(wanted)
        standing = _standing(world, soul)
        figures.duplicates = sum(count - 1 for count in standing.values())
        figures.losses = sum(_mark(draft) not in standing for draft in wanted)
        with capfd.disabled():
            sys.stdout.write(f"\n{figures}; {world.watch.requests} requests, seed {SEED}\n")
        assert (figures.duplicates, figures.losses) == (0, 0)
        assert standing.total() == len(wanted)
        _rows_agree_with_the_network(tmp_path / "soul.db", world, soul)


def _new_act(world: Rig, ada: Account, number: int) -> Draft:
    text, cause = f"words of act {number}", f"work:{number}"
    if number % 3 == 0:
        return Draft("post", "", {"text": text}, text, cause_id=cause)
    uri, cid = world.network.post_as(ada.did, f"Question {number}")
    ref = {"uri": uri, "cid": cid}
    if number % 3 == 1:
        return Draft("reply", uri, {"text": text, "parent": ref, "root": ref}, text, cause_id=cause)
    return Draft("like", uri, ref, cause_id=cause)


async def _live_and_die(world: Rig, nursery: Nursery, moment: Moment, rng: random.Random) -> bool:
    """One life; whether it ended by our hand and not by itself."""
    fate = {"in a transaction": "inside", "after a commit": "after"}.get(moment)
    pid = await nursery.birth(f"{rng.randint(1, 25)} {fate}" if fate else "")
    if moment in {"request arrived", "request answered"}:
        world.watch.set(moment, rng.randint(1, 8), lambda: kill(pid))
    word = await nursery.hear()
    if word == "awake":
        try:
            word = await nursery.hear(rng.uniform(0, 0.3) if moment == "any time" else LIFE_S)
        except TimeoutError:
            kill(pid)
            word = await nursery.hear()
    world.watch.forget()
    return word == f"ended -{signal.SIGKILL}"


def _mark(draft: Draft) -> tuple[str, str]:
    return draft.kind, draft.text if draft.kind == "post" else draft.target


def _standing(world: Rig, soul: Account) -> Counter[tuple[str, str]]:
    """What stands on the network, by what it was meant to be."""
    posts = [record.value for record in world.network.records(soul.did, POST)]
    likes = [record.value for record in world.network.records(soul.did, LIKE)]
    return Counter(
        [("reply", post["reply"]["parent"]["uri"]) if "reply" in post else ("post", post["text"]) for post in posts]
        + [("like", like["subject"]["uri"]) for like in likes]
    )


def _rows_agree_with_the_network(path: Path, world: Rig, soul: Account) -> None:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT state, result_uri FROM intents").fetchall()
    assert {state for state, _ in rows} == {"done"}
    standing = {record.uri for name in (POST, LIKE) for record in world.network.records(soul.did, name)}
    assert {uri for _, uri in rows} == standing
