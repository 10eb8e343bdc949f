"""Proves that a SOUL of a fleet falls asleep, its watcher suspends its Sandbox, and a mention wakes it in a new pod."""

import asyncio
import sys
from pathlib import Path

import pytest

from modules.runtime.home import lock_holder
from soul import cli
from tests.patience import until
from tests.running_town import PASSWORD, RunningTown
from tests.soul.fleet.fleet_files import written
from tests.soul.test_sleep import new_words
from tests.town.running_kube import running_cluster
from town.serving import LOOPBACK, listen_at

pytestmark = pytest.mark.slow


async def test_a_soul_that_sleeps_has_no_pod_and_a_mention_brings_it_back(
    running_town: RunningTown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running_town.mind.answer = new_words()
    with listen_at(LOOPBACK, 0) as free:
        port = free.getsockname()[1]
    url = f"http://{LOOPBACK}:{port}"
    home = running_town.make_home("rowan", SOUL_SPEED="200")
    (tmp_path / "home-soul-rowan").symlink_to(home.root)
    account = tmp_path / "accounts" / "rowan"
    account.mkdir(parents=True)
    login = {"USERNAME": "rowan.test", "PASSWORD": PASSWORD}
    for name, value in ({f"AGENT_BLUESKY_{key}": one for key, one in login.items()}).items():
        (account / name).write_text(value, encoding="utf-8")
    (account / "ATPROTO_SERVICE_URL").write_text(running_town.atproto_url, encoding="utf-8")
    soul = [sys.executable, "-m", "soul.cli"]
    file = written(tmp_path, settings={}, homes=[{"name": "rowan"}], soul_md=home.soul.read_text(encoding="utf-8"))
    entrypoint = ["env", f"SLEEP_WATCH_URL={url}", f"PYTHONPATH={Path.cwd()}", *soul]  # no Service names here
    async with running_cluster(tmp_path, entrypoint) as town:
        monkeypatch.setenv("KUBECONFIG", str(town.kubeconfig(tmp_path)))
        assert await asyncio.to_thread(cli.run, ["fleet", "apply", str(file)]) == 0
        options = [f"--fleet={file}", f"--state={tmp_path / 'state'}", f"--port={port}"]
        told = [*soul, "watch", str(account.parent), *options]
        watcher = await asyncio.create_subprocess_exec(*told)
        try:
            await town.until("rowan", "Suspended")
            assert lock_holder(home) is None
            before = len(running_town.texts("rowan"))
            running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, tin or slate?")
            await until(lambda: len(running_town.texts("rowan")) > before, what="an answer")
            await town.until("rowan", "Suspended")

            watcher.terminate()
            await watcher.wait()
            assert await asyncio.to_thread(cli.run, ["fleet", "sleep", str(file), "rowan"]) == 0
            generation = town.sandbox("rowan")["metadata"]["generation"]
            (tmp_path / "state" / "rowan" / "sleep.json").unlink()
            asked = len(town.service.requests)
            watcher = await asyncio.create_subprocess_exec(*told)
            await until(lambda: len(town.service.requests) >= asked + 2, what="a watcher that would start it")
            watcher.terminate()
            await watcher.wait()
            assert town.sandbox("rowan")["metadata"]["generation"] == generation, "its owner put it to sleep"
            watcher = await asyncio.create_subprocess_exec(*told)
            assert await asyncio.to_thread(cli.run, ["fleet", "wake", str(file), "rowan"]) == 0
        finally:
            watcher.terminate()
            await watcher.wait()
