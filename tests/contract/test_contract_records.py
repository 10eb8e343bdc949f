"""Records: keys, content addresses, what may be written, where, and in which words it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import CID, CREATE, POST, TID, R, create, post_record, put

FAMILY = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}\N{ZERO WIDTH JOINER}\N{BOY}"


@pytest.mark.parametrize(
    ("record", "cid"),
    [
        (post_record(), "bafyreickhlxph5tvlpn7k4ki6jws3egiktxrybpgofqeyhkfayrj2ewsoi"),
        (post_record(text="x" * 300), "bafyreibpiz6zvxuelq4y6yydkvz5rdvqdxpivisvpldhtqsnh6hy6diale"),
        (post_record(zzz=1), "bafyreifm3krhlplrrxgs7hfaia2aamdhqn4s3dbqf77wqqicitwik3vo5m"),
        (post_record(text=FAMILY * 119), "bafyreidsjdbzl5zabinuml5gkw2q47vlqjzomltbqk657eefri43jhmwiq"),
    ],
    ids=["plain", "long", "unknown field", "joined emoji"],
)
def test_a_record_has_the_same_cid_everywhere(
    network_under_test: UnderTest, somebody: Person, record: dict[str, Any], cid: str
) -> None:
    made = create(network_under_test, somebody, record).json()
    assert (made["cid"], made["validationStatus"]) == (cid, "valid")
    assert made["uri"].startswith(f"at://{somebody.did}/{POST}/3")


def test_shapes_that_nobody_knows_are_kept_unchecked(network_under_test: UnderTest, alice: Person) -> None:
    unknown = create(network_under_test, alice, {"x": 1}, "com.example.thing").json()
    assert unknown["validationStatus"] == "unknown"
    unchecked = create(network_under_test, alice, post_record(text="x" * 301), validate=False).json()
    assert "validationStatus" not in unchecked
    open_ended = post_record(embed={"$type": "com.example.embed", "x": 1})
    assert create(network_under_test, alice, open_ended).json()["validationStatus"] == "valid"


@pytest.mark.parametrize(
    ("repo", "expected"),
    [
        ("bob", (401, "AuthenticationRequired", "Authentication Required")),
        ("x x", (400, "InvalidRequest", 'Invalid AT identifier (got "x x") at $.repo')),
    ],
)
def test_only_ones_own_repository_can_be_written(
    network_under_test: UnderTest, somebody: Person, bob: Person, repo: str, expected: tuple[int, str, str]
) -> None:
    theirs = {"bob": bob.did}.get(repo, repo)
    body = {"repo": theirs, "collection": POST, "record": post_record()}
    assert refusal(network_under_test.post(CREATE, body, somebody.token)) == expected
    body = {"repo": theirs, "collection": POST, "rkey": TID}
    assert refusal(network_under_test.post(f"{R}deleteRecord", body, somebody.token)) == expected


def test_ones_own_repository_may_be_named_by_handle(network_under_test: UnderTest, alice: Person) -> None:
    body = {"repo": alice.handle, "collection": POST, "record": post_record()}
    made = network_under_test.post(CREATE, body, alice.token).json()
    assert made["uri"].startswith(f"at://{alice.did}/")


def test_writing_needs_a_session(network_under_test: UnderTest, somebody: Person) -> None:
    body = {"repo": somebody.did, "collection": POST, "record": post_record()}
    missing = (401, "AuthMissing", "Authentication Required")
    assert refusal(network_under_test.post(CREATE, body)) == missing
    assert refusal(network_under_test.post(f"{R}putRecord", {**body, "rkey": TID})) == missing


def test_creating_under_a_taken_key_is_a_bare_500(network_under_test: UnderTest, alice: Person) -> None:
    assert create(network_under_test, alice, post_record(), rkey=TID).status_code == 200
    answer = create(network_under_test, alice, post_record(text="other"), rkey=TID)
    assert refusal(answer) == (500, "InternalServerError", "Internal Server Error")


def test_putting_the_same_record_again_changes_nothing(network_under_test: UnderTest, alice: Person) -> None:
    first = put(network_under_test, alice, post_record(text="a")).json()
    again = put(network_under_test, alice, post_record(text="a")).json()
    assert (again["uri"], again["cid"]) == (first["uri"], first["cid"])
    changed = put(network_under_test, alice, post_record(text="b")).json()
    assert changed["uri"] == first["uri"]
    assert changed["cid"] != first["cid"]
    assert len(alice.client.app.bsky.feed.post.list(alice.did).records) == 1


def test_a_swap_needs_the_record_that_stands(network_under_test: UnderTest, alice: Person) -> None:
    first = put(network_under_test, alice, post_record(text="a"), swapRecord=None).json()
    refused = refusal(put(network_under_test, alice, post_record(text="b"), swapRecord=None))
    assert refused == (400, "InvalidSwap", f"Record was at {first['cid']}")
    assert put(network_under_test, alice, post_record(text="b"), swapRecord=first["cid"]).status_code == 200
    assert put(network_under_test, alice, post_record(text="b"), swapRecord=CID).status_code == 200


def test_a_record_is_read_by_handle_or_did_or_not_found(network_under_test: UnderTest, alice: Person) -> None:
    made = create(network_under_test, alice, post_record(), rkey=TID).json()
    place = {"collection": POST, "rkey": TID}
    for repo in (alice.did, alice.handle):
        found = network_under_test.get(f"{R}getRecord", repo=repo, **place).json()
        assert found == {"uri": made["uri"], "cid": made["cid"], "value": post_record()}
    gone = refusal(network_under_test.get(f"{R}getRecord", repo=alice.did, collection=POST, rkey="nope"))
    uri = f"at://{alice.did}/{POST}/nope"
    assert gone == (400, "RecordNotFound", f"Could not locate record: {uri}")
    stranger = refusal(network_under_test.get(f"{R}getRecord", repo="nobody-here.test", **place))
    assert stranger == (400, "InvalidRequest", "Could not find repo: nobody-here.test")
    other = refusal(network_under_test.get(f"{R}getRecord", repo=alice.did, cid=CID, **place))
    assert other[1] == "RecordNotFound"


def test_records_are_listed_from_the_last_key_and_by_pages(network_under_test: UnderTest, alice: Person) -> None:
    keys = [f"3kabcdefghi{letter}2" for letter in "abcde"]
    for key in keys:
        put(network_under_test, alice, post_record(), key)

    def listed(**params: Any) -> tuple[list[str], str | None]:
        page = network_under_test.get(f"{R}listRecords", repo=alice.did, collection=POST, **params).json()
        return [record["uri"].rsplit("/", 1)[1] for record in page["records"]], page.get("cursor")

    assert listed(limit=2) == ([keys[4], keys[3]], keys[3])
    assert listed(limit=2, cursor=keys[3]) == ([keys[2], keys[1]], keys[1])
    assert listed(limit=2, cursor=keys[1]) == ([keys[0]], keys[0])
    assert listed(cursor=keys[0]) == ([], None)
    assert listed(limit=2, reverse="true") == ([keys[0], keys[1]], keys[1])
    assert listed(limit=2, reverse="true", cursor=keys[3]) == ([keys[4]], keys[4])


@pytest.mark.parametrize(
    ("limit", "problem"), [(0, "integer too small (minimum 1, got 0)"), (101, "integer too big (maximum 100, got 101)")]
)
def test_a_limit_out_of_bounds_is_refused(
    network_under_test: UnderTest, somebody: Person, limit: object, problem: str
) -> None:
    answer = network_under_test.get(f"{R}listRecords", repo=somebody.did, collection=POST, limit=limit)
    assert refusal(answer) == (400, "InvalidRequest", f"Invalid {R}listRecords params: {problem}")


def test_deleting_what_is_gone_is_no_error(network_under_test: UnderTest, alice: Person) -> None:
    made = alice.post("short-lived")
    assert alice.client.delete_post(made.uri)
    assert alice.client.delete_post(made.uri)
    assert alice.client.app.bsky.feed.post.list(alice.did).records == {}


def test_a_repository_describes_itself(network_under_test: UnderTest, alice: Person) -> None:
    alice.post("one")
    told = alice.client.com.atproto.repo.describe_repo({"repo": alice.handle})
    assert (told.did, told.handle, told.collections, told.handle_is_correct) == (alice.did, alice.handle, [POST], True)
    unknown = refusal(network_under_test.get(f"{R}describeRepo", repo="nobody-here.test"))
    assert unknown == (400, "RepoNotFound", "Could not find repo for DID: nobody-here.test")


W = "com.atproto.repo.applyWrites"


def apply(network: UnderTest, author: Person, *writes: dict[str, Any]) -> Any:
    return network.post(W, {"repo": author.did, "writes": list(writes)}, author.token)


def test_many_writes_are_applied_in_order(network_under_test: UnderTest, alice: Person) -> None:
    put(network_under_test, alice, post_record())
    results = apply(
        network_under_test,
        alice,
        {"$type": f"{W}#create", "collection": POST, "rkey": "3kabcdefghik2", "value": post_record()},
        {"$type": f"{W}#create", "collection": POST, "value": post_record(text="fresh key")},
        {"$type": f"{W}#update", "collection": POST, "rkey": TID, "value": post_record(text="new")},
        {"$type": f"{W}#delete", "collection": POST, "rkey": "3kabcdefghik2"},
    ).json()["results"]
    kinds = [result["$type"].partition("#")[2] for result in results]
    assert kinds == ["createResult", "createResult", "updateResult", "deleteResult"]
    listed = network_under_test.get(f"{R}listRecords", repo=alice.did, collection=POST).json()["records"]
    texts = {record["value"]["text"] for record in listed}
    assert texts == {"fresh key", "new"}


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        ({"$type": f"{W}#delete", "collection": POST, "rkey": TID}, (500, "InternalServerError")),
        (
            {"$type": f"{W}#update", "collection": POST, "rkey": TID, "value": post_record()},
            (500, "InternalServerError"),
        ),
        ({"$type": f"{W}#create", "collection": POST}, (400, "InvalidRequest")),
        ({"$type": f"{W}#create", "collection": POST, "value": post_record(text="x" * 301)}, (400, "InvalidRequest")),
    ],
)
def test_if_one_of_many_writes_fails_none_is_applied(
    network_under_test: UnderTest, alice: Person, write: dict[str, Any], expected: tuple[int, str]
) -> None:
    fine = {"$type": f"{W}#create", "collection": POST, "value": post_record()}
    assert refusal(apply(network_under_test, alice, fine, write))[:2] == expected
    assert alice.client.app.bsky.feed.post.list(alice.did).records == {}


def test_no_more_than_200_writes_at_once(network_under_test: UnderTest, somebody: Person) -> None:
    write = {"$type": f"{W}#create", "collection": POST, "value": post_record()}
    answer = refusal(apply(network_under_test, somebody, *[write] * 201))
    assert answer == (400, "InvalidRequest", "Too many writes. Max: 200")
    assert apply(network_under_test, somebody).json()["results"] == []
