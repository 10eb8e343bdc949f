"""Proves that a fleet's pods are real SOULs: they live with their Secret, end when suspended, and report errors."""

import asyncio
import base64
import json
import sys
from pathlib import Path

import pytest

from soul import cli
from tests.patience import until
from tests.soul.fleet.fleet_files import written
from tests.town.running_kube import running_cluster
from town.kube import ObjectPlace

pytestmark = pytest.mark.slow

_SOUL = [str(Path(sys.executable).parent / "soul")]
_SECRET = {"AGENT_BLUESKY_PASSWORD": "a-b-c-d", "AI_GATEWAY_API_KEY": "key-of-rowan"}
_SETTINGS = {
    "AGENT_BLUESKY_USERNAME": "rowan.test",
    "ATPROTO_SERVICE_URL": "http://127.0.0.1:9",  # nothing listens there, so the SOUL keeps trying
    "OWNER_BLUESKY_SOCIAL_HANDLE": "you.test",
    "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:you",
}


async def test_a_fleet_of_souls_lives_sleeps_and_tells_which_secret_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    homes = [{"name": "rowan", "settings": _SETTINGS}, {"name": "wren", "sleep": False}]
    file = written(tmp_path, homes=homes)

    async def fleet(command: str, *arguments: str) -> int:
        return await asyncio.to_thread(cli.run, ["fleet", command, str(file), *arguments])

    async with running_cluster(tmp_path, _SOUL) as town:
        monkeypatch.setenv("KUBECONFIG", str(town.kubeconfig(tmp_path)))
        data = {name: base64.b64encode(value.encode()).decode() for name, value in _SECRET.items()}
        town.objects.put(ObjectPlace("/api/v1/namespaces/souls/secrets", "soul-rowan"), {"data": data})
        assert await fleet("apply") == 0
        log = tmp_path / "soul-rowan.log"
        await until(lambda: log.exists() and "Bluesky cannot be reached" in log.read_text(encoding="utf-8"))
        await town.until("wren", "Finished")  # it has no Secret
        capsys.readouterr()
        assert await fleet("list", "--json") == 0
        found = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
        assert found["rowan"]["state"] == "awake"
        assert found["wren"]["state"] == "ended"
        assert found["wren"]["detail"] == "a setting, a password or SOUL.md is wrong, or its version proved bad"
        assert await fleet("sleep", "rowan") == 0  # prints one line
        home = tmp_path / "home-soul-rowan"
        assert (home / "SELF.md").exists()
        assert await asyncio.to_thread(cli.run, ["status", "--home", str(home), "--json"]) == 0
        assert json.loads(capsys.readouterr().out.partition("\n")[2])["awake"] is False
        assert _SECRET["AI_GATEWAY_API_KEY"] not in log.read_text(encoding="utf-8")
