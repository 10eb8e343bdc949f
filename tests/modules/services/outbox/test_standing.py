"""How an act that is done once stands, by what was proposed for its target before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from common.clock import iso
from modules.services.outbox.bodies import LikeBody
from modules.services.outbox.types import ActCode, Intent, IntentState, standing_of

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
OTHER = "at://did:plc:ada/app.bsky.feed.post/3a"


def tried(state: IntentState, ago: timedelta = HOUR, *, rejected: bool = False) -> Intent:
    at = iso(NOW - ago)
    body = LikeBody(uri=OTHER, cid="cid")
    return Intent(
        at, "like", OTHER, body, "", "", "", None, at, iso(NOW), state, rejected=rejected, error=f"is {state}"
    )


@pytest.mark.parametrize(
    ("what", "intents", "tries", "again_after", "code"),
    [
        ("never proposed", [], 1, None, "free"),
        ("done", [tried("done")], 1, None, "done"),
        ("on its way after a failure", [tried("sending"), tried("failed")], 1, None, "waits"),
        ("waits for a yes", [tried("held")], 1, None, "held"),
        ("refused by the owner, in spite of tries left", [tried("blocked", rejected=True)], 3, HOUR, "refused"),
        ("failed once of once", [tried("failed")], 1, None, "left_alone"),
        ("failed once of twice", [tried("failed", timedelta())], 2, None, "free"),
        ("failed twice of twice", [tried("failed"), tried("expired")], 2, None, "left_alone"),
        ("failed too lately", [tried("failed", HOUR - timedelta(seconds=1))], 1, HOUR, "left_alone"),
        ("failed long enough ago", [tried("failed")], 1, HOUR, "free"),
        ("the latest failure counts", [tried("failed", timedelta()), tried("failed", 2 * HOUR)], 2, HOUR, "left_alone"),
    ],
)
def test_an_act_is_proposed_as_often_as_its_tries_allow(
    what: str, intents: list[Intent], tries: int, again_after: timedelta | None, code: ActCode
) -> None:
    standing = standing_of(intents, tries, again_after, lambda moment: NOW - moment)
    assert standing.code == code, what
    assert standing.tries == len(intents)


def test_an_act_that_may_still_be_done_counts_before_a_later_one_that_came_to_nothing() -> None:
    early, late = tried("pending", 2 * HOUR), tried("failed")
    assert standing_of([late, early], 1, HOUR, lambda moment: NOW - moment).active == early
    assert standing_of([late, replace(early, state="failed")], 1, None, lambda moment: NOW - moment).intent == late
