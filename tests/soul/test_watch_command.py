"""Proves that a SOUL under `soul run` sleeps where `soul watch` looks for it, and is started when something comes."""

import asyncio
import sys
from pathlib import Path

import pytest

from modules.runtime.home import lock_holder
from soul.exit_codes import ASLEEP
from tests.patience import HANG_S, until
from tests.program import soul
from tests.running_town import PASSWORD, RunningTown
from tests.soul.test_sleep import new_words
from town.serving import LOOPBACK, listen_at


@pytest.mark.slow
async def test_it_ends_with_a_code_of_its_own_and_its_watcher_starts_it(
    running_town: RunningTown, tmp_path: Path
) -> None:
    running_town.mind.answer = new_words()
    with listen_at(LOOPBACK, 0) as free:
        port = free.getsockname()[1]
    rowan = running_town.make_home("rowan", SOUL_SPEED="200", SLEEP_WATCH_URL=f"http://{LOOPBACK}:{port}")
    account = tmp_path / "accounts" / "rowan"
    woken = tmp_path / "woken" / "rowan"
    for folder in (account, woken.parent):
        folder.mkdir(parents=True)
    for name, value in (
        ("AGENT_BLUESKY_USERNAME", "rowan.test"),
        ("AGENT_BLUESKY_PASSWORD", PASSWORD),
        ("ATPROTO_SERVICE_URL", running_town.atproto_url),
    ):
        (account / name).write_text(f"{value}\n")
    told = ("watch", str(account.parent), "--wake", "touch", "--asleep", "rm", "--state", str(tmp_path / "state"))
    watcher = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "soul.cli", *told, "--port", str(port)), cwd=woken.parent
    )
    try:
        await until(woken.exists, what="a start of a SOUL of whom nothing is known")
        assert (await asyncio.wait_for(soul("run", "--home", str(rowan.root)), HANG_S)).code == ASLEEP
        assert lock_holder(rowan) is None
        await until(lambda: not woken.exists(), what="word of who sleeps")
        assert "asleep since" in (await soul("status", "--home", str(rowan.root))).output
        running_town.account("wren")
        assert (await soul("mute", "@wren.test", "--home", str(rowan.root))).code == 0
        await until(woken.exists, what="a start for what a command wrote")
        assert (await asyncio.wait_for(soul("run", "--home", str(rowan.root)), HANG_S)).code == ASLEEP
        await until(lambda: not woken.exists(), what="word of who sleeps again")
        running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, tin or slate?")
        await until(woken.exists, what="a start for the mention")
    finally:
        watcher.terminate()
        await watcher.wait()
    assert (tmp_path / "state" / "rowan" / "watch_session.json").exists()
