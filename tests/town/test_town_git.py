"""Tests of the town's Git: references, branches and files by PyGithub, and clones and pushes by `git` itself."""

import asyncio
from base64 import b64encode
from pathlib import Path

import pytest

from tests.patience import until
from tests.town.github_place import GARDEN, GitHubPlace, needs_git
from town.github.repository import GitError, GitProcess
from town.github.values import Fault

pytestmark = needs_git


async def test_of_many_who_create_one_branch_at_once_exactly_one_does(place: GitHubPlace) -> None:
    sha = await place.commit("README.md", "Hello.\n")
    body = {"ref": "refs/heads/soul/1-beans", "sha": sha}
    asked = [place.ask("POST", f"{GARDEN}/git/refs", body, by=by) for by in ("ada", "bea") * 6]
    answers = await asyncio.gather(*asked)
    assert sorted(answer.status_code for answer in answers) == [201, *[422] * 11]
    assert {answer.json()["message"] for answer in answers if answer.status_code == 422} == {"Reference already exists"}


async def test_of_many_who_change_one_file_at_once_exactly_one_does(place: GitHubPlace) -> None:
    await place.commit("claim.json", "{}")
    sha = (await place.ask("GET", f"{GARDEN}/contents/claim.json")).json()["sha"]

    def body(number: int) -> dict[str, str]:
        return {"message": "Claim", "content": b64encode(str(number).encode()).decode(), "sha": sha}

    answers = await asyncio.gather(
        *(place.ask("PUT", f"{GARDEN}/contents/claim.json", body(number)) for number in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]


@pytest.mark.parametrize(
    ("ref", "sha", "told"),
    [
        ("heads/x", "", "must start with 'refs/'"),
        ("refs/heads/x", "0" * 39 + "1", "Object does not exist"),
        ("refs/heads/a..b", "", "Reference update failed"),
    ],
)
async def test_a_reference_that_cannot_be_is_refused(place: GitHubPlace, ref: str, sha: str, told: str) -> None:
    head = await place.commit("README.md", "Hello.\n")
    answer = await place.ask("POST", f"{GARDEN}/git/refs", {"ref": ref, "sha": sha or head})
    assert answer.status_code == 422
    assert told in answer.json()["message"]


async def test_without_a_commit_git_is_refused_and_a_file_makes_the_first(place: GitHubPlace) -> None:
    sha, git = "0" * 39 + "1", f"{GARDEN}/git"
    for method, path, sent in (
        ("GET", f"{git}/ref/heads/main", None),
        ("GET", f"{git}/matching-refs/heads", None),
        ("GET", f"{git}/commits/{sha}", None),
        ("GET", f"{git}/trees/main", None),
        ("GET", f"{git}/blobs/{sha}", None),
        ("GET", f"{GARDEN}/commits", None),
        ("POST", f"{git}/refs", {"ref": "refs/heads/x", "sha": sha}),
        ("POST", f"{git}/commits", {"message": "m", "tree": sha}),
        ("PATCH", f"{git}/refs/heads/main", {"sha": sha}),
        ("DELETE", f"{git}/refs/heads/x", None),
    ):
        answer = await place.ask(method, path, sent)
        assert (answer.status_code, answer.json()["message"]) == (409, "Git Repository is empty."), path
    assert (await place.ask("GET", f"{GARDEN}/branches")).json() == []
    read = await place.ask("GET", f"{GARDEN}/contents/README.md")
    assert (read.status_code, read.json()["message"]) == (404, "This repository is empty.")
    body = {"message": "m", "content": b64encode(b"x").decode()}
    assert (await place.ask("PUT", f"{GARDEN}/contents/README.md", body)).status_code == 201
    assert (await place.ask("GET", f"{git}/ref/heads/main")).status_code == 200


@pytest.mark.parametrize("path", ["../escape", ".git/config"])
async def test_no_path_leads_out_of_a_repository(place: GitHubPlace, path: str) -> None:
    body = {"message": "m", "content": b64encode(b"x").decode()}
    answer = await place.ask("PUT", f"{GARDEN}/contents/{path.replace('.', '%2E').replace('/', '%2F')}", body)
    assert answer.status_code == 422
    assert (await place.ask("GET", f"{GARDEN}/branches")).json() == []


async def test_who_may_not_push_writes_nothing(place: GitHubPlace) -> None:
    sha = await place.commit("README.md", "Hello.\n")
    body = {"message": "m", "content": b64encode(b"x").decode()}
    for method, path, sent in (
        ("POST", f"{GARDEN}/git/refs", {"ref": "refs/heads/x", "sha": sha}),
        ("PUT", f"{GARDEN}/contents/x", body),
        ("DELETE", f"{GARDEN}/git/refs/heads/main", None),
    ):
        assert (await place.ask(method, path, sent, by="cy")).status_code == 403
        assert (await place.ask(method, path, sent, by="")).status_code == 401
    assert (await place.ask("DELETE", f"{GARDEN}/git/refs/heads/main")).status_code == 422
    assert [branch["name"] for branch in (await place.ask("GET", f"{GARDEN}/branches")).json()] == ["main"]


async def test_what_is_private_cannot_be_cloned_by_others(place: GitHubPlace) -> None:
    place.repo.private = True
    assert "could not read Username" in await place.git("clone", place.clone_url(), "a", code=128)
    assert "not found" in await place.git("clone", place.clone_url("cy"), "b", code=128)
    assert "Authentication failed" in await place.git("clone", place.clone_url("nobody"), "c", code=128)
    await place.git("clone", "--quiet", place.clone_url("bea"), "d")


async def test_git_meets_faults_too(place: GitHubPlace) -> None:
    await place.commit("README.md", "Hello.\n")
    place.faults.arm(Fault("bad_gateway", "GET /ada/garden.git/*"))
    assert "502" in await place.git("clone", place.clone_url(), "a", code=128)
    await place.git("clone", "--quiet", place.clone_url(), "b")


async def test_a_git_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    marker = tmp_path / "child"
    hanging = f"!echo $$ > {marker}; sleep 1000"
    with pytest.raises(GitError) as told:
        await GitProcess(deadline_s=0.5).run(tmp_path, "-c", f"alias.hang={hanging}", "hang")
    assert (told.value.code, told.value.told) == (-1, "it took too long")
    state = Path(f"/proc/{marker.read_text().strip()}/stat") if marker.exists() else marker
    await until(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z")


async def test_it_is_said_where_git_is_not_installed(place: GitHubPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.commit("README.md", "Hello.\n")
    monkeypatch.setenv("PATH", str(place.folder / "nothing"))
    with pytest.raises(GitError, match="git is not installed"):
        await GitProcess().run(place.folder, "version")
    assert (await place.ask("GET", f"{GARDEN}/contents/README.md")).status_code == 500


async def test_a_push_without_the_scope_is_refused(place: GitHubPlace) -> None:
    await place.commit("README.md", "Hello.\n")
    bea = place.network.find("bea")
    assert bea
    place.network.issue_token(bea, "github_pat_bea")
    await place.git("clone", "--quiet", place.clone_url("bea"), "work")
    url = place.clone_url("bea").replace("t-bea", "github_pat_bea")
    assert "403" in await place.git("push", url, "HEAD:refs/heads/x", at=place.folder / "work", code=128)
