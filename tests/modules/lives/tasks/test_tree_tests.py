"""Proves that the tests of a task run again only after a file changed: real Git."""

import subprocess
from pathlib import Path

import pytest

from adapters.git.worktree import Worktree
from modules.lives.tasks.code import TreeTests
from tests.town.github_place import needs_git

pytestmark = needs_git


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Create an empty repository with one commit."""
    folder = tmp_path / "clone"
    who = ("-c", "user.name=ada", "-c", "user.email=ada@users.noreply.github.com")
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    subprocess.run(["git", *who, "commit", "--quiet", "--allow-empty", "-m", "Begin"], cwd=folder, check=True)
    return folder


async def test_tests_run_again_only_once_a_file_changed(tmp_path: Path, clone: Path) -> None:
    work, ran = Worktree(tmp_path / "repository", tmp_path / "tree"), list[str]()
    work.take(clone)
    beds = work.tree / "beds.py"
    beds.write_text("BEDS = 3\n")

    async def run(tree: Path) -> str:
        (tree / "report.txt").write_text("as the tests leave it")
        ran.append((tree / "beds.py").read_text())
        return ran[-1]

    tests = TreeTests(work, run)
    assert [await tests.result(), await tests.result()] == ["BEDS = 3\n"] * 2
    beds.write_text("BEDS = 4\n")
    assert await tests.result() == "BEDS = 4\n"
    assert len(ran) == 2
