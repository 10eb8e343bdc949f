"""Tests of pull requests, files and branches: each request to the byte, and how its answer is read."""

from base64 import b64encode
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.github.client import GitHub
from adapters.github.types import Branch, ContentEntry, FileChange, GitRef, Merge, PullFile, Repo, Review
from common.constants import GITHUB_BODY_MAX_CHARS
from common.result import ErrKind
from tests.adapters.github.scripted import PERSON, Scripted, pull_json, script
from tests.adapters.results import err, ok
from tests.adapters.shared_server import SharedServer

pytestmark = pytest.mark.asyncio(loop_scope="session")
REPO = Repo("ada", "garden")
AT = "/repos/ada/garden"
SHA = "a" * 40
EXISTS = {"message": "Reference already exists"}
TWICE = {"message": "Validation Failed", "errors": [{"message": "A pull request already exists for ada:soul/1-beans."}]}


@pytest.fixture
def server(shared_server: SharedServer) -> Scripted:
    return script(shared_server)


@pytest_asyncio.fixture(loop_scope="session")
async def ada(server: Scripted) -> AsyncIterator[GitHub]:
    client = server.client()
    yield client
    await client.aclose()


async def test_a_pull_request_is_opened_read_and_merged(server: Scripted, ada: GitHub) -> None:
    server.will(pull_json(), 201)
    server.will(pull_json(mergeable=None, additions=3, deletions=1, changed_files=2))
    server.will({"sha": "d" * 40, "merged": True, "message": "Pull Request successfully merged"})
    made = ok(await ada.pulls.create(REPO, title="Beans\n", body="x" * 70_000, head="soul/1-beans", base="main"))
    assert (made.number, made.author, made.draft, made.merged, made.body) == (7, "ada", True, False, "")
    assert (made.head.ref, made.head.sha, made.head.repo, made.base.ref) == ("soul/1-beans", SHA, "ada/garden", "main")
    asked = [(one.login, one.id) for one in made.requested_reviewers]
    assert (asked, made.labels, made.assignees) == ([("bea", PERSON["id"])], ("plan",), ("ada",))
    assert (made.mergeable, made.additions, made.merge_commit_sha) == (None, None, "")
    read = ok(await ada.pulls.get(REPO, 7))
    assert (read.additions, read.deletions, read.changed_files) == (3, 1, 2)
    merged = ok(await ada.pulls.merge(REPO, 7, title="Beans (#7)", head_sha=SHA))
    assert merged == Merge("d" * 40, merged=True, message="Pull Request successfully merged")
    at = f"{AT}/pulls"
    assert server.lines == [f"POST {at}", f"GET {at}/7", f"PUT {at}/7/merge"]
    opened = server.asked[0].body
    assert (opened["title"], opened["head"], opened["base"], opened["draft"]) == (
        "Beans",
        "soul/1-beans",
        "main",
        False,
    )
    assert len(opened["body"]) <= GITHUB_BODY_MAX_CHARS
    assert server.asked[2].body == {"commit_title": "Beans (#7)", "merge_method": "squash", "sha": SHA}


async def test_pull_requests_are_listed_by_what_is_asked_for(server: Scripted, ada: GitHub) -> None:
    server.will([pull_json(9), pull_json(7, merged_at="2026-01-05T13:00:00Z", user=None, head=None)])
    server.will([pull_json(9), pull_json(7, merged_at="2026-01-05T13:00:00Z", user=None)])
    assert err(await ada.pulls.list(REPO)).kind == "transient"
    first, second = ok(await ada.pulls.list(REPO, state="all", head="ada:soul/1-beans", base="main", limit=2))
    assert (first.number, second.number, second.author, second.merged) == (9, 7, "ghost", True)
    assert second.merge_commit_sha == "c" * 40
    assert server.asked[1].query == {
        "state": "all",
        "head": "ada:soul/1-beans",
        "base": "main",
        "sort": "created",
        "direction": "desc",
        "per_page": "2",
    }


