"""An awake SOUL with the town's GitHub, whose tools are called as in a turn of its owner."""

import json
from dataclasses import dataclass
from typing import Any

from adapters.github.types import Repo
from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import ToolResult, Turn
from tests.running_town import RunningSoul
from tests.town_github import TownGitHub
from town.github.values import StoredRepo

OWNER = Turn("owner", Provenance.OWNER, cause_id="owner")
MIXED = Turn("owner", Provenance.STRANGER, cause_id="owner", origin=Provenance.OWNER)
SITE = Repo("acme", "www-lil-intdev-site")


@dataclass
class Working:
    """An awake SOUL whose intents are delivered in the background, and GitHub."""

    life: RunningSoul
    github: TownGitHub

    async def use(self, name: str, turn: Turn = OWNER, /, **arguments: object) -> ToolResult:
        executor = self.life.app.lives.turn_services.turn_runner.executor
        return await executor.execute(ToolCall("1", name, arguments), turn)

    async def done(self, name: str, /, **arguments: object) -> dict[str, Any]:
        """Call a tool, which must succeed, and return its answer."""
        result = await self.use(name, **arguments)
        assert not result.is_error, result.content
        found: dict[str, Any] = json.loads(result.content)
        return found

    def watched_repo(self) -> StoredRepo:
        """Create a workspace that is watched, and return its repository."""
        made = self.github.add_repo(SITE.name)
        self.life.app.services.workspaces.watch(SITE)
        return made


def read(result: ToolResult) -> Any:
    """Return what a reading tool brought, without its frame; it must count as a stranger's words."""
    assert result.provenance is Provenance.STRANGER, result.content
    return json.loads(result.content.splitlines()[1])
