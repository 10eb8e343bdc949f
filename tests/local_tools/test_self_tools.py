"""Proves who may read and change SELF.md through a tool, and what the model is told of it.

Proves who may load a skill through a tool, and what the model is told when none has that name.
"""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from adapters.storage.local import open_storage
from common.provenance import Provenance
from local_tools.self_tools import LinesAdded, SelfTools, self_tools
from local_tools.skill_tools import SkillTools, skill_tools
from modules.runtime.home import Home
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.executor import Executor, Registry
from modules.services.agent.tools.types import OwnerRequest, ToolResult, Turn
from modules.services.day.gathering import DayReader
from modules.services.identity.history import SelfHistory
from modules.services.owner_files import LocalOwnerFiles
from modules.services.skills.skills import LocalSkills, Skills
from tests.modules.services.identity.self_home import BORN, SelfHome, open_self_home
from tests.plain_settings import plain_settings
from tests.project import ROOT
from tests.shipped_skills import SHIPPED

POST = "at://did:plc:kit/app.bsky.feed.post/3l"
GROWN = BORN + "- Slate.\n"


@dataclass
class Rig:
    """A home with SELF.md, and the tools that write to it."""

    self_home: SelfHome
    executor: Executor

    async def use(self, name: str, turn: Turn, /, **arguments: str) -> ToolResult:
        return await self.executor.execute(ToolCall("1", name, dict(arguments)), turn)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    OWN.files.clear()
    async with open_self_home(tmp_path) as self_home:
        tools = self_tools(
            SelfTools(
                home=self_home.home,
                keepers=self_home.keepers,
                days=DayReader(plain_settings(), self_home.home, self_home.clock),
                rng=random.Random(1),
                skills=Skills.load(ROOT / "skills"),
            )
        )
        yield Rig(self_home, Executor(Registry(tools, social_only=True), SHIPPED))


def turn(provenance: Provenance, origin: Provenance | None = None) -> Turn:
    return Turn("test", provenance, cause_id=POST, origin=origin)


OWN = turn(Provenance.SELF)


@pytest.mark.parametrize("provenance", [Provenance.STRANGER, Provenance.PEER])
@pytest.mark.parametrize("name", ["self_read", "self_update"])
async def test_a_turn_that_somebody_else_began_can_neither_read_nor_write_it(
    rig: Rig, provenance: Provenance, name: str
) -> None:
    result = await rig.use(name, turn(provenance), content=GROWN, reason="kit asked")
    assert result.is_error
    assert "Available: none" in result.content
    assert rig.self_home.text == BORN


@pytest.mark.parametrize("provenance", [Provenance.SELF, Provenance.OWNER])
async def test_the_soul_itself_and_its_owner_can(rig: Rig, provenance: Provenance) -> None:
    assert (await rig.use("self_read", turn(provenance))).content == BORN
    result = await rig.use("self_update", turn(provenance), content=GROWN, reason="a thought")
    assert (result.is_error, rig.self_home.text) == (False, GROWN)
    assert result.content.startswith("SELF.md is changed")
    assert rig.self_home.versions[0].cites == (POST,)


async def test_what_its_owner_changed_since_it_read_the_file_is_kept(rig: Rig) -> None:
    read, own = replace(OWN, files={"SELF.md": BORN}), BORN.replace("# ", "# Of ", 1)
    await rig.self_home.keeper.change(f"{BORN}- Slate.\n", reason="the owner's", by="owner")
    assert not (await rig.use("self_update", read, content=own, reason="a thought")).is_error
    assert rig.self_home.text == f"{own}- Slate.\n"
    assert not (await rig.use("self_update", read, content=f"{own}- Brass.\n", reason="a thought")).is_error
    assert rig.self_home.text == f"{own}- Brass.\n- Slate.\n"


async def test_a_change_of_lines_that_its_owner_changed_since_is_refused_once_with_the_text_of_today(rig: Rig) -> None:
    read, line = replace(OWN, files={"SELF.md": BORN}), BORN.splitlines()[-1]
    todays, own = BORN.replace(line, "- Brass."), BORN.replace(line, "- Slate.")
    await rig.self_home.keeper.change(todays, reason="the owner's", by="owner")
    refused = await rig.use("self_update", read, content=own, reason="a thought")
    assert (refused.is_error, "- Brass." in refused.content, rig.self_home.text) == (True, True, todays)
    assert not (await rig.use("self_update", read, content=own, reason="a thought")).is_error


