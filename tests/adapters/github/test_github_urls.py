"""Tests of addresses on GitHub: what they point to, and how they are found in texts and posts."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.github.types import (
    GitHubUrl,
    extract_github_urls,
    extract_number_from_api_url,
    parse_github_url,
)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://github.com/o/r/issues/12", GitHubUrl("o", "r", "issue", 12, "https://github.com/o/r/issues/12")),
        ("github.com/o/r/pull/4#discussion", GitHubUrl("o", "r", "pull", 4, "https://github.com/o/r/pull/4")),
        ("http://github.com/o/r.js/pull/4/files", GitHubUrl("o", "r.js", "pull", 4, "http://github.com/o/r.js/pull/4")),
        (
            "https://www.github.com/o-p/r_s/discussions/7?sort=new",
            GitHubUrl("o-p", "r_s", "discussion", 7, "https://www.github.com/o-p/r_s/discussions/7"),
        ),
        ("https://github.com/o/r", None),
        ("https://github.com/o/r/issues", None),
        ("https://github.com/o/r/issues/new", None),
        ("https://github.com/o/r/issues/0", None),
        ("https://github.com/o/r/issues/12abc", None),
        ("https://github.com/o/../issues/1", None),
        ("https://github.com.evil.example/o/r/issues/1", None),
        ("https://evil.example/github.com/o/r/issues/1", None),
        ("https://user@github.com/o/r/issues/1", None),
        ("ftp://github.com/o/r/issues/1", None),
        ("", None),
    ],
)
def test_an_address_points_to_an_issue_a_pull_request_a_discussion_or_nothing(
    url: str, found: GitHubUrl | None
) -> None:
    assert parse_github_url(url) == found


@pytest.mark.parametrize(
    ("url", "number"),
    [
        ("https://api.github.com/repos/o/r/issues/12", 12),
        ("https://api.github.com/repos/o/r/pulls/9", 9),
        ("https://api.github.com/repos/o/r/pulls/9?page=2", 9),
        ("https://api.github.com/repos/o/r/commits/abc", None),
        ("https://api.github.com/repos/o/r/issues/12/comments", None),
        ("", None),
    ],
)
def test_the_number_at_the_end_of_an_interface_address(url: str, number: int | None) -> None:
    assert extract_number_from_api_url(url) == number


NAMES = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)


@given(owner=NAMES, name=NAMES, number=st.integers(1, 10**9), kind=st.sampled_from(["issues", "pull", "discussions"]))
def test_what_is_written_as_an_address_is_read_back(owner: str, name: str, number: int, kind: str) -> None:
    url = f"https://github.com/{owner}/{name}/{kind}/{number}"
    found = parse_github_url(url)
    assert found
    assert (found.owner, found.repo, found.number, found.url) == (owner, name, number, url)
    assert extract_github_urls(f"a ({url}) b {url}#x") == [found]


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    assert isinstance(extract_github_urls(f"github.com/{text}"), list)
    assert extract_number_from_api_url(text) is None or text