async def test_files_and_reviews_of_a_pull_request_are_read(server: Scripted, ada: GitHub) -> None:
    server.will([{"filename": "a.md", "status": "added", "additions": 1, "deletions": 0, "sha": SHA}])
    server.will(
        [
            {
                "id": 3,
                "user": PERSON,
                "body": "",
                "state": "APPROVED",
                "submitted_at": "2026-01-05T12:00:00Z",
                "commit_id": SHA,
                "html_url": "https://github.com/ada/garden/pull/7#pullrequestreview-3",
            }
        ]
    )
    assert ok(await ada.pulls.files(REPO, 7)) == (PullFile("a.md", "added", 1, 0, sha=SHA),)
    assert ok(await ada.pulls.reviews(REPO, 7)) == (
        Review(
            3,
            "ada",
            "",
            "APPROVED",
            "2026-01-05T12:00:00Z",
            SHA,
            f"https://github.com{AT[6:]}/pull/7#pullrequestreview-3",
            1,
        ),
    )
    assert server.lines == [f"GET {AT}/pulls/7/files", f"GET {AT}/pulls/7/reviews"]


async def test_a_review_needs_words_but_for_an_approval(server: Scripted, ada: GitHub) -> None:
    assert err(await ada.pulls.create_review(REPO, 7, event="REQUEST_CHANGES", body=" ")).kind == "invalid"
    assert err(await ada.pulls.create_review(REPO, 7, event="APPROVE", commit_id="head")).kind == "invalid"
    assert server.asked == []
    said = {"id": 4, "user": PERSON, "body": "", "state": "APPROVED", "commit_id": SHA, "html_url": "https://x"}
    server.will(said)
    server.will({"message": "Unprocessable Entity", "errors": ["Can not approve your own pull request"]}, 422)
    assert ok(await ada.pulls.create_review(REPO, 7, event="APPROVE", commit_id=SHA)).submitted_at == ""
    refused = err(await ada.pulls.create_review(REPO, 7, event="APPROVE"))
    assert (refused.kind, refused.status) == ("invalid", 422)
    assert "Can not approve your own pull request" in refused.error
    assert server.asked[0].body == {"event": "APPROVE", "commit_id": SHA, "comments": []}


async def test_reviewers_are_asked_and_the_pull_request_comes_back(server: Scripted, ada: GitHub) -> None:
    assert err(await ada.pulls.request_reviewers(REPO, 7, [])).kind == "invalid"
    server.will(pull_json(), 201)
    (asked,) = ok(await ada.pulls.request_reviewers(REPO, 7, ["bea"])).requested_reviewers
    assert asked.login == "bea"
    assert (server.lines, server.asked[0].body) == ([f"POST {AT}/pulls/7/requested_reviewers"], {"reviewers": ["bea"]})


async def test_a_file_is_read_whole_by_its_hash_whatever_it_holds(server: Scripted, ada: GitHub) -> None:
    server.will({"encoding": "base64", "content": b64encode(b"\0PNG").decode(), "size": 4, "sha": SHA})
    assert ok(await ada.contents.blob(REPO, SHA)) == b"\0PNG"
    assert err(await ada.contents.blob(REPO, "main")).kind == "invalid"
    assert server.lines == [f"GET {AT}/git/blobs/{SHA}"]


