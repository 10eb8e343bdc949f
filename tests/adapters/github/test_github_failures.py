"""Tests of failures: nothing is written twice, a failure is one clear line, and the token does not leak.

Tests of kept answers: a read is answered anew only if something changed, else it costs no request of the hour.
"""

import asyncio
import logging
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from adapters.github.client import GitHub
from adapters.github.sending import KeptAnswer, KeptAnswers, error_from_response
from adapters.github.types import Repo
from common.clock import FakeClock
from common.result import ApiResult, Err, ErrKind
from tests.adapters.github.github_town import REPO, TOKEN, GitHubTown
from tests.adapters.results import err, ok
from tests.adapters.shared_server import SharedServer
from tests.patience import until, while_time_passes
from town.github.values import Fault, FaultKind, GitHubAccount, GitHubLabel

on_one_loop = pytest.mark.asyncio(loop_scope="session")


@on_one_loop
@pytest.mark.parametrize(("fault", "done"), [("server_error", 0), ("lost_answer", 1), ("garbled", 1)])
async def test_a_write_without_a_sound_answer_is_sent_once_and_its_outcome_called_unknown(
    town: GitHubTown, fault: FaultKind, done: int
) -> None:
    ada = town.client()
    town.faults.arm(Fault(fault, times=99, seconds=3600))
    failed = err(await ada.create_issue(REPO, "Beans", "…"))
    assert failed.kind == "unknown_outcome"
    assert failed.error.startswith("could not create an issue in ada/garden: ")
    assert failed.error.endswith(" (it may have been done all the same)")
    await until(lambda: town.issues() == done)
    assert (len(town.seen), town.issues()) == (1, done)


@on_one_loop
@pytest.mark.parametrize("operation", ["comment", "update", "edit", "delete", "react", "assign"])
async def test_no_write_of_any_kind_is_repeated(town: GitHubTown, ada: GitHub, operation: str) -> None:
    ok(await ada.create_issue(REPO, "Beans", "…"))
    comment = ok(await ada.create_comment(REPO, 1, "first"))
    town.seen.clear()
    town.faults.arm(Fault("lost_answer", times=99))
    calls = {
        "comment": ada.create_comment(REPO, 1, "hello"),
        "update": ada.update_issue(REPO, 1, state="closed"),
        "edit": ada.edit_comment(REPO, comment.id, "hello"),
        "delete": ada.delete_comment(REPO, comment.id),
        "react": ada.add_reaction(REPO, 1, "eyes"),
        "assign": ada.add_assignees(REPO, 1, ["bea"]),
    }
    chosen = calls.pop(operation)
    for other in calls.values():
        other.close()
    assert err(await chosen).kind == "unknown_outcome"
    assert len(town.seen) == 1


@on_one_loop
async def test_a_write_that_could_not_be_sent_may_be_tried_again(town: GitHubTown) -> None:
    ada = town.client(url="http://127.0.0.1:1")
    failed = err(await ada.create_issue(REPO, "Beans", "…"))
    assert failed == Err("could not create an issue in ada/garden: no connection to GitHub", "transient")
    assert len(town.seen) == 1


@on_one_loop
@pytest.mark.parametrize("fault", ["bad_gateway", "lost_answer"])
async def test_a_read_without_a_sound_answer_is_sent_once_more(town: GitHubTown, ada: GitHub, fault: FaultKind) -> None:
    town.faults.arm(Fault(fault))
    ok(await while_time_passes(town.clock, ada.get_repository(REPO)))
    assert len(town.seen) == 2
    town.faults.arm(Fault(fault, times=99))
    failed = err(await while_time_passes(town.clock, ada.get_repository(REPO)))
    assert (failed.kind, len(town.seen)) == ("transient", 4)


