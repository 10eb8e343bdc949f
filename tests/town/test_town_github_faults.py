"""Tests of the town's GitHub on a bad day: late answers, reads that are behind, limits on writes."""

import asyncio

import httpx
import pytest

from common.clock import FakeClock
from tests.loopback import NO_TLS
from tests.patience import until
from tests.town.github_place import GARDEN, GitHubPlace, needs_git
from town.github.limits import GitHubMeter, Writes
from town.github.network import GitHubNetwork
from town.github.service import Replicas, github_app
from town.github.values import Fault
from town.serving import serve

ISSUES = f"{GARDEN}/issues"
ALWAYS = 1_000_000


async def test_reads_are_behind_for_a_while_and_never_for_longer(place: GitHubPlace) -> None:
    place.faults.arm(Fault("stale", "GET *", times=ALWAYS, seconds=8))
    await place.ask("POST", ISSUES, {"title": "Beans"})
    place.clock.jump(20)
    await place.ask("PATCH", f"{ISSUES}/1", {"title": "Peas"})
    seen = set()
    for _ in range(40):
        place.clock.jump(0.1)
        seen.add((await place.ask("GET", f"{ISSUES}/1")).json()["title"])
    assert seen == {"Beans", "Peas"}
    place.clock.jump(8)
    assert {(await place.ask("GET", f"{ISSUES}/1")).json()["title"] for _ in range(10)} == {"Peas"}


async def test_what_is_new_may_not_be_found_yet_and_writes_are_never_behind(place: GitHubPlace) -> None:
    place.faults.arm(Fault("stale", "GET *", times=ALWAYS, seconds=8))
    assert (await place.ask("POST", ISSUES, {"title": "Beans"})).json()["number"] == 1
    place.clock.jump(0.001)
    statuses = {(await place.ask("GET", f"{ISSUES}/1")).status_code for _ in range(10)}
    assert 404 in statuses
    assert (await place.ask("POST", f"{ISSUES}/1/comments", {"body": "Sown"})).status_code == 201
    assert (await place.ask("POST", ISSUES, {"title": "Peas"})).json()["number"] == 2


@needs_git
async def test_branches_are_behind_too_but_are_created_once(place: GitHubPlace) -> None:
    sha = await place.commit("README.md", "Hello.\n")
    place.faults.arm(Fault("stale", "GET *", times=ALWAYS, seconds=8))
    place.clock.jump(20)
    body = {"ref": "refs/heads/soul/1-beans", "sha": sha}
    answers = await asyncio.gather(*(place.ask("POST", f"{GARDEN}/git/refs", body) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422, 422]
    place.clock.jump(0.001)
    seen = {len((await place.ask("GET", f"{GARDEN}/branches")).json()) for _ in range(20)}
    assert 1 in seen
    place.clock.jump(8)
    assert len((await place.ask("GET", f"{GARDEN}/branches")).json()) == 2


async def test_nothing_is_kept_where_no_read_is_behind() -> None:
    network = GitHubNetwork(clock=FakeClock())
    ada = network.create_account("ada")
    repo = network.create_repo(ada, "garden")
    replicas = Replicas(network)
    assert replicas.behind(8) is network
    await replicas.keep()
    network.open_issue(repo, ada, title="Beans")
    past = replicas.behind(1)
    assert (len(past.repo("ada", "garden", None).issues), len(repo.issues)) == (0, 1)
    assert past.repo("ada", "garden", None).owner is ada


async def test_a_slow_request_is_done_also_for_who_has_left(place: GitHubPlace) -> None:
    place.faults.arm(Fault("slow", f"POST {ISSUES}", seconds=10))
    asking = asyncio.create_task(place.ask("POST", ISSUES, {"title": "Beans"}))
    await until(lambda: place.clock._sleepers, what="the wait")
    assert place.repo.issues == {}
    asking.cancel()
    await asyncio.wait([asking])
    await place.clock.advance(10)
    await until(lambda: place.repo.issues)
    assert [issue.title for issue in place.repo.issues.values() if issue] == ["Beans"]


@pytest.mark.parametrize(("writes", "wait"), [(Writes(3, 500), 60), (Writes(80, 3), 3600)])
async def test_who_writes_too_much_waits(writes: Writes, wait: int) -> None:
    clock = FakeClock()
    network = GitHubNetwork(clock=clock)
    ada = network.create_account("ada", token="t-ada")
    network.create_repo(ada, "garden")
    app = github_app(network, meter=GitHubMeter(clock, writes=writes))
    headers = {"authorization": "Bearer t-ada"}
    async with serve(app) as url, httpx.AsyncClient(base_url=url, verify=NO_TLS, headers=headers) as http:
        answers = [await http.post(ISSUES, json={"title": "Beans"}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [201, 201, 201, 403]
        assert answers[3].headers["retry-after"] == str(wait)
        assert int(answers[3].headers["x-ratelimit-remaining"]) > 0
        assert "secondary rate limit" in answers[3].json()["message"]
        assert (await http.get(ISSUES)).status_code == 200
        clock.jump(wait)
        assert (await http.post(ISSUES, json={"title": "Beans"})).status_code == 201


async def test_asking_for_the_limit_costs_nothing(place: GitHubPlace) -> None:
    await place.ask("GET", "/user")
    told = [(await place.ask("GET", "/rate_limit")).json()["rate"] for _ in range(3)]
    assert [one["remaining"] for one in told] == [4999] * 3
    assert (await place.ask("GET", "/rate_limit", by="nobody")).status_code == 401
