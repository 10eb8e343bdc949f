"""The adapter works with code on the town behind the judge: neither side breaks the contract that GitHub publishes."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.github.client import GitHub
from adapters.github.types import Label, Repo
from common.clock import FakeClock, SystemClock
from tests.adapters.results import err, ok
from tests.adapters.shared_server import SharedServer
from tests.github_rig import rig
from tests.github_rig.behind import Behind
from tests.github_rig.test_github_contract import ObservedTransport
from tests.github_rig.test_github_examples import FACETS
from tests.town.github_place import needs_git
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session"), needs_git]
REPO = Repo("ada", "garden")
NEW = Repo("ada", "orchard")
FILE = "how to/beans.md"


class Bench:
    """Ada's garden, where bea may push, behind the judge; and an organisation to which ada belongs."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.clock = FakeClock()
        self.network = GitHubNetwork(clock=self.clock, git_folder=folder)
        ada = self.network.create_account("ada", token="ghp_ada")
        self.network.create_account("bea", token="ghp_bea")
        self.repo = self.network.create_repo(ada, "garden", description="What grows", collaborators=["bea"])
        self.seen = ObservedTransport(url)

    def client(self, login: str) -> GitHub:
        return GitHub(
            api_url=self.url,
            login=login,
            token=f"ghp_{login}",
            clock=SystemClock(),
            min_spacing_s=0,
            transport=lambda: self.seen,
        )


@pytest_asyncio.fixture(loop_scope="session")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    rig.install()
    shared_server = SharedServer()
    async with serve(shared_server) as upstream:
        with rig.judged(upstream, tmp_path_factory.mktemp("judge")) as url:
            bench = Bench(url, tmp_path_factory.mktemp("git"))
            shared_server.app = Behind(github_app(bench.network), url)
            yield bench


async def test_every_operation_on_code_keeps_githubs_contract_on_both_sides(bench: Bench) -> None:
    ada, bea = bench.client("ada"), bench.client("bea")
    await _files_and_branches(ada)
    await _pull_requests(ada, bea)
    await _places(ada, bench)
    await _notifications(ada, bea, bench)
    assert bench.seen.violations == []
    for client in (ada, bea):
        await client.aclose()


async def _files_and_branches(ada: GitHub) -> None:
    first = ok(await ada.contents.write(REPO, "README.md", "Hello.\n", message="Begin"))
    head = ok(await ada.refs.get(REPO, "main"))
    ok(await ada.refs.create(REPO, "soul/1-beans", head.sha))
    assert err(await ada.refs.create(REPO, "soul/1-beans", head.sha)).kind == "conflict"
    ok(await ada.contents.write(REPO, FILE, "Beans.\n", message="Add beans", branch="soul/1-beans"))
    assert err(await ada.contents.write(REPO, "README.md", "x", message="m")).kind == "conflict"
    assert ok(await ada.contents.read(REPO, FILE, ref="soul/1-beans")).text == "Beans.\n"
    assert [one.path for one in ok(await ada.contents.list(REPO))] == ["README.md"]
    assert [one.path for one in ok(await ada.contents.list(REPO, "how to", ref="soul/1-beans"))] == [FILE]
    ok(await ada.contents.delete(REPO, "README.md", message="Bare", sha=first.sha))
    ok(await ada.contents.write(REPO, "README.md", "Hello.\n", message="Again"))
    assert {one.name for one in ok(await ada.refs.branches(REPO))} == {"main", "soul/1-beans"}
    assert [one.branch for one in ok(await ada.refs.matching(REPO, "soul/"))] == ["soul/1-beans"]
    commit = ok(await ada.refs.commit(REPO, head.sha))
    stored = [
        ok(
            await ada.refs.create_empty_commit(
                REPO, commit, message="mine", name="ada", email="ada@x.org", date="2026-01-05T12:00:00Z"
            )
        )
        for _ in range(2)
    ]
    assert stored[0] == stored[1]
    ok(await ada.refs.create(REPO, "soul/2-peas", stored[0].sha))
    for _ in range(2):
        ok(await ada.refs.delete(REPO, "soul/2-peas"))
    assert err(await ada.refs.get(REPO, "soul/2-peas")).kind == "not_found"


