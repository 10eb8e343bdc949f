"""What the watcher of a fleet asks of the cluster: let a home run, or end its pod, as far as its owner permits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.kube.access import cluster_access
from adapters.kube.cluster import Cluster
from common.clock import SystemClock
from common.result import ApiResult, Err
from soul.fleet.fleet_file import Fleet, read_fleet
from soul.fleet.sandboxes import Sandboxes
from soul.terminal.output import write_lines


@dataclass(frozen=True, slots=True)
class FleetEngine:
    """Changes nothing of a Sandbox but whether it runs."""

    fleet: Fleet
    sandboxes: Sandboxes

    async def wake(self, name: str) -> bool:
        return _done(name, await self.sandboxes.wake(name, by_owner=False))

    async def suspend(self, name: str) -> bool:
        return _done(name, await self.sandboxes.suspend(name, by_owner=False))


@asynccontextmanager
async def fleet_engine(file: Path) -> AsyncIterator[FleetEngine]:
    """Open the cluster for the fleet of a file. Raises `ConfigError`."""
    fleet = read_fleet(file)
    async with Cluster(cluster_access(), fleet.namespace, SystemClock()) as cluster:
        yield FleetEngine(fleet, Sandboxes(cluster))


def _done(name: str, answer: ApiResult[None]) -> bool:
    """Return whether the cluster did it; say why not."""
    if isinstance(answer, Err):
        write_lines(f"{name}: {answer.error}")
    return not isinstance(answer, Err)
