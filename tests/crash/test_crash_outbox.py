"""Posts (some with a picture), replies, likes and deletions go through a real outbox that is killed again and again:
none is lost or made twice, and each picture is recorded once.

Some wait for the owner, who meanwhile decides in a separate process: what they approve is done once, what they
reject never.
"""

import asyncio
import io
import json
import os
import random
import sqlite3
import sys
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from common.clock import SystemClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox import approval
from modules.services.outbox.bodies import (
    AttachedPicture,
    DeleteBody,
    LikeBody,
    PictureSource,
    PostBody,
    RecordRef,
    ReplyBody,
)
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.pictures.pictures import PictureFiles
from tests.adapters.results import ok
from tests.crash.crash_rig import (
    MOMENTS,
    Figures,
    Ledger,
    Mark,
    Rig,
    Spread,
    disturb,
    live_and_die,
    nursing,
    rig,
)
from town.atproto.index import AtprotoAccount

KILLS = int(os.environ.get("CRASH_KILLS", "100"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
PASSWORD = "made-up-password"
ACTS_AT_A_TIME = 5
LIFE_S = 2.0
LAST_LIFE_S = 300.0
SPREAD = Spread(commits=25, requests=8, any_time_s=0.3, life_s=LIFE_S)
OLD_POSTS = 5
PICTURES = 40


@pytest.mark.crash
@pytest.mark.smoke
@pytest.mark.timeout(LAST_LIFE_S + KILLS * 20)
async def test_a_process_killed_at_random_does_every_act_exactly_once(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    figures = Figures()
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(rig(rng))
        soul = world.network.create_account("soul.test", PASSWORD)
        ada = world.network.create_account("ada.test", PASSWORD)
        nursery = await stack.enter_async_context(
            nursing("tests.crash.crash_child", str(tmp_path), world.url, soul.handle, PASSWORD)
        )
        work = Work(world, rng, soul, ada, tmp_path, await pictures_for(tmp_path))
        while figures.kills.total() < KILLS:
            # NOTE(self): enough work, but not so much that it grows old, as old acts are sent slowly by design.
            work.refill()
            disturb(world.faults, rng)
            figures.lives += 1
            moment = rng.choice(MOMENTS)
            async with asyncio.TaskGroup() as both:
                both.create_task(_owner_looks_in(work, rng.uniform(0, 0.5)))
                life = both.create_task(live_and_die(world.watch, nursery, moment, rng, SPREAD))
            if life.result():
                figures.kills[moment] += 1
        world.faults.clear()
        while work.unfinished():
            await work.owner_decides()
            figures.lives += 1
            await nursery.live_on(LAST_LIFE_S)
        work.count(figures)
        sys.stdout.write(f"\n{figures} ({work}); {world.watch.requests} requests, seed {SEED}\n")
        assert (figures.duplicates, figures.losses, figures.uninvited) == (0, 0, 0)
        work.assert_rows_agree()
        work.assert_pictures_recorded_once()


async def pictures_for(folder: Path) -> list[AttachedPicture]:
    """Return pictures that wait in `folder` for a post, each with another color and from another block."""
    files = PictureFiles(folder / "images", SystemClock())
    made = []
    for number in range(1, PICTURES + 1):
        data = io.BytesIO()
        Image.new("RGB", (20, 20), (number, 2 * number, 90)).save(data, "PNG")
        source = PictureSource(type="arena", block_id=number, block_url=f"https://www.are.na/block/{number}")
        made.append(ok(await files.keep_waiting(data.getvalue(), alt=f"Color {number}", source=source)))
    return made


@dataclass
class Work:
    """The acts of one account: every act that was ever wanted, and what became of it.

    With `deletes_known`, only posts that the SOUL knows of are deleted; an older backup does not know later posts.
    """

    world: Rig
    rng: random.Random
    soul: AtprotoAccount
    ada: AtprotoAccount
    folder: Path
    pictures: list[AttachedPicture]
    deletes_known: bool = False
    wanted: list[ProposedAction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.world.network, self.soul.did)
        self.old = [self.world.network.post_as(self.soul.did, f"old words {number}")[0] for number in range(OLD_POSTS)]

    def __str__(self) -> str:
        kinds = Counter(draft.kind for draft in self.wanted)
        held = [draft for draft in self.wanted if draft.hold]
        approved = sum(_approves(draft.hold) for draft in held)
        counted = ", ".join(f"{count} of kind {kind}" for kind, count in sorted(kinds.items()))
        shown = sum(isinstance(draft.body, PostBody) and bool(draft.body.pictures) for draft in self.wanted)
        return f"{counted}; {shown} with a picture; {len(held)} waited for the owner, {approved} approved"

    def refill(self) -> None:
        while len(self.wanted) - self._settled() < ACTS_AT_A_TIME:
            self.wanted.append(self._new_act(len(self.wanted)))
        lines = "".join(f"{json.dumps(_as_line(draft))}\n" for draft in self.wanted)
        (self.folder / "wanted.jsonl").write_text(lines)

    def _new_act(self, number: int) -> ProposedAction:
        text, cause = f"words of act {number}", f"work:{number}"
        hold = self.rng.choice(["", "", "", "will be approved", "will be rejected"])
        kind = self.rng.choice(["post", "picture", "reply", "like", "delete"])
        asked = {draft.target for draft in self.wanted}
        if self.deletes_known:
            asked |= set(self.ledger.standing) - {
                *self.old,
                *(row["result_uri"] for row in self.rows("state = 'done'")),
            }
        if kind == "delete" and (uris := [uri for uri in self.ledger.standing if uri not in {*asked, *self.old[:2]}]):
            uri = self.rng.choice([uris[-1], self.rng.choice(uris)])  # the newest may still be without its answer
            return ProposedAction(DeleteBody(uri=uri), cause_id=cause, hold=hold)
        if kind == "picture" and self.pictures:
            body = PostBody(text=text, pictures=(self.pictures.pop(),))
            return ProposedAction(body, media_id=body.pictures[0].sha256, cause_id=cause, hold=hold)
        if kind in {"post", "picture", "delete"}:
            return ProposedAction(PostBody(text=text), cause_id=cause, hold=hold)
        uri, cid = self.world.network.post_as(self.ada.did, f"Question {number}")
        ref = RecordRef(uri=uri, cid=cid)
        if kind == "reply":
            return ProposedAction(ReplyBody(text=text, parent=ref, root=ref), cause_id=cause, hold=hold)
        return ProposedAction(LikeBody(uri=uri, cid=cid), cause_id=cause, hold=hold)

    def rows(self, what: str = "1") -> list[sqlite3.Row]:
        path = self.folder / "soul.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path, timeout=10)) as connection:
            connection.row_factory = sqlite3.Row
            try:
                return connection.execute(f"SELECT * FROM intents WHERE {what}").fetchall()  # noqa: S608 - our own SQL
            except sqlite3.OperationalError:
                return []  # killed before it had made its tables

    def _settled(self) -> int:
        return len(self.rows("state IN ('done', 'blocked')"))

    def unfinished(self) -> bool:
        """Return whether an act is unfinished or waits for the owner."""
        return self._settled() < len(self.wanted)

    async def owner_decides(self) -> None:
        """Approve or reject all waiting drafts, as the owner's command does."""
        if not self.rows("state = 'held'"):
            return
        database = await Database.beside(self.folder / "soul.db")
        journal = Journal(database, SilentConsole(), SystemClock(), Redactor())
        try:
            for intent in await database.run(approval.held):
                await journal.record_all_with(partial(_decide, intent))
        finally:
            await database.close()

    def count(self, figures: Figures) -> None:
        meant = [draft for draft in self.wanted if not draft.hold or _approves(draft.hold)]
        never = [draft for draft in self.wanted if draft not in meant]
        marks = {_mark(draft) for draft in meant if draft.kind != "delete"}
        targets = {draft.target for draft in meant if draft.kind == "delete"}
        created, deleted = self.ledger.created, self.ledger.deleted
        figures.acts = len(meant)
        figures.duplicates = sum(times - 1 for times in (*created.values(), *deleted.values()))
        figures.losses = sum(mark not in created for mark in marks) + sum(
            uri not in deleted or uri in self.ledger.standing for uri in targets
        )
        figures.uninvited = sum(created[_mark(draft)] for draft in never) + sum(uri not in targets for uri in deleted)
        assert set(self.old[:2]) <= set(self.ledger.standing)

    def assert_rows_agree(self) -> None:
        states = {row["cause_id"]: row["state"] for row in self.rows()}
        assert states == {
            draft.cause_id: "blocked" if draft.hold and not _approves(draft.hold) else "done" for draft in self.wanted
        }
        sent = {row["result_uri"] for row in self.rows("state = 'done' AND kind <> 'delete'")}
        assert sent | set(self.old) == set(self.ledger.standing) | set(self.ledger.deleted)

    def assert_pictures_recorded_once(self) -> None:
        """Check that each picture in a sent post has one line in the post log, and its block one entry in the list."""
        sent = {row["result_uri"] for row in self.rows("state = 'done' AND kind = 'post' AND body LIKE '%sha256%'")}
        log = self.folder / "post_log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        assert Counter(line["bluesky"]["post_uri"] for line in lines) == Counter(sent)
        ids = json.loads((self.folder / "arena_posted.json").read_text())["ids"] if lines else []
        assert sorted(ids) == sorted(line["source"]["block_id"] for line in lines)


async def _owner_looks_in(work: Work, after_s: float) -> None:
    await asyncio.sleep(after_s)
    await work.owner_decides()


def _decide(intent: Intent, connection: sqlite3.Connection) -> tuple[list[Intent], list[Entry]]:
    now = SystemClock().now()
    if _approves(intent.error or ""):
        return approval.approve(connection, [intent.id], now)
    return approval.reject(connection, [intent.id], "", now)


def _approves(hold: str) -> bool:
    return hold == "will be approved"


def _as_line(draft: ProposedAction) -> dict[str, Any]:
    return {"kind": draft.kind, "body": draft.body.stored(), "cause_id": draft.cause_id, "hold": draft.hold}


def _mark(draft: ProposedAction) -> Mark:
    return draft.kind, draft.text if draft.kind == "post" else draft.target
