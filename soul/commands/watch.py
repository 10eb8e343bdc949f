"""`soul watch`: runs the watcher as a separate process, for SOULs that a cluster or a service manager starts."""

import asyncio
import os
import shlex
from asyncio.subprocess import DEVNULL, create_subprocess_exec
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from adapters.kube import Cluster, cluster_access
from common.clock import SystemClock
from common.constants import STATE_MAX_BYTES
from common.errors import ConfigError, UsageError
from common.files import expanded, read_bounded
from common.result import ApiResult, Err
from common.settings import Settings, settings_of
from modules.runtime.home import Home
from modules.runtime.sleep_note import Figures
from soul.fleet.fleet_file import read_fleet
from soul.fleet.sandboxes import Sandboxes
from soul.terminal.output import write_lines
from soul.watch.watcher import Watcher, keep_watch
from town.serving import LOOPBACK, listen_at

_COMMAND_S = 120.0


def run_watch(
    accounts: Annotated[Path, typer.Argument(metavar="ACCOUNTS", help="A folder with one folder for each SOUL.")],
    *,
    wake: Annotated[str, typer.Option(help="The command that starts a SOUL; its name is added as the last word.")] = "",
    asleep: Annotated[str, typer.Option(help="A command for when a SOUL falls asleep, called in the same way.")] = "",
    fleet: Annotated[
        Path | None, typer.Option(help="In place of these commands: the FLEET.yaml of the cluster in which this runs.")
    ] = None,
    state: Annotated[Path, typer.Option(help="The folder for notes and sessions.")] = Path(),
    host: Annotated[str, typer.Option(help="The address to listen at.")] = LOOPBACK,
    port: Annotated[int, typer.Option(help="The port to listen at.", min=1, max=65535)] = 7790,
) -> None:
    """Watch over the SOULs until SIGTERM or Ctrl-C. Raises `ConfigError` if the address cannot be listened at."""
    accounts, state = expanded(accounts).resolve(), expanded(state).resolve()
    if not accounts.is_dir():
        raise UsageError(f"{accounts} is not a folder", remedy="Give the folder that holds one folder for each SOUL.")
    if bool(wake) == bool(fleet):
        raise UsageError("One thing must start a SOUL", remedy="Give either --wake or --fleet.")

    async def watch() -> None:
        async with AsyncExitStack() as stack:
            load, clock = partial(_account, accounts, state), SystemClock()
            watcher = Watcher(load, partial(_call, wake), clock, partial(_call, asleep) if asleep else None)
            if fleet:
                of = read_fleet(expanded(fleet))
                cluster = await stack.enter_async_context(Cluster(cluster_access(), of.namespace, clock))
                pods = _Pods(Sandboxes(cluster))
                watcher = Watcher(load, pods.wake, clock, pods.suspend, pods.tell, of.wakes_usd)
            await keep_watch(watcher, listener, _names(accounts), _names(accounts))

    listener = listen_at(host, port)
    write_lines(f"Watching over the SOULs of {accounts}, at {host}:{port}")
    asyncio.run(watch())


@dataclass(frozen=True, slots=True)
class _Pods:
    """Starts and ends pods, as far as the owner permits, and notes figures on their Sandboxes."""

    sandboxes: Sandboxes

    async def wake(self, name: str) -> bool:
        return _is_done(name, await self.sandboxes.wake(name, by_owner=False))

    async def suspend(self, name: str) -> bool:
        return _is_done(name, await self.sandboxes.suspend(name, by_owner=False))

    async def tell(self, name: str, figures: Figures) -> bool:
        return _is_done(name, await self.sandboxes.note_figures(name, figures))


def _is_done(name: str, answer: ApiResult[Any]) -> bool:
    """Return whether the cluster succeeded; print the error if not."""
    if isinstance(answer, Err):
        write_lines(f"{name}: {answer.error}")
    return not isinstance(answer, Err)


def _names(accounts: Path) -> list[str]:
    return sorted(one.name for one in accounts.iterdir() if one.is_dir() and not one.name.startswith("."))


def _account(accounts: Path, state: Path, name: str) -> tuple[Home, Settings] | None:
    """Read the settings of a SOUL from its folder, one file each, as a cluster mounts a Secret, and the environment."""
    if name not in _names(accounts):
        return None
    try:
        files = {one.name.lower(): one for one in (accounts / name).iterdir() if one.is_file()}
        told = {key: read_bounded(one, STATE_MAX_BYTES).decode().strip() for key, one in files.items()}
        memory = state / name
        memory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The settings of {name} cannot be read: {error}") from error
    given = {key.lower(): value for key, value in os.environ.items()} | told
    settings, _ = settings_of({key: value for key, value in given.items() if key in Settings.model_fields})
    return Home(accounts / name, memory), settings


async def _call(command: str, name: str) -> bool:
    """Run a command with a SOUL's name, but no settings of a SOUL; return whether it exits with 0 in two minutes."""
    try:
        given = {key: value for key, value in os.environ.items() if key.lower() not in Settings.model_fields}
        process = await create_subprocess_exec(*shlex.split(command), name, stdin=DEVNULL, env=given)
    except (OSError, ValueError) as error:
        write_lines(f"{name}: {command} cannot be run: {error}")
        return False
    try:
        async with asyncio.timeout(_COMMAND_S):
            code = await process.wait()
    except TimeoutError:
        process.kill()
        code = await process.wait()
    if code:
        write_lines(f"{name}: {command} ended with code {code}")
    return code == 0
