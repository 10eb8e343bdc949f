"""The owner asks for a workspace in a public post: it is made, and belongs to the thread, not to the post in it."""

from __future__ import annotations

import pytest

from adapters.github.types import Repo
from tests.running_town import RunningTown, awake, call
from tests.town_github import TownGitHub
from town.model.types import ChatRequest, Completion

TASKS = [{"title": "Count visits", "description": "In the server.", "files": ["server.js"]}]
SITE = Repo("acme", "site")
ASKED = "@rowan.test please make a workspace called tide-table for us, and write a plan there"


class Maker:
    """A mind that makes a workspace and a plan where it is offered both, then answers; `offered` is what it saw."""

    def __init__(self) -> None:
        self.offered: list[set[str]] = []

    def respond(self, request: ChatRequest) -> Completion:
        offered = {offer.name for offer in request.offers}
        if "bluesky_reply" not in offered:
            return Completion("Noted.")
        self.offered.append(offered)
        steps = [
            call("workspace_create", name="tide-table", description="Tides."),
            call("plan_create", title="A tide table", goal="It tells the tides.", tasks=TASKS),
        ]
        done = len(self.offered) - 1
        if "workspace_create" in offered and done < len(steps):
            return steps[done]
        return call("bluesky_reply", text="The bell rings twice at noon.")


@pytest.mark.parametrize("is_deep", [False, True])
@pytest.mark.slow
async def test_a_workspace_that_the_owner_asks_for_belongs_to_the_root_of_the_thread(
    running_town: RunningTown, town_github: TownGitHub, *, is_deep: bool
) -> None:
    town_github.network.state.members["acme"] = {"rowan"}
    town_github.repo.is_template = True
    running_town.mind.answer = Maker().respond
    home = town_github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site")
    network, owner = running_town.network, running_town.account("owner")
    async with awake(home) as life, life.sending():
        await life.app.services.github.contents.write(SITE, "README.md", "# It\n", message="Add")
        root, _ = network.post_as(owner, "The tides again." if is_deep else ASKED)
        if is_deep:
            above, _ = network.post_as(owner, "High at six.", reply_to_uri=root)
            network.post_as(owner, ASKED, reply_to_uri=above)
        await life.look()
        (watched,) = life.app.services.workspaces.all()
    assert (watched.repo, watched.discovered_in_thread) == ("www-lil-intdev-tide-table", root)
    (made,) = [one for one in town_github.network.repos() if one.name == watched.repo]
    assert [one.title for one in made.issues.values() if one] == ["[PLAN] A tide table"]
    (answer,) = running_town.texts("rowan")
    assert answer.startswith("The bell rings twice at noon.")


async def test_nobody_else_is_served_so(running_town: RunningTown, town_github: TownGitHub) -> None:
    running_town.mind.answer = (mind := Maker()).respond
    home = town_github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site")
    running_town.network.post_as(running_town.account("kit"), ASKED)
    async with awake(home) as life:
        await life.look()
    assert mind.offered
    assert not {"workspace_create", "plan_create", "github_create_issue", "create_memo"} & {
        name for one in mind.offered for name in one
    }
