"""Whatever happens in whatever order, each accepted intent ends as exactly one record or with a stated reason.

Acts that reach a person belong to them; an act that only mentions them stays, without their name.
"""

import asyncio
import contextlib
import json
import sqlite3
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import get_args

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from common.errors import Fatal, NotWaiting
from common.person import SOMEBODY_DID, Person, Trace
from modules.runtime.database.database import Database
from modules.runtime.database.people import know_person
from modules.services.outbox.people import ACTS_OF_PEOPLE, intents_of
from modules.services.outbox.types import Intent, ProposedAction, Wait
from tests.exploration import examples
from tests.modules.services.outbox.running_outbox import Fault, RecordService, RunningOutbox, like, post, reply
from tests.outbox_rows import counted

TARGETS = st.sampled_from([f"at://did:plc:ada/app.bsky.feed.post/{number}" for number in range(3)])
WORDS = st.sampled_from(["good morning", "Good  Morning", "a kite", "https://x.example/1", "https://x.example/2"])
FAULTS = st.sampled_from([fault for fault in get_args(Fault) if fault != "hang"])


class Lives(RuleBasedStateMachine):
    """One outbox that is used, disturbed, killed and woken, with a service that records everything."""

    @initialize()
    def begin(self) -> None:
        self.stack = contextlib.AsyncExitStack()
        self.runner = asyncio.Runner()
        self.accepted: dict[str, Intent] = {}
        self.approved: set[str] = set()
        self.rejected: set[str] = set()
        self.shut = False
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())

        async def wake() -> RunningOutbox:
            service = await self.stack.enter_async_context(RecordService().serving())
            running_outbox = RunningOutbox(Path(folder) / "soul.db", service, gates=(self._gate,))
            await running_outbox.wake()
            return running_outbox

        self.running_outbox = self.runner.run(wake())

    @rule(uri=TARGETS, words=WORDS, urgent=st.booleans(), hold=st.sampled_from(["", "", "the owner must see it"]))
    def answer(self, uri: str, words: str, hold: str, *, urgent: bool) -> None:
        self._submit(replace(reply(uri, words, urgent=urgent), hold=hold))

    @rule(yes=st.booleans())
    def decide(self, *, yes: bool) -> None:
        async def first() -> list[Intent]:
            outbox = self.running_outbox.outbox
            oldest = [one.id for one in (await outbox.held())[:1]]
            return await (outbox.approve(*oldest) if yes else outbox.reject(*oldest))

        with contextlib.suppress(NotWaiting):
            (self.approved if yes else self.rejected).update(one.id for one in self.runner.run(first()))

    @rule()
    def shut_or_open_the_gate(self) -> None:
        self.shut = not self.shut

    @rule(words=WORDS)
    def write(self, words: str) -> None:
        self._submit(post(words))

    @rule(uri=TARGETS)
    def like(self, uri: str) -> None:
        self._submit(like(uri))

    @rule(faults=st.lists(FAULTS, min_size=1, max_size=3))
    def disturb(self, faults: list[Fault]) -> None:
        self.running_outbox.service.faults.extend(faults)

    @rule()
    def go_down_or_come_back(self) -> None:
        self.running_outbox.service.down = not self.running_outbox.service.down

    @rule(seconds=st.sampled_from([1, 10, 60, 1800, 4 * 3600]))
    def let_time_pass(self, seconds: float) -> None:
        self.runner.run(self.running_outbox.clock.advance(seconds))

    @rule()
    def deliver(self) -> None:
        self._deliver()

    @rule()
    def deliver_twice_at_once(self) -> None:
        async def both() -> None:
            await asyncio.gather(self.running_outbox.outbox.deliver_due(), self.running_outbox.outbox.deliver_due())

        with contextlib.suppress(Fatal):
            self.runner.run(both())

    @rule()
    def restart(self) -> None:
        self.runner.run(self.running_outbox.restart())

    @rule()
    def die_while_sending(self) -> None:
        self.runner.run(self.running_outbox.die_while_sending())

    @invariant()
    def no_record_stands_twice(self) -> None:
        if not hasattr(self, "running_outbox"):
            return
        service = self.running_outbox.service
        unknown = set(service.records) - {intent.rkey for intent in self.accepted.values()}
        assert not unknown, "a record that no accepted intent accounts for"
        by_key = {intent.rkey: intent for intent in self.accepted.values()}
        targets = Counter((by_key[key].kind, by_key[key].target) for key in service.records if by_key[key].target)
        texts = Counter(by_key[key].dedup_key for key in service.records if by_key[key].dedup_key)
        assert max([*targets.values(), *texts.values()], default=1) == 1

    def teardown(self) -> None:
        if not hasattr(self, "running_outbox"):
            return
        try:
            self._every_intent_comes_to_its_end()
        finally:
            self.runner.run(self._close())
            self.runner.close()

    def _every_intent_comes_to_its_end(self) -> None:
        self.running_outbox.service.faults.clear()
        self.running_outbox.service.down = self.shut = False
        while {"held", "pending", "sending"} & set(self.runner.run(counted(self.running_outbox.outbox))):
            self._deliver()
            self.runner.run(self.running_outbox.clock.advance(900))
        for intent in self.accepted.values():
            final = self.runner.run(self.running_outbox.outbox.get(intent.id))
            assert final is not None
            assert final.state in ({"blocked"} if intent.id in self.rejected else {"done", "failed", "expired"})
            assert final.state != "done" or intent.state != "held" or intent.id in self.approved
            assert (intent.rkey in self.running_outbox.service.records) == (final.state == "done")
            assert final.state == "done" or final.error

    def _submit(self, draft: ProposedAction) -> None:
        submitted = self.runner.run(self.running_outbox.outbox.submit(draft))
        assert submitted.accepted != (bool(submitted.reason) and not submitted.held)
        if submitted.accepted:
            self.accepted[submitted.intent.id] = submitted.intent

    def _deliver(self) -> None:
        before = len(self.running_outbox.service.writes)
        with contextlib.suppress(Fatal):
            self.runner.run(self.running_outbox.outbox.deliver_due())
        assert not self.shut or len(self.running_outbox.service.writes) == before

    def _gate(self, _: sqlite3.Connection, __: Intent, ___: datetime) -> Wait | None:
        return Wait("shut", 5) if self.shut else None

    async def _close(self) -> None:
        await self.running_outbox.sleep()
        await self.stack.aclose()


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=examples(20), stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


