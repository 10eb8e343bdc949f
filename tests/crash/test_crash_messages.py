"""Direct messages through a real outbox, killed again and again: none twice, none lost, although they have no key."""

import json
import os
import random
import sqlite3
import sys
from collections import Counter
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from modules.services.outbox.bodies import DirectMessageBody
from tests.crash.crash_rig import Moment, Spread, live_and_die, nursing, rig
from town.atproto.chat import Convo
from town.atproto.service import Fault, FaultKind

KILLS = int(os.environ.get("CRASH_KILLS", "100")) // 4
SEED = int(os.environ.get("CRASH_SEED", "1"))
PASSWORD = "made-up-password"
AT_A_TIME = 4
SPREAD = Spread(commits=25, requests=8, any_time_s=0, life_s=3.0)
LAST_LIFE_S = 300.0
SEND = "chat.bsky.convo.sendMessage"
LOST: tuple[FaultKind, ...] = ("lost_request", "lost_answer", "server_error")
MOMENTS: tuple[Moment, ...] = ("in a transaction", "after a commit", "request arrived", "request answered")


@pytest.mark.crash
@pytest.mark.timeout(LAST_LIFE_S + KILLS * 20)
async def test_a_process_killed_at_random_sends_every_direct_message_exactly_once(tmp_path: Path) -> None:
    rng, kills, wanted = random.Random(SEED), Counter[str](), list[DirectMessageBody]()
    (tmp_path / "hasty").touch()
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(rig(rng))
        soul = world.network.create_account("soul.test", PASSWORD)
        ada = world.network.create_account("ada.test", PASSWORD)
        for account in (soul, ada):
            world.network.put(account.did, "chat.bsky.actor.declaration", "self", {"allowIncoming": "all"})
        convo = world.network.chat.begin(soul.did, ada.did)
        world.network.chat.send(ada.did, convo, "Go on.", {})
        nursery = await stack.enter_async_context(
            nursing("tests.crash.crash_child", str(tmp_path), world.url, soul.handle, PASSWORD)
        )
        while kills.total() < KILLS:
            while len(wanted) - settled(tmp_path) < AT_A_TIME:
                text = rng.choice(["Nothing waits.", f"Line {len(wanted)}"])
                wanted.append(DirectMessageBody(conversation_id=convo.id, to=ada.did, text=text))
            write(tmp_path, wanted)
            world.faults.clear()
            if rng.random() < 0.5:
                world.faults.arm(Fault(rng.choice(LOST), SEND, times=2, probability=0.5))
            moment = rng.choice(MOMENTS)
            if await live_and_die(world.watch, nursery, moment, rng, SPREAD):
                kills[moment] += 1
        world.faults.clear()
        while settled(tmp_path) < len(wanted):
            await nursery.live_on(LAST_LIFE_S)
        sys.stdout.write(f"\n{kills.total()} SIGKILLs ({dict(kills)}), {len(wanted)} messages, seed {SEED}\n")
        assert states(tmp_path) == {"done": len(wanted)}
        assert Counter(said(convo, soul.did)) == Counter(body.text for body in wanted)


def write(folder: Path, wanted: list[DirectMessageBody]) -> None:
    lines = [
        {"kind": "direct_message", "body": body.stored(), "cause_id": f"work:{number}", "hold": ""}
        for number, body in enumerate(wanted)
    ]
    (folder / "wanted.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def said(convo: Convo, did: str) -> list[str]:
    return [message.text for message in convo.messages if message.sender == did]


def states(folder: Path) -> dict[str, int]:
    path = folder / "soul.db"
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        try:
            return dict(connection.execute("SELECT state, count(*) FROM intents GROUP BY state").fetchall())
        except sqlite3.OperationalError:
            return {}  # killed before it had made its tables


def settled(folder: Path) -> int:
    return sum(count for state, count in states(folder).items() if state in {"done", "failed", "expired"})
