"""GitHub's own description judges what the town serves: no answer of any of its addresses may break it."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from starlette.routing import compile_path

from common.clock import SystemClock
from tests.adapters.shared_server import SharedServer
from tests.github_rig import rig
from tests.github_rig.behind import Behind
from town.github.network import GitHubNetwork
from town.github.service import ELSEWHERE, IN_REPO, github_app
from town.serving import serve

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
on_one_loop = pytest.mark.asyncio(loop_scope="session")
GARDEN = "/repos/ada/garden"
NOT_DESCRIBED = {
    "GET /repos/{owner}/{repo}/statuses/{ref}": "an address that older clients use, described no more",
    "GET /repos/{owner}/{repo}/contents": "the description has the root's files under /contents/{path} only",
    "POST /graphql": "the description is of the REST interface",
}
"""Routes that the judge is not asked about, each with the reason."""


class Town:
    """The town's GitHub behind the judge, what was asked of it, and what the judge said."""

    def __init__(self, http: httpx.AsyncClient, network: GitHubNetwork) -> None:
        self.http = http
        self.network = network
        self.asked: set[tuple[str, str]] = set()
        self.violations: list[str] = []

    async def ask(self, method: str, path: str, body: object = None, *, by: str = "ada", status: int = 200) -> Any:
        token = "ghs_app" if by == "app" else f"t-{by}"
        headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
        answer = await self.http.request(method, path, json=body, headers=headers)
        self.asked.add((method, path.partition("?")[0].replace("%2F", "/")))
        told = json.loads(answer.headers.get("sl-violations", "[]"))
        self.violations += [f"{method} {path} {one['location']} {one['message']}" for one in told]
        assert answer.status_code == status, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def put(self, path: str, text: str, *, branch: str = "main", sha: str = "") -> Any:
        body = {"message": f"Write {path}", "content": b64encode(text.encode()).decode(), "branch": branch}
        body |= {"sha": sha} if sha else {}
        status = 200 if sha else 201
        return await self.ask("PUT", f"{GARDEN}/contents/{quote(path, safe='')}", body, status=status)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def town(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    folder: Path = tmp_path_factory.mktemp("judged")
    rig.install()
    network = GitHubNetwork(clock=SystemClock(), git_folder=folder)
    ada, *_ = [network.create_account(login, token=f"t-{login}") for login in ("ada", "bea", "cy")]
    network.issue_token(ada, "ghs_app")
    network.create_account("lab", name="The lab", kind="Organization", token="")
    network.state.members["lab"] = {"ada", "bea"}
    network.create_repo(ada, "garden", description="What grows", collaborators=["bea"])
    shared_server = SharedServer()
    async with serve(shared_server) as upstream:
        judge = rig.judged(upstream, tmp_path_factory.mktemp("judge"))
        url = await asyncio.to_thread(judge.__enter__)
        shared_server.app = Behind(github_app(network), url)
        try:
            async with httpx.AsyncClient(base_url=url, timeout=60) as http:
                yield Town(http, network)
        finally:
            await asyncio.to_thread(judge.__exit__, None, None, None)


@on_one_loop
async def test_accounts_repositories_and_issues_keep_githubs_contract(town: Town) -> None:
    await town.ask("GET", "/user")
    await town.ask("GET", "/rate_limit")
    await town.ask("GET", "/users/bea")
    await town.ask("GET", GARDEN)
    issue = f"{GARDEN}/issues/1"
    await town.ask("POST", f"{GARDEN}/issues", {"title": "Beans", "labels": ["plan"], "assignees": ["ada"]}, status=201)
    await town.ask("GET", f"{GARDEN}/issues?state=all")
    await town.ask("GET", f"{GARDEN}/labels")
    await town.ask("GET", issue)
    await town.ask("PATCH", issue, {"title": "Peas"})
    comment = await town.ask("POST", f"{issue}/comments", {"body": "Sown."}, by="bea", status=201)
    await town.ask("GET", f"{issue}/comments")
    await town.ask("POST", f"{issue}/assignees", {"assignees": ["bea"]}, status=201)
    await town.ask("DELETE", f"{issue}/assignees", {"assignees": ["bea"]})
    await town.ask("POST", f"{issue}/reactions", {"content": "heart"}, status=201)
    said = f"{GARDEN}/issues/comments/{comment['id']}"
    await town.ask("GET", said)
    await town.ask("PATCH", said, {"body": "Sown twice."}, by="bea")
    await town.ask("POST", f"{said}/reactions", {"content": "+1"}, status=201)
    await town.ask("GET", f"{said}/reactions")
    await town.ask("GET", f"{issue}/reactions")
    await town.ask("GET", f"{GARDEN}/issues/comments")
    await town.ask("DELETE", said, status=204)
    await town.ask("POST", f"{GARDEN}/labels", {"name": "memo", "color": "00ff00", "description": "A note"}, status=201)
    await town.ask("POST", f"{GARDEN}/labels", {"name": "memo"}, status=422)
    await town.ask("POST", f"{issue}/labels", {"labels": ["memo", "plan:active"]})
    await town.ask("PUT", f"{issue}/labels", {"labels": ["plan:active", "memo"]})
    await town.ask("GET", f"{issue}/labels")
    await town.ask("GET", f"{issue}/events")
    await town.ask("DELETE", f"{issue}/labels/plan:active")
    await town.ask("DELETE", f"{issue}/labels/plan:active", status=404)
    await town.ask("DELETE", f"{issue}/labels", status=204)
    assert town.violations == []


@on_one_loop
async def test_references_branches_commits_and_files_keep_githubs_contract(town: Town) -> None:
    made = await town.put("README.md", "Hello.\n")
    first = made["commit"]["sha"]
    await town.put("beds/north.md", "Beans.\n")
    changed = await town.put("README.md", "Hello again.\n", sha=made["content"]["sha"])
    await town.ask("GET", f"{GARDEN}/contents/README.md")
    await town.ask("GET", f"{GARDEN}/contents/beds%2Fnorth.md?ref=main")
    await town.ask("GET", f"{GARDEN}/contents/beds")
    await town.ask("GET", f"{GARDEN}/contents/nowhere", status=404)
    body = {"message": "Away", "sha": changed["content"]["sha"]}
    await town.ask("DELETE", f"{GARDEN}/contents/README.md", body)
    await town.ask("POST", f"{GARDEN}/git/refs", {"ref": "refs/heads/soul/1-x", "sha": first}, status=201)
    await town.ask("POST", f"{GARDEN}/git/refs", {"ref": "refs/heads/soul/1-x", "sha": first}, status=422)
    await town.ask("GET", f"{GARDEN}/git/ref/heads%2Fsoul%2F1-x")
    await town.ask("GET", f"{GARDEN}/git/matching-refs/heads%2Fsoul")
    head = (await town.ask("GET", f"{GARDEN}/branches/main"))["commit"]["sha"]
    await town.ask("PATCH", f"{GARDEN}/git/refs/heads%2Fsoul%2F1-x", {"sha": head})
    await town.ask("PATCH", f"{GARDEN}/git/refs/heads%2Fsoul%2F1-x", {"sha": first}, status=422)
    await town.ask("DELETE", f"{GARDEN}/git/refs/heads%2Fsoul%2F1-x", status=204)
    await town.ask("GET", f"{GARDEN}/branches")
    await town.ask("GET", f"{GARDEN}/branches/nowhere", status=404)
    await town.ask("GET", f"{GARDEN}/commits")
    commit = await town.ask("GET", f"{GARDEN}/commits/{head}")
    await town.ask("GET", f"{GARDEN}/commits/nowhere", status=422)
    await town.ask("GET", f"{GARDEN}/git/commits/{head}")
    new = {"message": "Same again", "tree": commit["commit"]["tree"]["sha"], "parents": [head]}
    await town.ask("POST", f"{GARDEN}/git/commits", new, status=201)
    tree = await town.ask("GET", f"{GARDEN}/git/trees/{commit['commit']['tree']['sha']}?recursive=1")
    blobs = [entry["sha"] for entry in tree["tree"] if entry["type"] == "blob"]
    await town.ask("GET", f"{GARDEN}/git/blobs/{blobs[0]}")
    await town.ask("GET", f"{GARDEN}/compare/{first}...{head}")
    assert town.violations == []


@on_one_loop
async def test_pull_requests_and_reviews_keep_githubs_contract(town: Town) -> None:
    head = (await town.ask("GET", f"{GARDEN}/branches/main"))["commit"]["sha"]
    await town.ask("POST", f"{GARDEN}/git/refs", {"ref": "refs/heads/work", "sha": head}, status=201)
    await town.put("peas.md", "Peas.\nBeans.\n", branch="work")
    new = {"title": "Sow", "body": "Peas.", "head": "work", "base": "main", "draft": False}
    made = await town.ask("POST", f"{GARDEN}/pulls", new, status=201)
    await town.ask("POST", f"{GARDEN}/pulls", new, status=422)
    pull = f"{GARDEN}/pulls/{made['number']}"
    await town.ask("GET", f"{GARDEN}/issues/{made['number']}")
    await town.ask("GET", pull)
    await town.ask("GET", f"{GARDEN}/pulls/999", status=404)
    await town.ask("GET", f"{GARDEN}/pulls?state=all&head=ada:work")
    await town.ask("PATCH", pull, {"title": "Sow peas", "body": "Peas.", "state": "open"})
    await town.ask("GET", f"{pull}/files")
    await town.ask("GET", f"{pull}/commits")
    await town.ask("POST", f"{pull}/requested_reviewers", {"reviewers": ["bea"]}, status=201)
    await town.ask("POST", f"{pull}/requested_reviewers", {"reviewers": ["cy"]}, status=422)
    await town.ask("GET", f"{pull}/requested_reviewers")
    await town.ask("DELETE", f"{pull}/requested_reviewers", {"reviewers": ["bea"]})
    await town.ask("POST", f"{pull}/reviews", {"event": "APPROVE"}, status=422)
    comments = [{"path": "peas.md", "body": "Which?", "line": 1}]
    no = await town.ask(
        "POST", f"{pull}/reviews", {"event": "REQUEST_CHANGES", "body": "No.", "comments": comments}, by="bea"
    )
    pending = await town.ask("POST", f"{pull}/reviews", {"body": "Hm."}, by="bea")
    await town.ask("POST", f"{pull}/reviews/{pending['id']}/events", {"event": "APPROVE"}, by="bea")
    await town.ask("GET", f"{pull}/reviews")
    await town.ask("GET", f"{pull}/reviews/{no['id']}")
    await town.ask("GET", f"{pull}/reviews/{no['id']}/comments")
    await town.ask("PUT", f"{pull}/reviews/{no['id']}/dismissals", {"message": "Done."})
    line = {"path": "peas.md", "body": "And here?", "line": 2, "side": "RIGHT", "commit_id": no["commit_id"]}
    said = await town.ask("POST", f"{pull}/comments", line, status=201)
    await town.ask("POST", f"{pull}/comments/{said['id']}/replies", {"body": "Yes."}, status=201)
    await town.ask("GET", f"{pull}/comments")
    await town.ask("GET", f"{GARDEN}/pulls/comments/{said['id']}")
    await town.ask("DELETE", f"{GARDEN}/pulls/comments/{said['id']}", status=204)
    await town.ask("GET", f"{pull}/merge", status=404)
    await town.put("more.md", "More.\n")
    await town.ask("PUT", f"{pull}/update-branch", {}, status=202)
    await town.ask("PUT", f"{pull}/merge", {"sha": "0" * 40}, status=409)
    await town.ask("PUT", f"{pull}/merge", {"merge_method": "squash"})
    await town.ask("PUT", f"{pull}/merge", {"merge_method": "squash"}, status=405)
    await town.ask("GET", f"{pull}/merge", status=204)
    await town.ask("GET", pull)
    assert town.violations == []


@on_one_loop
async def test_statuses_and_checks_keep_githubs_contract(town: Town) -> None:
    head = (await town.ask("GET", f"{GARDEN}/branches/main"))["commit"]["sha"]
    status = {"state": "success", "context": "tests", "description": "All passed", "target_url": "https://ci.example/1"}
    await town.ask("POST", f"{GARDEN}/statuses/{head}", status, status=201)
    await town.ask("GET", f"{GARDEN}/commits/{head}/status")
    await town.ask("GET", f"{GARDEN}/commits/{head}/statuses")
    check = {"name": "lint", "head_sha": head, "status": "completed", "conclusion": "success"}
    await town.ask("POST", f"{GARDEN}/check-runs", check, by="app", status=201)
    await town.ask("GET", f"{GARDEN}/commits/{head}/check-runs")
    assert town.violations == []


@on_one_loop
async def test_notifications_keep_githubs_contract(town: Town) -> None:
    await town.ask("POST", f"{GARDEN}/issues", {"title": "Peas", "body": "What do you say, @bea?"}, status=201)
    told = await town.ask("GET", "/notifications?all=true&participating=true&since=2020-01-01T00:00:00Z", by="bea")
    thread = f"/notifications/threads/{told[0]['id']}"
    await town.ask("GET", thread, by="bea")
    await town.ask("PATCH", thread, by="bea", status=205)
    await town.ask("DELETE", thread, by="bea", status=204)
    await town.ask("GET", f"{GARDEN}/notifications", by="bea")
    await town.ask("PUT", f"{GARDEN}/notifications", {"last_read_at": "2030-01-01T00:00:00Z"}, by="bea", status=205)
    await town.ask("PUT", "/notifications", {"last_read_at": "2030-01-01T00:00:00Z"}, by="bea", status=205)
    assert town.violations == []


@on_one_loop
async def test_organisations_repositories_and_people_keep_githubs_contract(town: Town) -> None:
    await town.ask("GET", "/orgs/lab")
    await town.ask("GET", "/orgs/nowhere", status=404)
    await town.ask("GET", "/orgs/lab/members")
    await town.ask("GET", "/user/orgs")
    await town.ask("GET", "/users/ada/orgs")
    await town.ask("POST", "/orgs/lab/repos", {"name": "shed", "auto_init": True, "is_template": True}, status=201)
    await town.ask("POST", "/orgs/lab/repos", {"name": "shed"}, status=422)
    await town.ask("POST", "/user/repos", {"name": "notes", "private": True}, status=201)
    await town.ask("PATCH", "/repos/ada/notes", {"description": "Mine", "is_template": False})
    new = {"owner": "lab", "name": "www-lil-intdev-garden", "description": "Built together", "private": False}
    await town.ask("POST", "/repos/lab/shed/generate", new, status=201)
    await town.ask("GET", "/orgs/lab/repos?type=all&sort=created&direction=desc")
    await town.ask("GET", "/user/repos")
    await town.ask("GET", "/users/ada/repos")
    await town.ask("GET", f"{GARDEN}/collaborators")
    await town.ask("GET", f"{GARDEN}/collaborators/bea", status=204)
    await town.ask("GET", f"{GARDEN}/collaborators/cy", status=404)
    await town.ask("GET", f"{GARDEN}/collaborators/bea/permission")
    made = await town.ask("PUT", f"{GARDEN}/collaborators/cy", {"permission": "push"}, status=201)
    await town.ask("GET", "/user/repository_invitations", by="cy")
    await town.ask("PATCH", f"/user/repository_invitations/{made['id']}", by="cy", status=204)
    await town.ask("PUT", f"{GARDEN}/collaborators/cy", {"permission": "push"}, status=204)
    await town.ask("DELETE", f"{GARDEN}/collaborators/cy", status=204)
    made = await town.ask("PUT", f"{GARDEN}/collaborators/cy", {"permission": "push"}, status=201)
    await town.ask("DELETE", f"/user/repository_invitations/{made['id']}", by="cy", status=204)
    for method, status in (("PUT", 204), ("GET", 204), ("DELETE", 204), ("GET", 404)):
        await town.ask(method, "/user/starred/ada/garden", by="bea", status=status)
        await town.ask(method, "/user/following/ada", by="bea", status=status)
    await town.ask("GET", "/search/issues?q=peas+repo:ada%2Fgarden+is:issue")
    await town.ask("GET", "/search/repositories?q=garden+org:lab")
    assert town.violations == []


@on_one_loop
async def test_no_route_of_the_town_escaped_the_judge(town: Town) -> None:
    """Stands last: it looks at what the tests above asked, and what those of the adapter ask of issues."""
    routes = {f"/repos/{{owner}}/{{repo}}{path}": by for path, by in IN_REPO.items()} | ELSEWHERE
    seen = {(method, path) for path, by in routes.items() for method in by if _asked(town, method, path)}
    missing = {f"{method} {path}" for path, by in routes.items() for method in by} - {f"{m} {p}" for m, p in seen}
    assert missing == NOT_DESCRIBED.keys()


def _asked(town: Town, method: str, path: str) -> bool:
    pattern, _, _ = compile_path(path)
    return any(verb == method and pattern.fullmatch(asked) for verb, asked in town.asked)
