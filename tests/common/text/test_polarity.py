"""Who denies what was said in its own words does not repeat it."""

from __future__ import annotations

import pytest

from common.text.echo_doubt import doubtful_echo
from common.text.polarity import contradicts

CONTRADICTIONS = [
    (
        "Nightly backups should verify checksums before rotating",
        "Nightly backups should not verify checksums before rotating",
    ),
    ("We should prune the roses hard in early spring", "We shouldn't prune the roses hard in early spring"),
    ("Always squash commits before you merge a branch", "Never squash commits before you merge a branch"),
    ("Keep backup archives 30 days online", "Keep backup archives 90 days online"),
    ("Short meetings in the morning help the whole team", "Long meetings in the morning help the whole team"),
    ("Raise the price of the ticket before the summer", "Lower the price of the ticket before the summer"),
    ("Enable the flag for everyone on the first day", "Disable the flag for everyone on the first day"),
    ("Add the salt to the dough at the very beginning", "Don't add the salt to the dough at the very beginning"),
    (
        "The cache is reliable when the build machine restarts during a deploy",
        "The cache is unreliable when the build machine restarts during a deploy",
    ),
    ("Strangers trust the room that keeps its record", "Strangers distrust the room that keeps its record"),
    ("Use blocking calls to read the queue of the room", "Use non-blocking calls to read the queue of the room"),
    (
        "Caching usually makes the build faster for everybody on the team",
        "Caching seldom makes the build faster for everybody on the team",
    ),
    (
        "Caching makes the build faster for everybody on the team in practice",
        "Caching makes the build faster for few on the team in practice",
    ),
    (
        "The garden opens on Mondays for the children of the town",
        "The garden opens on Sundays for the children of the town",
    ),
    ("The queue keeps three copies of each message", "The queue keeps seven copies of each message"),
]
REPETITIONS = [
    (
        "The beams carry the roof and the roof protects the beams.",
        "The roof protects the beams and the beams carry the roof.",
    ),
    ("Nobody reads a thousand lines with care", "A thousand lines are read with care by nobody"),
    ("Do not verify checksums before rotating backups", "Don't verify checksums before rotating backups"),
    ("Keep 2 copies of each long message", "Keep two copies of each long message"),
    ("Never squash commits before you merge", "You never squash commits before you merge"),
    (
        "Nightly backups should verify checksums before rotating",
        "Nightly backups should verify checksums before rotating",
    ),
]


@pytest.mark.parametrize(("said", "denied"), CONTRADICTIONS)
def test_a_contradiction_is_found_from_either_side(said: str, denied: str) -> None:
    assert contradicts(denied, said)
    assert contradicts(said, denied)


@pytest.mark.parametrize(("said", "again"), REPETITIONS)
def test_a_repetition_with_its_negation_contradicts_nothing(said: str, again: str) -> None:
    assert not contradicts(again, said)


def test_roles_that_a_passive_may_have_turned_round_are_in_doubt() -> None:
    for turned in ("The server is trusted by the client.", "The client trusts the server."):
        assert doubtful_echo(turned, ["The server trusts the client."])
    assert not doubtful_echo("Tin is loved by the rain.", ["Tin is by the rain loved."])