@on_one_loop
async def test_what_is_nested_too_deep_in_an_answer_costs_only_itself(
    town: GitHubTown, ada: GitHub, shared_server: SharedServer
) -> None:
    network_itself = shared_server.app

    async def with_odd_field(scope: Scope, receive: Receive, send: Send) -> None:
        async def spoil(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].lower() != b"content-length"]
                message = {**message, "headers": kept}
            elif message.get("body", b"").startswith(b"{"):
                message = {
                    **message,
                    "body": b'{"odd":' + b'{"a":[' * 5_000 + b"]}" * 5_000 + b"," + message["body"][1:],
                }
            await send(message)

        await network_itself(scope, receive, spoil)

    shared_server.app = with_odd_field
    assert ok(await ada.get_repository(REPO)).description == "What grows where"
    missing = err(await ada.get_issue(REPO, 99))
    assert (missing.kind, "Not Found" in missing.error) == ("not_found", True)


@on_one_loop
async def test_whoever_gives_up_waiting_leaves_no_request_behind(town: GitHubTown, ada: GitHub) -> None:
    town.faults.arm(Fault("hang", seconds=3600))
    before = len(asyncio.all_tasks())
    asking = asyncio.create_task(ada.get_repository(REPO))
    await until(lambda: not town.faults.armed, what="the request")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    ok(await ada.get_repository(REPO))
    # NOTE(self): the server may still hold the connection.
    await until(lambda: len(asyncio.all_tasks()) <= before + 1, what="the end of what served the request")


@on_one_loop
async def test_the_token_is_in_no_log_line_and_no_error(
    town: GitHubTown, ada: GitHub, caplog: pytest.LogCaptureFixture
) -> None:
    # NOTE(self): a SOUL that ran in this process before may have set the libraries to log less.
    for name in ("httpx", "httpcore", "github", "github.Requester"):
        caplog.set_level(logging.DEBUG, logger=name)
    with caplog.at_level(logging.DEBUG):
        results: list[ApiResult[Any]] = [
            await ada.create_issue(REPO, "Beans", "…"),
            await ada.get_issue(Repo("ada", "nowhere"), 7),
        ]
        faults: tuple[FaultKind, ...] = ("suspended", "lost_answer", "elsewhere", "too_many")
        for fault in faults:
            town.faults.arm(Fault(fault, seconds=0))
            results.append(await ada.create_issue(REPO, "Beans", "…"))
    assert caplog.records
    assert TOKEN not in caplog.text
    assert all(TOKEN not in repr(result) for result in results)


@on_one_loop
@pytest.mark.parametrize("token", ["ghp_a\nX-Evil: 1", "ghp_ä"], ids=ascii)
async def test_what_cannot_be_a_token_is_not_sent(town: GitHubTown, token: str) -> None:
    client = town.client(token=token)
    for result in (await client.get_repository(REPO), await client.create_issue(REPO, "t", "b")):
        failed = err(result)
        assert failed.kind == "auth"
        assert token not in failed.error
    assert town.seen == []


@on_one_loop
async def test_a_token_that_was_revoked_is_told_in_one_line(town: GitHubTown, ada: GitHub) -> None:
    town.network.revoke(TOKEN)
    failed = err(await ada.rights())
    assert (failed.kind, failed.status) == ("auth", 401)
    assert failed.error == (
        "could not check the GitHub token: Bad credentials (GitHub does not accept AGENT_GITHUB_TOKEN)"
    )


