"""Proves that TOOLS.md says what the tools are, and is written anew only when they are others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, Field

from common.provenance import Provenance
from modules.runtime.home import Home
from modules.services.agent.prompt.tools_file import ToolsFile, parse_tools_file
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.skills.contracts import SKILL_CONTRACTS
from modules.services.skills.skills import Skills
from soul.resources import SKILLS
from tests.modules.services.agent.prompt.prompt_home import workspace_of

WORDS = Skills.load(SKILLS, SKILL_CONTRACTS)


class Text(BaseModel):
    text: str


class LongText(BaseModel):
    text: str = Field(description="as long as you like")


async def handler(wanted: Text, turn: Turn) -> ToolResult:
    return ToolResult(wanted.text)


POST = Tool("bluesky_post", "Post one thought. At most 300\n  characters.", Text, "social", Provenance.SELF, handler)
LIKE = Tool("bluesky_like", "Like a post", Text, "social", Provenance.STRANGER, handler)


async def test_it_is_made_with_the_name_of_each_tool_and_then_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "workspace" / "TOOLS.md"
    files = workspace_of(Home.at(tmp_path))
    first = await ToolsFile(files, (POST, LIKE), WORDS).text()
    assert first.endswith("`bluesky_post`, `bluesky_like`")
    assert "<!--" not in first
    written = path.stat().st_mtime_ns
    again = await ToolsFile(files, (POST, LIKE), WORDS).text()
    assert again.strip() == first
    assert path.stat().st_mtime_ns == written
    read, chars = parse_tools_file(path.read_text())
    assert read == again
    assert 300 < chars < 600
    assert parse_tools_file("by hand\n") == ("by hand\n", 0)


async def test_what_a_hand_adds_stays_until_the_tools_are_others(tmp_path: Path) -> None:
    path = tmp_path / "workspace" / "TOOLS.md"
    files = workspace_of(Home.at(tmp_path))
    await ToolsFile(files, (POST,), WORDS).text()
    path.write_text(path.read_text() + "\nUse it seldom.\n")
    assert "Use it seldom." in await ToolsFile(files, (POST,), WORDS).text()
    assert "Use it seldom." not in await ToolsFile(files, (POST, LIKE), WORDS).text()


async def test_another_description_schema_or_trust_is_another_tool_set(tmp_path: Path) -> None:
    files, path = workspace_of(Home.at(tmp_path)), tmp_path / "workspace" / "TOOLS.md"
    seen = set()
    for tool in (
        POST,
        replace(POST, description="Post one thought. Or two."),
        replace(POST, input_model=LongText),
        replace(POST, needs=Provenance.OWNER),
    ):
        await ToolsFile(files, (tool,), WORDS).text()
        seen.add(path.read_text().splitlines()[0])
    assert len(seen) == 4
