"""Tests of repositories that are small to send and endless to unpack, with the real `git` against the town."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.git.client import Git
from adapters.git.worktree import Worktree
from tests.adapters.results import err, ok
from tests.children import child_of
from tests.security import delta_bomb
from tests.security.delta_bomb import bomb, sender
from tests.town.github_place import GitHubPlace, needs_git, open_github_place
from town.serving import serve

pytestmark = [needs_git, pytest.mark.slow]
_ZEROS_MIB = 70
_SMALL_BYTES, _MOST_MIB = 20_000, 190


def git(folder: Path, *arguments: str, given: bytes = b"") -> str:
    who = ("-c", "user.name=cy", "-c", "user.email=cy@b.test")
    command = ["git", *who, "--git-dir", str(folder), *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True, timeout=120).stdout.decode().strip()


def committed(folder: Path, tree: str, branch: str) -> str:
    """Set a branch to a new commit of a tree; return the commit's hash."""
    sha = git(folder, "commit-tree", tree, "-m", "Bomb")
    git(folder, "update-ref", f"refs/heads/{branch}", sha)
    return sha


def tree_bomb(folder: Path) -> str:
    """Write ten levels of folders, each with ten that are the same: 10,000,000,000 files; return the tree's hash."""
    entry = f"100644 blob {git(folder, 'hash-object', '-w', '--stdin', given=b'x')}"
    for _ in range(10):
        listing = "".join(f"{entry}\tn{number}\n" for number in range(10))
        entry = f"040000 tree {git(folder, 'mktree', given=listing.encode())}"
    return entry.split()[2]


def zeros(folder: Path) -> str:
    """Write eight files of 70 MiB, of which GitHub sends less than a tenth of one; return the tree's hash."""
    command = ["git", "--git-dir", str(folder), "hash-object", "-w", "--stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(_ZEROS_MIB):
            process.stdin.write(bytes(1 << 20))
        process.stdin.close()
        blob = process.stdout.read().decode().strip()
    return git(folder, "mktree", given="".join(f"100644 blob {blob}\tzeros-{n}\n" for n in range(8)).encode())


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path / "git", ignore_errors=True)


def client(place: GitHubPlace) -> Git:
    return Git(api_url=place.url, login="ada", token="t-ada")


@pytest.mark.parametrize("bomb", [tree_bomb, zeros])
async def test_a_repository_that_would_fill_the_disk_is_refused_before_a_file_is_written(
    room: Path, bomb: Callable[[Path], str]
) -> None:
    async with open_github_place(room) as place:
        await place.commit("README.md", "Hello.\n")
        (repository,) = (room / "git").iterdir()
        committed(repository, bomb(repository), "bomb")
        refused = err(await client(place).clone("ada", "garden", room / "clone", branch="bomb"))
        assert refused.kind == "invalid"
        assert "too large" in refused.error
        assert not (room / "clone").exists()


@pytest.mark.parametrize(("size", "times", "levels"), [(4_000_000, 100, 1), (15_000_000, 14, 1), (2_000_000, 2, 6)])
async def test_a_pack_whose_deltas_blow_up_is_refused_and_takes_no_memory(
    tmp_path: Path, size: int, times: int, levels: int
) -> None:
    pack, commit = bomb(size, times, levels)
    assert len(pack) < _SMALL_BYTES
    async with serve(sender(pack, commit)) as url, child_of(delta_bomb.__name__, url, f"{tmp_path}/clone") as child:
        told = (await child.communicate())[0].decode()
    used_mib, _, came = told.partition(" ")
    assert ("invalid: " in came, "too large" in came, (tmp_path / "clone").exists()) == (True, True, False)
    assert int(used_mib) < _MOST_MIB


async def test_a_pull_request_upon_a_bomb_is_refused_too(room: Path) -> None:
    async with open_github_place(room) as place:
        await place.commit("README.md", "Hello.\n")
        (repository,) = (room / "git").iterdir()
        bomb = committed(repository, tree_bomb(repository), "bomb")
        ok(await client(place).clone("ada", "garden", room / "clone"))
        tree = Worktree(room / "repository", room / "tree")
        tree.take(room / "clone")
        base = room / "base"
        base.mkdir()
        ok(await tree.begin("main"))
        assert err(await tree.export(bomb, base)).kind == "invalid"
        assert err(await tree.changes(bomb)).kind == "invalid"
        assert not list(base.iterdir())
