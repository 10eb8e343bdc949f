"""Pushes by the real `git` into the town: once, never over what others pushed, and not without the clone."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from adapters.git.client import Git
from adapters.git.worktree import Worktree
from common.clock import SystemClock
from modules.services.outbox.github_bodies import PushBody
from modules.services.outbox.senders.github_changes import PushSender
from modules.services.outbox.types import Intent
from tests.adapters.results import err, ok
from tests.loopback import github_at
from tests.modules.services.outbox.senders.test_github_senders import REPO, act
from tests.town.github_place import GitHubPlace, needs_git, open_github_place
from tests.trusting import identity_of

BRANCH = "task-1-beans"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[GitHubPlace, PushSender, Intent, Worktree]]:
    """Yield Ada's garden, a sender, the push of a commit on a branch, and the worktree of its clone."""
    async with open_github_place(folder / "town") as place:
        await place.commit("README.md", "Hello.\n")
        git = Git(api_url=place.url, login="ada", token="t-ada")
        ok(await git.clone(REPO.owner, REPO.name, folder / "clone"))
        tree = Worktree(folder / "task" / "repository", folder / "task" / "tree")
        tree.take(folder / "clone")
        base = ok(await tree.begin(BRANCH))
        (tree.tree / "beans.md").write_text("Beans.\n")
        assert ok(await tree.commit("task(1): Beans", name="ada", email="ada@x", at=datetime(2026, 3, 1, tzinfo=UTC)))
        sha = ok(await tree.changes(base)).sha
        github = github_at(place.url, "ada", SystemClock())
        intent = act("push", branch=BRANCH, sha=sha, folder="task/repository")
        yield place, PushSender(identity_of(github, SystemClock()), git, folder), intent, tree
        await github.aclose()


@needs_git
async def test_a_commit_is_pushed_once_and_found_again(tmp_path: Path) -> None:
    (tmp_path / "town").mkdir()
    async with opened(tmp_path) as (place, sender, intent, tree):
        assert ok(await sender.find(intent)) is None
        sent = ok(await sender.send(intent))
        assert isinstance(intent.body, PushBody)
        assert sent.id == intent.body.sha
        shutil.rmtree(tree.repository)
        assert ok(await sender.send(intent)) == ok(await sender.find(intent)) == sent
        ref = await place.ask("GET", f"/repos/{REPO.full_name}/git/ref/heads/{BRANCH}")
        assert ref.json()["object"]["sha"] == sent.id


@needs_git
async def test_what_others_pushed_there_stays(tmp_path: Path) -> None:
    (tmp_path / "town").mkdir()
    async with opened(tmp_path) as (place, sender, intent, tree):
        main = (await place.ask("GET", f"/repos/{REPO.full_name}/git/ref/heads/main")).json()["object"]["sha"]
        await place.branch(BRANCH, main)
        theirs = await place.commit("peas.md", "Peas.\n", branch=BRANCH)
        assert err(await sender.send(intent)).kind == "invalid"
        ref = await place.ask("GET", f"/repos/{REPO.full_name}/git/ref/heads/{BRANCH}")
        assert ref.json()["object"]["sha"] == theirs
        shutil.rmtree(tree.repository)
        gone = act("push", branch="task-2-peas", sha="a" * 40, folder="task/repository")
        assert err(await sender.send(gone)).kind == "invalid"
