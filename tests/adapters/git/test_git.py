"""Clones and pushes with the real `git` against the town: where the token goes, and what a hostile folder can do."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from adapters.git.client import Git, Pushed
from adapters.git.params import environment, is_valid_git_param, without_secrets
from adapters.git.worktree import Worktree
from adapters.github.client import GitHub
from adapters.github.types import Repo
from tests.adapters.results import err, ok
from tests.loopback import to_loopback
from tests.town.github_place import GitHubPlace, needs_git, open_github_place
from town.github.faults import Fault

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
    """A `git` that writes down its command line before the real one runs."""
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
    github = GitHub(
        api_url=place.url, login="ada", token=TOKEN, clock=place.clock, min_spacing_s=0, transport=to_loopback
    )
    try:
        assert ok(await github.refs.get(Repo("ada", "garden"), branch)).sha == sha
        assert ok(await github.contents.read(Repo("ada", "garden"), "beans.py", ref=branch)).text == "BEANS = 3\n"
    finally:
        await github.aclose()