async def test_a_path_is_encoded_segment_by_segment(server: Scripted, ada: GitHub) -> None:
    content = b64encode("Größe\n".encode()).decode()
    server.will({"type": "file", "encoding": "base64", "content": content, "size": 8, "sha": SHA})
    server.will([{"name": "a b.md", "path": "docs/a b.md", "type": "file", "sha": SHA, "size": 8}])
    server.will({"name": "a", "path": "a", "type": "file", "sha": SHA, "size": 1})
    read = ok(await ada.contents.read(REPO, "docs/what? #1/ä b.md", ref="soul/1-beans"))
    assert (read.text, read.size, read.sha, read.truncated) == ("Größe\n", 8, SHA, False)
    assert ok(await ada.contents.list(REPO, "docs")) == (ContentEntry("a b.md", "docs/a b.md", "file", SHA, 8),)
    assert [entry.name for entry in ok(await ada.contents.list(REPO))] == ["a"]
    assert server.lines == [
        f"GET {AT}/contents/docs/what%3F%20%231/%C3%A4%20b.md",
        f"GET {AT}/contents/docs",
        f"GET {AT}/contents/",
    ]
    assert server.asked[0].query == {"ref": "soul/1-beans"}


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/./b", "a/.git/b", "a\0b"])
async def test_a_path_that_no_file_can_have_is_not_asked_for(server: Scripted, ada: GitHub, path: str) -> None:
    assert err(await ada.contents.read(REPO, path)).kind == "invalid"
    assert err(await ada.contents.write(REPO, path, "x", message="m")).kind == "invalid"
    assert server.asked == []


async def test_a_long_file_is_cut_and_says_so(server: Scripted, ada: GitHub) -> None:
    text = "bean\n" * 2000
    whole = {
        "type": "file",
        "encoding": "base64",
        "content": b64encode(text.encode()).decode(),
        "size": 10_000,
        "sha": SHA,
    }
    server.will(whole)
    server.will(whole)
    server.will({"type": "file", "encoding": "none", "content": "", "size": 2_000_000, "sha": SHA})
    cut = ok(await ada.contents.read(REPO, "long.md"))
    assert (cut.text, cut.truncated, cut.size) == (text[:5000], True, 10_000)
    full = ok(await ada.contents.read(REPO, "long.md", max_chars=20_000))
    assert (full.text, full.truncated) == (text, False)
    huge = ok(await ada.contents.read(REPO, "huge.bin"))
    assert (huge.text, huge.truncated) == ("", True)


async def test_what_is_no_text_is_not_read(server: Scripted, ada: GitHub) -> None:
    server.will(
        {"type": "file", "encoding": "base64", "content": b64encode(b"\x89PNG\0").decode(), "size": 5, "sha": SHA}
    )
    server.will([])
    server.will({"type": "symlink", "target": "a", "size": 1, "sha": SHA})
    for path in ("a.png", "docs", "link"):
        assert err(await ada.contents.read(REPO, path)).kind == "invalid"


async def test_a_file_is_written_over_the_one_that_was_read_and_no_other(server: Scripted, ada: GitHub) -> None:
    server.will({"content": {"sha": "e" * 40}, "commit": {"sha": "f" * 40}}, 201)
    server.will({"message": f"plan.md does not match {SHA}"}, 409)
    server.will({"message": 'Invalid request.\n\n"sha" wasn\'t supplied.'}, 422)
    written = ok(await ada.contents.write(REPO, "plan.md", "Größe", message="m", branch="soul/1-beans"))
    assert written == FileChange("plan.md", "e" * 40, "f" * 40)
    assert err(await ada.contents.write(REPO, "plan.md", "x", message="m", sha=SHA)).kind == "conflict"
    assert err(await ada.contents.write(REPO, "plan.md", "x", message="m")).kind == "conflict"
    encoded = b64encode("Größe".encode()).decode()
    assert server.asked[0].body == {"message": "m", "content": encoded, "branch": "soul/1-beans"}
    assert err(await ada.contents.write(REPO, "plan.md", "x" * 1_000_001, message="m")).kind == "invalid"


