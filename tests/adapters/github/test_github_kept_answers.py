"""What was read before is asked for only if it changed: a look where nothing changed costs no request of the hour."""

from __future__ import annotations

import pytest

from adapters.github.sending import KeptAnswer, KeptAnswers
from tests.adapters.github.github_town import REPO, GitHubTown
from tests.adapters.results import err, ok
from town.github.values import GitHubAccount

on_one_loop = pytest.mark.asyncio(loop_scope="session")
URL = "https://api.github.com/repos/ada/garden/issues?per_page=2"


def author(town: GitHubTown) -> GitHubAccount:
    found = town.network.find("ada")
    assert found
    return found


@on_one_loop
async def test_the_same_read_costs_no_request_until_something_changes(town: GitHubTown) -> None:
    issue = town.network.open_issue(town.repo, author(town), title="Beans")
    ada = town.client()
    first = ok(await ada.list_issues(REPO)), ok(await ada.get_issue(REPO, issue.number))
    left = ada.rate.remaining
    again = ok(await ada.list_issues(REPO)), ok(await ada.get_issue(REPO, issue.number))
    assert again == first
    assert ada.rate.remaining == left
    ok(await ada.create_comment(REPO, issue.number, "Soak them."))
    ok(await ada.update_issue(REPO, issue.number, title="Peas"))
    assert ok(await ada.get_issue(REPO, issue.number)).title == "Peas"
    assert [one.title for one in ok(await ada.list_issues(REPO))] == ["Peas"]


@on_one_loop
async def test_what_comes_behind_a_full_page_is_seen(town: GitHubTown) -> None:
    issue = town.network.open_issue(town.repo, author(town), title="Beans")
    for number in range(100):
        town.network.write_comment(town.repo, issue, author(town), f"Row {number}")
    ada = town.client()
    assert len(ok(await ada.list_comments(REPO, issue.number))) == 100
    town.network.write_comment(town.repo, issue, author(town), "And a hundred and first")
    assert len(ok(await ada.list_comments(REPO, issue.number))) == 101
    left = ada.rate.remaining
    assert len(ok(await ada.list_comments(REPO, issue.number))) == 101
    assert ada.rate.remaining == left


@on_one_loop
async def test_a_refusal_is_not_kept_and_ends_what_was(town: GitHubTown) -> None:
    issue = town.network.open_issue(town.repo, author(town), title="Beans")
    ada = town.client()
    ok(await ada.get_issue(REPO, issue.number))
    town.repo.issues[issue.number] = None
    assert err(await ada.get_issue(REPO, issue.number)).kind == "not_found"
    assert "if-none-match" in town.seen[-1].headers
    assert err(await ada.get_issue(REPO, issue.number)).kind == "not_found"
    assert "if-none-match" not in town.seen[-1].headers


def answer(text: str = '{"a": 1}', status: int = 200, **headers: str) -> KeptAnswer:
    return KeptAnswer(status, {"etag": 'W/"1"', **headers}, text)


def test_an_unchanged_answer_is_the_kept_one_with_the_newest_headers() -> None:
    kept = KeptAnswers()
    kept.resolve(URL, answer(link='<x>; rel="next"', remaining="9"), None)
    known = kept.of(URL, {})
    assert known
    found = kept.resolve(URL, KeptAnswer(304, {"etag": 'W/"1"', "remaining": "8"}, ""), known)
    assert found == answer(link='<x>; rel="next"', remaining="8")


def test_a_request_with_a_condition_of_its_own_gets_the_answer_as_it_is() -> None:
    kept = KeptAnswers()
    kept.resolve(URL, answer(), None)
    assert kept.of(URL, {"If-Modified-Since": "yesterday"}) is None
    assert kept.resolve(URL, KeptAnswer(304, {}, ""), None).status == 304
    assert kept.of(URL, {}) == answer()


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        (answer("[1]"), True),
        (answer("[1, 2]"), False),
        (answer("[1, 2]", link='<x>; rel="next"'), True),
        (answer("no JSON"), False),
        (answer(status=404), False),
        (KeptAnswer(200, {}, "{}"), False),
    ],
)
def test_what_may_be_followed_by_more_or_has_no_tag_is_not_kept(given: KeptAnswer, is_kept: bool) -> None:  # noqa: FBT001
    kept = KeptAnswers()
    kept.resolve(URL, given, None)
    assert (kept.of(URL, {}) is not None) == is_kept


def test_what_is_kept_is_bounded_in_number_and_in_size() -> None:
    kept = KeptAnswers(most_answers=3, most_chars=160)
    for number in range(5):
        kept.resolve(f"{URL}&page={number}", answer(), None)
    assert [kept.of(f"{URL}&page={number}", {}) is not None for number in range(5)] == [False, False, True, True, True]
    kept.resolve(URL, answer('"' + "x" * 20 + '"'), None)
    assert kept.of(URL, {}) is None
    wide = KeptAnswers(most_chars=160)
    for number in range(20):
        wide.resolve(f"{URL}&page={number}", answer('"' + "x" * 18 + '"'), None)
    assert sum(wide.of(f"{URL}&page={number}", {}) is not None for number in range(20)) == 8
