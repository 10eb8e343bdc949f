"""Proves that a draft names whom it is for as long as it waits, however many posts have come since."""

from __future__ import annotations

from common.clock import SystemClock
from town.atproto.network import Network
from town.page.residents import ResidentStatus
from town.page.view import feed, people


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
