"""Proves who may load a skill through a tool, and what the model is told when there is none of that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.storage.local import open_storage
from common.provenance import Provenance
from local_tools.skill_tools import skill_tools
from modules.runtime.home import Home
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.executor import Executor, Registry
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.owner_files import LocalOwnerFiles
from modules.services.skills.skills import LocalSkills, Skills
from tests.project import ROOT
from tests.shipped_skills import SHIPPED


@pytest.fixture
async def executor(tmp_path: Path) -> Executor:
    owner_files = LocalOwnerFiles(Home.at(tmp_path), print)
    await owner_files.write("skills/tea/SKILL.md", "---\nname: tea\ndescription: How to make tea.\n---\nBoil water.")
    storage = open_storage("", root=tmp_path / "store")
    local = LocalSkills(owner_files=owner_files, storage=storage, shipped={"core"}, warn=print)
    return Executor(Registry(skill_tools(local, Skills.load(ROOT / "skills")), social_only=True), SHIPPED)


async def load(executor: Executor, name: str, provenance: Provenance) -> ToolResult:
    return await executor.execute(ToolCall("1", "skill_load", {"name": name}), Turn("test", provenance))


@pytest.mark.parametrize("provenance", [Provenance.SELF, Provenance.OWNER])
async def test_the_soul_and_its_owner_can_load_a_skill(executor: Executor, provenance: Provenance) -> None:
    result = await load(executor, " tea ", provenance)
    assert (result.content, result.is_error, result.provenance) == ("Boil water.", False, None)


@pytest.mark.parametrize("provenance", [Provenance.STRANGER, Provenance.PEER])
async def test_a_turn_that_somebody_else_began_can_not(executor: Executor, provenance: Provenance) -> None:
    result = await load(executor, "tea", provenance)
    assert result.is_error
    assert "Boil" not in result.content


@pytest.mark.parametrize("name", ["coffee", "core", "../../SOUL.md"])
async def test_for_a_name_that_is_not_there_the_model_learns_which_are(executor: Executor, name: str) -> None:
    result = await load(executor, name, Provenance.OWNER)
    assert (result.is_error, result.content) == (True, "Error: there is no skill of that name. There are: tea.")
