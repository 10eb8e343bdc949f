"""What programs and tests may leave in the tree of a coding task, and in old folders of tasks."""

from __future__ import annotations

import os

import pytest

from modules.lives.tasks.types import Opened
from tests.common.test_trees import dig
from tests.modules.lives.tasks.code.code_rig import CODE, CodeRig
from tests.modules.services.coding.coding_rig import does, needs_sandbox
from tests.town.github_place import needs_git

pytestmark = [needs_git, needs_sandbox]

_MESS = """import os, pathlib
if not os.path.lexists("mess"):
    pathlib.Path(".venv").symlink_to("/nowhere")
    pathlib.Path("circle").symlink_to("circle")
    pathlib.Path(os.fsdecode(b"caf\\xe9")).mkdir()
    os.mkdir("closed")
    pathlib.Path("closed/file").write_text("x")
    os.chmod("closed/file", 0)
    os.chmod("closed", 0)
    os.mkdir("mess")
    os.chdir("mess")
    for _ in range(1_200):
        os.mkdir("deep")
        os.chdir("deep")
"""


@pytest.mark.slow
async def test_whatever_tests_leave_behind_costs_no_task_and_no_folder_stays(rig: CodeRig) -> None:
    place = rig.workplace
    await place.put("mess.py", _MESS)
    await place.put("Makefile", "test:\n\tpython3 mess.py\n")
    await place.put(".gitignore", "mess\ncircle\nclosed\ncaf*\n")
    result = await rig.does(
        does("list_files"),
        does("read_file", path="circle"),
        does("search", text="BEDS"),
        does("write_file", path="beds.py", content="BEDS = 3\n"),
        does("run", command="make test"),
        does("finish", summary="Three beds."),
    )
    assert isinstance(result, Opened)
    assert not list((place.folder / ".workrepos").iterdir())


@pytest.mark.slow
async def test_a_folder_that_waited_too_long_is_deleted_whatever_is_in_it(rig: CodeRig) -> None:
    old = rig.workplace.folder / ".workrepos" / "bea-garden--7-task-1-e1"
    dig(old / "tree", 1_200)
    os.utime(old, (0, 0))
    assert isinstance(await rig.does(*CODE), Opened)
    assert not old.exists()