async def _pull_requests(ada: GitHub, bea: GitHub) -> None:
    made = ok(await ada.pulls.create(REPO, title="Beans", body="", head="soul/1-beans", base="main", draft=True))
    assert (
        err(await ada.pulls.create(REPO, title="Beans", body="", head="soul/1-beans", base="main")).kind == "conflict"
    )
    ok(await ada.pulls.update(REPO, made.number, title="More beans", body="Closes #9"))
    (asked,) = ok(await ada.pulls.request_reviewers(REPO, made.number, ["bea"])).requested_reviewers
    assert (asked.login, asked.id > 0) == ("bea", True)
    assert err(await ada.pulls.create_review(REPO, made.number, event="APPROVE")).status == 422
    ok(await bea.pulls.create_review(REPO, made.number, event="COMMENT", body="Near the wall?"))
    ok(await bea.pulls.create_review(REPO, made.number, event="APPROVE", commit_id=made.head.sha))
    assert [one.state for one in ok(await ada.pulls.reviews(REPO, made.number))] == ["COMMENTED", "APPROVED"]
    assert [one.path for one in ok(await ada.pulls.files(REPO, made.number))] == [FILE]
    read = ok(await ada.pulls.get(REPO, made.number))
    assert (read.changed_files, read.additions) == (1, 1)
    assert len(ok(await ada.pulls.list(REPO, head="ada:soul/1-beans", base="main"))) == 1
    assert err(await ada.pulls.merge(REPO, made.number, head_sha="a" * 40)).kind in {"conflict", "invalid"}


async def _places(ada: GitHub, bench: Bench) -> None:
    ok(await ada.repositories.create_label(REPO, Label("plan:active", "0e8a16", "Work goes on")))
    assert err(await ada.repositories.create_label(REPO, Label("plan:active", "0e8a16"))).kind == "conflict"
    assert [one.name for one in ok(await ada.repositories.labels(REPO))] == ["plan:active"]
    assert ok(await ada.repositories.collaborators(REPO)) == ("ada", "bea")
    bench.repo.is_template = True
    made = ok(await ada.repositories.generate(REPO, owner="ada", name="orchard", description="Pears"))
    assert made.repo == NEW
    assert ok(await ada.repositories.organizations()) == ()
    assert ok(await ada.repositories.organizations("bea")) == ()
    bench.network.create_account("lab", kind="Organization", token="")
    assert ok(await ada.repositories.of_organization("lab")) == ()
    for call in (ada.repositories.star(REPO), ada.accounts.follow("bea"), ada.accounts.unfollow("bea")):
        ok(await call)
    assert [one.full_name for one in ok(await ada.search.repositories("user:ada orchard"))] == ["ada/orchard"]
    ok(await ada.search.issues("repo:ada/garden is:pr"))


async def _notifications(ada: GitHub, bea: GitHub, bench: Bench) -> None:
    ok(await bea.create_issue(REPO, "Peas", "What does @ada think?"))
    bench.clock.jump(60)
    who_may_push = ok(await bea.repositories.pushers(REPO))
    assert {one.login for one in who_may_push} == {"ada", "bea"}
    looked = ok(await ada.notifications.poll())
    assert "mention" in {one.reason for one in looked.items}
    again = ok(await ada.notifications.poll(marker=looked.marker))
    assert (again.changed, again.items) == (False, ())
    ok(await ada.notifications.mark_read(looked.items[0].id))
    ok(await ada.notifications.poll(unread_only=False, since="2020-01-01T00:00:00Z"))


async def test_no_operation_on_code_is_left_out(bench: Bench) -> None:
    steps = (_files_and_branches, _pull_requests, _places, _notifications)
    source = "".join(inspect.getsource(step) for step in steps)
    offered = {
        f"{facet}.{name}"
        for facet in FACETS
        for name, _ in inspect.getmembers(type(getattr(bench.client("ada"), facet)), inspect.iscoroutinefunction)
    }
    assert {name for name in offered if f"ada.{name}(" not in source and f"bea.{name}(" not in source} == set()
