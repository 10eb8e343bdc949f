"""Measures how much memory `soul watch` takes for many SOULs that sleep, and how many requests it sends.

Run: `python bench/watch.py [--souls 1000]`. Exit code 1 if a limit is passed. Reads /proc, so it needs Linux.

Each SOUL has an account at a network on loopback and hands over to one watcher, which then looks for a minute. It
prints the process's private memory (Private_Clean and Private_Dirty of smaps_rollup), the requests per second, the
logins, and after how many seconds a mention woke its SOUL.
"""

import argparse
import asyncio
import sys
import tempfile
from asyncio.subprocess import DEVNULL, create_subprocess_exec
from collections import Counter
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from starlette.types import Receive, Scope, Send

from adapters.watch import SleepWatch, watch_token
from bench.start import private_mib
from common.clock import SystemClock, iso
from modules.runtime.sleep_note import SleepNote
from modules.services.sleep import LOOKS_S
from tests.patience import until
from tests.running_town import PASSWORD
from town.atproto.network import Network
from town.atproto.service import AtprotoLimits, atproto_app
from town.serving import serve

LIMIT_MIB, LIMIT_PER_S = 60.0, 10.0
"""Bluesky allows one address 3,000 requests in five minutes."""
_HASTE = 4.0
"""Widens the service's limits, because here all fall asleep within a minute; the counted requests are judged."""
_PORT, _HANG_S, _LOOKED_S, _AT_ONCE = 7791, 600.0, 60.0, 20


async def hand_over(name: str, did: str, turns: asyncio.Semaphore) -> None:
    """Hand a SOUL that falls asleep over to the watcher."""
    now = SystemClock().now()
    note = SleepNote(name, did, iso(now), iso(now + timedelta(hours=20)), LOOKS_S)
    watch = SleepWatch(f"http://127.0.0.1:{_PORT}", name, watch_token(PASSWORD))
    async with turns:
        (await watch.begin({"github": []})).or_raise()
        (await watch.hold(asdict(note))).or_raise()


async def measure(count: int) -> int:
    """Measure, print, and return 1 if a limit is passed, else 0."""
    network, asked = Network(clock=SystemClock()), Counter[str]()
    service = atproto_app(network, limits=AtprotoLimits().at_speed(_HASTE))

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        asked[str(scope.get("path", "")).rpartition("/")[2]] += 1
        await service(scope, receive, send)

    dids = {f"soul{number}": "" for number in range(count)}
    names = [*dids]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with serve(counted) as url:
            for name in names:
                dids[name] = network.create_account(f"{name}.test", PASSWORD, display_name=name).did
                account = root / "accounts" / name
                account.mkdir(parents=True)
                (account / "AGENT_BLUESKY_USERNAME").write_text(f"{name}.test")
                (account / "AGENT_BLUESKY_PASSWORD").write_text(PASSWORD)
                (account / "ATPROTO_SERVICE_URL").write_text(url)
            (root / "woken").mkdir()
            told = ("watch", str(root / "accounts"), "--wake", "touch", "--state", str(root / "state"))
            command = (sys.executable, "-m", "soul.cli", *told, "--port", str(_PORT))
            process = await create_subprocess_exec(*command, cwd=root / "woken", stdout=DEVNULL)
            try:
                await until(lambda: len([*(root / "woken").iterdir()]) == count, _HANG_S, what="all without a note")
                alone = private_mib(process.pid)
                turns = asyncio.Semaphore(_AT_ONCE)
                await asyncio.gather(*(hand_over(name, dids[name], turns) for name in names))
                logins = asked["com.atproto.server.createSession"]
                asked.clear()
                await until(lambda: asked.total() > 0, _HANG_S, what="the first look")
                asked.clear()
                await asyncio.sleep(_LOOKED_S)
                per_s, found = asked.total() / _LOOKED_S, private_mib(process.pid)
                (root / "woken" / names[0]).unlink()
                began = SystemClock().monotonic()
                writer = network.create_account("kit.test", PASSWORD, display_name="kit").did
                network.post_as(writer, f"Morning @{names[0]}.test, tin or slate?")
                await until((root / "woken" / names[0]).exists, _HANG_S, what="who was mentioned")
                woken_s = SystemClock().monotonic() - began
            finally:
                process.terminate()
                await process.wait()
    sys.stdout.write(
        f"{count} asleep: {found:.1f} MiB private ({alone:.1f} with nobody asleep), {per_s:.2f} requests/s "
        f"({per_s * 86_400 / count:.0f} a day each), "
        f"{logins} logins and {asked['com.atproto.server.createSession']} later; a mention woke after {woken_s:.0f} s\n"
    )
    return int(found > LIMIT_MIB or per_s > LIMIT_PER_S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--souls", type=int, default=1000)
    sys.exit(asyncio.run(measure(parser.parse_args().souls)))
