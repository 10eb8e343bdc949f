"""A supervisor hears that the event loop turns, and hears nothing more once it does not."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.runtime.watchdog import keep_watched


async def test_the_supervisor_hears_three_times_within_its_term_that_the_loop_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, loop = FakeClock(), asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.settimeout(0)
        supervisor.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "180000000")
        telling = asyncio.create_task(keep_watched(clock))
        assert await loop.sock_recv(supervisor, 100) == b"WATCHDOG=1"
        await clock.advance(59)
        with pytest.raises(BlockingIOError):
            supervisor.recv(100)
        await clock.advance(2)
        assert await loop.sock_recv(supervisor, 100) == b"WATCHDOG=1"
        telling.cancel()


async def test_without_a_supervisor_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    await keep_watched(FakeClock())
