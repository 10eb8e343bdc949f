"""The files of a task beside their repository, with the real `git`: what those who change the files cannot do there."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.git.client import Git
from adapters.git.worktree import BranchChanges, TreeChange, Worktree
from common.files import delete_tree
from tests.adapters.results import err, ok
from tests.common.test_trees import dig
from tests.town.github_place import needs_git, open_github_place

BRANCH = "task-1-beans"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def opened(folder: Path) -> Worktree:
    """The tree of ada's garden."""
    async with open_github_place(folder) as place:
        await place.commit("README.md", "Hello.\n")
        git = Git(api_url=place.url, login="ada", token="t-ada")
        ok(await git.clone("ada", "garden", folder / "clone"))
    tree = Worktree(folder / "task" / "repository", folder / "task" / "tree")
    tree.take(folder / "clone")
    return tree


async def committed(tree: Worktree, message: str = "task(1): Beans") -> bool:
    return ok(await tree.commit(message, name="ada", email="ada@users.noreply.github.com", at=AT))


async def changed(tree: Worktree, base: str) -> BranchChanges:
    return ok(await tree.changes(base))


@needs_git
async def test_what_changed_in_the_tree_is_committed_once_as_the_account(tmp_path: Path) -> None:
    tree = await opened(tmp_path)
    assert not (tree.tree / ".git").exists()
    base = ok(await tree.begin(BRANCH))
    assert not await committed(tree)
    (tree.tree / "beans.py").write_text("BEANS = 3\n")
    (tree.tree / "seed.bin").write_bytes(b"\0\1\2")
    (tree.tree / "README.md").unlink()
    (tree.tree / "away").symlink_to("/etc/passwd")
    (tree.tree / "__pycache__").mkdir()
    (tree.tree / "__pycache__" / "beans.pyc").write_bytes(b"\0")
    assert await committed(tree, "task(1): Beans\n\nAssisted-by: ada:small\n")
    assert not await committed(tree)
    assert ok(await tree.begin(BRANCH)) == base
    changes = await changed(tree, base)
    assert (changes.branch, changes.commits, changes.merges, changes.holds_base) == (BRANCH, 1, 0, True)
    assert set(changes.files) == {
        TreeChange("README.md", None),
        TreeChange("beans.py", 10),
        TreeChange("seed.bin", 3, is_binary=True),
        TreeChange("away", 11, is_link=True),
    }
    assert "BEANS = 3" in changes.added


