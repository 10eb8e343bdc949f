"""Tests of clones and pushes with the real `git` against the town: where the token goes, what a hostile folder can do.

Tests of a task's files, whose repository lies apart from them: what a program that changes the files cannot do there.
Tests of runs of `git` that exceed their limits.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from adapters.git.client import Git, GitRun, Pushed, run_git
from adapters.git.params import environment, is_valid_git_param, without_secrets
from adapters.git.worktree import BranchChanges, TreeChange, Worktree
from adapters.github.types import Repo
from common.files import delete_tree
from common.result import Err
from tests.adapters.results import err, ok
from tests.common.test_files import dig
from tests.loopback import github_at
from tests.town.github_place import GitHubPlace, needs_git, open_github_place
from town.github.values import Fault

TOKEN = "t-ada"


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[GitHubPlace]:
    async with open_github_place(tmp_path) as place:
        await place.commit("README.md", "Hello.\n")
        yield place


def git_of(place: GitHubPlace, login: str = "ada", *, token: str | None = None, deadline_s: float = 60) -> Git:
    token = f"t-{login}" if token is None else token
    return Git(api_url=place.url, login=login, token=token, deadline_s=deadline_s)


async def commit(place: GitHubPlace, folder: Path, name: str, *, branch: str = "") -> str:
    if branch:
        await place.git("checkout", "-q", "-b", branch, at=folder)
    (folder / name).write_text(f"{name}\n")
    await place.git("add", "--all", at=folder)
    await place.git("commit", "-q", "-m", name, at=folder)
    return (await place.git("rev-parse", "HEAD", at=folder)).strip()


@needs_git
async def test_a_branch_is_cloned_worked_on_and_pushed(place: GitHubPlace, tmp_path: Path) -> None:
    git, folder = git_of(place), tmp_path / "work place"
    assert ok(await git.clone("ada", "garden", folder)) == folder
    assert (folder / "README.md").read_text() == "Hello.\n"
    sha = await commit(place, folder, "beans.md", branch="soul/1-beans")
    for _ in range(2):
        assert ok(await git.push(folder, "ada", "garden", "soul/1-beans")) == Pushed("soul/1-beans", sha)
    answer = await place.ask("GET", "/repos/ada/garden/git/ref/heads/soul/1-beans")
    assert answer.json()["object"]["sha"] == sha
    other = tmp_path / "other"
    ok(await git_of(place, "bea").clone("ada", "garden", other, branch="soul/1-beans", depth=1))
    assert (other / "beans.md").exists()
    later = await commit(place, other, "peas.md")
    assert ok(await git_of(place, "bea").push(other, "ada", "garden", "soul/1-beans")).sha == later


@needs_git
async def test_the_token_is_in_no_file_and_on_no_command_line(place: GitHubPlace, tmp_path: Path) -> None:
    await place.ask("PATCH", "/repos/ada/garden", {"private": True})
    seen, folder = tmp_path / "seen", tmp_path / "work"
    _spy(tmp_path / "bin", seen)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path / 'bin'}:{path}"
    try:
        ok(await git_of(place).clone("ada", "garden", folder))
        await commit(place, folder, "beans.md", branch="soul/1-beans")
        ok(await git_of(place).push(folder, "ada", "garden", "soul/1-beans"))
    finally:
        os.environ["PATH"] = path
    lines = seen.read_text()
    assert "clone" in lines
    assert "push" in lines
    assert TOKEN not in lines
    held = [file for file in folder.rglob("*") if file.is_file() and TOKEN.encode() in file.read_bytes()]
    assert held == []
    assert (await place.git("remote", "get-url", "origin", at=folder)).strip() == f"{place.url}/ada/garden.git"
    assert "extraheader" not in (await place.git("config", "--list", at=folder)).lower()


def _spy(folder: Path, seen: Path) -> None:
    """Put a `git` into `folder` that appends its command line to `seen` before it runs the real one."""
    real = shutil.which("git")
    folder.mkdir()
    spy = folder / "git"
    spy.write_text(f'#!/bin/sh\necho "$@" >>{seen}\nexec {real} "$@"\n')
    spy.chmod(spy.stat().st_mode | stat.S_IXUSR)


@needs_git
async def test_what_a_folder_says_of_programs_and_addresses_is_not_obeyed(place: GitHubPlace, tmp_path: Path) -> None:
    folder, trap = tmp_path / "work", tmp_path / "trap"
    ok(await git_of(place).clone("ada", "garden", folder))
    sha = await commit(place, folder, "beans.md", branch="soul/1-beans")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    hook = folder / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(program.read_text())
    hook.chmod(0o755)
    with (folder / ".git/config").open("a") as config:
        config.write(
            f"[core]\n fsmonitor = {program}\n sshCommand = {program}\n hooksPath = {hook.parent}\n"
            f" askPass = {program}\n"
            f'[credential]\n helper = {program}\n[url "http://127.0.0.1:1/"]\n insteadOf = {place.url}\n'
            f'[http]\n proxy = http://127.0.0.1:1\n[remote "origin"]\n pushurl = http://127.0.0.1:1/x.git\n'
        )
    assert ok(await git_of(place).push(folder, "ada", "garden", "soul/1-beans")).sha == sha
    assert not trap.exists()


@needs_git
async def test_nothing_that_others_pushed_is_overwritten(place: GitHubPlace, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        ok(await git_of(place).clone("ada", "garden", folder))
    await commit(place, theirs, "theirs.md", branch="soul/1-beans")
    ok(await git_of(place).push(theirs, "ada", "garden", "soul/1-beans"))
    await commit(place, ours, "ours.md", branch="soul/1-beans")
    assert err(await git_of(place).push(ours, "ada", "garden", "soul/1-beans")).kind == "conflict"


@needs_git
async def test_who_may_not_gets_one_clear_line_without_a_secret(place: GitHubPlace, tmp_path: Path) -> None:
    wrong = git_of(place, "ada", token="ghp_wrong")
    refused = err(await wrong.clone("ada", "garden", tmp_path / "a"))
    assert refused.kind == "auth"
    assert "ghp_wrong" not in refused.error
    assert "\n" not in refused.error
    missing = err(await git_of(place).clone("ada", "nowhere", tmp_path / "b"))
    assert missing.kind == "not_found"
    folder = tmp_path / "work"
    ok(await git_of(place, "cy").clone("ada", "garden", folder))
    await commit(place, folder, "weeds.md", branch="soul/1-weeds")
    stranger = err(await git_of(place, "cy").push(folder, "ada", "garden", "soul/1-weeds"))
    assert stranger.kind == "auth"
    assert "t-cy" not in stranger.error
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()


@needs_git
async def test_a_server_that_is_silent_is_left_and_nothing_stays_behind(place: GitHubPlace, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    ok(await git_of(place).clone("ada", "garden", folder))
    await commit(place, folder, "beans.md", branch="soul/1-beans")
    place.faults.arm(Fault("hang", times=99, seconds=3600))
    late = git_of(place, deadline_s=0.5)
    assert err(await late.clone("ada", "garden", tmp_path / "a")).kind == "transient"
    assert err(await late.push(folder, "ada", "garden", "soul/1-beans")).kind == "unknown_outcome"
    assert not (tmp_path / "a").exists()
    place.faults.clear()
    nobody_there = Git(api_url="http://127.0.0.1:1", login="ada", token=TOKEN)
    assert err(await nobody_there.clone("ada", "garden", tmp_path / "b")).kind == "transient"


@needs_git
async def test_what_cannot_be_pushed_or_cloned_is_said_before_git_is_asked(tmp_path: Path) -> None:
    git = Git(api_url="http://127.0.0.1:1", login="ada", token=TOKEN)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    assert err(await git.clone("ada", "garden", tmp_path / "full")).kind == "invalid"
    assert err(await git.clone("--upload-pack=x", "garden", tmp_path / "a")).kind == "invalid"
    assert err(await git.clone("ada", "garden", tmp_path / "a", branch="a..b")).kind == "invalid"
    assert err(await git.push(tmp_path / "full", "ada", "garden", "main")).kind == "invalid"


@pytest.mark.parametrize("value", ["main", "soul/1-beans", "www-lil.intdev_x", "a/b/c", "v1.0"])
def test_names_may_be_handed_to_git(value: str) -> None:
    assert is_valid_git_param(value)


@pytest.mark.parametrize(
    "value", ["", "..", "a..b", "-a", "--x", "a b", "a;b", "$(x)", "a\n", "ä", "a:b", "a@b", "`x`"]
)
def test_what_git_or_a_shell_could_read_otherwise_may_not(value: str) -> None:
    assert not is_valid_git_param(value)


@given(st.text(max_size=30))
def test_only_plain_names_pass(value: str) -> None:
    if is_valid_git_param(value):
        assert value.isascii()
        assert set(value) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/")


def test_the_token_is_for_one_address_and_nobodys_settings_are_read() -> None:
    env = environment("https://github.com", login="ada", token="ghp_x", home="/h", path="/bin")
    keys = {env[f"GIT_CONFIG_KEY_{n}"]: env[f"GIT_CONFIG_VALUE_{n}"] for n in range(int(env["GIT_CONFIG_COUNT"]))}
    header = keys["http.https://github.com/.extraHeader"]
    assert header == "Authorization: Basic YWRhOmdocF94"
    assert (keys["protocol.allow"], keys["http.followRedirects"]) == ("never", "false")
    assert "protocol.http.allow" not in keys
    assert (env["GIT_TERMINAL_PROMPT"], env["GIT_CONFIG_NOSYSTEM"], env["GIT_CONFIG_GLOBAL"]) == ("0", "1", "/dev/null")
    public = environment("http://127.0.0.1:1", login="", token="", home="/h", path="/bin")
    assert not any("extraHeader" in value for value in public.values())


def test_what_git_tells_holds_no_secret() -> None:
    told = "fatal: https://ada:ghp_x@github.com/a.git\nAuthorization: Basic YWRhOmdocF94 for 'ada'"
    shown = without_secrets(told, login="ada", token="ghp_x")
    assert (
        shown == "fatal: https://[redacted]:[redacted]@github.com/a.git Authorization: Basic [redacted] for [redacted]"
    )


@needs_git
async def test_a_branch_with_signs_and_letters_of_any_script_is_cloned_pushed_and_read(
    place: GitHubPlace, tmp_path: Path
) -> None:
    branch = "feature/ä#1+(機能)=@x%2F"
    await place.branch(branch, await place.commit("beds.py", "BEDS = 3\n"))
    ok(await git_of(place).clone("ada", "garden", tmp_path / "clone", branch=branch))
    tree = Worktree(tmp_path / "repository", tmp_path / "tree")
    tree.take(tmp_path / "clone")
    base = ok(await tree.begin(branch))
    assert ok(await tree.fork("main")) == base
    (tree.tree / "beans.py").write_text("BEANS = 3\n")
    assert ok(await tree.commit("Beans", name="ada", email="a@b.test", at=place.clock.now()))
    sha = ok(await git_of(place).push(tree.repository, "ada", "garden", branch)).sha
    github = github_at(place.url, "ada", place.clock, TOKEN)
    try:
        assert ok(await github.refs.get(Repo("ada", "garden"), branch)).sha == sha
        assert ok(await github.contents.read(Repo("ada", "garden"), "beans.py", ref=branch)).text == "BEANS = 3\n"
    finally:
        await github.aclose()


BRANCH = "task-1-beans"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def opened(folder: Path) -> Worktree:
    """Return the tree of ada's garden."""
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
        assert delete_tree(tree.tree / "deep")  # too deep for pytest to delete
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


