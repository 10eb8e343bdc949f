"""An awake SOUL with the town's GitHub, for the tests of the tools that reach it."""

from collections.abc import AsyncIterator

import pytest

from tests.local_tools.github_working import Working
from tests.running_town import RunningTown, awake
from tests.town_github import TownGitHub


@pytest.fixture
async def working(running_town: RunningTown, town_github: TownGitHub) -> AsyncIterator[Working]:
    town_github.network.state.members["acme"] = {"rowan"}
    town_github.repo.is_template = True
    home = town_github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site")
    async with awake(home) as life, life.sending():
        yield Working(life, town_github)