@needs_git
async def test_what_is_planted_in_the_tree_runs_nothing_outside(tmp_path: Path) -> None:
    tree, ran = await opened(tmp_path), tmp_path / "ran"
    base = ok(await tree.begin(BRANCH))
    for place in (tree.tree, tree.tree / "inner", tree.tree / "deep" / "er"):
        planted = place / ".git"
        (planted / "hooks").mkdir(parents=True)
        (planted / "refs").mkdir()
        (planted / "objects").mkdir()
        (planted / "HEAD").write_text("ref: refs/heads/main\n")
        (planted / "config").write_text(
            f'[core]\n\tfsmonitor = "touch {ran}"\n\thooksPath = hooks\n[filter "x"]\n\tclean = touch {ran}\n'
            f"\tsmudge = touch {ran}\n[diff]\n\texternal = touch {ran}\n"
        )
        for hook in ("pre-commit", "post-commit", "post-index-change", "reference-transaction"):
            (planted / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
            (planted / "hooks" / hook).chmod(0o755)
    (tree.tree / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (tree.tree / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\turl = ext::sh\n')
    (tree.tree / "inner" / "kept.py").write_text("KEPT = 1\n")
    assert await committed(tree)
    changes = await changed(tree, base)
    assert not ran.exists()
    assert {one.path for one in changes.files} == {".gitattributes", ".gitmodules", "inner/kept.py"}
    assert not any(one.is_repository for one in changes.files)
    assert not [name for _, folders, _ in os.walk(tree.tree) for name in folders if name == ".git"]


@needs_git
async def test_a_branch_that_git_would_take_for_an_option_is_refused(tmp_path: Path) -> None:
    assert err(await (await opened(tmp_path)).begin("--exec=sh")).kind == "invalid"


@pytest.mark.slow
@needs_git
async def test_what_a_program_closed_or_nested_without_end_is_committed_as_far_as_git_can_name_it(
    tmp_path: Path,
) -> None:
    tree = await opened(tmp_path)
    base = ok(await tree.begin(BRANCH))
    dig(tree.tree, 1_100)
    (tree.tree / "closed").mkdir()
    (tree.tree / "closed" / "beans.py").write_text("BEANS = 3\n")
    (tree.tree / "closed" / "beans.py").chmod(0)
    (tree.tree / "closed").chmod(0)
    try:
        assert await committed(tree)
    finally:
        assert delete_tree(tree.tree / "deep")  # pytest cannot
    changes = await changed(tree, base)
    assert TreeChange("closed/beans.py", 10) in changes.files
    assert max(len(one.path) for one in changes.files) > 1_900


@needs_git
async def test_a_diff_shows_each_file_in_its_encoding_also_where_that_changes(tmp_path: Path) -> None:
    tree = await opened(tmp_path)
    base = ok(await tree.begin(BRANCH))
    greeting, japanese = "// Grüße für alle\n", "// 豆を数える関数\n"
    (tree.tree / "a.c").write_bytes(greeting.encode("latin-1"))
    (tree.tree / "b.c").write_bytes(japanese.encode("shift_jis"))
    assert await committed(tree)
    first = ok(await tree.head())
    shown = (await changed(tree, base)).patch
    assert f"+{greeting}" in shown
    assert f"+{japanese.strip()}" in shown
    (tree.tree / "a.c").write_text(greeting)
    assert await committed(tree)
    (converted,) = ok(await tree.diffs(first))
    assert converted.patch.split("\n")[1:] == [f"-{greeting.strip()}", f"+{greeting.strip()}"]


@pytest.mark.slow
@needs_git
async def test_of_a_huge_change_only_as_much_is_read_as_one_can_judge(tmp_path: Path) -> None:
    tree = await opened(tmp_path)
    base = ok(await tree.begin(BRANCH))
    (tree.tree / "README.md").unlink()
    (tree.tree / "line.txt").write_text("a" * 5_000_000)
    assert await committed(tree)
    binary = await changed(tree, base)
    assert set(binary.files) == {TreeChange("README.md", None), TreeChange("line.txt", 5_000_000, is_binary=True)}
    assert len(binary.patch) < 1_000
    assert binary.is_whole
    (tree.tree / "line.txt").unlink()
    for name in ("one.txt", "two.txt"):
        (tree.tree / name).write_text("b\n" * 1_500_000)
    assert await committed(tree)
    large = await changed(tree, base)
    assert not large.is_whole
    assert len(large.patch) <= 4 * 1024 * 1024
    assert ok(await tree.head()) == large.sha


@needs_git
async def test_differences_are_told_file_by_file_and_no_attribute_hides_one(tmp_path: Path) -> None:
    tree = await opened(tmp_path)
    ok(await tree.begin(BRANCH))
    many = "".join(f"{number}\n" for number in range(20))
    for name in ("old.py", "tool.sh", "turned"):
        (tree.tree / name).write_text(f"{name}\n{many}")
    await committed(tree)
    base = (await changed(tree, "HEAD")).sha
    (tree.tree / "old.py").rename(tree.tree / 'n\u00e9w "file".py')
    (tree.tree / "tool.sh").chmod(0o755)
    (tree.tree / "turned").unlink()
    (tree.tree / "turned").symlink_to("tool.sh")
    (tree.tree / ".gitattributes").write_text("*.py -diff binary linguist-generated\n")
    (tree.tree / "plain.py").write_text("a\f = 1\u2028\ndiff --git a/x b/x\n")
    (tree.tree / "empty.py").touch()
    (tree.tree / "seed.png").write_bytes(b"\0\1\xff")
    (tree.tree / "README.md").unlink()
    await committed(tree)
    found = {one.path: one for one in ok(await tree.diffs(base))}
    assert {path: (one.status, one.additions, one.deletions) for path, one in found.items()} == {
        ".gitattributes": ("added", 1, 0),
        "README.md": ("removed", 0, 1),
        "empty.py": ("added", 0, 0),
        'n\u00e9w "file".py': ("renamed", 0, 0),
        "plain.py": ("added", 2, 0),
        "seed.png": ("added", 0, 0),
        "tool.sh": ("modified", 0, 0),
        "turned": ("changed type", 1, 21),
    }
    assert found["plain.py"].patch == "@@ -0,0 +1,2 @@\n+a\f = 1\u2028\n+diff --git a/x b/x"
    assert found['n\u00e9w "file".py'].previous_path == "old.py"
    assert found["tool.sh"].note == "mode 100644 becomes 100755"
    assert found["seed.png"].note == "binary, 3 bytes"
    assert [path for path, one in found.items() if not one.is_complete] == ["seed.png"]
    changes = await changed(tree, base)
    assert "diff --git a/x b/x" in changes.added
    assert [one.path for one in changes.files if one.is_binary] == ["seed.png"]


@needs_git
async def test_a_file_that_git_would_only_write_anew_is_no_change_until_it_is_changed(tmp_path: Path) -> None:
    async with open_github_place(tmp_path) as place:
        for number in range(3):
            await place.commit(f"notes{number}.txt", "one\r\ntwo\r\n")
        await place.commit(".gitattributes", "*.txt text\n")
        git = Git(api_url=place.url, login="ada", token="t-ada")
        ok(await git.clone("ada", "garden", tmp_path / "clone"))
    tree = Worktree(tmp_path / "task" / "repository", tmp_path / "task" / "tree")
    tree.take(tmp_path / "clone")
    base = ok(await tree.begin(BRANCH))
    assert not ok(await tree.staged(base)).files
    (tree.tree / "beans.py").write_text("BEANS = 3\n")
    (tree.tree / "notes1.txt").write_bytes(b"one\r\nthree\r\n")
    assert {one.path for one in ok(await tree.staged(base)).files} == {"beans.py", "notes1.txt"}
    assert await committed(tree)
    assert {one.path for one in (await changed(tree, base)).files} == {"beans.py", "notes1.txt"}


@needs_git
async def test_changes_that_were_saved_are_made_in_another_tree_or_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    tree, other, patch = await opened(tmp_path / "first"), await opened(tmp_path / "second"), tmp_path / "kept.patch"
    base = ok(await tree.begin(BRANCH))
    (tree.tree / "README.md").write_bytes("Grüße.\n".encode("latin-1"))
    (tree.tree / "seed.bin").write_bytes(b"\0\1\2\xff")
    (tree.tree / "run.sh").write_text("#!/bin/sh\n")
    (tree.tree / "run.sh").chmod(0o755)
    ok(await tree.save(base, patch))
    ok(await other.load(patch))
    for name in ("README.md", "seed.bin", "run.sh"):
        assert (other.tree / name).read_bytes() == (tree.tree / name).read_bytes()
    assert os.access(other.tree / "run.sh", os.X_OK)
    (other.tree / "seed.bin").unlink()
    (other.tree / "run.sh").unlink()
    assert err(await other.load(patch)).kind == "invalid"
    assert not (other.tree / "seed.bin").exists()
