"""Proves that a draft names whom it is for as long as it waits, however many posts have come since."""

from __future__ import annotations

from common.clock import SystemClock
from town.atproto.network import Network
from town.page.view import ResidentStatus, feed, people

FOLLOW = "app.bsky.graph.follow"


def test_a_draft_names_those_whose_posts_are_no_longer_shown() -> None:
    network = Network(clock=SystemClock())
    kit = network.create_account("kit.test", "town-password-1", display_name="Kit").did
    odile = network.create_account("odile.test", "town-password-1", display_name="Odile").did
    asked = network.post_as(kit, "@odile.test, do you salt the water?")
    for number in range(250):
        network.post_as(odile, f"Line {number}.")
    assert "kit.test" not in str(feed(network))
    target = f"at://{kit}/app.bsky.feed.post/3aaa"
    drafts = [{"id": "1", "target": target, "why": f"{kit} is a stranger, did:plc:gone too"}, {"id": "2"}]
    [shown] = people(network, [ResidentStatus("odile.test", awake=True, life={"drafts": drafts})])
    assert asked
    assert [draft["named"] for draft in shown["life"]["drafts"]] == [{kit: "Kit"}, {}]


def test_a_resident_is_shown_with_those_whom_it_follows_and_who_are_still_there() -> None:
    network = Network(clock=SystemClock())
    odile, tobias = (
        network.create_account(f"{name}.test", "pw", display_name=name.title()).did for name in ("odile", "tobias")
    )
    for key, subject in (("3kfollow1", tobias), ("3kfollow2", "did:plc:gone")):
        record = {"$type": FOLLOW, "subject": subject, "createdAt": "2026-01-05T12:00:00.000Z"}
        network.put(odile, FOLLOW, key, record, validate=False)
    (shown,) = people(network, [ResidentStatus("odile.test", awake=True)])
    assert [one["name"] for one in shown["follows"]] == ["Tobias"]
