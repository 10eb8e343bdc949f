"""Proves what the owner sees of a push before they approve it."""

from adapters.git.worktree import BranchChanges, TreeChange
from modules.lives.tasks.code import shown_changes

BASE, SHA = "a" * 40, "b" * 40


def shown(patches: dict[str, str], *, is_whole: bool = True, files: tuple[TreeChange, ...] = ()) -> str:
    patch = "\n".join(f"diff --git a/{path} b/{path}\n@@ -0,0 +1 @@\n{text}" for path, text in patches.items())
    changes = files or tuple(TreeChange(path, len(text)) for path, text in patches.items())
    branch = BranchChanges(
        branch="task-1-a",
        sha=SHA,
        commits=1,
        merges=0,
        holds_base=True,
        files=changes,
        patch=patch,
        stat="2 files changed",
        base=BASE,
        is_whole=is_whole,
    )
    return shown_changes(branch, "x/repository")


def test_a_long_diff_hides_no_file_that_comes_after_it() -> None:
    text = shown({"a.py": "+x\n" * 50_000, "sneaky.py": "+rm -rf\n", ".github/workflows/t.yml": "+on: push\n"})
    assert len(text) < 22_000
    assert "+rm -rf" in text
    assert text.index("t.yml") < text.index("a.py")
    assert text.index("+on: push") < text.index("+x")
    assert "- .github/workflows/t.yml (10 bytes, needs your approval)" in text
    assert "- sneaky.py (8 bytes)" in text
    assert f"git --git-dir=x/repository/.git diff {BASE} {SHA}" in text


def test_what_is_shown_whole_says_nothing_of_the_rest() -> None:
    text = shown({"a.py": "+x\n"})
    assert text.endswith("+x")
    assert "--git-dir" not in text
    assert "--git-dir" in shown({"a.py": "+x\n"}, is_whole=False)


def test_every_file_is_told_with_its_kind_on_a_line_of_its_own() -> None:
    files = (
        TreeChange("gone.py", None),
        TreeChange("link", 11, is_link=True),
        TreeChange("seed.bin", 1_234, is_binary=True),
        TreeChange("a\ndiff --git a/x b/x", 1),
        *(TreeChange(f"{number}.py", 1) for number in range(60)),
    )
    text = shown({"a.py": "+x\n"}, files=files)
    listed = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(listed) == len(files)
    assert {"- gone.py (deleted)", "- link (11 bytes, link)", "- seed.bin (1,234 bytes, binary)"} <= set(listed)
    assert text.count("\ndiff --git ") == 1
