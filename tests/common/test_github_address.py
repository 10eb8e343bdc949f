"""Pages and repositories lie where the configured service keeps them, GitHub's own or another."""

from __future__ import annotations

import pytest

from common.github_address import github_address


@pytest.mark.parametrize(
    ("api_url", "address"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.github.com/", "https://github.com"),
        ("https://git.example.org/api/v3", "https://git.example.org"),
        ("http://127.0.0.1:8002", "http://127.0.0.1:8002"),
    ],
)
def test_where_the_pages_and_the_repositories_lie(api_url: str, address: str) -> None:
    assert github_address(api_url) == address
