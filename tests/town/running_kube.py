"""The town's cluster on loopback for a test: its API, with shell scripts as pods."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from adapters.kube import Cluster, ClusterAccess
from common.clock import Clock, SystemClock
from tests.patience import until
from town.faults import Fault
from town.kube import FaultKind, KubeFaults, KubeObjects, KubeService, ObjectPlace, Pods
from town.serving import serve

TOKEN = "of-the-owner"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/souls/sandboxes"
PODS = "/api/v1/namespaces/souls/pods"
LIVES = ["sh", "-c", "echo lived >> lives; trap 'exit 0' TERM; while :; do sleep 0.02; done"]


@dataclass
class RunningCluster:
    url: str
    service: KubeService

    @property
    def objects(self) -> KubeObjects:
        return self.service.objects

    def cluster(self, clock: Clock | None = None, **options: Any) -> Cluster:
        access = ClusterAccess(self.url, authorization=f"Bearer {TOKEN}")
        return Cluster(access, "souls", clock or SystemClock(), **options)

    def arm(self, kind: FaultKind, request: str = "*", **options: Any) -> None:
        self.service.faults.arm(Fault(kind, request, **options))

    def sandbox(self, home: str) -> dict[str, Any]:
        return self.objects.get(ObjectPlace(SANDBOXES, f"soul-{home}")) or {}

    def add(self, home: str, **spec: Any) -> None:
        self.objects.put(ObjectPlace(SANDBOXES, f"soul-{home}"), sandbox(home, **spec))

    def mode(self, home: str, mode: str) -> None:
        told = self.sandbox(home)
        self.objects.put(
            ObjectPlace(SANDBOXES, f"soul-{home}"), {**told, "spec": {**told["spec"], "operatingMode": mode}}
        )

    def is_so(self, home: str, kind: str) -> bool:
        found = {one["type"]: one for one in self.sandbox(home).get("status", {}).get("conditions", ())}
        now = self.sandbox(home)["metadata"]["generation"]
        return kind in found and found[kind]["status"] == "True" and found[kind]["observedGeneration"] == now

    async def until(self, home: str, kind: str) -> None:
        await until(lambda: self.is_so(home, kind), what=f"{kind} of {home}")

    def kubeconfig(self, folder: Path) -> Path:
        """Write the kubeconfig that an owner has; return its path."""
        file = folder / "kubeconfig"
        told = {
            "clusters": [{"name": "town", "cluster": {"server": self.url}}],
            "users": [{"name": "owner", "user": {"token": TOKEN}}],
            "contexts": [{"name": "town", "context": {"cluster": "town", "user": "owner"}}],
            "current-context": "town",
        }
        file.write_text(yaml.safe_dump(told), encoding="utf-8")
        return file


def sandbox(home: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "soul", "image": "soul:1", "env": [{"name": "AGENT_NAME", "value": home}]}
    pod = {"containers": [container | spec], "restartPolicy": "Never", "terminationGracePeriodSeconds": 20}
    labels = {"soul.town/home": home}
    return {
        "apiVersion": "agents.x-k8s.io/v1beta1",
        "kind": "Sandbox",
        "metadata": {"labels": labels},
        "spec": {"podTemplate": {"metadata": {"labels": labels}, "spec": pod}},
    }


@asynccontextmanager
async def running_cluster(
    folder: Path | None = None,
    script: Sequence[str] = LIVES,
    *,
    restart_s: float = 0.01,
    images: Mapping[str, Sequence[str]] | None = None,
    **options: Any,
) -> AsyncIterator[RunningCluster]:
    """Serve a cluster and yield it; if there is a `folder`, its pods run there."""
    service = KubeService(KubeObjects(), TOKEN, faults=KubeFaults(random.Random(1)), **options)
    running = Pods(service.objects, folder, script, restart_s, images or {}).run() if folder else None
    pods = asyncio.create_task(running) if running else None
    try:
        async with serve(service.app()) as url:
            yield RunningCluster(url, service)
    finally:
        if pods:
            pods.cancel()
            with suppress(asyncio.CancelledError):
                await pods
