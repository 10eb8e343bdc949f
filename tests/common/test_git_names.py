"""Proves which names a branch may have, judged by `git` itself.

Pages and repositories have their addresses at the configured service, be it GitHub's own or another.
"""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.git_names import github_address, is_branch_name
from tests.town.github_place import needs_git

GOOD = [
    "main",
    "feature/ä#1",
    "fix(core)=x",
    "ветка",
    "機能/一",
    "a+b",
    "user@host",
    "v1.0",
    "a/-b",
    "dependabot/npm/@x/y-1",
    "#1",
]
BAD = [
    *("", "@", "HEAD", "-x", "--upload-pack=x", "/a", "a/", "a//b", "a..b", ".a", "a/.b", "a.", "a.lock", "a.lock/b"),
    *("a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a@{1}", "a\n", "a\x7f", "refs/heads/main", "a\u202eb"),
    *("\udc80", "ä" * 200),
]


def test_names_that_git_allows_are_allowed_and_what_could_mean_something_else_is_not() -> None:
    assert [name for name in GOOD if not is_branch_name(name)] == []
    assert [name for name in BAD if is_branch_name(name)] == []


@needs_git
@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.sampled_from([*"ab/.-@{}~^:?*[\\ #ä\n", "lock"]), max_size=8).map("".join))
def test_git_takes_every_name_that_is_allowed(name: str) -> None:
    if is_branch_name(name):
        subprocess.run(["git", "check-ref-format", "--branch", name], check=True, capture_output=True, timeout=60)


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
