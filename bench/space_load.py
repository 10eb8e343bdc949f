"""Measures a room under load: deliveries per second, latency, and the cost of a member that does not read.

Usage: `python bench/space_load.py [--members 100] [--messages 3000] [--paced 200]`

The members run in a separate process, which does as little as possible: it looks for a run's last frame, and
reads when a frame was sent. The server writes its record as always. The exit code is 1 if a figure passes its
limit.
"""

import argparse
import asyncio
import base64
import json
import os
import selectors
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from websockets.frames import Frame, Opcode

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from adapters.space.server_connection import frame_bytes
from adapters.space.types import Joined, Said
from adapters.space.wire import encode_event

DELIVERIES_A_SECOND = 100_000
PACED_P99_S = 0.015
PACED_GAP_S = 0.02
TRIES = 3
WORDS = "w" * 910
BATCH = 20
STALL_MESSAGES = 8_000
MAX_AHEAD_BYTES = 512 * 1024
DEADLINE_S = 55.0
_MARK = b'"content":"'
_END = b"END OF THE RUN"
_READ_BYTES = 1 << 18


@dataclass(slots=True)
class RoomReader:
    """One member: the end of what it received, and when a run's last frame came (monotonic s, 0: not yet)."""

    socket: socket.socket
    rest: bytes = b""
    ended_at: float = 0.0


def connect(port: int, name: str) -> RoomReader:
    """Open a member's connection by hand, join, and read until the history has arrived."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    key = base64.b64encode(os.urandom(16)).decode()
    sock.sendall(
        (
            f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode()
    )
    join = encode_event(Joined(name, f"{name}-1", "1", ("social",)))
    sock.sendall(Frame(Opcode.TEXT, join.encode()).serialize(mask=True))
    seen = b""
    while b'"history_response"' not in seen:
        seen += sock.recv(_READ_BYTES)
    return RoomReader(sock)


def members(port: int, count: int) -> None:
    """Run `count` members in the child, which read, and print a line when each has read a run's last frame."""
    watch = selectors.DefaultSelector()
    for number in range(count):
        reader = connect(port, f"member-{number}")
        reader.socket.settimeout(0)
        watch.register(reader.socket, selectors.EVENT_READ, reader)
    report({"ready": count})
    readers: list[RoomReader] = [key.data for key in watch.get_map().values()]
    late: list[float] = []
    while True:
        for key, _ in watch.select(1.0):
            read(key.data, late)
        if all(reader.ended_at for reader in readers):
            ended = max(reader.ended_at for reader in readers)
            report({"ended": ended, "late": sorted(late)})
            late.clear()
            for reader in readers:
                reader.ended_at, reader.rest = 0.0, b""


