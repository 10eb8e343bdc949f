"""Proves that a newer image is tried by a few homes, then given to all or taken back, despite kills of the roll-out."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.kube import Cluster
from common.clock import FakeClock, iso
from common.errors import UsageError
from modules.runtime.sleep_note import Figures
from soul import cli
from soul.fleet.fleet_file import manifests, read_fleet, resource_of
from soul.fleet.policy import canaries_of, canary_of, image_of, last_exit
from soul.fleet.sandboxes import RollOut, RollOutStep, Sandboxes
from tests.patience import until
from tests.soul.fleet.fleet_files import FLEET, written
from tests.town.running_kube import PODS, SANDBOXES, RunningCluster, running_cluster
from town.kube import ObjectPlace

OLD, NEW = str(FLEET["image"]), "registry.example/soul:2"
HOMES: dict[str, Any] = {"homes": [{"name": "rowan"}, {"name": "wren"}, {"name": "ivy", "sleep": False}]}


class Fleet:
    """Three homes in the town's cluster; each `step` is one of a newly started roll-out, as after a kill."""

    def __init__(self, town: RunningCluster, cluster: Cluster, folder: Path) -> None:
        self.town, self.sandboxes, self.clock = town, Sandboxes(cluster), FakeClock()
        (folder / "ivy").mkdir()
        (folder / "ivy" / "SOUL.md").write_text("# A SOUL", encoding="utf-8")
        self.fleet = read_fleet(written(folder, **HOMES))

    async def apply(self) -> None:
        souls = dict.fromkeys(("rowan", "wren", "ivy"), "# A SOUL")
        for one in manifests(self.fleet, souls):
            (await self.sandboxes.cluster.apply(resource_of(one), one)).or_raise()
        for name in souls:
            await self.town.until(name, "Ready")

    async def step(self, first: int = 1) -> RollOutStep:
        return (await RollOut(self.sandboxes, self.fleet, NEW, first, self.clock).step()).or_raise()

    def pod(self, name: str) -> dict[str, Any]:
        return self.town.objects.get(ObjectPlace(PODS, f"soul-{name}")) or {}

    def why_stopped(self, name: str) -> str:
        canary = canary_of(self.town.sandbox(name))
        return canary.stopped if canary else ""

    def images(self) -> dict[str, tuple[str, str]]:
        """Return for each home the image that should run, and the one that runs."""
        return {
            name: (image_of(self.town.sandbox(name)), image_of(self.pod(name))) for name in ("rowan", "wren", "ivy")
        }


async def test_one_tries_it_for_two_days_then_sleepers_take_it_at_their_next_wake_and_who_never_sleeps_at_once(
    tmp_path: Path,
) -> None:
    async with running_cluster(tmp_path) as town, town.cluster() as cluster:
        fleet = Fleet(town, cluster, tmp_path)
        await fleet.apply()
        (await fleet.sandboxes.suspend("rowan", by_owner=False)).or_raise()
        await town.until("rowan", "Suspended")
        assert (await fleet.step()).standing == "under way"
        await town.until("rowan", "Ready")
        assert fleet.images() == {"rowan": (NEW, NEW), "wren": (OLD, OLD), "ivy": (OLD, OLD)}
        await fleet.step()
        await fleet.clock.advance(timedelta(hours=47).total_seconds())
        assert (await fleet.step()).standing == "under way"
        assert fleet.images()["wren"] == (OLD, OLD)
        await fleet.clock.advance(timedelta(hours=2).total_seconds())
        done = await fleet.step()
        assert done.standing == "done"
        assert NEW in done.told[-1]
        await town.until("ivy", "Ready")
        assert fleet.images() == {"rowan": (NEW, NEW), "wren": (NEW, OLD), "ivy": (NEW, NEW)}
        assert not any(canary_of(town.sandbox(name)) for name in ("rowan", "wren", "ivy"))


