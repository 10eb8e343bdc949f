"""Proves the owner's commands for a fleet, against a cluster whose pods are real processes."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from common.clock import SystemClock, iso
from common.errors import ConfigError
from modules.runtime.sleep_note import Figures
from soul import cli
from soul.fleet.fleet_file import read_fleet
from soul.fleet.sandboxes import Sandboxes
from tests.soul.fleet.fleet_files import written
from tests.town.running_kube import LIVES, RunningCluster, running_cluster

Fleet: TypeAlias = Callable[..., Awaitable[int]]


def _fleet(town: RunningCluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("KUBECONFIG", str(town.kubeconfig(folder)))
    file = written(folder)

    async def run(command: str, *arguments: str) -> int:
        return await asyncio.to_thread(cli.run, ["fleet", command, str(file), *arguments])

    return run


def _listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


async def test_a_fleet_is_applied_put_to_sleep_and_woken_and_applying_it_again_wakes_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_cluster(tmp_path) as town:
        fleet = _fleet(town, tmp_path, monkeypatch)
        assert await fleet("list") == 0
        assert capsys.readouterr().out.count("not applied") == 2
        assert await fleet("apply") == 0
        assert await fleet("wake", "--within", "30") == 0
        assert (tmp_path / "home-soul-rowan" / "SOUL.md").read_text(encoding="utf-8") == "# A SOUL\n"
        assert await fleet("sleep", "wren") == 0
        assert await fleet("apply") == 0
        town.add("ivy")
        await town.until("ivy", "Ready")
        capsys.readouterr()
        assert await fleet("list", "--json") == 0
        found = _listed(capsys)
        assert {name: row["state"] for name, row in found.items()} == {
            "rowan": "awake",
            "wren": "asleep",
            "ivy": "awake",
        }
        assert found["rowan"]["image"] == "registry.example/soul:1"
        assert found["ivy"]["detail"] == "not in the file"
        assert await fleet("wake", "wren") == 0
        assert town.is_so("wren", "Ready")


async def test_a_home_that_may_not_sleep_any_more_is_woken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_cluster(tmp_path) as town, town.cluster() as cluster:
        fleet = _fleet(town, tmp_path, monkeypatch)
        assert await fleet("apply") == 0
        (await Sandboxes(cluster).suspend("rowan", by_owner=False)).or_raise()
        await town.until("rowan", "Suspended")
        written(tmp_path, homes=[{"name": "rowan", "sleep": False}, {"name": "wren", "storage": "5Gi"}])
        assert await fleet("apply") == 0
        await town.until("rowan", "Ready")


async def test_it_is_told_how_far_the_dollars_of_the_day_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_cluster() as town:
        monkeypatch.setenv("KUBECONFIG", str(town.kubeconfig(tmp_path)))
        file = str(written(tmp_path, budget_usd_per_day=3, settings={"BUDGET_USD_PER_DAY": 1}))
        assert await asyncio.to_thread(cli.run, ["fleet", "apply", file]) == 0
        ends = iso(SystemClock().now() + timedelta(hours=1))
        async with town.cluster() as cluster:
            for usd, told in ((1.5, ""), (2.5, "; wakes for time alone wait")):
                (await Sandboxes(cluster).note_figures("rowan", Figures(usd, ends))).or_raise()
                capsys.readouterr()
                assert await asyncio.to_thread(cli.run, ["fleet", "list", file]) == 0
                aside = "1.00 set aside for those that never sleep"
                line = f"Today's dollars: {usd:.2f} of 3.00 used, {aside}{told}"
                assert capsys.readouterr().out.splitlines()[-1] == line
    with pytest.raises(ConfigError, match="rowan needs BUDGET_USD_PER_DAY"):
        read_fleet(written(tmp_path, budget_usd_per_day=3))


async def test_one_whose_process_ended_is_told_and_woken_in_a_new_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sleeps_first = ["sh", "-c", f"[ -e lives ] || {{ echo slept > lives; exit 79; }}; {LIVES[-1]}"]
    async with running_cluster(tmp_path, sleeps_first) as town:
        fleet = _fleet(town, tmp_path, monkeypatch)
        assert await fleet("apply") == 0
        await town.until("rowan", "Finished")
        assert await fleet("list") == 0
        line = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("rowan"))
        assert "ended" in line
        assert "asleep" in line
        assert await fleet("wake", "rowan") == 0
        assert town.is_so("rowan", "Ready")
        assert (tmp_path / "home-soul-rowan" / "lives").read_text(encoding="utf-8") == "slept\nlived\n"


async def test_one_that_fails_again_and_again_is_told_with_its_exit_code_and_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_cluster(tmp_path, ["sh", "-c", "exit 74"], restart_s=600.0) as town:
        fleet = _fleet(town, tmp_path, monkeypatch)
        assert await fleet("apply") == 0
        assert await fleet("wake", "rowan", "--within", "0.2") == 1
        capsys.readouterr()
        assert await fleet("list", "--json") == 0
        rowan = _listed(capsys)["rowan"]
        assert rowan["state"] == "failing"
        assert rowan["detail"] == "its process ended with code 74, restarts: 1"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"versions": ()}, "has no agent-sandbox"),
        ({"versions": ("v2",)}, "serves agents.x-k8s.io as v2"),
        ({"minor": "34"}, "runs Kubernetes 1.34"),
    ],
)
async def test_nothing_is_sent_to_a_cluster_that_could_not_keep_a_fleet(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, Any],
    told: str,
) -> None:
    async with running_cluster(**options) as town:
        assert await _fleet(town, tmp_path, monkeypatch)("apply") == 78
        assert told in capsys.readouterr().err
        assert not town.objects.version


async def test_what_the_cluster_refuses_and_what_nobody_wrote_down_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_cluster() as town:
        fleet = _fleet(town, tmp_path, monkeypatch)
        assert await fleet("wake", "nobody") == 2
        assert "has no home nobody" in capsys.readouterr().err
        assert await fleet("wake", "rowan", "--within", "0") == 1
        assert '"soul-rowan" not found' in capsys.readouterr().err
        assert await fleet("list", "--context", "elsewhere") == 78
        assert "elsewhere" in capsys.readouterr().err
        assert await fleet("apply") == 0
        file = written(tmp_path, homes=[{"name": "rowan", "storage": "9Gi"}])
        assert await asyncio.to_thread(cli.run, ["fleet", "apply", str(file)]) == 1
        assert "volumeClaimTemplates is immutable" in capsys.readouterr().err
        town.service.token = "another"
        assert await fleet("list") == 1
        assert "Unauthorized" in capsys.readouterr().err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert await fleet("list") == 78
    assert "kubeconfig" in capsys.readouterr().err


async def test_homes_wake_and_sleep_though_the_cluster_is_in_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_cluster(tmp_path) as town:
        fleet = _fleet(town, tmp_path, monkeypatch)
        assert await fleet("apply") == 0
        town.arm("too_many", "GET *", seconds=1)
        town.arm("conflict", "PATCH *")
        town.arm("lost_answer", "PATCH *")
        town.arm("cut", "WATCH *", times=3)
        assert await fleet("sleep") == 0
        assert town.is_so("rowan", "Suspended")
        town.arm("unavailable", times=2)
        assert await fleet("wake") == 0
        assert town.is_so("rowan", "Ready")
