"""Proves that the town's cluster runs a process as long as its Sandbox says so, and restarts it as a kubelet would."""

import base64
from pathlib import Path
from typing import Any

from tests.patience import until
from tests.town.running_kube import PODS, SANDBOXES, RunningCluster, running_cluster, sandbox
from town.kube import ObjectPlace

_SETTLED = [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0, 2, 78, 79]}}]


def _lives(folder: Path, home: str) -> int:
    file = folder / f"home-soul-{home}" / "lives"
    return len(file.read_text().splitlines()) if file.exists() else 0


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _container(town: RunningCluster, home: str) -> dict[str, Any]:
    pod = town.objects.get(ObjectPlace(PODS, f"soul-{home}")) or {}
    status: list[dict[str, Any]] = pod.get("status", {}).get("containerStatuses", [{}])
    return status[0]


async def test_a_process_runs_in_its_volume_until_it_is_suspended_and_again_when_it_is_not(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as town:
        town.add("rowan")
        await town.until("rowan", "Ready")
        await until(lambda: _lives(tmp_path, "rowan") == 1)
        town.mode("rowan", "Suspended")
        await town.until("rowan", "Suspended")
        assert town.objects.get(ObjectPlace(PODS, "soul-rowan")) is None
        assert not town.is_so("rowan", "Ready")
        town.mode("rowan", "Running")
        await town.until("rowan", "Ready")
        await until(lambda: _lives(tmp_path, "rowan") == 2)


async def test_it_is_given_its_settings_its_secret_and_its_soul_md(tmp_path: Path) -> None:
    script = ["sh", "-c", 'echo "$AGENT_NAME $KEY $(cat SOUL.md) $0" > told; exec sleep 60']
    async with running_cluster(tmp_path, script) as town:
        core = "/api/v1/namespaces/souls"
        secret = base64.b64encode(b"hidden").decode()
        town.objects.put(ObjectPlace(f"{core}/secrets", "keys"), {"data": {"KEY": secret}})
        town.objects.put(ObjectPlace(f"{core}/configmaps", "soul-rowan"), {"data": {"SOUL.md": "I am."}})
        told = sandbox("rowan", envFrom=[{"secretRef": {"name": "keys"}}], args=["run"])
        told["spec"]["podTemplate"]["spec"]["volumes"] = [{"name": "soul-md", "configMap": {"name": "soul-rowan"}}]
        town.objects.put(ObjectPlace(SANDBOXES, "soul-rowan"), told)
        file = tmp_path / "home-soul-rowan" / "told"
        await until(lambda: file.exists() and file.read_text() == "rowan hidden I am. run\n")


async def test_one_that_fails_is_started_again_and_one_that_sleeps_is_not(tmp_path: Path) -> None:
    script = ["sh", "-c", 'echo lived >> lives; [ "$(wc -l < lives)" -lt 3 ] && exit 1; exit 79']
    async with running_cluster(tmp_path, script) as town:
        town.add("rowan", restartPolicyRules=_SETTLED)
        await town.until("rowan", "Finished")
        assert _lives(tmp_path, "rowan") == 3
        assert _container(town, "rowan")["restartCount"] == 2
        assert _container(town, "rowan")["state"] == {"terminated": {"exitCode": 79}}


async def test_what_does_not_end_in_time_is_killed_and_so_is_all_when_the_town_closes(tmp_path: Path) -> None:
    stays = ["sh", "-c", "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done"]
    pid = tmp_path / "home-soul-rowan" / "pid"
    async with running_cluster(tmp_path, stays) as town:
        told = sandbox("rowan")
        told["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"] = 0
        town.objects.put(ObjectPlace(SANDBOXES, "soul-rowan"), told)
        await until(lambda: pid.exists() and pid.read_text())
        first = int(pid.read_text())
        town.mode("rowan", "Suspended")
        await town.until("rowan", "Suspended")
        assert not _runs(first)
        town.mode("rowan", "Running")
        await until(lambda: pid.read_text() not in {"", f"{first}\n"})
    assert not _runs(int(pid.read_text()))
