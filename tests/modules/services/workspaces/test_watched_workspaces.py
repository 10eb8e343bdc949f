"""What the SOUL knows of the workspaces that it watches, and what is left of it on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.github.types import Repo
from common.clock import FakeClock, iso
from modules.services.workspaces.watched import GONE_FOR, MOST_WATCHED, WatchedWorkspaces

ADDRESS = "https://git.example.org"
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
    return WatchedWorkspaces(path, clock, ADDRESS)


def test_a_workspace_is_watched_once_whatever_the_capitals(
    watched: WatchedWorkspaces, path: Path, clock: FakeClock
) -> None:
    assert watched.watch(GARDEN, ROOT)
    assert not watched.watch(Repo("owner-hub", "WWW-lil-intdev-garden"), "at://did:plc:kit/app.bsky.feed.post/2")
    assert json.loads(path.read_text())["workspaces"] == {
        "owner-hub/www-lil-intdev-garden": {
            "owner": "Owner-Hub",
            "repo": "www-lil-intdev-garden",
            "url": f"{ADDRESS}/Owner-Hub/www-lil-intdev-garden",
            "discoveredAt": iso(clock.now()),
            "discoveredInThread": ROOT,
            "activePlanIssues": [],
            "undoableTold": [],
            "requested": False,
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
    WatchedWorkspaces(path, clock, ADDRESS).watch(GARDEN, ROOT)
    file = json.loads(path.read_text())
    file["lastFullPoll"] = iso(clock.now())
    file["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] = [4]
    path.write_text(json.dumps(file))
    again = WatchedWorkspaces(path, clock, ADDRESS)
    assert again.is_thread_of_one(ROOT)
    again.watch(Repo("kit", "www-lil-intdev-weir"))
    written = json.loads(path.read_text())
    assert written["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] == [4]
    assert written["lastFullPoll"] == iso(clock.now())
    assert [one.owner for one in WatchedWorkspaces(path, clock, ADDRESS).all()] == ["Owner-Hub", "kit"]


def test_no_more_are_watched_than_can_be_looked_at(watched: WatchedWorkspaces) -> None:
    assert all(watched.watch(Repo("kit", f"www-lil-intdev-{number}")) for number in range(MOST_WATCHED))
    assert not watched.watch(GARDEN)
    assert len(watched.all()) == MOST_WATCHED


def test_what_is_noted_of_a_workspace_is_kept_and_can_be_taken_away(path: Path, clock: FakeClock) -> None:
    watched = WatchedWorkspaces(path, clock, ADDRESS)
    watched.watch(GARDEN)
    now = clock.now()
    watched.note(GARDEN, last_plan_synthesis_attempt=now, last_health_check_attempt=now, finished_issue_number=7)
    watched.note(Repo("kit", "www-lil-intdev-weir"), finished_issue_number=1)
    assert WatchedWorkspaces(path, clock, ADDRESS).all() == watched.all()
    kept = json.loads(path.read_text())["workspaces"]
    assert kept.keys() == {"owner-hub/www-lil-intdev-garden"}
    found = kept["owner-hub/www-lil-intdev-garden"]
    assert (found["lastPlanSynthesisAttempt"], found["lastHealthCheckAttempt"]) == (iso(now), iso(now))
    assert found["finishedIssueNumber"] == 7
    watched.note(GARDEN, last_health_check_attempt=None, finished_issue_number=None)
    kept = json.loads(path.read_text())["workspaces"]["owner-hub/www-lil-intdev-garden"]
    assert kept.keys() & {"lastHealthCheckAttempt", "finishedIssueNumber"} == set()
    assert kept["lastPlanSynthesisAttempt"] == iso(now)


def test_a_file_of_another_program_is_taken_over_in_place(path: Path, clock: FakeClock) -> None:
    entry = {
        "owner": "Owner-Hub",
        "repo": "www-lil-intdev-garden",
        "url": f"{ADDRESS}/Owner-Hub/www-lil-intdev-garden",
        "discoveredAt": "2026-01-02T03:04:05.000Z",
        "lastPolled": None,
        "activePlanIssues": [3],
        "finishedIssueNumber": 9,
    }
    later = {**entry, "discoveredAt": "2026-01-03T03:04:05.000Z", "finishedIssueNumber": 10}
    file = {
        "_memoryVersion": "0.0.1",
        "lastFullPoll": None,
        "workspaces": {"Owner-Hub/www-lil-intdev-garden": entry, "owner-hub/www-lil-intdev-garden": later},
    }
    path.write_text(json.dumps(file))
    watched = WatchedWorkspaces(path, clock, ADDRESS)
    assert [one.finished_issue_number for one in watched.all()] == [9]
    assert not watched.watch(GARDEN)
    watched.note_plans(GARDEN, [3, 4])
    kept = json.loads(path.read_text())
    assert list(kept["workspaces"]) == ["owner-hub/www-lil-intdev-garden"]
    assert kept["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] == [3, 4]
    assert kept["workspaces"]["owner-hub/www-lil-intdev-garden"]["finishedIssueNumber"] == 9


async def test_a_workspace_that_is_missed_for_a_week_is_watched_no_longer_unless_it_is_finished(
    watched: WatchedWorkspaces, path: Path, clock: FakeClock
) -> None:
    weir = Repo("kit", "www-lil-intdev-weir")
    watched.watch(GARDEN)
    watched.watch(weir)
    watched.note(weir, finished_issue_number=3)
    await clock.advance(GONE_FOR.total_seconds() - 1)
    assert not watched.unwatch_gone(GARDEN)
    watched.note_plans(GARDEN, [])
    await clock.advance(GONE_FOR.total_seconds() - 1)
    assert not watched.unwatch_gone(GARDEN)
    await clock.advance(1)
    assert watched.unwatch_gone(GARDEN)
    assert not watched.unwatch_gone(GARDEN)
    assert not watched.unwatch_gone(weir)
    assert [one.repo for one in WatchedWorkspaces(path, clock, ADDRESS).all()] == [weir.name]


def test_a_requested_repository_is_the_default_only_without_a_workspace(watched: WatchedWorkspaces, path: Path) -> None:
    site = Repo("kit", "site")
    assert watched.default() is None
    watched.watch(site, requested=True)
    assert watched.default() == site
    watched.watch(GARDEN)
    assert watched.default() == GARDEN
    assert watched.unwatch(GARDEN)
    again = WatchedWorkspaces(path, FakeClock(), ADDRESS)
    assert [(one.repo, one.requested) for one in again.all()] == [("site", True)]
    assert (again.stopped_at(GARDEN), again.stopped_at(site)) == (FakeClock().now(), None)
