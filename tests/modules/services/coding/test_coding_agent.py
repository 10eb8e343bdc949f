"""The loop of a coding task, with real files, sandbox, database and budget, and a scripted model.

Proves when a task goes in circles, how the suites of a repository are found, and which gate stops a branch. The model
is sent a long task with old answers shortened in blocks, and with what is left of its limits. The cost of a task counts
all of its coding: each try, and the rounds that answer its reviews.
"""

import asyncio
import itertools
import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from adapters.git.worktree import BranchChanges, TreeChange
from common.clock import parse_iso
from common.errors import BudgetExceeded
from modules.runtime.database.database import Database
from modules.runtime.llm.dialect import Message, ToolAnswer, ToolCall
from modules.services.coding.agent import CodingConversation
from modules.services.coding.gates import GateFacts, closed_gate, named_but_unchanged
from modules.services.coding.policy import CodingEnd, CodingLimits, CodingStep, is_stuck, set_aside, used
from modules.services.coding.suite_files import suite_definitions
from modules.services.coding.suites import SuiteRun
from modules.services.coding.trajectory import Trajectories, spent
from tests.known_profiles import RULED_OUT
from tests.modules.runtime.llm.scripted_model import calls
from tests.modules.services.coding.coding_rig import KEY, does, needs_sandbox, open_coding
from tests.patience import until
from tests.shipped_skills import SHIPPED


