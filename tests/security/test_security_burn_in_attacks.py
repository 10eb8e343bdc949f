"""Attacks on the burn-in: strangers who make a good version go back, and copies that are not what they were."""

from __future__ import annotations

import sqlite3

from common.clock import iso
from modules.runtime.journal.figures import figures_between
from modules.runtime.journal.types import Entry
from modules.runtime.program import ProgramVersion
from modules.services.burn_in.burn_in import begin, note_settled, problem_of
from modules.services.craft.record import FrictionRecord
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
