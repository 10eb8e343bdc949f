"""What a record must look like, and in which words another is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import CID, CREATE, FOLLOW, LIKE, NOW, POST, PROFILE, TID, create, post_record

SOME_POST = {"uri": f"at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/{POST}/{TID}", "cid": CID}
KINDS = "one of null, boolean, integer, string, cid, bytes, array or object"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"text": "x" * 301}, "grapheme too big (maximum 300, got 301) at $.record.text"),
        ({"text": 5}, "Expected string value type (got 5) at $.record.text"),
        ({"text": None}, 'Missing required key "text" at $.record'),
        ({"createdAt": "yesterday"}, 'Invalid datetime (got "yesterday") at $.record.createdAt'),
        ({"langs": ["xx yy"]}, 'Invalid language (got "xx yy") at $.record.langs[0]'),
        ({"reply": {"parent": SOME_POST}}, 'Missing required key "root" at $.record.reply'),
        (
            {"reply": {"root": SOME_POST, "parent": {**SOME_POST, "uri": "zz"}}},
            'Invalid at-uri (got "zz") at $.record.reply.parent.uri',
        ),
        (
            {"facets": [{"index": {"byteStart": 0}, "features": []}]},
            'Missing required key "byteEnd" at $.record.facets[0].index',
        ),
        (
            {
                "facets": [
                    {
                        "index": {"byteStart": 0, "byteEnd": 2},
                        "features": [{"$type": "app.bsky.richtext.facet#mention", "did": "nope"}],
                    }
                ]
            },
            'Invalid DID (got "nope") at $.record.facets[0].features[0].did',
        ),
        (
            {"embed": {"$type": "app.bsky.embed.images", "images": [{"alt": "x"}]}},
            'Missing required key "image" at $.record.embed.images[0]',
        ),
        (
            {"embed": {"$type": "app.bsky.embed.external", "external": {"uri": "https://a.b", "title": "t"}}},
            'Missing required key "description" at $.record.embed.external',
        ),
        (
            {"embed": {"x": 1}},
            'Expected an object which includes the "$type" property value type (got {"x": ...}) at $.record.embed',
        ),
    ],
)
def test_a_post_that_does_not_fit_is_refused(
    network_under_test: UnderTest, somebody: Person, fields: dict[str, Any], problem: str
) -> None:
    answer = refusal(create(network_under_test, somebody, post_record(**fields)))
    assert answer == (400, "InvalidRequest", f"Invalid {POST} record: {problem}")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"collection": LIKE, "record": {}}, f'Invalid {LIKE} record: Missing required key "subject" at $.record'),
        (
            {"collection": FOLLOW, "record": {"subject": "nodid"}},
            f'Invalid {FOLLOW} record: Invalid DID (got "nodid") at $.record.subject',
        ),
        (
            {"collection": PROFILE, "rkey": "self", "record": {"displayName": "x" * 65}},
            f"Invalid {PROFILE} record: grapheme too big (maximum 64, got 65) at $.record.displayName",
        ),
        (
            {"collection": PROFILE, "rkey": TID, "record": {}},
            f'Invalid record key for {PROFILE}: Expected "self" (got "{TID}") at $',
        ),
        (
            {"collection": POST, "rkey": "custom", "record": {"text": "x"}},
            f'Invalid record key for {POST}: Invalid TID string (got "custom") at $',
        ),
        (
            {"collection": POST, "rkey": "bad/key", "record": {"text": "x"}},
            'Invalid record key (got "bad/key") at $.rkey',
        ),
        (
            {"collection": "com.example.thing", "validate": True, "record": {}},
            "Unknown lexicon type: com.example.thing",
        ),
        ({"collection": "not an nsid", "record": {}}, 'Invalid NSID (got "not an nsid") at $.collection'),
    ],
)
def test_a_record_in_the_wrong_place_or_shape_is_refused(
    network_under_test: UnderTest, somebody: Person, body: dict[str, Any], problem: str
) -> None:
    record = {"createdAt": NOW, **body["record"]}
    answer = network_under_test.post(CREATE, {"repo": somebody.did, **body, "record": record}, somebody.token)
    assert refusal(answer) == (400, "InvalidRequest", problem)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("text", 'Expected object value type (got "text") at $.record'),
        (None, "Expected object value type (got null) at $.record"),
        (post_record(zzz=1.5), f"Expected {KINDS} value type (got 1.5) at $.record.zzz"),
    ],
)
def test_what_is_no_record_is_refused(
    network_under_test: UnderTest, somebody: Person, record: Any, problem: str
) -> None:
    assert refusal(create(network_under_test, somebody, record)) == (400, "InvalidRequest", problem)