async def test_when_a_strangers_words_came_into_the_owners_turn_the_change_waits_for_the_owner(rig: Rig) -> None:
    mixed = turn(Provenance.STRANGER, Provenance.OWNER)
    result = await rig.use("self_update", mixed, content=GROWN, reason="asked to")
    assert (result.is_error, result.outcome.held, rig.self_home.text) == (False, True, BORN)
    assert "waits for your owner's approval" in result.content
    assert rig.self_home.held is not None


async def test_when_a_strangers_words_came_into_a_turn_of_its_own_it_cannot_change(rig: Rig) -> None:
    mixed = turn(Provenance.STRANGER, Provenance.SELF)
    result = await rig.use("self_update", mixed, content=GROWN, reason="a thought")
    assert result.is_error
    assert (rig.self_home.text, rig.self_home.held) == (BORN, None)


async def test_the_model_is_told_which_section_it_has_lost(rig: Rig) -> None:
    text = BORN.replace("## Voice", "## How it was")
    result = await rig.use("self_update", OWN, content=text, reason="a thought")
    assert "Voice is gone" in result.content


async def test_the_model_is_told_that_a_great_loss_waits(rig: Rig) -> None:
    result = await rig.use("self_update", OWN, content="# Rowan\n\nNew.", reason="a thought")
    assert (result.is_error, rig.self_home.text) == (False, BORN)
    assert "waits for your owner's approval: it loses" in result.content


@pytest.mark.parametrize(
    ("content", "reason", "word"),
    [("", "a thought", "empty"), (GROWN, "", "no reason"), ("hunter2-hunter2", "a thought", "secret")],
)
async def test_the_model_is_told_why_it_was_refused(rig: Rig, content: str, reason: str, word: str) -> None:
    result = await rig.use("self_update", OWN, content=content, reason=reason)
    assert (result.is_error, rig.self_home.text) == (True, BORN)
    assert word in result.content


async def test_a_self_that_is_gone_is_read_as_empty(rig: Rig) -> None:
    rig.self_home.home.self_md.unlink()
    assert (await rig.use("self_read", OWN)).content == "SELF.md is empty."


async def test_one_section_can_be_written_anew_and_the_rest_stays(rig: Rig) -> None:
    result = await rig.use("self_update", OWN, section="values", content="- Slate.", reason="a thought")
    assert not result.is_error
    assert rig.self_home.text == BORN.replace("- Attention.", "- Slate.")


async def test_a_section_cannot_be_emptied(rig: Rig) -> None:
    result = await rig.use("self_update", OWN, section="Values", content=" ", reason="a thought")
    assert (result.is_error, rig.self_home.text) == (True, BORN)


async def test_the_owner_alone_may_ask_for_a_day_where_nobody_else_reads_the_answer(rig: Rig) -> None:
    told = "Staying silent with @kit.test"
    entry = Entry("decision", "awareness", told, reason="no", trigger_uri=POST, data={"act": "silent"})
    owners = replace(turn(Provenance.OWNER), loop="owner")
    await rig.use("self_update", owners, content=GROWN, reason="my owner likes slate")
    assert "likes slate" in (mine := await rig.use("day_read", owners)).content
    assert mine.provenance is None, "nobody else wrote anything yet"
    await rig.self_home.journal.record(entry)
    answer = await rig.use("day_read", owners)
    assert told in answer.content
    assert answer.provenance is Provenance.STRANGER, "what others wrote may stand in it"
    assert "yet to come" in (await rig.use("day_read", owners, day="2999-01-01")).content
    for other in (turn(Provenance.OWNER), OWN, replace(turn(Provenance.PEER), loop="owner")):
        refused = await rig.use("day_read", other)
        assert (refused.is_error, told in refused.content) == (True, False)


