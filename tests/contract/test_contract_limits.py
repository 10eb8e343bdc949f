"""Tests of rate limits: which headers every answer carries, and what happens when a budget is spent."""

import time

import httpx
import pytest
from atproto import exceptions as ex

from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import POST, R, create, post_record, put

EXCEEDED = (429, "RateLimitExceeded", "Rate Limit Exceeded")
LOGIN = "com.atproto.server.createSession"


def remaining(answer: httpx.Response) -> int:
    return int(answer.headers["ratelimit-remaining"])


def test_every_answer_tells_the_budget_of_requests(network_under_test: UnderTest, somebody: Person) -> None:
    answers = [
        network_under_test.get("com.atproto.server.describeServer"),
        network_under_test.get("app.bsky.actor.getProfile", somebody.token, actor=somebody.did),
        network_under_test.get("app.bsky.actor.getProfile", somebody.token, actor="nobody-here.test"),
        network_under_test.get("app.bsky.feed.noSuchThing"),
        create(network_under_test, somebody, {"text": "no date"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 400, 401, 400]
    for answer in answers:
        assert answer.headers["ratelimit-limit"] == "3000"
        assert answer.headers["ratelimit-policy"] == "3000;w=300"
        assert 0 < int(answer.headers["ratelimit-reset"]) - time.time() <= 301
        assert "retry-after" not in answer.headers
    assert [remaining(answers[0]) - remaining(answer) for answer in answers] == [0, 1, 2, 3, 4]


def test_what_is_refused_at_the_door_costs_nothing_and_tells_no_budget(
    network_under_test: UnderTest, somebody: Person
) -> None:
    first = remaining(network_under_test.get("com.atproto.server.describeServer"))
    refusals = [
        network_under_test.get(LOGIN),
        network_under_test.post(LOGIN, {"identifier": somebody.handle}),
        network_under_test.get("app.bsky.actor.getProfile", actor=somebody.did),
        network_under_test.get("app.bsky.actor.getProfile", somebody.token),
        network_under_test.get("app.bsky.feed.getTimeline", "garbage"),
        create(network_under_test, somebody, None),
    ]
    assert [answer.status_code for answer in refusals] == [400, 400, 401, 400, 400, 400]
    assert not any("ratelimit-limit" in answer.headers for answer in refusals)
    assert remaining(network_under_test.get("com.atproto.server.describeServer")) == first - 1


def test_each_address_has_its_own_budget(network_under_test: UnderTest, somebody: Person) -> None:
    nsid = "app.bsky.notification.getUnreadCount"
    first = remaining(network_under_test.get(nsid, somebody.token))
    elsewhere = somebody.client.request.get(
        f"{network_under_test.url}/xrpc/{nsid}", headers={"x-forwarded-for": "203.0.113.9"}
    )
    assert int(elsewhere.headers["ratelimit-remaining"]) != first - 1
    assert remaining(network_under_test.get(nsid, somebody.token)) == first - 1


def test_the_31st_login_in_five_minutes_is_refused(network_under_test: UnderTest, alice: Person) -> None:
    body = {"identifier": alice.handle, "password": "wrong"}
    tries = [network_under_test.post(LOGIN, body) for _ in range(31)]
    assert [answer.status_code for answer in tries] == [401] * 30 + [429]
    assert remaining(tries[0]) == 29
    last = tries[-1]
    assert refusal(last) == EXCEEDED
    assert (last.headers["ratelimit-limit"], last.headers["ratelimit-policy"]) == ("30", "30;w=300")
    assert remaining(last) == 0
    assert 0 < int(last.headers["retry-after"]) <= 300
    with pytest.raises(ex.RateLimitExceededError) as caught:
        network_under_test.client().login(alice.handle, alice.password)
    assert 0 < caught.value.retry_after <= 300
    assert caught.value.remaining == 0


def test_writes_cost_points_three_two_one_until_5000_are_spent(network_under_test: UnderTest, alice: Person) -> None:
    # NOTE(self): the first record is too long, so nothing is written and only the points are spent.
    broken = [post_record(text="x" * 301), *[post_record()] * 199]
    writes = [{"$type": f"{R}applyWrites#create", "collection": POST, "value": record} for record in broken]
    body = {"repo": alice.did, "writes": writes}
    tries = [network_under_test.post(f"{R}applyWrites", body, alice.token) for _ in range(8)]
    assert [answer.status_code for answer in tries] == [400] * 8
    assert (tries[4].headers["ratelimit-limit"], remaining(tries[4])) == ("5000", 2000)
    assert tries[4].headers["ratelimit-policy"] == "5000;w=3600"
    assert remaining(tries[7]) == 200
    made = create(network_under_test, alice, post_record())
    assert remaining(made) == 197
    assert remaining(put(network_under_test, alice, post_record())) == 195
    key = {"repo": alice.did, "collection": POST, "rkey": made.json()["uri"].rsplit("/", 1)[1]}
    assert remaining(network_under_test.post(f"{R}deleteRecord", key, alice.token)) == 194
    refused = network_under_test.post(f"{R}applyWrites", body, alice.token)
    assert refusal(refused) == EXCEEDED
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert refusal(create(network_under_test, alice, post_record())) == EXCEEDED
    assert network_under_test.get("app.bsky.feed.getTimeline", alice.token).status_code == 200