@needs_git
async def test_locks_of_a_killed_git_stop_no_later_one_and_those_of_a_running_one_stay(tmp_path: Path) -> None:
    tree = await opened(tmp_path)
    ok(await tree.begin(BRANCH))
    git = tree.repository / ".git"
    locks = [git / name for name in ("index.lock", "HEAD.lock", f"refs/heads/{BRANCH}.lock")]
    for lock in locks:
        lock.touch()
    handle = os.open(git, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert err(await tree.snapshot()).kind == "transient"
    assert all(lock.exists() for lock in locks)
    os.close(handle)
    (tree.tree / "beans.py").write_text("BEANS = 3\n")
    assert await committed(tree)
    assert not any(lock.exists() for lock in locks)


LONG = 30.0
"""A deadline in seconds that no run of these tests comes near."""


async def ran(
    folder: Path, *arguments: str, given: str = "", most_bytes: int = 1_000, deadline_s: float = LONG
) -> GitRun | Err:
    env = environment("", login="", token="", home=str(folder), path=os.environ["PATH"])
    return await run_git(arguments, at=folder, env=env, deadline_s=deadline_s, given=given, most_bytes=most_bytes)


@needs_git
async def test_a_run_that_writes_without_end_is_ended_and_its_beginning_kept(tmp_path: Path) -> None:
    run = await ran(tmp_path, "-c", "alias.endless=!yes", "endless")
    assert isinstance(run, GitRun)
    assert run.is_cut
    assert run.out == "y\n" * 500


@needs_git
async def test_a_run_that_neither_reads_nor_writes_ends_at_its_deadline(tmp_path: Path) -> None:
    run = await ran(tmp_path, "-c", "alias.late=!sleep 60", "late", given="x" * 1_000_000, deadline_s=0.2)
    assert isinstance(run, Err)
    assert run.kind == "unknown_outcome"


@needs_git
async def test_a_run_holds_and_writes_no_more_than_it_may(tmp_path: Path) -> None:
    hungry = 'alias.hungry=!python3 -c "bytearray(400 << 20)"'
    greedy = "alias.greedy=!truncate -s 600M file"
    for alias, name in ((hungry, "hungry"), (greedy, "greedy")):
        run = await ran(tmp_path, "-c", alias, name)
        assert isinstance(run, GitRun)
        assert run.code


@needs_git
async def test_where_there_is_no_git_that_is_said(tmp_path: Path) -> None:
    run = await run_git(("version",), at=tmp_path, env={"PATH": str(tmp_path)}, deadline_s=LONG)
    assert isinstance(run, Err)
    assert "install it" in run.error
