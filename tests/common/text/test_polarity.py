"""Who denies what was said in its own words does not repeat it."""

from __future__ import annotations

import pytest

from common.text.echo import find_semantic_echo_ensemble
from common.text.echo_doubt import doubtful_echo
from common.text.polarity import contradicts

REVIEWS = "Design reviews feel rushed lately"
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
def test_a_contradiction_is_no_echo(said: str, denied: str) -> None:
    assert contradicts(denied, said)
    assert contradicts(said, denied)
    assert not find_semantic_echo_ensemble(denied, [REVIEWS, said], [REVIEWS, said]).is_echo
    assert not find_semantic_echo_ensemble(said, [REVIEWS, denied], [REVIEWS, denied]).is_echo


@pytest.mark.parametrize(("said", "again"), REPETITIONS)
def test_a_repetition_with_its_negation_is_an_echo(said: str, again: str) -> None:
    assert not contradicts(again, said)
    assert find_semantic_echo_ensemble(again, [REVIEWS, said], [REVIEWS, said]).is_echo


def test_a_contradiction_that_somebody_else_has_made_is_an_echo() -> None:
    room = ["Nightly backups should verify checksums", "Nightly backups should not verify checksums"]
    assert find_semantic_echo_ensemble("Nightly backups should not verify checksums", room, room).is_echo


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ("The moss roof leaks every spring", "The moss roof drips every spring"),
        ("Verify old backup checksums nightly", "Check old backup checksums nightly"),
    ],
)
def test_a_short_paraphrase_in_nearly_the_same_words_is_an_echo(said: str, again: str) -> None:
    found = find_semantic_echo_ensemble(again, [REVIEWS, said], [REVIEWS, said])
    assert (found.is_echo, found.matched_message) == (True, said)
    assert found.score >= 0.70


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("Deploy notes belong in the team readme", "Deploy notes belong in the team wiki"),
        ("Deploy notes belong in the readme", "Deploy notes belong in the wiki"),
        ("Use Postgres for the memory store", "Use SQLite for the session cache"),
    ],
)
def test_a_short_message_with_another_point_is_none(said: str, other: str) -> None:
    assert not find_semantic_echo_ensemble(other, [REVIEWS, said], [REVIEWS, said]).is_echo


def test_roles_that_a_passive_may_have_turned_round_are_in_doubt() -> None:
    for turned in ("The server is trusted by the client.", "The client trusts the server."):
        assert doubtful_echo(turned, ["The server trusts the client."])
    assert not doubtful_echo("Tin is loved by the rain.", ["Tin is by the rain loved."])