async def test_a_pull_request_joins_a_merge_queue_at_the_commit_that_was_read(server: Scripted, ada: GitHub) -> None:
    refused = {"data": {"enqueuePullRequest": None}, "errors": [{"type": "UNPROCESSABLE", "message": "Already queued"}]}
    for answer in ({"enqueuePullRequest": {"mergeQueueEntry": {"id": "MQE_1"}}}, None):
        server.will(pull_json(node_id="PR_7"))
        server.will({"data": answer} if answer else refused)
    names = ("isMergeQueueEnabled", "isInMergeQueue", "merged")
    for given in ((False, False, False), (True, False, False), (True, True, False), (True, False, True)):
        server.will({"data": {"repository": {"pullRequest": dict(zip(names, given, strict=True))}}})
    server.will({"data": {"repository": None}, "errors": [{"type": "NOT_FOUND", "message": "Could not resolve"}]})
    assert ok(await ada.pulls.enqueue(REPO, 7, head_sha=SHA)) is None
    again = err(await ada.pulls.enqueue(REPO, 7, head_sha=SHA))
    assert again.kind == "invalid"
    assert [ok(await ada.pulls.queue(REPO, 7)) for _ in range(4)] == ["none", "out", "in", "in"]
    assert err(await ada.pulls.queue(REPO, 7)).kind == "not_found"
    assert server.lines[:2] == [f"GET {AT}/pulls/7", "POST /graphql"]
    assert server.asked[1].body["variables"] == {"input": {"pullRequestId": "PR_7", "expectedHeadOid": SHA}}


async def test_branches_are_made_once_and_deleting_one_twice_is_no_error(server: Scripted, ada: GitHub) -> None:
    ref = {"ref": "refs/heads/soul/1-beans", "object": {"type": "commit", "sha": SHA}}
    server.will(ref, 201)
    server.will(EXISTS, 422)
    server.will(ref)
    server.will(None, 204)
    server.will({"message": "Reference does not exist"}, 422)
    server.will({"message": "Cannot delete a protected branch"}, 422)
    made = ok(await ada.refs.create(REPO, "soul/1-beans", SHA))
    assert made == GitRef("refs/heads/soul/1-beans", SHA)
    assert err(await ada.refs.create(REPO, "soul/1-beans", SHA)).kind == "conflict"
    assert ok(await ada.refs.get(REPO, "soul/1-beans")) == made
    for _ in range(2):
        ok(await ada.refs.delete(REPO, "soul/1-beans"))
    assert err(await ada.refs.delete(REPO, "main")).kind == "invalid"
    assert server.asked[0].body == {"ref": "refs/heads/soul/1-beans", "sha": SHA}
    assert server.lines[2:4] == [
        f"GET {AT}/git/ref/heads%2Fsoul%2F1-beans",
        f"DELETE {AT}/git/refs/heads%2Fsoul%2F1-beans",
    ]


async def test_branches_are_listed_page_by_page(server: Scripted, ada: GitHub) -> None:
    def page(*names: str) -> list[dict[str, object]]:
        return [{"name": name, "commit": {"sha": SHA}} for name in names]

    more = f'<{server.url}{AT}/branches?page=2>; rel="next", <{server.url}>; rel="last"'
    server.will(page("main"), link=more)
    server.will(page("soul/1-beans"))
    server.will([{"ref": "refs/tags/v1", "object": {"sha": SHA}}])
    assert ok(await ada.refs.branches(REPO)) == (Branch("main", SHA), Branch("soul/1-beans", SHA))
    assert [one.query["page"] for one in server.asked] == ["1", "2"]
    assert [one.ref for one in ok(await ada.refs.matching(REPO, "soul/"))] == ["refs/tags/v1"]


@pytest.mark.parametrize("name", ["", "a..b", "-a", "/a", "a//b", "a.lock", "a/.b", "a~1", "a\nb", "x" * 241])
async def test_a_name_that_no_branch_can_have_is_not_asked_for(server: Scripted, ada: GitHub, name: str) -> None:
    assert err(await ada.refs.create(REPO, name, SHA)).kind == "invalid"
    assert err(await ada.refs.delete(REPO, name)).kind == "invalid"
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (422, TWICE, "conflict"),
        (422, {"message": "Validation Failed", "errors": [{"message": "No commits between main and x"}]}, "invalid"),
    ],
)
async def test_a_refusal_says_what_it_means(
    server: Scripted, ada: GitHub, status: int, body: object, kind: ErrKind
) -> None:
    server.will(body, status)
    failed = err(await ada.pulls.create(REPO, title="Beans", body="", head="bea:soul/1", base="main"))
    assert (failed.kind, failed.status, len(server.asked)) == (kind, status, 1)
