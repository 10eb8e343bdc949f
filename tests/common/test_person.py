"""Tests of finding an account in a text: whatever stands beside it, but never as a part of another account."""

import json

import pytest

from common.person import SOMEBODY_DID, Person

ADA = Person("did:plc:abc", ("ada.test",))
WEB = Person("did:web:ada.test%3A80:people")


@pytest.mark.parametrize(
    "text",
    [
        "did:plc:abc: failed",
        "peer:did:plc:abc",
        "_did:plc:abc_",
        "did:plc:abc-",
        "did:plc:abc.",
        "did:plc:abc:failed",
        "at://did:plc:abc/x/1",
        "https://a.test/?actor=did%3aplc%3aabc&limit=1",
        "at%3A%2F%2Fdid%3Aplc%3Aabc%2Fapp.bsky.feed.post",
        "sessions/bluesky~3Athread~3Aat~3A~2F~2Fdid~3Aplc~3Aabc~2Fx",
        json.dumps("\ndid:plc:abc"),
        "did:plc:abc\u306f",
    ],
)
def test_an_account_is_found_beside_what_is_no_part_of_it(text: str) -> None:
    assert ADA.holds_did(text)
    assert ADA.part in text
    assert ADA.redacted(text).count(SOMEBODY_DID) == 1


@pytest.mark.parametrize("text", ["did:plc:abcd", "did:plc:ab", "candid:plc:abc", "did:plc:abC", "did%3Aplc%3Aabc2"])
def test_a_part_of_another_account_is_not_this_one(text: str) -> None:
    assert not ADA.holds_did(text)


def test_an_account_of_the_web_ends_with_its_path() -> None:
    assert WEB.holds_did("(did:web:ada.test%3A80:people): hello")
    assert WEB.holds_did("did%3Aweb%3Aada.test%253A80%3Apeople")
    assert not WEB.holds_did("did:web:ada.test%3A80:people:sam")
    assert not Person("did:web:ada.test").holds_did("did:web:ada.test%3A80:people, did:web:ada.test.org")
