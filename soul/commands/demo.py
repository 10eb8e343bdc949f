"""`soul demo`: a town on this machine, three SOULs in it as processes of their own, and a page to watch them.

Everything lies in a temporary folder and is gone when the demo ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from common.errors import ConfigError, Fatal
from common.files import write_atomic
from common.settings import load_settings
from modules.home import Home
from soul.commands.init import fill_env
from soul.resources import template
from town.mind.gateway import GatewayMind
from town.residents import Resident
from town.town import Town, open_town

_STOP_GRACE_S = 8.0
_STAGGER_S = 0.7
_OWN_VARIABLES = ("AGENT_", "OWNER_", "ATPROTO_", "AI_GATEWAY_", "SOUL_", "MEMORY_DIR", "POST_LANGUAGES")


def run_demo(*, minutes: float, speed: float, port: int, mind: str, home: Path) -> None:
    """Show the town. Raises `ConfigError` for what only the caller can mend."""
    asyncio.run(_show(minutes=minutes, speed=speed, port=port, mind=_mind(mind, home)))


def _mind(choice: str, home: Path) -> Literal["scripted"] | GatewayMind:
    if choice == "scripted":
        return "scripted"
    if choice != "gateway":
        raise ConfigError(f"--mind {choice} is unknown", remedy="Use scripted or gateway.")
    settings = load_settings(home)
    return GatewayMind(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
    )


async def _show(*, minutes: float, speed: float, port: int, mind: Literal["scripted"] | GatewayMind) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, ended.set)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soul-demo-")))
        town = await stack.enter_async_context(open_town(port=port, mind=mind, homes=folder))
        for resident in town.residents:
            make_home(folder / resident.name, resident, town, speed)
            await stack.enter_async_context(_living(folder / resident.name))
            await _wait(ended, _STAGGER_S)
        names = ", ".join(resident.display_name for resident in town.residents)
        print(f"\n  The town is awake: {names}.\n  Watch them, and say something: {town.page_url}\n", flush=True)  # noqa: T201
        print("  Ctrl-C ends it.\n" if minutes <= 0 else f"  It ends by itself in {minutes:g} minutes.\n", flush=True)  # noqa: T201
        await _wait(ended, minutes * 60 if minutes > 0 else None)
    print("  The town is asleep again; nothing of it is left.", flush=True)  # noqa: T201


def make_home(root: Path, resident: Resident, town: Town, speed: float) -> Home:
    """A home as `soul init` would make it, with the resident's own SOUL.md and SELF.md."""
    home = Home.at(root)
    account = town.accounts[resident.name]
    answers: Mapping[str, str] = {
        "AGENT_NAME": resident.name,
        "OWNER_BLUESKY_SOCIAL_HANDLE": town.owner.handle,
        "OWNER_BLUESKY_SOCIAL_HANDLE_DID": town.owner.did,
        "AGENT_BLUESKY_USERNAME": account.handle,
        "AGENT_BLUESKY_PASSWORD": account.password,
        "ATPROTO_SERVICE_URL": town.atproto_url,
        "AI_GATEWAY_API_KEY": town.model_key,
        "AI_GATEWAY_BASE_URL": town.model_url,
        "AI_GATEWAY_MODEL": town.model,
        "SOUL_SPEED": f"{speed:g}",
    }
    write_atomic(home.env, fill_env(template(".env.example"), dict(answers)), mode=0o600)
    write_atomic(home.soul, resident.soul)
    write_atomic(home.self_md, resident.self_md)
    return home


@asynccontextmanager
async def _living(root: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """One SOUL as a child process; its words go to `life.log` in its home."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(_OWN_VARIABLES)}
    log = (root / "life.log").open("wb")
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "soul.cli",
            "run",
            "--home",
            str(root),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            await _end(process)
        if process.returncode:
            raise Fatal(f"{root.name} ended with code {process.returncode}: {_last_line(root / 'life.log')}")
    finally:
        log.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_GRACE_S)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _wait(ended: asyncio.Event, seconds: float | None) -> None:
    try:
        await asyncio.wait_for(ended.wait(), seconds)
    except TimeoutError:
        return


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
