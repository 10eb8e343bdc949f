"""A popular SOUL whose mind wants too much keeps its manners: counted again from what left, it never passed a limit."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.services.outbox.types import Pacing
from tests.modules.services.outbox.rules.etiquette_outbox import EtiquetteOutbox, like, open_etiquette_outbox
from tests.security import popular_audit as audit
from tests.security.popular_soul import Popular

PACING = Pacing(post_s=1800, reply_s=60, like_s=45, follow_s=3600, action_s=10)
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where nothing waits for a disk: durability is proved elsewhere."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as made:
        yield Path(made)


async def reasons(etiquette_outbox: EtiquetteOutbox) -> dict[str, str]:
    """The reason that the journal has for each admitted act that notifies somebody, by intent."""
    rows = await etiquette_outbox.database.run(
        lambda connection: connection.execute("SELECT intent_id, data FROM journal WHERE kind = 'act'").fetchall()
    )
    return {
        row[0]: rule["reason"]
        for row in rows
        for rule in json.loads(row[1]).get("rules", ())
        if rule["rule"] == "consent" and rule["says"] == "pass"
    }


async def check(etiquette_outbox: EtiquetteOutbox, popular: Popular, *, strangers: int) -> Counter[str]:
    """Hold what left against every limit; returns what was done for whom."""
    left, received = etiquette_outbox.sender.departures, popular.received
    assert [one for one in audit.uninvited(left, received, popular.followers) if one.id not in popular.approved] == []
    recorded = await reasons(etiquette_outbox)
    assert all(recorded.get(intent.id) for _, intent in left if intent.kind != "post")
    assert audit.most_points(left, timedelta(hours=1)) <= 4_000
    assert audit.most_points(left, timedelta(days=1)) <= 28_000
    assert audit.most_strangers(left) == strangers
    assert audit.most_of_the_same_words(left) <= 2
    assert audit.repeated_answers(left, received) == []
    assert audit.longest_run_in_a_thread(left, received) <= 6
    assert audit.most_replies_to_one_bot(left) <= 5
    assert audit.likes_out_of_silence(left, received) == 0
    met = {kind: {intent.target for _, intent in left if intent.kind == kind} for kind in ("reply", "like")}
    people = {one.post.uri for one in received if not one.is_bot}
    tally: Counter[str] = Counter(intent.kind for _, intent in left)
    tally["people"], tally["bots"] = len(people), len(received) - len(people)
    tally["people answered"] = len(people & met["reply"])
    tally["people liked or answered"] = len(people & (met["reply"] | met["like"]))
    return tally


@pytest.mark.slow
async def test_one_day_of_a_popular_soul(folder: Path) -> None:
    async with open_etiquette_outbox(folder, pacing=PACING, born_at=None) as etiquette_outbox:
        popular = Popular(etiquette_outbox, random.Random(4))
        await popular.live(days=1, mentions=150)
        tally = await check(etiquette_outbox, popular, strangers=6)
    assert tally["people answered"] > 0.4 * tally["people"], (tally, popular.refused)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_fourteen_days_of_a_popular_soul(folder: Path) -> None:
    born_at = FakeClock().now() - timedelta(days=7)
    async with open_etiquette_outbox(folder, pacing=PACING, born_at=born_at) as etiquette_outbox:
        popular = Popular(etiquette_outbox, random.Random(5))
        await popular.live(days=14, mentions=3900)
        tally = await check(etiquette_outbox, popular, strangers=20)
        young = [item for item in etiquette_outbox.sender.departures if item[0] < born_at + timedelta(days=14)]
        assert audit.most_strangers(young) == 6
    assert len(popular.received) >= 5000
    assert 0.38 < tally["bots"] / len(popular.received) < 0.48
    print(dict(tally), popular.refused.most_common(12))  # noqa: T201 - the figures of the run
    assert tally["people answered"] > 0.5 * tally["people"]


@pytest.mark.slow
async def test_a_storm_of_likes_stops_just_below_the_points_of_an_hour(folder: Path) -> None:
    async with open_etiquette_outbox(folder) as etiquette_outbox:
        await etiquette_outbox.spend(3_000)
        for _ in range(400):
            received = await etiquette_outbox.receive("owner")
            await etiquette_outbox.outbox.submit(like(received.uri))
        await etiquette_outbox.drain(3600, step_s=600)
        left = etiquette_outbox.sender.departures
    assert audit.most_points(left, timedelta(hours=1)) == 999
