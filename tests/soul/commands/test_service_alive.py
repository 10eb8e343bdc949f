"""Proves that a real systemd restarts a SOUL up to a limit, ends it when asked, and keeps its output."""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from modules.runtime.home import Home, lock_holder
from soul.commands.service import STARTS, service_name
from tests.patience import HANG_S, until
from tests.running_town import RunningTown

_SYSTEMD = Path("/usr/lib/systemd")
_GROUPS = [Path(path) for path in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")]
_BEGIN = """
set -e
mkdir -p /run/systemd /run/log
mount -t tmpfs tmpfs /run/systemd
mount -t tmpfs tmpfs /run/log
mkdir /run/systemd/system
for group in "$@"; do echo $$ > "$group/cgroup.procs"; done
"$SYSTEMD/systemd-journald" &
exec "$SYSTEMD/systemd" --user
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux"
        or os.geteuid() != 0
        or not (_SYSTEMD / "systemd-journald").exists()
        or not all(map(shutil.which, ("unshare", "nsenter", "systemctl", "journalctl")))
        or not Path("/etc/machine-id").exists(),
        reason="only root can begin a session of systemd beside that of the machine, where systemd is installed",
    ),
]


@dataclass(frozen=True)
class Session:
    """A session of systemd, separate from those of the machine."""

    pid: int
    folder: Path

    async def call(self, *command: str) -> str:
        """Return what a command prints in the session, and its exit code if that is not 0."""
        inside = ("nsenter", "--target", str(self.pid), "--mount", *command)
        process = await asyncio.create_subprocess_exec(*inside, env=environment(self.folder), stdout=PIPE)
        async with asyncio.timeout(HANG_S):
            told, _ = await process.communicate()
        return told.decode() + (f"exit code {process.returncode}" if process.returncode else "")

    async def service(self, command: str, home: Home) -> str:
        """Return what a command of `soul service` prints for a home."""
        return await self.call(sys.executable, "-m", "soul.cli", "service", command, "--home", str(home.root))

    async def of_unit(self, name: str, unit: str) -> str:
        """Return a property of a unit as systemd reports it."""
        return (await self.call("systemctl", "--user", "show", "--property", name, "--value", unit)).strip()


def environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "SYSTEMD": str(_SYSTEMD)}


@asynccontextmanager
async def open_session(folder: Path) -> AsyncIterator[Session]:
    folder.mkdir(mode=0o700)  # noqa: ASYNC240 - nothing else runs yet
    roots = [root for root in _GROUPS if (root / "cgroup.procs").exists()]
    groups = [root / f"soul-test-{os.getpid()}.slice/user@0.service" for root in roots]
    for group in groups:
        group.mkdir(parents=True)
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--mount", "sh", "-c", _BEGIN, "sh", *map(str, groups)),
        env=environment(folder),
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    session = Session(process.pid, folder)
    try:
        await until((folder / "systemd/private").exists, what="the session")
        yield session
    finally:
        process.terminate()
        await process.wait()
        await until(lambda: all(map(is_gone, groups)), what="the end of all processes")


def is_gone(group: Path) -> bool:
    """Kill what is left in a control group and remove the group; return whether it is gone."""
    for procs in group.rglob("cgroup.procs"):
        for pid in procs.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    with suppress(OSError):
        for folder in (*sorted((one for one in group.rglob("*") if one.is_dir()), reverse=True), group, group.parent):
            folder.rmdir()
    return not group.exists()


async def test_a_killed_soul_is_started_again_up_to_the_limit_and_stop_is_stop(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home = running_town.make_home("rowan")
    unit = f"{service_name(home.root)}.service"
    async with open_session(tmp_path / "session") as session:
        assert "Wrote" in await session.service("install", home)
        settings = tmp_path / "session/.config/systemd/user" / f"{unit}.d"
        settings.mkdir()
        (settings / "haste.conf").write_text("[Service]\nRestartSec=100ms\n")
        await session.call("systemctl", "--user", "daemon-reload")
        await session.service("start", home)
        await until(lambda: "On Bluesky" in home_log(home), what="a SOUL that is awake")
        killed: set[str] = set()
        while await session.of_unit("ActiveState", unit) != "failed":
            if (pid := await session.of_unit("MainPID", unit)) not in {"0", *killed}:
                os.kill(int(pid), signal.SIGKILL)
                killed.add(pid)
        assert len(killed) == STARTS
        assert "failed" in await session.service("status", home)
        assert "On Bluesky as @rowan.test" in await session.service("logs", home)
        await session.service("start", home)
        await until(lambda: lock_holder(home), what="a SOUL that lives again")
        assert await session.of_unit("ActiveState", unit) == "active"
        assert "Stopped" in await session.service("stop", home)
        assert (lock_holder(home), await session.of_unit("ActiveState", unit)) == (None, "inactive")


def home_log(home: Home) -> str:
    return "".join(path.read_text() for path in home.logs.glob("*.log"))
