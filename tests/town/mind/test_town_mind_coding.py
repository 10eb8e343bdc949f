"""Tests of code by the town's mind: what it writes runs, what it mends was broken, and it writes no unknown program."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.git.worktree import Worktree
from common.facts import CodingFacts, QuestionFacts, ToolOutcome, TurnFacts
from common.redact import Redactor
from modules.runtime.llm.dialect import ToolCall
from modules.runtime.sandbox.runner import Sandbox
from modules.services.coding.hands import Hands
from modules.services.coding.policy import CodingRoom
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.shipped_skills import SHIPPED
from tests.town.mind.town_mind_prompts import MIND, WORDS, agent
from town.github.arrangement import pricebook
from town.mind.questions import plan_of
from town.mind.words import load_bank
from town.model.types import ChatRequest, ToolUse

pytestmark = needs_sandbox
EXPENSES = "Command that adds up expenses from a CSV by month, with tests"
MEND = "Adding two prices in different currencies gives a wrong sum"
ENDS = {"finish", "blocked"}


async def coded(tree: Path, title: str, files: tuple[str, ...] = (), goal: str = "") -> list[tuple[ToolUse, bool]]:
    """Have the mind do a task in a tree, with the real tools; return its calls and which of them failed."""
    sandbox = Sandbox(redactor=Redactor(()), private=[])
    hands, done = (
        Hands(
            CodingRoom(Worktree(tree.with_name("repository"), tree), "HEAD", tree.with_name("tmp")),
            sandbox,
            network=False,
            skills=SHIPPED,
        ),
        list[tuple[ToolUse, bool]](),
    )
    while not done or done[-1][0].name not in ENDS:
        outcomes = tuple(ToolOutcome(use.name, failed, text=str(use.input.get("path", ""))) for use, failed in done)
        turn = TurnFacts(CodingFacts(title, files, goal), agent("tobias"), outcomes=outcomes)
        (use,) = MIND.answer(ChatRequest("test", WORDS, facts=turn)).calls
        answer = await hands.carry_out(ToolCall(str(len(done)), use.name, use.input)) if use.name not in ENDS else None
        done.append((use, answer is not None and answer.is_error))
    return done


def tasks(title: str) -> list[str]:
    return [task["title"] for task in plan_of(load_bank(), title)["tasks"]]


async def run(tree: Path, *command: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=tree, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    return process.returncode or 0, out.decode(), errors.decode()


async def test_the_command_that_the_page_asks_for_adds_up_a_csv_by_month(tmp_path: Path) -> None:
    for title in tasks(EXPENSES):
        done = await coded(tmp_path, title)
        assert done[-1][0].name == "finish"
        assert [use.name for use, failed in done if failed] == []
    csv = tmp_path / "mine.csv"
    csv.write_text("date,for,amount\n2026-02-27,rope,12\n2026-03-01,tea,4.50\nsoon,tea,1\n2026-03-14,paint,8.25\n")
    code, out, errors = await run(tmp_path, "python3", "monthly.py", str(csv))
    assert (code, out.split()) == (1, ["2026-02", "12.00", "2026-03", "12.75"])
    assert errors.startswith("line 4: 'soon'")
    assert len(errors.splitlines()) == 1


async def test_the_bug_of_the_library_is_shown_by_a_test_before_it_is_mended(tmp_path: Path) -> None:
    for path, text in pricebook().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert (await run(tmp_path, "make", "test"))[0] == 0
    (title,) = tasks(MEND)
    first = await coded(tmp_path, title)
    assert [(use.name, failed) for use, failed in first if use.name == "run"] == [("run", True), ("run", False)]
    assert first[-1][0].name == "finish"
    assert (await run(tmp_path, "make", "test"))[0] == 0
    again = await coded(tmp_path, title)
    assert again[-1][0].input["already_there"] is True
    assert "edit_file" not in [use.name for use, _ in again]


async def test_a_small_command_is_put_together_and_its_tests_pass(tmp_path: Path) -> None:
    (title,) = tasks("Build us a tool that converts temperatures from Celsius to Fahrenheit, please.")
    done = await coded(tmp_path, title)
    assert (done[-1][0].name, [use.name for use, failed in done if failed]) == ("finish", [])
    assert await run(tmp_path, "python3", "temperature.py", "30", "C", "F") == (0, "86.00\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("row", [one for one in load_bank().code if "label" in one], ids=lambda row: row["label"])
async def test_the_tests_of_each_command_pass_and_fail_once_it_answers_wrongly(
    tmp_path: Path, row: Mapping[str, Any]
) -> None:
    for path, text in row["files"].items():
        (tmp_path / path).write_text(text)
    assert (await run(tmp_path, "make", "test"))[0] == 0
    program = tmp_path / next(iter(row["files"]))
    program.write_text(re.sub(r"\n    (?:try|for .*):\n", "\n    return 'wrong'\n\\g<0>", program.read_text(), count=1))
    assert (await run(tmp_path, "make", "test"))[0] != 0


@pytest.mark.parametrize(
    "title", ["Begin: a chess engine", "Begin: a page about the tides", "Write a word counter with a web page"]
)
async def test_what_it_knows_no_program_for_is_not_written(tmp_path: Path, title: str) -> None:
    (end,) = await coded(tmp_path, title)
    assert end[0].name == "blocked"


async def test_a_page_of_a_plan_says_how_what_is_built_is_run_and_how_anybody_can_tell(tmp_path: Path) -> None:
    goal = plan_of(load_bank(), EXPENSES)["goal"]
    done = await coded(tmp_path, "Create SCENARIOS.md", ("SCENARIOS.md",), goal)
    assert [use.name for use, _ in done] == ["list_files", "write_file", "finish"]
    page = (tmp_path / "SCENARIOS.md").read_text()
    assert page.startswith(f"# SCENARIOS\n\n{goal}\n")
    assert "- **Somebody does:** runs `python3 monthly.py " in page
    (end,) = await coded(tmp_path, "Create SCENARIOS.md", ("SCENARIOS.md",), "A chess engine.")
    assert end[0].name == "blocked"


async def test_a_program_that_does_not_fit_what_is_there_is_not_called_done(tmp_path: Path) -> None:
    (title,) = tasks(MEND)
    done = await coded(tmp_path, title)
    assert done[-1][0].name == "blocked"


@pytest.mark.slow
async def test_a_task_that_names_the_readme_says_there_how_to_run_what_was_built(tmp_path: Path) -> None:
    (task,) = plan_of(load_bank(), "Build us a command that converts Celsius to Fahrenheit")["tasks"]
    for begins_with, said in (("# A new page\n\nMore.\n", "python3 temperature.py 100 C F"), ("# Ours\n", "# Ours")):
        tree = tmp_path / said[:3].strip() / "tree"
        tree.mkdir(parents=True)
        (tree / "README.md").write_text(begins_with)
        assert (await coded(tree, task["title"], tuple(task["files"])))[-1][0].name == "finish"
        assert said in (tree / "README.md").read_text()


def test_it_tries_each_scenario_that_names_a_command_by_running_it() -> None:
    page = "# Scenarios\n\n## It adds\n\n- **Somebody does:** runs `add 1 2`.\n\n## It shines\n\nLook at it.\n"
    done, fails = list[ToolUse](), {"run": True}
    while not done or done[-1].name != "finish":
        outcomes = tuple(ToolOutcome(one.name, fails.get(one.name, False)) for one in done)
        facts = TurnFacts(QuestionFacts("scenario-run", {"page": (page,)}), outcomes=outcomes)
        done += MIND.answer(ChatRequest("test", WORDS, facts=facts)).calls
    assert [one.name for one in done] == ["run", "scenario_verdict", "finish"]
    assert done[0].input == {"command": "add 1 2"}
    assert (done[1].input["scenario"], done[1].input["verdict"]) == ("It adds", "fails")
