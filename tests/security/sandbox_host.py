"""The host that a program in the sandbox must not touch: its secrets, its processes, its sockets, its files."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from common.redact import Redactor
from modules.runtime.sandbox.policy import Limits, Ran
from modules.runtime.sandbox.runner import Sandbox
from tests.patience import HANG_S

SECRET = "hush-hush-4711-secret"
SLEEP_S = "987654"


@dataclass
class Listener:
    """A TCP socket of the host on loopback and a Unix socket without a file; `hits` lists the connections to them."""

    port: int = 0
    hits: list[str] = field(default_factory=list)


@dataclass
class Host:
    """The host's files, process and sockets, and the sandbox whose programs must not reach them."""

    root: Path
    sandbox: Sandbox
    sleeper: subprocess.Popen[bytes]
    listener: Listener

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def env_file(self) -> Path:
        return self.root / "home" / ".env"

    async def sh(self, script: str, *, network: bool = False, **limits: float) -> Ran:
        """Run a shell script in the sandbox."""
        return await self.sandbox.run(["sh", "-c", script], self.work, network=network, limits=bounded(**limits))

    async def python(self, script: str, *, network: bool = False, **limits: float) -> Ran:
        """Run a Python script in the sandbox."""
        return await self.sandbox.run(["python3", "-c", script], self.work, network=network, limits=bounded(**limits))

    def unharmed(self) -> bool:
        """Return whether the host is as it was."""
        kept = self.env_file.read_text() == SECRET and (self.root / "outside.txt").read_text() == "untouched"
        names = sorted(path.name for path in self.root.iterdir())
        return (
            kept
            and names == ["home", "outside.txt", "work"]
            and self.sleeper.poll() is None
            and self.listener.hits == []
            and kernel_settings() == _KERNEL
        )


def bounded(**limits: Any) -> Limits:
    """Return limits for a test, with so long a wall time that a busy machine reaches the other limits first."""
    return Limits(**({"wall_s": HANG_S} | limits))


def kernel_settings() -> list[str]:
    """Return the kernel settings by which a program that can write them takes over the machine."""
    names = ("kernel/core_pattern", "kernel/hostname", "kernel/modprobe", "vm/overcommit_memory")
    return [Path("/proc/sys", name).read_text() for name in names if Path("/proc/sys", name).exists()]


_KERNEL = kernel_settings()


def running(marker: str, *, begins: str = "") -> list[int]:
    """Return the PIDs of other processes whose command line holds `marker`, in which NUL separates the words."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            if marker.encode() in line and begins.encode() in line[:40]:
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()
    tcp = socket.create_server(("127.0.0.1", 0))
    listener.port = tcp.getsockname()[1]
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(f"\0soul-trap-{listener.port}")
    unix.listen()

    def wait(server: socket.socket, name: str) -> None:
        with suppress(OSError):
            while True:
                server.accept()[0].close()
                listener.hits.append(name)

    threads = [Thread(target=wait, args=pair) for pair in ((tcp, "tcp"), (unix, "unix"))]
    for thread in threads:
        thread.start()
    try:
        yield listener
    finally:
        for server in (tcp, unix):
            server.shutdown(socket.SHUT_RDWR)
            server.close()
        for thread in threads:
            thread.join()


@contextmanager
def open_host(root: Path) -> Iterator[Host]:
    """Open a host with a secret, a process and a socket."""
    for folder in ("work", "home"):
        (root / folder).mkdir()
    (root / "home" / ".env").write_text(SECRET)
    (root / "outside.txt").write_text("untouched")
    sandbox = Sandbox(redactor=Redactor([SECRET]), private=[root / "home"])
    with listening() as listener, subprocess.Popen(["sleep", SLEEP_S], env={"TOKEN": SECRET}) as sleeper:
        try:
            yield Host(root, sandbox, sleeper, listener)
        finally:
            sleeper.kill()
