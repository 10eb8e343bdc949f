"""What the SOUL knows of the workspaces that it watches, and what is left of it on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.github.types import Repo
from common.clock import FakeClock, iso
from modules.services.workspaces.watched import MOST_WATCHED, WatchedWorkspaces

GARDEN = Repo("Owner-Hub", "www-lil-intdev-garden")
ROOT = "at://did:plc:owner/app.bsky.feed.post/1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "watched_workspaces.json"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watched(path: Path, clock: FakeClock) -> WatchedWorkspaces:
    return WatchedWorkspaces(path, clock)


def test_a_workspace_is_watched_once_whatever_the_capitals(
    watched: WatchedWorkspaces, path: Path, clock: FakeClock
) -> None:
    assert watched.watch(GARDEN, ROOT)
    assert not watched.watch(Repo("owner-hub", "WWW-lil-intdev-garden"), "at://did:plc:kit/app.bsky.feed.post/2")
    assert json.loads(path.read_text())["workspaces"] == {
        "owner-hub/www-lil-intdev-garden": {
            "owner": "Owner-Hub",
            "repo": "www-lil-intdev-garden",
            "url": "https://github.com/Owner-Hub/www-lil-intdev-garden",
            "discoveredAt": iso(clock.now()),
            "discoveredInThread": ROOT,
            "activePlanIssues": [],
        }
    }


def test_the_first_thread_that_names_it_is_its_thread(watched: WatchedWorkspaces) -> None:
    assert watched.watch(GARDEN)
    assert not watched.is_thread_of_one(ROOT)
    assert not watched.watch(GARDEN, ROOT)
    watched.watch(GARDEN, "at://did:plc:kit/app.bsky.feed.post/2")
    assert watched.is_thread_of_one(ROOT)
    assert not watched.is_thread_of_one("at://did:plc:kit/app.bsky.feed.post/2")


def test_it_is_known_after_a_restart_with_what_others_wrote_into_it(path: Path, clock: FakeClock) -> None:
    WatchedWorkspaces(path, clock).watch(GARDEN, ROOT)
    file = json.loads(path.read_text())
    file["lastFullPoll"] = iso(clock.now())
    file["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] = [4]
    path.write_text(json.dumps(file))
    again = WatchedWorkspaces(path, clock)
    assert again.is_thread_of_one(ROOT)
    again.watch(Repo("kit", "www-lil-intdev-weir"))
    written = json.loads(path.read_text())
    assert written["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] == [4]
    assert written["lastFullPoll"] == iso(clock.now())
    assert [one.owner for one in WatchedWorkspaces(path, clock).all()] == ["Owner-Hub", "kit"]


def test_no_more_are_watched_than_can_be_looked_at(watched: WatchedWorkspaces) -> None:
    assert all(watched.watch(Repo("kit", f"www-lil-intdev-{number}")) for number in range(MOST_WATCHED))
    assert not watched.watch(GARDEN)
    assert len(watched.all()) == MOST_WATCHED