@needs_sandbox
async def test_code_is_written_changed_run_and_finished(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        end = await rig.work(
            does("write_file", path="src/beds.py", content="BEDS = 2\nprint(BEDS)\n"),
            does("edit_file", path="src/beds.py", old="BEDS = 2", new="BEDS = 3"),
            does("run", command="python3 src/beds.py; id -u; ls -A /work /tmp"),
            does("search", text="BEDS"),
            does("list_files"),
            does("read_file", path="src/beds.py", from_line=2),
            does("finish", summary="Three beds."),
        )
        assert end == CodingEnd("finished", "Three beds.")
        ran, found, listed, read = (await rig.answers())[2:6]
        assert "3" in ran.splitlines()
        assert str(os.getuid()) not in ran.splitlines() or os.getuid() == 1000
        assert found.splitlines() == ["src/beds.py:1: BEDS = 3", "src/beds.py:2: print(BEDS)"]
        assert (listed, read) == ("src/beds.py", "src/beds.py: lines 2-2 of 2\n2\tprint(BEDS)")
        assert (await rig.budget.budget.report()).tokens.reserved == 0


async def test_a_step_that_was_paid_for_is_carried_out_after_a_kill_and_not_asked_again(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        thought = {"reasoning_content": "Three will do."}
        call = ToolCall("c1", "write_file", {"path": "beds.py", "content": "BEDS = 3\n"}, service_fields=thought)
        await rig.store.put(KEY, 1, CodingStep(1, "2026-01-05T12:00:00Z", "", (call,), None, 100, 10))
    async with open_coding(tmp_path) as rig:
        assert (await rig.work(does("finish", summary="Three."))).code == "finished"
        (asked,) = rig.model.requests
        assert RULED_OUT in asked["messages"][0]["content"]
        assert asked["messages"][-1]["role"] == "tool"
        assert asked["messages"][-2]["reasoning_content"] == "Three will do."
        assert (rig.tree / "beds.py").read_text() == "BEDS = 3\n"
    async with open_coding(tmp_path) as rig:
        (rig.tree / "beds.py").unlink()
        assert await rig.work(is_new=True) == CodingEnd("finished", "Three.")
        assert (rig.tree / "beds.py").read_text() == "BEDS = 3\n"
        assert not rig.model.requests


@needs_sandbox
async def test_calls_of_a_step_that_were_carried_out_before_a_pause_are_not_done_again(tmp_path: Path) -> None:
    edit = json.dumps({"path": "beds.py", "old": "A = 1\n", "new": "A = 1\nB = 2\n"})
    run = json.dumps({"command": "touch /tmp/on; sleep 50"})
    async with open_coding(tmp_path) as rig:
        rig.holds(beds__py="A = 1\n")
        working = asyncio.create_task(rig.work(calls(("edit_file", edit), ("run", run))))
        await until((rig.room.scratch / "on").exists, what="the program runs")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        (begun,) = await rig.store.steps(KEY, 1)
        rest = replace(begun, calls=(begun.calls[0], ToolCall("c2", "read_file", {"path": "beds.py"})))
        await rig.store.put(KEY, 1, rest)
    async with open_coding(tmp_path) as rig:
        assert (await rig.work(does("finish", summary="Two."), does("finish", summary="Two."))).code == "finished"
        assert (rig.tree / "beds.py").read_text() == "A = 1\nB = 2\n"
        assert (await rig.answers())[1].endswith("1\tA = 1\n2\tB = 2")


async def test_nothing_outside_of_the_folder_is_read_or_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    async with open_coding(tmp_path) as rig:
        (rig.tree / "link.txt").symlink_to(secret)
        (rig.tree / "up").symlink_to(tmp_path)
        for path in ("../secret.txt", str(secret), "link.txt", "up/secret.txt", "a/../../secret.txt", ".git/config"):
            end = await rig.work(
                does("read_file", path=path),
                does("write_file", path=path, content="gone"),
                does("search", text="hunter2"),
                does("edit_file", path=path, old="hunter2", new="gone"),
                does("list_files", path="up"),
                does("blocked", reason="closed"),
            )
            assert end.code == "blocked"
            told = await rig.answers()
            assert not [text for text in told if "hunter2" in text]
            assert secret.read_text() == "hunter2"
            assert not (rig.tree / ".git").exists()
            await rig.budget.database.run(lambda connection: connection.execute("DELETE FROM coding_steps"))


async def test_a_change_keeps_the_line_ends_of_a_file(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        (rig.tree / "beds.bat").write_bytes(b"@echo off\r\nset BEDS=2\r\nset PATHS=1\r\necho a\rb\n")
        (rig.tree / "paths.bat").write_bytes(b"set PATHS=1\r\n")
        end = await rig.work(
            does("read_file", path="beds.bat"),
            does("edit_file", path="beds.bat", old="BEDS=2\nset PATHS=1\n", new="BEDS=3\nset PATHS=4\n"),
            does("edit_file", path="beds.bat", old="off", new="on"),
            does("write_file", path="paths.bat", content="@echo on\nset PATHS=4\n"),
            does("finish", summary="Three beds."),
        )
        assert end.code == "finished"
        assert (rig.tree / "beds.bat").read_bytes() == b"@echo on\r\nset BEDS=3\r\nset PATHS=4\r\necho a\rb\n"
        assert (rig.tree / "paths.bat").read_bytes() == b"@echo on\r\nset PATHS=4\r\n"
        assert "\r" not in (await rig.answers())[0]


async def test_an_end_is_not_accepted_while_the_tests_fail(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        rig.failing = ["one test fails"]
        end = await rig.work(does("finish", summary="Done."), does("finish", summary="Mended."))
        assert end == CodingEnd("finished", "Mended.")
        assert "one test fails" in (await rig.answers())[0]


async def test_an_end_that_cannot_be_read_or_says_nothing_is_none(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        broken = calls(("blocked", '{"reason": How many beds'))
        empty = (does("blocked"), does("finish", summary=" "), does("finish", text="Done."))
        assert await rig.work(broken, *empty, does("blocked", reason="How many?")) == CodingEnd("blocked", "How many?")


async def test_the_marks_in_the_code_of_a_summary_stay(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        end = await rig.work(does("finish", summary="`<s>` is escaped.<|im_end|>"))
        assert end == CodingEnd("finished", "`<s>` is escaped.")


async def test_a_wrong_call_is_told_what_was_sent_what_is_taken_and_which_tools_there_are(tmp_path: Path) -> None:
    cut = calls(("write_file", '{"path": "beds.js", "content": "const beds = {};'), finish="length")
    async with open_coding(tmp_path) as rig:
        rig.holds(beds__py="A = 1\n")
        await rig.work(
            does("edit_file", path="beds.py", old_string="A", new_string="B"),
            does("write_file", path="beds.py", content={"A": 2}),
            does("bash", command="ls"),
            cut,
            cut,
            does("blocked", reason="closed"),
        )
        unknown_fields, no_text, no_tool, too_long, _ = await rig.answers()
        for word in ("`old`", "old_string", "new_string", "old, new, all"):
            assert word in unknown_fields
        assert "`content`" in no_text
        assert (rig.tree / "beds.py").read_text() == "A = 1\n"
        assert "bash" in no_tool
        assert "list_files, read_file, search, write_file, edit_file, run" in no_tool
        assert "cut" in too_long
        assert not (rig.tree / "beds.js").exists()


async def test_lines_and_json_are_taken_as_they_are_meant(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        rig.holds(beds__py="A = 1\nB = 2\nC = 3\n")
        await rig.work(
            does("read_file", path="beds.py", from_line="2", to_line="2"),
            does("write_file", path="package.json", content={"name": "beds", "files": ["ä"]}),
            does("blocked", reason="closed"),
        )
        assert (await rig.answers())[0].endswith("\n2\tB = 2")
        assert (rig.tree / "package.json").read_text() == '{\n  "name": "beds",\n  "files": [\n    "ä"\n  ]\n}\n'


async def test_a_task_ends_before_the_step_that_would_pass_its_limit(tmp_path: Path) -> None:
    looks = [does("search", text=f"bed {number}") for number in range(9)]
    async with open_coding(tmp_path) as rig:
        end = await rig.work(*looks, limits=CodingLimits(steps=4, tokens=50_000, usd=None, seconds=60))
        assert (end.code, len(rig.model.requests)) == ("steps", 4)
        end = await rig.work(limits=CodingLimits(steps=9, tokens=10, usd=None, seconds=60))
        assert (end.code, len(rig.model.requests)) == ("tokens", 4)
        await rig.budget.database.run(lambda connection: connection.execute("UPDATE coding_steps SET usd = 0.5"))
        end = await rig.work(limits=CodingLimits(steps=9, tokens=50_000, usd=2.0, seconds=60))
        assert (end.code, len(rig.model.requests)) == ("money", 4)


async def test_a_task_does_not_begin_where_the_day_has_not_so_much_left(tmp_path: Path) -> None:
    async with open_coding(tmp_path, cap=40_000) as rig:
        await rig.budget.budget.hold("other work", tokens=30_000, usd=None)
        await rig.budget.budget.hold("more work", tokens=10_000, usd=None)
        with pytest.raises(BudgetExceeded):
            await rig.work(does("finish", summary="Done."))
        assert not rig.model.requests


async def test_what_does_the_same_again_and_again_is_stopped(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        end = await rig.work(*[does("read_file", path="none.py")] * 9)
        assert (end.code, len(rig.model.requests)) == ("stuck", 3)


BRANCH = "task-1-beds"
CHANGES = BranchChanges(
    branch=BRANCH,
    sha="a" * 40,
    commits=1,
    merges=0,
    holds_base=True,
    files=(TreeChange("beds.py", 10),),
    patch="+BEDS = 3",
    stat="1 file changed",
)


def step(name: str, came: str, *, error: bool = False, **said: object) -> CodingStep:
    call = ToolCall("c", name, dict(said))
    return CodingStep(1, "", "", (call,), (ToolAnswer("c", name, came, is_error=error),))


READ, RUN = step("read_file", "x", path="a"), step("run", "failed", command="make")
SILENT = CodingStep(1, "", "hm", (), ())


@pytest.mark.parametrize(
    ("steps", "stuck"),
    [
        ([READ, READ, READ], True),
        ([READ, READ, RUN, READ], False),
        ([READ, RUN] * 2, False),
        ([READ, RUN] * 3, True),
        ([step("edit_file", "not there", error=True, old=str(n)) for n in range(3)], True),
        ([step("edit_file", "", old=str(n)) for n in range(3)], False),
        ([step("run", f"{n} fail", error=True, command="make") for n in range(3)], False),
        ([SILENT] * 3, True),
    ],
)
def test_circles_are_seen(steps: list[CodingStep], *, stuck: bool) -> None:
    assert is_stuck(steps) is stuck


@pytest.mark.parametrize(
    ("names", "texts", "commands"),
    [
        ((), {"package.json": '{"scripts": {"test": "node --test"}}'}, ["npm test --silent"]),
        ((), {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ((), {"package.json": "{"}, []),
        ((), {"Makefile": "all: a\ntest: a\n\ttrue\n"}, ["make test"]),
        ((), {"Makefile": "test := a\nlatest:\n"}, []),
        (("test_beds.py",), {}, ["pytest"]),
        (("beds.py",), {}, []),
        ((), {"Cargo.toml": "", "go.mod": ""}, ["cargo test", "go test ./..."]),
    ],
)
def test_tests_are_found_by_files(names: tuple[str, ...], texts: dict[str, str], commands: list[str]) -> None:
    assert list(suite_definitions(names, texts)) == commands


ADDING = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1,2 @@\n a\n{1}"
HIDING = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+a\u202e"
SHUT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("other_branch", {"branch": "main"}, {}),
    ("merge_commits", {"merges": 1}, {}),
    ("merge_commits", {"holds_base": False}, {}),
    ("no_changes", {"commits": 0}, {}),
    ("no_changes", {"files": ()}, {}),
    ("tests_failed", {}, {"broken": [SuiteRun("make test", "failed")]}),
    ("secret", {"patch": "+hunter2"}, {}),
    ("hidden", {"patch": HIDING.format("beds.py")}, {}),
    ("secret", {"patch": "+ok\u2028 hunter2"}, {}),
    ("not_text", {"files": (TreeChange("a.bin", 3, is_binary=True),)}, {}),
    ("not_text", {"files": (TreeChange("away", 3, is_link=True),)}, {}),
    ("not_text", {"files": (TreeChange("inner", None, is_repository=True),)}, {}),
    ("too_large", {"files": (TreeChange("beds.py", 600_000),)}, {}),
    ("too_large", {"files": tuple(TreeChange(f"{n}.py", 1) for n in range(61))}, {}),
    ("line_missing", {"patch": ADDING.format("a.md", "+Made by an agent")}, {"lines": [("a.md", "an agent")]}),
    ("line_missing", {"patch": ADDING.format("a.md", " an agent")}, {"lines": [("a.md", "an agent")]}),
    ("line_missing", {"patch": ADDING.format("a.md", "+an agent")}, {"lines": [("b.md", "an agent")]}),
]


def closed(changed: dict[str, Any], facts: dict[str, Any]) -> str:
    base = GateFacts(BRANCH, replace(CHANGES, **changed), (), lambda text: "hunter2" in text)
    shut = closed_gate(replace(base, **facts))
    return shut.code if shut else ""


def test_files_that_a_task_names_and_that_did_not_change_are_found() -> None:
    named = ("index.html", "./src/", "*.md", "part.js", "test/a.js", "app/[id]/a.tsx")
    left = named_but_unchanged(named, ("src/a/b.js", "README.md", "part.js", "a.js", "app/[id]/a.tsx"))
    assert left == ("index.html", "test/a.js")


def test_each_gate_shuts_and_the_first_that_does_is_told() -> None:
    assert closed({}, {}) == closed({"patch": HIDING.format("beds.md")}, {}) == ""
    assert closed({"patch": ADDING.format("a.md", "+an agent")}, {"lines": [("a.md", "an agent")]}) == ""
    for code, changed, facts in SHUT:
        assert closed(changed, facts) == code
    for (first, changed, facts), (_, others, more) in itertools.combinations(SHUT, 2):
        if not changed.keys() & others.keys():
            assert closed({**others, **changed}, {**more, **facts}) == first


AT = "2026-01-05T12:00:00Z"
LIMITS = CodingLimits(steps=100, tokens=1_500_000, usd=None, seconds=1_500)
CONVERSATION = CodingConversation(SHIPPED, LIMITS, parse_iso(AT))


def long_step(number: int, chars: int = 12_000, *, tokens: int = 20_000, at: str = AT) -> CodingStep:
    call = ToolCall(f"c{number}", "read_file", {"path": f"{number}.py"})
    answer = ToolAnswer(call.id, call.name, f"{number}" * (chars // len(str(number))))
    return CodingStep(number, at, "", (call,), (answer,), tokens, 100, tokens * 9 // 10)


def answers(messages: list[Message]) -> list[str]:
    return [str(one.content[0].content) for one in messages[2::2] if isinstance(one.content[0], ToolAnswer)]


def test_old_answers_are_shortened_in_blocks_and_new_ones_never() -> None:
    steps = [long_step(number) for number in range(1, 61)]
    sent = [CONVERSATION.messages("Task", steps[:count]) for count in range(1, 61)]
    assert max(sum(map(len, answers(one))) for one in sent) < 200_000
    assert all(len(answers(one)[-1]) >= 11_000 for one in sent)
    shifts = sum(after[: len(before)] != before for before, after in pairwise(sent))
    assert shifts <= 10
    few = [long_step(number, 1_000) for number in range(1, 61)]
    sent = [CONVERSATION.messages("Task", few[:count]) for count in range(1, 61)]
    assert all(after[: len(before)] == before for before, after in pairwise(sent))


def test_what_is_left_is_told_each_few_steps_and_near_a_limit() -> None:
    steps = [long_step(number, 100, at=f"2026-01-05T12:{number // 10:02}:00Z") for number in range(1, 100)]
    told = [
        number for number, text in enumerate(answers(CONVERSATION.messages("Task", steps)), 1) if "Left for" in text
    ]
    assert told == [*range(10, 100, 10), 97, 98, 99]
    assert "90 steps, 1,461,000 tokens, 24 minutes" in answers(CONVERSATION.messages("Task", steps))[9]
    late = answers(CONVERSATION.messages("Task", [long_step(1, at="2026-01-05T12:23:00Z")]))[-1]
    assert "99 steps" in late
    assert "`finish`" in late


def test_cached_input_counts_a_tenth_and_a_day_need_not_hold_all_of_a_task() -> None:
    steps = [long_step(number) for number in range(1, 11)]
    assert used(steps)[0] == 10 * (2_000 + 1_800 + 100)
    assert set_aside([], LIMITS) == 300_000
    assert set_aside(steps * 20, LIMITS) == 60_000
    assert set_aside([], CodingLimits(9, 10_000, None, 9)) == 10_000


TASK = "acme/site#1/task-1"


async def test_the_rounds_that_answer_reviews_count_and_other_tasks_do_not(database: Database) -> None:
    for task, tokens in ((TASK, 100), (f"{TASK}/round-1", 20), (f"{TASK}/round-2", 3), (f"{TASK}2", 5_000)):
        step = CodingStep(1, "2026-01-01T00:00:00.000Z", "", (), (), input_tokens=tokens, usd=0.5)
        await Trajectories(database).put(task, 1, step)
    assert await database.read(lambda connection: spent(connection, TASK)) == (123, 1.5)
