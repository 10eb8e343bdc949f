"""Tests of notifications, organisations, accounts and search: each request to the byte, and how its answer is read."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from adapters.github.client import GitHub
from adapters.github.notifications import filter_actionable_notifications
from adapters.github.sending import enough_for_loops
from adapters.github.types import (
    GitHubNotification,
    NotificationPoll,
    NotificationSubject,
    Organization,
    Repo,
    TokenKind,
)
from adapters.web.spacing import RateLimitStatus
from tests.adapters.github.scripted import PERSON, Scripted, script
from tests.adapters.results import err, ok
from tests.adapters.shared_server import SharedServer

pytestmark = pytest.mark.asyncio(loop_scope="session")
REPO = Repo("ada", "garden")
SINCE = "Mon, 05 Jan 2026 12:00:00 GMT"


def repo_json(name: str = "garden") -> dict[str, Any]:
    return {
        "full_name": f"ada/{name}",
        "html_url": f"https://github.com/ada/{name}",
        "url": f"https://api.github.com/repos/ada/{name}",
        "private": False,
        "permissions": {"admin": False, "push": True, "pull": True},
    }


def note_json(number: int, reason: str = "mention") -> dict[str, Any]:
    return {
        "id": str(number),
        "reason": reason,
        "unread": True,
        "updated_at": "2026-01-05T12:00:00Z",
        "last_read_at": None,
        "subject": {
            "title": "Beans",
            "url": f"https://api.github.com/repos/ada/garden/issues/{number}",
            "type": "Issue",
        },
        "repository": {"name": "garden", "full_name": "ada/garden", "owner": PERSON},
    }


def note(number: int, reason: str = "mention") -> GitHubNotification:
    url = f"https://api.github.com/repos/ada/garden/issues/{number}"
    subject = NotificationSubject("Beans", url, "Issue")
    return GitHubNotification(
        str(number), reason, unread=True, updated_at="2026-01-05T12:00:00Z", subject=subject, repo=REPO
    )


@pytest.fixture
def server(shared_server: SharedServer) -> Scripted:
    return script(shared_server)


@pytest_asyncio.fixture(loop_scope="session")
async def ada(server: Scripted) -> AsyncIterator[GitHub]:
    client = server.client()
    yield client
    await client.aclose()


async def test_notifications_are_read_to_the_last_page_and_asked_for_again_only_if_changed(
    server: Scripted, ada: GitHub
) -> None:
    more = f'<{server.url}/notifications?page=2>; rel="next"'
    server.will([note_json(1), note_json(2)], link=more, last_modified=SINCE, x_poll_interval="90")
    server.will([note_json(2), note_json(3)])
    server.will(None, 304, x_poll_interval="120")
    looked = ok(await ada.notifications.poll(since="2026-01-05T13:00:00+02:00"))
    assert looked == NotificationPoll((note(1), note(2), note(3)), changed=True, poll_interval_s=90, marker=SINCE)
    again = ok(await ada.notifications.poll(marker=looked.marker))
    assert again == NotificationPoll((), changed=False, poll_interval_s=120, marker=SINCE)
    first, second, third = server.asked
    assert first.query == {
        "all": "false",
        "participating": "true",
        "per_page": "50",
        "page": "1",
        "since": "2026-01-05T11:00:00Z",
    }
    assert second.query["page"] == "2"
    assert third.headers["if-modified-since"] == SINCE
    assert "if-modified-since" not in first.headers.keys() | second.headers.keys()


async def test_where_only_an_etag_is_told_the_next_look_names_it(server: Scripted, ada: GitHub) -> None:
    server.will([], etag='W/"abc"')
    server.will(None, 304)
    marker = ok(await ada.notifications.poll()).marker
    again = ok(await ada.notifications.poll(marker=marker))
    assert (again.changed, again.poll_interval_s, again.marker) == (False, 60, 'W/"abc"')
    assert server.asked[1].headers["if-none-match"] == 'W/"abc"'


async def test_a_list_that_never_ends_is_left_and_the_next_look_sees_all_of_it(server: Scripted, ada: GitHub) -> None:
    for page in range(20):
        server.will([note_json(page + 1)], link='<http://x>; rel="next"', last_modified=SINCE)
    looked = ok(await ada.notifications.poll())
    assert (len(looked.items), looked.complete, looked.marker) == (20, False, "")


async def test_a_notification_is_marked_as_read(server: Scripted, ada: GitHub) -> None:
    server.will(None, 205)
    ok(await ada.notifications.mark_read("17"))
    assert server.lines == ["PATCH /notifications/threads/17"]
    assert err(await ada.notifications.mark_read("17/../18")).kind == "invalid"


async def test_what_asks_for_nothing_is_left_out() -> None:
    reasons = ["mention", "subscribed", "author", "manual", "comment", "state_change", "review_requested", "assign"]
    items = [note(number, reason) for number, reason in enumerate([*reasons, "ci_activity", "team_mention"], 1)]
    kept = [item.reason for item in filter_actionable_notifications(items, "ada")]
    assert kept == ["mention", "author", "comment", "review_requested", "assign"]
    assert filter_actionable_notifications(items, "") == []


async def test_repositories_and_organisations_are_listed(server: Scripted, ada: GitHub) -> None:
    server.will([repo_json(), repo_json("orchard")])
    server.will([{"login": "green", "description": None}])
    found = ok(await ada.repositories.of_organization("green", sort="updated"))
    assert [(one.repo, one.can_push, one.archived) for one in found] == [
        (REPO, True, False),
        (Repo("ada", "orchard"), True, False),
    ]
    assert ok(await ada.repositories.organizations()) == (Organization("green"),)
    assert server.lines == ["GET /orgs/green/repos", "GET /user/orgs"]
    asked = {"type": "all", "sort": "updated", "direction": "desc", "per_page": "100", "page": "1"}
    assert server.asked[0].query == asked


async def test_who_may_not_ask_who_may_push_gets_none_but_haste_is_no_such_answer(
    server: Scripted, ada: GitHub
) -> None:
    server.will([PERSON | {"permissions": {"push": True}}, PERSON | {"login": "bea", "permissions": {"push": False}}])
    server.will({"message": "Must have push access to view repository collaborators."}, 403)
    server.will({"message": "You have exceeded a secondary rate limit"}, 403, retry_after="400")
    assert [one.login for one in ok(await ada.repositories.pushers(REPO))] == ["ada"]
    assert ok(await ada.repositories.pushers(REPO)) == ()
    assert err(await ada.repositories.pushers(REPO)).kind == "transient"


async def test_a_repository_is_made_from_a_template(server: Scripted, ada: GitHub) -> None:
    server.will(repo_json("new"), 201)
    server.will({"message": "Could not clone: Name already exists on this account"}, 422)
    template = Repo("green", "www-sacred")
    made = ok(await ada.repositories.generate(template, owner="ada", name="new", description="d"))
    assert made.full_name == "ada/new"
    assert err(await ada.repositories.generate(template, owner="ada", name="new")).kind == "conflict"
    assert server.lines[0] == "POST /repos/green/www-sacred/generate"
    assert server.asked[0].body == {
        "owner": "ada",
        "name": "new",
        "description": "d",
        "include_all_branches": False,
        "private": False,
    }


async def test_stars_and_follows(server: Scripted, ada: GitHub) -> None:
    for call in (ada.repositories.star(REPO), ada.accounts.follow("bea")):
        server.will(None, 204)
        ok(await call)
    assert server.lines == ["PUT /user/starred/ada/garden", "PUT /user/following/bea"]
    assert err(await ada.accounts.follow("bea/../cy")).kind == "invalid"


@pytest.mark.parametrize(
    ("token", "told", "kind", "scopes"),
    [
        ("ghp_x", "repo, notifications", "classic", ("repo", "notifications")),
        ("ghp_x", "", "classic", ()),
        ("github_pat_x", None, "fine_grained", ()),
        ("ghu_x", None, "app", ()),
        ("0123456789abcdef", "public_repo", "classic", ("public_repo",)),
        ("0123456789abcdef", None, "unknown", ()),
    ],
)
async def test_what_a_token_is_good_for_is_told(
    server: Scripted, token: str, told: str | None, kind: TokenKind, scopes: tuple[str, ...]
) -> None:
    server.will(PERSON, also={} if told is None else {"x_oauth_scopes": told})
    client = server.client(token=token)
    rights = ok(await client.rights())
    assert (rights.login, rights.kind, rights.scopes) == ("ada", kind, scopes)
    await client.aclose()


async def test_without_a_token_there_are_no_rights_and_nothing_is_asked(server: Scripted) -> None:
    client = server.client(token="")
    assert err(await client.rights()).kind == "auth"
    assert server.asked == []
    await client.aclose()


async def test_the_budget_of_searches_is_not_that_of_the_rest(server: Scripted, ada: GitHub) -> None:
    limits = {"x_ratelimit_remaining": "3", "x_ratelimit_limit": "30", "x_ratelimit_reset": "9999999999"}
    server.will({"total_count": 0, "items": []}, x_ratelimit_resource="search", also=limits)
    assert ok(await ada.search.issues("repo:ada/garden is:open")) == ()
    assert server.asked[0].query == {"q": "repo:ada/garden is:open", "per_page": "100", "page": "1"}
    assert err(await ada.search.issues(" ")).kind == "invalid"
    assert (ada.rate.remaining, ada.enough_for_loops) == (5000, True)


async def test_a_loop_waits_where_fewer_than_two_hundred_requests_are_left(server: Scripted, ada: GitHub) -> None:
    limits = {"x_ratelimit_limit": "5000", "x_ratelimit_reset": "9999999999", "x_ratelimit_resource": "core"}
    server.will([], x_ratelimit_remaining="199", also=limits)
    ok(await ada.repositories.pushers(REPO))
    assert (ada.rate.remaining, ada.enough_for_loops) == (199, False)
    assert enough_for_loops(RateLimitStatus(200, 5000, 0))
    assert enough_for_loops(RateLimitStatus(12, 60, 0))
    assert not enough_for_loops(RateLimitStatus(11, 60, 0))
