"""Judges of our GitHub, all on loopback: Prism as a proxy between client and server, and an independent emulator."""

import platform
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.github_rig.make_spec import make_spec
from tests.loopback import held_port

_HERE = Path(__file__).resolve().parent
_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_NODE = _HERE / f"node24/node_modules/node-linux-{_MACHINE}/bin/node"
_PRISM = _HERE / "node_modules/@stoplight/prism-cli/dist/index.js"
_EMULATE = _HERE / "node_modules/emulate/dist/index.js"
_SEED = _HERE / "seed.yaml"
_START_S = 120


def install() -> None:
    """Install what is missing; raise RuntimeError if that fails."""
    done = subprocess.run([_HERE / "install.sh"], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())


@contextmanager
def judged(upstream: str, folder: Path) -> Iterator[str]:
    """Run a proxy in front of `upstream`. Each answer lists in `sl-violations` the errors of itself and its request."""
    with held_port() as port:
        url, spec = f"http://127.0.0.1:{port}", folder / f"spec-{port}.json"
        spec.write_text(make_spec(url), encoding="utf-8")
        with _running(folder, port, _PRISM, "proxy", "-h", "127.0.0.1", "-p", port, "-v", "warn", spec, upstream):
            yield url


@contextmanager
def mocked(folder: Path) -> Iterator[str]:
    """Run a server that answers with GitHub's own examples, and judges each request as `judged` does."""
    with held_port() as port:
        url, spec = f"http://127.0.0.1:{port}", folder / f"spec-{port}.json"
        spec.write_text(make_spec(url), encoding="utf-8")
        with _running(folder, port, _PRISM, "mock", "-h", "127.0.0.1", "-p", port, "-v", "warn", spec):
            yield url


@contextmanager
def emulated(folder: Path) -> Iterator[str]:
    """Run the emulator, with the accounts of `seed.yaml`."""
    with held_port() as port:
        url = f"http://127.0.0.1:{port}"
        where = ("--service", "github", "--host", "127.0.0.1", "--port", port, "--base-url", url, "--seed", _SEED)
        with _running(folder, port, _EMULATE, "start", *where):
            yield url


@contextmanager
def _running(folder: Path, port: int, *arguments: object) -> Iterator[None]:
    log = folder / f"node-{port}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([_NODE, *map(str, arguments)], stdout=out, stderr=out, cwd=folder)
    try:
        until = time.monotonic() + _START_S
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"it did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