def report(told: dict[str, object]) -> None:
    """Write one line from the child to its parent."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def read(reader: RoomReader, late: list[float]) -> None:
    """Read what has arrived; frames whose text begins with `@<time>@` tell their latency."""
    data = reader.socket.recv(_READ_BYTES)
    if not data:
        raise SystemExit("a member was cut off")
    now = time.monotonic()
    if _MARK + b"@" in data:
        late.extend(now - float(piece.split(b"@", 2)[1]) for piece in data.split(_MARK)[1:] if piece[:1] == b"@")
    reader.rest = (reader.rest + data)[-2 * len(_END) - 400 :]
    if _END in reader.rest:
        reader.ended_at = now


class Load:
    """A room with its members."""

    def __init__(self, server: SpaceServer, child: asyncio.subprocess.Process, size: int) -> None:
        self.server = server
        self._child = child
        self._size = size

    @property
    def frame_bytes(self) -> int:
        """The size of one message on the wire."""
        said = Said("host", self.server.host_id, WORDS, "2026-01-02T03:04:05.678Z")
        return len(frame_bytes(encode_event(said)))

    async def received(self) -> dict[str, object]:
        """Return the child's next line."""
        if self._child.stdout is None:
            raise RuntimeError("the members have no output")
        line = await asyncio.wait_for(self._child.stdout.readline(), DEADLINE_S)
        if not line:
            raise RuntimeError("the members are gone")
        told: dict[str, object] = json.loads(line)
        return told

    async def flood(self, messages: int) -> tuple[float, float]:
        """Send as much as the members can read; return deliveries per second, and the seconds it took."""
        began = time.monotonic()
        for number in range(messages):
            self.server.broadcast_from_host(WORDS)
            if number % BATCH == BATCH - 1:
                await self._not_too_far_ahead()
        self.server.broadcast_from_host(_END.decode())
        told = await self.received()
        took = float(str(told["ended"])) - began
        return (messages + 1) * self._size / took, took

    async def _not_too_far_ahead(self) -> None:
        await asyncio.sleep(0)
        while max(self.server.waiting[: self._size]) > MAX_AHEAD_BYTES:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.001)

    async def pace(self, messages: int) -> tuple[float, float]:
        """Send a message every 20 ms; return p50 and p99 of the latency, s."""
        due = time.monotonic()
        for _ in range(messages):
            self.server.broadcast_from_host(f"@{time.monotonic():.6f}@{WORDS}")
            due += PACED_GAP_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        self.server.broadcast_from_host(_END.decode())
        late = (await self.received())["late"]
        if not isinstance(late, list) or not late:
            raise RuntimeError("the members timed nothing")
        return late[len(late) // 2], late[int(len(late) * 0.99)]


async def run(args: argparse.Namespace) -> int:
    """Run all measurements; return the number of figures that pass their limits."""
    with tempfile.TemporaryDirectory() as folder:
        server = SpaceServer(ChatLog(Path(folder)))
        await server.start(0)
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            __file__,
            "--serve-members",
            str(server.port),
            "--members",
            str(args.members),
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 26,
        )
        try:
            return await measure(Load(server, child, args.members), args)
        finally:
            child.kill()
            await child.wait()
            await server.stop()


async def measure(load: Load, args: argparse.Namespace) -> int:
    """Print the table; return the failures. A figure is the best of up to three tries: other load only worsens it."""
    await load.received()
    failed = 0
    sys.stdout.write(f"{args.members} members, frames of {load.frame_bytes} bytes\n")
    rate = took = 0.0
    for _ in range(TRIES):
        rate, took = max((rate, took), await load.flood(args.messages))
        if rate >= DELIVERIES_A_SECOND:
            break
    failed += row("deliveries a second", rate, f"{took:.2f} s", rate >= DELIVERIES_A_SECOND, DELIVERIES_A_SECOND)
    failed += await paced("paced", load, args.paced)
    stalled = await asyncio.to_thread(connect, load.server.port, "stalled")
    with stalled.socket:
        failed += await paced("beside one who does not read:", load, args.paced)
        rate, took = await load.flood(max(args.messages, STALL_MESSAGES))
        present = {agent.name for agent in load.server.get_connected_agents()}
        failed += row("and it is cut off", float("stalled" not in present), "", "stalled" not in present, 1)
        failed += row("while deliveries a second are", rate, f"{took:.2f} s", rate >= DELIVERIES_A_SECOND / 2, "half")
    return failed


async def paced(name: str, load: Load, messages: int) -> int:
    """Print two lines of the table: the latency, in the best of at most three tries; return the failures."""
    tries: list[tuple[float, float]] = []
    while len(tries) < TRIES and not any(p99 <= PACED_P99_S for _, p99 in tries):
        tries.append(await load.pace(messages))
    p50, p99 = min(tries, key=lambda figures: figures[1])
    row(f"{name} p50, ms", p50 * 1000, "", sound=True, limit="-")
    return row(f"{name} p99, ms", p99 * 1000, f"try {len(tries)}", p99 <= PACED_P99_S, PACED_P99_S * 1000)


def row(name: str, value: float, note: str, sound: bool, limit: object) -> int:  # noqa: FBT001 - a row of a table
    """Print one line of the table; return 1 if its limit is passed."""
    sys.stdout.write(f"{name:<42}{value:>12,.1f}  limit {limit!s:<10} {'ok' if sound else 'PASSED'} {note}\n")
    return 0 if sound else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or run the members."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--paced", type=int, default=200)
    parser.add_argument("--serve-members", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.serve_members:
        members(args.serve_members, args.members)
        return 0
    return 1 if asyncio.run(run(args)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
