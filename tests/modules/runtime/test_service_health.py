"""Proves that a service that fails repeatedly is degraded, with what to avoid, until it works once.

A supervisor is notified that the event loop runs, and no longer once it does not.
"""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.runtime.console import SilentConsole
from modules.runtime.service_health import FAILURES, ServiceHealth
from modules.runtime.status import keep_watched
from modules.services.agent.attention_list import DegradedServices
from modules.services.skills.skills import Skills
from soul.resources import SKILLS


@dataclass
class Ward:
    health: ServiceHealth
    clock: FakeClock
    console: SilentConsole

    def fail(self, service: str, times: int = FAILURES, error: str = "no answer") -> None:
        for _ in range(times):
            self.health.note(service, ok=False, error=error)

    @property
    def ailing(self) -> list[str]:
        return [item.service for item in self.health.degraded()]

    @property
    def told(self) -> str:
        """The text that a model is shown."""
        skills = Skills.load(SKILLS)
        return DegradedServices(self.health, skills, "UTC").text()


@pytest.fixture
def ward() -> Ward:
    clock, console = FakeClock(), SilentConsole()
    return Ward(ServiceHealth(clock, console=console, timezone="UTC"), clock, console)


def test_a_single_failure_says_nothing(ward: Ward) -> None:
    ward.fail("model", FAILURES - 1)
    assert ward.ailing == []
    assert ward.told == ""
    assert ward.console.lines == []


async def test_it_is_degraded_since_its_first_failure(ward: Ward) -> None:
    began = ward.clock.now()
    ward.fail("Bluesky", 1)
    await ward.clock.advance(90)
    ward.fail("Bluesky", FAILURES - 1)
    (found,) = ward.health.degraded()
    assert (found.service, found.since) == ("Bluesky", began)
    assert ward.told.splitlines()[1].startswith("- Bluesky, since 2026-01-05 12:00: read and post only")
    assert "go out much later" in ward.told


def test_one_success_makes_it_well_and_the_count_begins_anew(ward: Ward) -> None:
    ward.fail("model")
    ward.health.note("model", ok=True)
    ward.fail("model", FAILURES - 1)
    assert ward.ailing == []


async def test_the_longest_ailing_comes_first(ward: Ward) -> None:
    ward.fail("storage")
    await ward.clock.advance(60)
    ward.fail("model")
    ward.fail("Bluesky")
    assert ward.ailing == ["storage", "Bluesky", "model"]


def test_a_service_without_words_of_its_own_is_to_be_done_without(ward: Ward) -> None:
    ward.fail("weather")
    assert ward.told.endswith("do without it for now.")


def test_the_owner_is_told_once_when_it_begins_and_once_when_it_ends(ward: Ward) -> None:
    ward.fail("model", FAILURES + 5, error="429\x1b[2J too\nmany")
    ward.health.note("model", ok=True)
    ward.health.note("model", ok=True)
    assert ward.console.lines == [
        ("warn", "model fails again and again", "since 2026-01-05 12:00; 429[2J too many"),
        ("done", "model works again", "it had failed since 2026-01-05 12:00"),
    ]


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