ADA = Person("did:plc:ada", ("ada.test",))
THEIRS = {"uri": "at://did:plc:ada/app.bsky.feed.post/1", "cid": "a"}
OTHER = {"uri": "at://did:plc:bob/app.bsky.feed.post/1", "cid": "b"}
ACTS = {
    "spoken-of": ("post", "", "owner:terminal", {"text": "did:plc:ada: hello, @ada.test"}),
    "quoted": ("post", "", "at://did:plc:bob/x/1", {"text": "See https://a.test/?actor=did%3aplc%3aada"}),
    "in-their-thread": ("reply", OTHER["uri"], "owner:terminal", {"text": "Hm.", "parent": OTHER, "root": THEIRS}),
    "reaches": ("follow", "did:plc:ada", "owner:terminal", {"did": "did:plc:ada"}),
    "message": ("direct_message", "", "owner:terminal", {"to": "did:plc:ada", "text": "Hm."}),
    "of-bob": ("direct_message", "", "owner:terminal", {"to": "did:plc:bob", "text": "Hm."}),
}


async def test_an_act_that_only_speaks_of_somebody_stays_without_their_name(database: Database) -> None:
    def forget(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
        for number, (name, (kind, target, cause, body)) in enumerate(ACTS.items()):
            connection.execute(
                "INSERT INTO intents (id, kind, target, cause_id, body, body_hash, dedup_key, rkey, created_at,"
                " expires_at, state, by_owner) VALUES (?, ?, ?, ?, ?, '', ?, ?, ?, '2026-01-09', 'held', 1)",
                (name, kind, target, cause, json.dumps(body), f"once:{name}:did:plc:ada", name, f"2026-01-0{number}"),
            )
        know_person(connection, ADA)
        ACTS_OF_PEOPLE.forget(connection, Trace(ADA, intents=intents_of(connection, ADA, ())))
        rows = connection.execute("SELECT id, body, dedup_key FROM intents").fetchall()
        return {row["id"]: (json.loads(row["body"])["text"], row["dedup_key"]) for row in rows}

    assert await database.run(forget) == {
        "spoken-of": (f"{SOMEBODY_DID}: hello, @forgotten.invalid", f"once:spoken-of:{SOMEBODY_DID}"),
        "quoted": (f"See https://a.test/?actor={SOMEBODY_DID}", f"once:quoted:{SOMEBODY_DID}"),
        "of-bob": ("Hm.", f"once:of-bob:{SOMEBODY_DID}"),
    }
