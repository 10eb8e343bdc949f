"""Attacks on the burn-in: strangers who make a good version go back, and copies that are not what they were."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict

import pytest

from common.clock import SystemClock, iso
from modules.runtime.journal.figures import figures_between
from modules.runtime.journal.types import Entry
from modules.runtime.program import ProgramVersion
from modules.services.burn_in.burn_in import begin, current, note_lived, note_settled, note_start, problem_of
from modules.services.burn_in.policy import BURN_IN_S
from modules.services.craft.record import FrictionRecord
from tests.fresh_database import in_memory
from tests.running_town import RunningSoul, RunningTown, awake, replying

OLD, NEW = (ProgramVersion(one, one * 64, 37) for one in "ab")
ATTACKERS = 12


async def mention_and_delete(town: RunningTown, life: RunningSoul) -> None:
    """Let strangers mention a SOUL, each once, and delete what they wrote before it answers."""
    posted = [town.network.post_as(town.account(f"m{n}"), "@rowan.test hello")[0] for n in range(ATTACKERS)]
    await life.app.lives.bluesky.perceiver.look()
    for uri in posted:
        did, collection, rkey = uri.removeprefix("at://").split("/")
        town.network.delete(did, collection, rkey)
    for _ in range(ATTACKERS):
        await life.app.scheduler.run_guarded("awareness")
        await life.app.scheduler.run_guarded("work")
        life.passes(30)


async def test_strangers_who_delete_their_mentions_do_not_put_a_good_version_back(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.mind.answer = replying("Tin.")
    async with awake(home) as life:
        services = life.app.services
        for who in ("kit", "ada", "bo", "eve"):
            for number in range(3):
                uri = f"at://did:plc:{who}/app.bsky.feed.post/{number}"
                data = {"act": "replied", "code": "answer", "kind": "post"}
                await services.journal.record(Entry("decision", "work", "x", trigger_uri=uri, data=data))
        life.passes(60)

        def take_over(connection: sqlite3.Connection) -> None:
            note_settled(connection, OLD)
            assert begin(connection, NEW, services.clock.now())

        await services.database.run(take_over)
        began = iso(services.clock.now())
        life.passes(1)
        await mention_and_delete(running_town, life)
        now = services.clock.now()
        figures = await services.database.read(lambda rows: figures_between(rows, began, iso(now)))
        problem = await services.database.read(lambda rows: problem_of(rows, now))
    assert problem == "", figures


async def test_strangers_who_delete_their_mentions_do_not_raise_the_figure_by_which_a_fleet_judges_an_image(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = replying("Tin.")
    async with awake(running_town.make_home("rowan", SOUL_SPEED="1")) as life:
        services = life.app.services
        record = FrictionRecord(services.database, services.clock, services.me.owner_did, services.home.memory)
        await mention_and_delete(running_town, life)
        await record.count()
        assert sum(count for _, count in await record.of_the_week()) >= ATTACKERS
        assert await record.own_of_the_week() == 0


CRAFTED: dict[str, dict[str, object]] = {
    "no starts": {"starts": [3]},
    "hours in words": {"lived_s": "x"},
    "more hours than there are": {"lived_s": -1e300},
    "hours without an end": {"lived_s": float("nan")},
    "a beginning that is no time": {"began": "x"},
    "a beginning before all time": {"began": "0001-01-01T00:00:00.000Z"},
    "a beginning after all time": {"began": "9999-12-31T23:59:59.000Z"},
    "a reason that is none": {"bad": 7},
    "a reason without a time": {"bad": "it crashed", "bad_at": "x"},
    "a hash that is none": {"before": {"version": "1", "fingerprint": 7, "schema": 37}},
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_crafted_mark_is_no_trial_and_keeps_no_soul_from_starting(what: str) -> None:
    told = {"program": asdict(NEW), "before": asdict(OLD), "began": "2026-01-01T00:00:00.000Z"} | CRAFTED[what]
    connection = in_memory()
    connection.execute("INSERT INTO marks (name, value) VALUES ('burn_in', ?)", (json.dumps(told),))
    now = SystemClock().now()
    assert current(connection) is None
    assert problem_of(connection, now) == ""
    assert note_lived(connection, 1.0, "", now) is None
    assert note_start(connection, NEW, now, begins=False) is None


def test_a_version_that_is_put_back_in_its_last_hours_stays_put_back() -> None:
    connection, now = in_memory(), SystemClock().now()
    note_settled(connection, OLD)
    assert begin(connection, NEW, now)
    assert note_lived(connection, 3 * BURN_IN_S, "the heartbeat failed", now)
    known = current(connection)
    assert known
    assert known.bad


def test_a_crafted_mark_of_the_version_before_is_none() -> None:
    connection = in_memory()
    for told in ('{"fingerprint": ["x"]}', "[", "7", '{"fingerprint": 7}'):
        connection.execute("INSERT OR REPLACE INTO marks (name, value) VALUES ('program', ?)", (told,))
        assert begin(connection, NEW, SystemClock().now()) is None
