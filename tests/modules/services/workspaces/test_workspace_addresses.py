"""Which addresses name a workspace, and which workspaces a post points to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.github.types import Repo
from modules.services.workspaces.addresses import extract_workspace_urls, parse_github_workspace_url, workspaces_in
from tests.modules.lives.bluesky.bluesky_values import notification

GARDEN = Repo("owner-hub", "www-lil-intdev-garden")
ADDRESS = "https://github.com/owner-hub/www-lil-intdev-garden"


@pytest.mark.parametrize(
    "url",
    [
        ADDRESS,
        f"{ADDRESS}/issues/12#issuecomment-1",
        f"{ADDRESS}.git",
        f"{ADDRESS}....",
        f"{ADDRESS})",
        "github.com/Owner-Hub/WWW-lil-intdev-Garden",
        "http://www.github.com/owner-hub/www-lil-intdev-garden/",
    ],
)
def test_an_address_in_a_workspace_names_it(url: str) -> None:
    assert parse_github_workspace_url(url) == GARDEN


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/owner-hub/garden",
        "https://github.com/owner-hub/www-lil-intdev-",
        "https://github.com/owner-hub/www-lil-intdev-gar…",
        "https://github.com.evil.example/owner-hub/www-lil-intdev-garden",
        "https://evil.example/github.com/owner-hub/www-lil-intdev-garden",
        f"https://github.com/owner-hub/www-lil-intdev-{'a' * 81}",
    ],
)
def test_any_other_address_names_none(url: str) -> None:
    assert parse_github_workspace_url(url) is None


def test_a_text_is_read_for_all_workspaces_and_each_counts_once() -> None:
    text = f"See {ADDRESS}, {ADDRESS}/pull/3 and github.com/kit/www-lil-intdev-weir. Not github.com/kit/weir."
    assert extract_workspace_urls(text) == [GARDEN, Repo("kit", "www-lil-intdev-weir")]


def test_a_link_in_full_is_read_before_the_words_that_cut_it() -> None:
    cut = notification("github.com/owner-hub/www-lil-intdev-gar…")
    assert workspaces_in(cut) == []
    assert workspaces_in(replace(cut, links=("https://example.org", ADDRESS))) == [GARDEN]
    assert workspaces_in(replace(notification(f"see {ADDRESS}."), links=("https://example.org",))) == [GARDEN]