async def test_an_image_that_does_not_run_is_put_back_also_where_that_was_killed(tmp_path: Path) -> None:
    images = {NEW: ["sh", "-c", "exit 3"]}
    async with running_cluster(tmp_path, images=images) as town, town.cluster() as cluster:
        fleet = Fleet(town, cluster, tmp_path)
        await fleet.apply()
        assert (await fleet.step(first=2)).standing == "under way"
        await until(lambda: last_exit(fleet.pod("rowan")) == 3, what="the end of the new one")
        town.arm("stall", "PATCH *soul-wren", seconds=60)
        killed = asyncio.create_task(fleet.step(first=2))
        await until(
            lambda: bool((canary := canary_of(town.sandbox("rowan"))) and canary.stopped), what="the word that stops it"
        )
        killed.cancel()
        with suppress(asyncio.CancelledError):
            await killed
        back = await fleet.step(first=2)
        assert back.standing == "put back"
        assert "rowan: its process ended with code 3" in back.told
        for name in ("rowan", "wren"):
            await town.until(name, "Ready")
        assert fleet.images() == dict.fromkeys(("rowan", "wren", "ivy"), (OLD, OLD))
        assert not any(canary_of(town.sandbox(name)) for name in ("rowan", "wren"))


async def test_one_that_came_awake_between_two_hourly_steps_goes_on_trying_it_also_if_it_fell_asleep_again(
    tmp_path: Path,
) -> None:
    async with running_cluster(tmp_path) as town, town.cluster() as cluster:
        fleet = Fleet(town, cluster, tmp_path)
        await fleet.apply()
        await fleet.step(first=2)
        for name in ("rowan", "wren"):
            await town.until(name, "Ready")
        (await fleet.sandboxes.suspend("rowan", by_owner=False)).or_raise()
        await town.until("rowan", "Suspended")
        await fleet.clock.advance(3600)
        step = await fleet.step(first=2)
        assert (step.standing, [" tries it since " in line for line in step.told]) == ("under way", [True, True])
        assert town.is_so("rowan", "Suspended")


async def test_who_does_not_start_or_has_more_frictions_than_before_gets_the_image_back(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as town, town.cluster() as cluster:
        fleet = Fleet(town, cluster, tmp_path)
        await fleet.apply()
        for frictions, standing in ((5, "under way"), (14, "under way"), (15, "put back")):
            figures = Figures(0.0, iso(fleet.clock.now()), frictions)
            (await fleet.sandboxes.note_figures("rowan", figures)).or_raise()
            step = await fleet.step()
            assert step.standing == standing
        assert step.told[0] == "rowan: its frictions within a week rose from 5 to 15"

        await fleet.step()
        await town.until("rowan", "Ready")
        town.objects.put(ObjectPlace(SANDBOXES, "soul-rowan"), {**town.sandbox("rowan"), "status": {}})
        await fleet.clock.advance(601)
        assert (await fleet.step()).told[0] == "rowan: it was not awake within 10 minutes"
        assert image_of(town.sandbox("rowan")) == OLD


async def test_the_command_goes_on_with_what_it_finds_and_the_file_does_not_undo_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_cluster(tmp_path) as town:
        monkeypatch.setenv("KUBECONFIG", str(town.kubeconfig(tmp_path)))
        file = str(written(tmp_path))

        async def fleet(command: str, *arguments: str) -> int:
            return await asyncio.to_thread(cli.run, ["fleet", command, file, *arguments])

        assert await fleet("apply") == 0
        await town.until("rowan", "Ready")
        assert await fleet("upgrade", "--image", NEW, "--within", "0") == 0
        assert "rowan: starts" in capsys.readouterr().out
        await town.until("rowan", "Ready")
        assert await fleet("upgrade", "--image", NEW, "--canary", "50%", "--within", "0") == 0
        assert "rowan: tries it since" in capsys.readouterr().out
        assert await fleet("apply") == 78
        assert f"{NEW} is being tried" in capsys.readouterr().err
        assert await fleet("upgrade", "--image", "another:3") == 78
        assert await fleet("upgrade", "--image", NEW, "--canary", "some") == 2


def test_a_share_of_the_homes_is_at_least_one() -> None:
    assert [canaries_of(told, 40) for told in ("3", "5%", "1%", "100%", "90")] == [3, 2, 1, 40, 40]
    with pytest.raises(UsageError):
        canaries_of("0", 40)
