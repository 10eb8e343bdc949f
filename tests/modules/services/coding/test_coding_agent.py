"""The loop of a coding task: real files, sandbox, database and budget, and a model that does what each test says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.errors import BudgetExceeded
from modules.runtime.llm.dialect import ToolCall
from modules.services.coding.types import CodingEnd, CodingLimits, CodingStep
from tests.modules.services.coding.coding_rig import KEY, does, needs_sandbox, open_coding


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
        assert asked["messages"][-1]["role"] == "tool"
        assert asked["messages"][-2]["reasoning_content"] == "Three will do."
        assert (rig.tree / "beds.py").read_text() == "BEDS = 3\n"
    async with open_coding(tmp_path) as rig:
        (rig.tree / "beds.py").unlink()
        assert await rig.work(is_new=True) == CodingEnd("finished", "Three.")
        assert (rig.tree / "beds.py").read_text() == "BEDS = 3\n"
        assert not rig.model.requests


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
        with pytest.raises(BudgetExceeded):
            await rig.work(does("finish", summary="Done."))
        assert not rig.model.requests


async def test_what_does_the_same_again_and_again_is_stopped(tmp_path: Path) -> None:
    async with open_coding(tmp_path) as rig:
        end = await rig.work(*[does("read_file", path="none.py")] * 9)
        assert (end.code, len(rig.model.requests)) == ("stuck", 3)
