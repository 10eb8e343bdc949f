"""Proves that a DID in a reason becomes the handle that is known, and that it stays in an address."""

import pytest

from common.text.handles import with_handles

KNOWN = {"did:plc:kit": "kit.test"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("addressed to a stranger: did:plc:kit", "addressed to a stranger: @kit.test"),
        ("strangers: did:plc:kit, did:plc:bea.", "strangers: @kit.test, did:plc:bea."),
        ("did:plc:kitty", "did:plc:kitty"),
        ("at://did:plc:kit/app.bsky.feed.post/1", "at://did:plc:kit/app.bsky.feed.post/1"),
        ("https://bsky.app/profile/did:plc:kit", "https://bsky.app/profile/did:plc:kit"),
    ],
)
def test_only_a_did_that_stands_by_itself_and_is_known_becomes_a_handle(text: str, said: str) -> None:
    assert with_handles(text, KNOWN) == said
