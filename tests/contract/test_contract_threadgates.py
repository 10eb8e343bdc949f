"""Threadgates: who may reply to a post, and what becomes of a reply by somebody else."""

from __future__ import annotations

from typing import Any

from atproto import client_utils

from tests.contract.people import Person, UnderTest
from tests.contract.wire import POST, R, post_record

GATE = "app.bsky.feed.threadgate"
KEY = "3jzfcijpj2z2a"
CREATE = "com.atproto.repo.applyWrites#create"


def gate_record(post_uri: str, *rules: str) -> dict[str, Any]:
    allow = [{"$type": f"{GATE}#{rule}Rule"} for rule in rules]
    return {"$type": GATE, "post": post_uri, "allow": allow, "createdAt": "2026-01-01T00:00:00.000Z"}


def gated_post(network: UnderTest, author: Person, record: dict[str, Any], *rules: str) -> Any:
    """A post and who may reply to it, in one step; the answer."""
    uri = f"at://{author.did}/{POST}/{KEY}"
    values = ((POST, record), (GATE, gate_record(uri, *rules)))
    writes = [{"$type": CREATE, "collection": name, "rkey": KEY, "value": value} for name, value in values]
    return network.post(f"{R}applyWrites", {"repo": author.did, "writes": writes}, author.token)


def replies_to(author: Person, uri: str) -> list[str]:
    thread: Any = author.client.get_post_thread(uri).thread
    return [reply.post.record.text for reply in thread.replies or []]


def test_only_those_whom_a_rule_names_can_reply(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    carol = network_under_test.person()
    hello = client_utils.TextBuilder().text("hello ").mention(f"@{bob.handle}", bob.did)
    facets = [facet.model_dump(by_alias=True, exclude_none=True) for facet in hello.build_facets()]
    answer = gated_post(network_under_test, alice, post_record(text=hello.build_text(), facets=facets), "mention")
    post, gate = answer.json()["results"]
    assert (post["validationStatus"], gate["validationStatus"]) == ("valid", "valid")
    network_under_test.settle()
    shown: Any = bob.client.get_posts([post["uri"]]).posts[0]
    assert shown.threadgate.uri == gate["uri"]
    assert not shown.viewer.reply_disabled
    kept_out: Any = carol.client.get_posts([post["uri"]]).posts[0]
    assert kept_out.viewer.reply_disabled
    bob.reply("I was asked", shown)
    carol.reply("I was not", shown)
    network_under_test.settle()
    assert replies_to(alice, post["uri"]) == ["I was asked"]
    assert [one.record.text for one in alice.notifications()] == ["I was asked"]


def test_a_gate_without_rules_lets_nobody_but_the_author_reply(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    bob.client.follow(alice.did)
    post = gated_post(network_under_test, alice, post_record()).json()["results"][0]
    network_under_test.settle()
    shown: Any = bob.client.get_posts([post["uri"]]).posts[0]
    assert shown.viewer.reply_disabled
    alice.reply("to myself", shown)
    bob.reply("to you", shown)
    network_under_test.settle()
    assert replies_to(alice, post["uri"]) == ["to myself"]


def test_the_same_step_again_is_refused_and_changes_nothing(network_under_test: UnderTest, alice: Person) -> None:
    assert gated_post(network_under_test, alice, post_record(), "follower").is_success
    again = gated_post(network_under_test, alice, post_record(), "follower")
    assert (again.status_code, again.json()["error"]) == (500, "InternalServerError")


def test_a_gate_under_another_key_than_its_post_counts_for_nothing(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("open to all")
    body = {"repo": alice.did, "collection": GATE, "rkey": KEY, "record": gate_record(post.uri)}
    assert network_under_test.post(f"{R}putRecord", body, alice.token).is_success
    network_under_test.settle()
    bob.reply("so I can", post)
    network_under_test.settle()
    assert replies_to(alice, post.uri) == ["so I can"]
