"""The owner describes a small tool in public and names three SOULs: one workspace, one plan, results in the thread."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from adapters.atproto.types import Post
from adapters.github.types import Repo
from common.clock import SystemClock
from modules.runtime.scheduler.policy import peers_before
from modules.services.commitments.writer import contains_promise
from tests.patience import until
from tests.scenarios.workplace import Workplace, open_workplace
from tests.town.github_place import needs_git
from town.github.arrangement import ORGANISATION

SPEED = 10.0
WORKSPACE = Repo(ORGANISATION, "www-lil-intdev-tide-table")
ASKED = (
    "{names} please make a workspace for a tide table and write a plan: it reads the tides from a file,"
    " prints the next high water, and warns of spring tides."
)
ASKED_ALONE = "@maren.test please make us a workspace and a plan for a tide table."
PARTS = ["Reads the tides from a file", "Prints the next high water", "Warns of spring tides"]


def posts_under(place: Workplace, root: str) -> list[Post]:
    """What was posted in a thread, oldest first."""
    posts = reversed(place.town.network.posts(1000))
    return [one for one in posts if one.reply and one.reply.root.uri == root]


def in_turn(root: str, handles: list[str]) -> list[str]:
    """The handles in the order in which their SOULs take up shared work."""
    return sorted(handles, key=lambda one: len(peers_before(one, handles, root)))


@needs_git
@pytest.mark.slow
@pytest.mark.timeout(420)
async def test_one_makes_workspace_and_plan_another_adds_what_is_missing_and_the_third_only_likes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = SystemClock()
    began = clock.monotonic()
    async with open_workplace(tmp_path, speed=SPEED, asleep=("maren", "tobias", "odile"), unasked=True) as place:
        handles = [one.handle for one in place.town.residents]
        names = {one.handle: one.name for one in place.town.residents}
        root, _ = place.town.network.post_as(
            place.town.owner.did, ASKED.format(names=" ".join(f"@{handle}" for handle in handles))
        )
        first, second, third = in_turn(root, handles)

        def answers(handle: str) -> list[str]:
            under = [one for one in posts_under(place, root) if one.reply and one.reply.parent.uri == root]
            return [one.text for one in under if one.author.handle == handle]

        for handle in (first, second):
            await place.wakes(names[handle])
        await until(lambda: bool(answers(first)), what="the answer of the first")
        await until(lambda: bool(answers(second)), what="the answer of the second")
        await until(lambda: len(place.plans) == 1, what="the one open plan")
        (plan,) = place.plans
        url = plan_url(place)
        assert [task.title for task in place.plan.tasks] == PARTS
        assert all(url in answers(handle)[0] for handle in (first, second))
        # NOTE(self): who comes late gives up its turn, and a busy machine may make the first of them late.
        (other,) = {first, second} - {f"{plan.author.login}.test"}
        assert "warns of spring tides" in answers(other)[0]

        await place.wakes(names[third])
        await until(lambda: third in likers(place, root), what="the like of the third")
        await until(lambda: place.watched_by(WORKSPACE) == set(place.homes), what="all three watch the workspace")

        assert [one.name for one in place.workspaces] == [WORKSPACE.name]
        await until(lambda: [one for one in place.issues if one.state == "open"] == [plan], what="no other open issue")
        assert [task.title for task in place.plan.tasks] == PARTS
        assert likers(place, root) == [third]
        assert [len(answers(handle)) for handle in (first, second)] == [1, 1]
        said = posts_under(place, root)
        assert {one.author.handle for one in said} <= set(handles)
        assert all(f"/{WORKSPACE.full_name}/" in one.text for one in said)
        assert not any(contains_promise(one.text) for one in said)
    with capfd.disabled():
        sys.stdout.write(f"\n{len(said)} posts, all results, after {clock.monotonic() - began:.0f} s\n")


def plan_url(place: Workplace) -> str:
    """Where the plan stands."""
    (plan,) = place.plans
    return f"{place.town.github_url}/{WORKSPACE.full_name}/issues/{plan.number}"


def likers(place: Workplace, uri: str) -> list[str]:
    """The handles of those who like a post."""
    return [one.handle for one in place.town.network.likes(uri)]