@on_one_loop
async def test_refusals_are_told_apart(town: GitHubTown, ada: GitHub) -> None:
    cy = town.client("cy")
    ok(await ada.create_issue(REPO, "Beans", "…"))
    owner = town.network.find("ada")
    assert owner
    town.network.create_repo(owner, "secret", private=True)
    town.network.create_repo(owner, "quiet", has_issues=False)
    town.network.create_repo(owner, "old").archived = True
    results: dict[ErrKind, list[ApiResult[Any]]] = {
        "not_found": [
            await cy.get_repository(Repo("ada", "secret")),
            await cy.create_issue(Repo("ada", "quiet"), "t", "b"),
            await cy.get_issue(REPO, 99),
            await cy.get_user("dora"),
        ],
        "auth": [await cy.update_issue(REPO, 1, title="Mine")],
        "invalid": [
            await ada.create_issue(REPO, "t", "b", assignees=["cy"]),
            await ada.create_issue(Repo("ada", "old"), "t", "b"),
        ],
    }
    for kind, failures in results.items():
        assert [err(failure).kind for failure in failures] == [kind] * len(failures)
    assert "assignees invalid" in err(results["invalid"][0]).error
    assert "read-only" in err(results["invalid"][1]).error
    town.network.delete_issue(town.repo, town.network.issue(town.repo, 1), owner)
    assert err(await ada.get_issue(REPO, 1)).kind == "not_found"
    assert all("\n" not in err(one).error for failures in results.values() for one in failures)


SUSPENDED = {"message": "Sorry. Your account was suspended."}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"message": "Bad credentials"}, "auth"),
        (403, {"message": "Resource not accessible by personal access token"}, "auth"),
        (403, SUSPENDED, "fatal"),
        (403, {"message": "Repository was archived so is read-only."}, "invalid"),
        (403, {"message": "Unable to create comment because issue is locked."}, "invalid"),
        (403, {"message": "You have exceeded a secondary rate limit"}, "transient"),
        (404, {"message": "Not Found"}, "not_found"),
        (405, {"message": "Pull Request is not mergeable"}, "invalid"),
        (405, {"message": "Base branch was modified. Review and try the merge again."}, "transient"),
        (409, {"message": "is at abc but expected def"}, "conflict"),
        (410, {"message": "This issue was deleted"}, "not_found"),
        (422, {"message": "Validation Failed"}, "invalid"),
        (422, {"message": "Validation Failed", "errors": [{"message": "was submitted too quickly"}]}, "transient"),
        (429, None, "transient"),
        (451, {"message": "Repository access blocked"}, "not_found"),
        (500, None, "unknown_outcome"),
        (502, {"data": "<html>502</html>"}, "unknown_outcome"),
    ],
)
def test_every_refusal_of_a_write_has_its_kind_and_one_line(status: int, body: object, kind: ErrKind) -> None:
    now = FakeClock().now()
    failed = error_from_response(status, body, {}, what="comment on a/b#1", write=True, now=now)
    assert (failed.kind, failed.status) == (kind, status)
    assert failed.error.startswith("could not comment on a/b#1: ")
    read = error_from_response(status, body, {}, what="read a/b#1", write=False, now=now)
    assert read.kind == ("transient" if kind == "unknown_outcome" else kind)


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([{"resource": "Issue", "field": "title", "code": "missing_field"}], "Validation Failed (title missing_field)"),
        ([{"message": "body is too long"}, "and more"], "Validation Failed (body is too long; and more)"),
        ("as a text", "Validation Failed (as a text)"),
        ({"odd": 1}, "Validation Failed"),
    ],
    ids=["field", "message", "text", "object"],
)
def test_what_is_wrong_with_a_field_is_told(errors: object, told: str) -> None:
    body = {"message": "Validation Failed", "errors": errors}
    failed = error_from_response(422, body, {}, what="do it", write=True, now=FakeClock().now())
    assert failed.error == f"could not do it: {told}"


def test_a_long_message_becomes_one_short_line() -> None:
    body = {"message": "bad\r\nthings\n" * 100}
    line = error_from_response(422, body, {}, what="do it", write=True, now=FakeClock().now()).error
    assert len(line) == 300
    assert line.startswith("could not do it: bad things bad")
    assert line.isprintable()


@on_one_loop
async def test_a_label_of_the_repository_keeps_its_spelling(town: GitHubTown, ada: GitHub) -> None:
    town.repo.labels["plan:active"] = GitHubLabel(900, "Plan:Active")
    assert ok(await ada.create_issue(REPO, "Beans", "…", labels=["plan:active"])).labels == ("Plan:Active",)


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
