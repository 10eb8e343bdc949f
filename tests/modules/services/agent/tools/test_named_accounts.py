"""Only a handle that the owner gives as an account names one; the host of an address does not."""

from __future__ import annotations

import pytest

from modules.services.agent.tools.executor import handles_in


@pytest.mark.parametrize(
    ("text", "handles"),
    [
        ("follow @kit.test", ["kit.test"]),
        ("Follow kit.test, and mute @Moss.example.org!", ["kit.test", "moss.example.org"]),
        ("(@kit.test) or \u201ckit.test\u201d? kit.test.", ["kit.test"]),
        ("unfollow https://bsky.app/profile/kit.test please", ["kit.test"]),
        ("read https://kit.test/garden", []),
        ("read http://kit.test:8080 and https://www.kit.test", []),
        ("read https://you@kit.test, kit.test/garden, kit.test?page=1 or kit.test#top", []),
        ("https://news.test/?via=kit.test&to=moss.test", []),
        ("write to ada@kit.test", []),
        ("https://bsky.app/profile/kit.test/post/3kabc says it", []),
        ("follow \u0430kit.test, \u00e9kit.test and kit.test\u00e9", []),
        ("\u30d5\u30a9\u30ed\u30fckit.test\u3055\u3093", ["kit.test"]),
    ],
)
def test_a_handle_is_named_where_it_stands_as_an_account(text: str, handles: list[str]) -> None:
    assert handles_in(text) == handles
