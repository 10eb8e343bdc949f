"""Members and rooms written in JavaScript, as child processes of a test that print what they hear line by line."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_WITHIN_S = 20.0


@dataclass
class Peer:
    """A child process that prints lines of `kind text`; `received` has all lines that were read."""

    process: Process
    received: list[tuple[str, str]] = field(default_factory=list)

    async def next(self, kind: str, *, type_: str = "") -> str:
        """Return the text of the next line of that kind; for frames, the next of that type."""
        assert self.process.stdout is not None
        async with asyncio.timeout(_WITHIN_S):
            while line := (await self.process.stdout.readline()).decode().rstrip("\n"):
                found, _, text = line.partition(" ")
                self.received.append((found, text))
                if found == kind and (not type_ or json.loads(text).get("type") == type_):
                    return text
        raise AssertionError(f"it ended without {kind} {type_}: {self.received}")

    async def frame(self, type_: str) -> dict[str, Any]:
        return dict(json.loads(await self.next("frame", type_=type_)))

    async def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    async def send(self, **message: object) -> None:
        """Have the member send a frame, to which it adds its name, its id and the time."""
        await self.tell(json.dumps(message))

    def frames(self) -> list[dict[str, Any]]:
        return [json.loads(text) for kind, text in self.received if kind == "frame"]


@asynccontextmanager
async def node(script: str, *, before: Sequence[str] = (), **options: object) -> AsyncIterator[Peer]:
    """Run the script; `before` is the command that runs it, for example `ip netns exec …`."""
    process = await asyncio.create_subprocess_exec(
        *before, "node", str(HERE / script), json.dumps(options), stdin=PIPE, stdout=PIPE, limit=8 * 1024 * 1024
    )
    try:
        yield Peer(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
