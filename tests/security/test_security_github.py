"""Proves that, whatever GitHub's address answers, the token goes there and nowhere else."""

import json
from typing import Any

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import FakeClock
from common.result import ApiResult, Err, Ok
from tests.security.small_internet import PUBLIC, SmallInternet, moved, page, untouched

REPO = Repo("ada", "garden")
ISSUE = {
    "number": 1,
    "title": "Beans",
    "state": "open",
    "user": {"login": "ada"},
    "html_url": "http://public.example/ada/garden/issues/1",
    "created_at": "2026-01-05T12:00:00Z",
    "updated_at": "2026-01-05T12:00:00Z",
}


def github(internet: SmallInternet) -> GitHub:
    """Return a client of a GitHub that the owner named, which is the small internet's public server."""
    return GitHub(
        api_url="http://public.example",
        login="ada",
        token="ghp_secret",
        clock=FakeClock(),
        min_spacing_s=0,
        transport=lambda: internet.transport("http://public.example"),
    )


def as_json(body: object, *headers: str) -> bytes:
    return page(json.dumps(body).encode(), *headers, kind="application/json")


def failed(result: ApiResult[Any]) -> Err:
    assert isinstance(result, Err), result
    return result


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize(
    "to", ["http://127.0.0.1:{port}/", "http://other.example/", "http://public.example:8080/", "//x/"]
)
async def test_a_redirect_to_another_origin_is_not_followed_with_the_token(
    internet: SmallInternet, status: str, to: str
) -> None:
    internet.names.tell("other.example", [PUBLIC])
    internet.say(moved(to.format(port=internet.trap.port), status))
    client = github(internet)
    for result in (await client.get_repository(REPO), await client.create_issue(REPO, "Beans", "…")):
        assert "another server" in failed(result).error
    await client.aclose()
    assert untouched(internet)
    assert internet.backend.taken == [PUBLIC, PUBLIC]
    assert internet.names.asked == ["public.example", "public.example"]


async def test_a_redirect_in_circles_comes_to_an_end(internet: SmallInternet) -> None:
    internet.say(moved("/repos/ada/garden", "307 Temporary"))
    client = github(internet)
    assert failed(await client.get_repository(REPO)).kind == "invalid"
    await client.aclose()
    assert len(internet.backend.taken) == 4


@pytest.mark.parametrize("place", ["http://127.0.0.1:{port}/more", "http://other.example/more", "http://[::1]:{port}/"])
async def test_the_next_page_is_not_sought_elsewhere(internet: SmallInternet, place: str) -> None:
    internet.names.tell("other.example", [PUBLIC])
    link = f'link: <{place.format(port=internet.trap.port)}>; rel="next"'
    internet.say(as_json([ISSUE], link))
    client = github(internet)
    assert failed(await client.list_issues(REPO)).error.endswith("GitHub's answer could not be read")
    await client.aclose()
    assert untouched(internet)
    assert internet.names.asked == ["public.example"]


async def test_the_addresses_inside_an_answer_are_only_data(internet: SmallInternet) -> None:
    inside = f"http://127.0.0.1:{internet.trap.port}/x"
    spiked = ISSUE | dict.fromkeys(("url", "repository_url", "comments_url", "html_url"), inside)
    spiked["user"] = {"login": "ada", "url": inside}
    internet.say(as_json(spiked))
    client = github(internet)
    assert (await client.get_issue(REPO, 1)).success
    assert (await client.update_issue(REPO, 1, state="closed")).success
    await client.aclose()
    assert untouched(internet)


@pytest.mark.parametrize(
    "answer",
    [
        as_json([]),
        as_json(7),
        as_json({"number": "one"}),
        as_json({}),
        as_json([None, 7]),
        page(b"<html>hello</html>", kind="text/html"),
        page(b"\xff\xfe{", kind="application/json"),
        page(b""),
        page(b"{}", status="204 No Content"),
        as_json({"message": ["odd"], "errors": {"a": 1}}, "x-ratelimit-remaining: many", "x-ratelimit-reset: -1"),
    ],
    ids=["list", "number", "types", "empty", "nulls", "html", "bytes", "nothing", "no content", "headers"],
)
async def test_no_answer_makes_a_call_raise(internet: SmallInternet, answer: bytes) -> None:
    internet.say(answer)
    client = github(internet)
    results: list[ApiResult[Any]] = [
        await client.get_issue(REPO, 1),
        await client.list_issues(REPO),
        await client.list_comments(REPO, 1),
        await client.get_repository(REPO),
        await client.rights(),
        await client.create_issue(REPO, "Beans", "…"),
        await client.create_comment(REPO, 1, "…"),
    ]
    await client.aclose()
    assert untouched(internet)
    assert all("\n" not in failed(result).error for result in results if not result.success)
    assert {failed(result).kind for result in results[-2:]} == {"unknown_outcome"}


async def test_what_an_answer_leaves_out_is_not_fetched(internet: SmallInternet) -> None:
    bare = {name: ISSUE[name] for name in ("number", "title", "html_url", "created_at", "updated_at")}
    internet.say(
        as_json([bare | {"url": "http://public.example/repos/ada/garden/issues/1", "labels": [{"name": "plan"}]}])
    )
    client = github(internet)
    listed = await client.list_issues(REPO)
    await client.aclose()
    assert isinstance(listed, Ok)
    assert [(issue.author, issue.body, issue.labels) for issue in listed.data] == [("ghost", "", ("plan",))]
    assert len(internet.backend.taken) == 1
