"""Child processes of a test, each in its own process group, that never outlive it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

from adapters.git.client import drain


@contextlib.asynccontextmanager
async def child_of(module: str, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `python -m module args` with pipes to its input and output; kill it and its children at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await drain(process)
