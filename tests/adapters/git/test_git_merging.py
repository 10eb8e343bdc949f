"""Tests of merging a base into the branch of a task, with the real `git` and without running any other program."""

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from adapters.git.params import environment
from adapters.git.worktree import Merging, Worktree
from modules.services.coding.gates import GateFacts, closed_gate
from tests.adapters.results import ok
from tests.town.github_place import needs_git

BRANCH = "task-1-beans"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
DIVIDED = "Beans\n=======\n"
START = {"beans.py": "BEANS = 1\n", "gone.py": "GONE = 1\n", "notes.md": DIVIDED}

pytestmark = needs_git


def forked(folder: Path, *, ours: Mapping[str, str | None], theirs: Mapping[str, str | None]) -> Worktree:
    """Return the tree of a branch on which `ours` changed, while `theirs` changed on main; None deletes a file."""
    source = folder / "source"
    source.mkdir()

    def git(*arguments: str, at: Path = source) -> None:
        env = environment("", login="", token="", home=str(folder), path=os.environ["PATH"])
        names = {"GIT_AUTHOR_NAME": "ada", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "ada"}
        local = {"GIT_CONFIG_VALUE_6": "always", "GIT_CONFIG_KEY_6": "protocol.file.allow"}
        subprocess.run(
            ["git", *arguments], cwd=at, check=True, env=env | names | local | {"GIT_COMMITTER_EMAIL": "a@b"}
        )

    def commit(files: Mapping[str, str | None], message: str) -> None:
        for path, text in files.items():
            if text is None:
                (source / path).unlink()
            else:
                (source / path).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "-m", message)

    git("init", "--quiet", "--initial-branch=main")
    commit(START, "Begin")
    git("checkout", "--quiet", "-b", BRANCH)
    commit(ours, "Our side")
    git("checkout", "--quiet", "main")
    commit(theirs, "Their side")
    git("clone", "--quiet", f"--branch={BRANCH}", str(source), str(folder / "clone"))
    tree = Worktree(folder / "task" / "repository", folder / "task" / "tree")
    tree.take(folder / "clone")
    return tree


async def merge_of_main(tree: Worktree) -> Merging:
    ok(await tree.begin(BRANCH))
    return ok(await tree.merge(ok(await tree.tip("main"))))


async def gate_after(tree: Worktree, merging: Merging) -> str:
    """Commit the merge; return the code of the gate that is shut, or ""."""
    unresolved = ok(await tree.unresolved(merging))
    ok(await tree.commit("Merge main", name="ada", email="ada@users.noreply.github.com", at=AT))
    changes = ok(await tree.changes(merging.ours, merged=merging.theirs))
    shut = closed_gate(GateFacts(BRANCH, changes, (), lambda _: False, unresolved=unresolved))
    return shut.code if shut else ""


async def test_conflicts_stand_in_the_files_and_pass_the_gate_only_once_they_are_resolved(tmp_path: Path) -> None:
    ours = {"beans.py": "BEANS = 2\n", "gone.py": "GONE = 2\n", "notes.md": f"{DIVIDED}Ours.\n"}
    tree = forked(tmp_path, ours=ours, theirs={"beans.py": "BEANS = 3\n", "gone.py": None, "big.bin": "\0" * 9})
    merging = await merge_of_main(tree)
    assert set(merging.conflicts) == {"beans.py", "gone.py"}
    assert any("modify/delete" in line for line in merging.told)
    assert (merging.our_subjects, merging.their_subjects) == (("Our side",), ("Their side",))
    beans = tree.tree / "beans.py"
    assert {"BEANS = 2", "=======", "BEANS = 3"} <= set(beans.read_text().splitlines())
    assert ok(await tree.unresolved(merging)) == ("beans.py",)
    beans.write_text("BEANS = 2\n=======\nBEANS = 3\n")
    assert ok(await tree.unresolved(merging)) == ("beans.py",)
    beans.write_text("BEANS = 5\n")
    assert await gate_after(tree, merging) == ""
    changes = ok(await tree.changes(merging.ours, merged=merging.theirs))
    assert {one.path for one in changes.files} == {"beans.py", "gone.py", "notes.md"}


async def test_markers_that_are_left_and_merges_of_anything_else_are_refused(tmp_path: Path) -> None:
    tree = forked(tmp_path, ours={"beans.py": "BEANS = 2\n"}, theirs={"beans.py": "BEANS = 3\n"})
    merging = await merge_of_main(tree)
    assert await gate_after(tree, merging) == "conflict_markers"
    changes = ok(await tree.changes(merging.ours))
    shut = closed_gate(GateFacts(BRANCH, changes, (), lambda _: False))
    assert shut is not None
    assert shut.code == "merge_commits"


async def test_a_merge_that_takes_one_side_alone_is_still_a_merge_and_runs_no_program_of_the_files(
    tmp_path: Path,
) -> None:
    ran = tmp_path / "ran"
    attributes = {".gitattributes": "* filter=x diff=x merge=x\n", "notes.md": "Ours.\n"}
    tree = forked(tmp_path, ours={"beans.py": "BEANS = 2\n"} | attributes, theirs={"beans.py": "BEANS = 3\n"})
    (tree.tree / ".git").write_text(f'[filter "x"]\n\tsmudge = touch {ran}\n[merge "x"]\n\tdriver = touch {ran}\n')
    merging = await merge_of_main(tree)
    assert merging.conflicts == ("beans.py",)
    (tree.tree / "beans.py").write_text("BEANS = 2\n")
    assert await gate_after(tree, merging) == ""
    assert not ran.exists()