async def test_goals_and_heartbeat_are_kept_like_self_md_by_the_same_tool(rig: Rig) -> None:
    home, owners = rig.self_home.home, turn(Provenance.OWNER)
    goals = "# Goals\n\n- Finish the kiln before winter comes.\n- Learn to listen to the rain.\n"
    (home.workspace).mkdir(parents=True)
    (home.workspace / "GOALS.md").write_text(goals)
    for file, text in (("GOALS.md", goals + "- Sleep more.\n"), ("HEARTBEAT.md", "- Is the kiln cold?\n")):
        result = await rig.use("self_update", owners, file=file, content=text, reason="we spoke of it")
        assert result.content.startswith(f"{file} is changed")
        assert (home.workspace / file).read_text() == text
    await rig.use("self_update", owners, file="GOALS.md", content="- Rest.\n", reason="shorter")
    held = await rig.use("self_update", owners, file="GOALS.md", content="- Sleep.\n", reason="shorter")
    assert held.content.startswith("GOALS.md waits")
    assert "took the place of the change that waited" in held.content
    text = goals + "- Sleep much.\n"
    changed = await rig.use("self_update", owners, file="GOALS.md", content=text, reason="more")
    assert changed.content.startswith("GOALS.md is changed. An earlier change of it still waits")
    await rig.use("self_update", owners, file="GOALS.md", content=goals + "- Sleep more.\n", reason="less")
    strangers = await rig.use("self_update", turn(Provenance.STRANGER), file="HEARTBEAT.md", content="x", reason="y")
    assert strangers.is_error
    keeper = rig.self_home.keepers["GOALS.md"]
    await keeper.approve()
    assert (home.workspace / "GOALS.md").read_text() == "- Sleep.\n"
    with SelfHistory(home, "GOALS.md").alone() as history:
        texts = [history.read(one).decode() for one in history.versions()]
    more = goals + "- Sleep more.\n"
    assert texts == ["- Sleep.\n", more, text, more, goals]
    assert rig.self_home.text == BORN
    assert rig.self_home.versions == []


async def test_a_title_that_names_the_file_and_lines_that_only_move_need_no_word_of_the_owner(
    rig: Rig,
) -> None:
    (tool,) = [one for one in rig.executor.registry if one.name == "self_update"]
    assert tool.as_edit
    request = OwnerRequest("Count the gulls too.")
    made = {"file": "HEARTBEAT.md", "reason": "asked to"}
    new = tool.input_model.model_validate({**made, "content": "# Heartbeat\n\n- Count the gulls.\n"})
    lines, told = await tool.as_edit(new, request)
    assert (lines, "loses" in told) == (LinesAdded(**made, content="- Count the gulls."), False)
    await rig.use("self_update", OWN, **made, content="# Heartbeat\n- Tide.\n- Kiln.\n")
    moved = tool.input_model.model_validate({**made, "content": "# Heartbeat\n- Kiln.\n- Tide.\n"})
    lines, told = await tool.as_edit(moved, request)
    assert lines == LinesAdded(**made)
    assert all(shown in told for shown in ("moves", "“- Kiln.”", "“- Tide.”", "last line")), "a judge sees to where"


@pytest.mark.parametrize("file", ["SOUL.md", "IDENTITY.md", "../.env"])
async def test_no_other_file_can_be_named(rig: Rig, file: str) -> None:
    result = await rig.use("self_update", turn(Provenance.OWNER), file=file, content="mine", reason="why not")
    assert result.is_error
    assert list(rig.self_home.home.root.glob("**/SOUL.md")) == []


@pytest.fixture
async def executor(tmp_path: Path) -> Executor:
    owner_files = LocalOwnerFiles(Home.at(tmp_path), print)
    await owner_files.write("skills/tea/SKILL.md", "---\nname: tea\ndescription: How to make tea.\n---\nBoil water.")
    storage = open_storage("", root=tmp_path / "store")
    local = LocalSkills(owner_files=owner_files, storage=storage, shipped={"core"}, warn=print)
    tools = SkillTools(local=local, skills=Skills.load(ROOT / "skills"), keeper=None, tools=())
    return Executor(Registry(skill_tools(tools), social_only=True), SHIPPED)


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
