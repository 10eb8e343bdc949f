"""Proves that the button on the page for all SOULs wakes one whose watcher is another process, or says why not."""

import asyncio
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from adapters.watch import SleepWatch, wake_token, watch_token
from common.clock import SystemClock, iso
from common.result import Ok
from common.settings import Settings, load_settings
from modules.runtime.home import Home
from modules.runtime.sleep_note import SleepNote, write_note, write_watcher
from soul.dashboard.serving import serve_many
from soul.watch.watcher import Watcher
from tests.patience import until
from tests.running_town import PASSWORD, RunningTown
from town.serving import serve


async def test_the_button_wakes_through_a_watcher_that_does_not_see_the_home(
    running_town: RunningTown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, called, home = SystemClock(), list[str](), running_town.make_home("rowan")
    home.memory.mkdir(exist_ok=True)
    (state := tmp_path / "state").mkdir()

    def load(_: str) -> tuple[Home, Settings]:
        return Home(tmp_path, state), load_settings(home.root)

    async def wake(name: str) -> bool:
        called.append(name)
        return True

    watcher = Watcher(load, wake, clock)
    ends = iso(clock.now() + timedelta(hours=20))
    note = SleepNote("rowan", running_town.account("rowan"), iso(clock.now()), ends, {"bluesky": 45.0})
    page = asyncio.create_task(serve_many({"rowan": home.root}, clock, 0))
    told = [""]

    def is_told() -> bool:
        told.append(told[-1] + capsys.readouterr().out)
        return "token=" in told[-1]

    await until(is_told, what="the address of the page")
    address = httpx.URL(told[-1].split()[-1])
    headers = {"origin": f"http://{address.netloc.decode()}"}
    async with httpx.AsyncClient(follow_redirects=True, headers=headers) as owner:
        async with serve(watcher.app()) as url:
            asleep = SleepWatch(url, "rowan", watch_token(PASSWORD))
            assert await asleep.begin({"github": []}) == Ok(None)
            assert await asleep.hold(asdict(note)) == Ok(None)
            write_watcher(home.memory, url, "rowan", wake_token(asleep.token))
            write_note(home.memory, note)
            watching = asyncio.create_task(watcher.watch())
            assert "Wake rowan" in (await owner.get(address)).text
            button = address.join("/wake")
            assert (
                await owner.post(button, data={"of": "rowan"}, headers={"origin": "http://x.test"})
            ).status_code == 403
            assert "Not woken" not in (await owner.post(button, data={"of": "rowan"})).text
            await until(lambda: called == ["rowan"], what="the call that starts it")
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        assert "Not woken: its watcher does not answer" in (await owner.post(button, data={"of": "rowan"})).text
    await watcher.aclose()
    page.cancel()
    await asyncio.gather(page, return_exceptions=True)
