"""Controller and kubelet of the town's cluster: a process runs as long as its Sandbox says so."""

from __future__ import annotations

import asyncio
import base64
import os
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, SIGTERM

from common.clock import doubled
from town.kube.objects import KubeObject, KubeObjects, ObjectPlace

_MOST_WAIT_S = 300.0


@dataclass
class Pods:
    """Runs the pods of all Sandboxes.

    Attributes:
        folder: holds a folder for each volume, and `NAME.log` with the output of a pod.
        entrypoint: the entrypoint of each image; the arguments of the container follow.
        images: the entrypoints of images that have another one.
        restart_s: seconds before the first restart, doubled for each further one.

    """

    objects: KubeObjects
    folder: Path
    entrypoint: Sequence[str]
    restart_s: float = 10.0
    images: Mapping[str, Sequence[str]] = field(default_factory=dict)

    async def run(self) -> None:
        """Run the pods until cancelled; then kill the running ones."""
        kept: dict[ObjectPlace, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                for place in self.objects.under("/sandboxes"):
                    if place not in kept or kept[place].done():
                        kept[place] = group.create_task(self._keep(place), name=place.name)
                await self.objects.after(self.objects.version)

    async def _keep(self, place: ObjectPlace) -> None:
        while self.objects.get(place):
            await self._pod(place)
            self._tell(place, None)
            while self.objects.get(place) and not self._is_wanted(place):
                await self.objects.after(self.objects.version)

    def _is_wanted(self, place: ObjectPlace) -> bool:
        spec: KubeObject = (self.objects.get(place) or {}).get("spec", {})
        return bool(spec.get("operatingMode", "Running") == "Running")

    async def _pod(self, place: ObjectPlace) -> None:
        """Run one pod, with its restarts, until its Sandbox is suspended or deleted."""
        unwanted = asyncio.create_task(self._until_unwanted(place))
        spec: KubeObject = (self.objects.get(place) or {})["spec"]["podTemplate"]["spec"]
        restarts, last, process = 0, KubeObject(), None
        try:
            while self._is_wanted(place):
                process = await self._start(place, spec)
                self._tell(place, {"running": {}}, restarts, last)
                ended = asyncio.create_task(process.wait())
                await asyncio.wait({ended, unwanted}, return_when=asyncio.FIRST_COMPLETED)
                if unwanted.done():
                    self._tell(place, {"running": {}}, restarts, last)
                    await _end(process, spec.get("terminationGracePeriodSeconds", 30))
                    return
                code = ended.result() if ended.result() >= 0 else 128 - ended.result()
                last = {"terminated": {"exitCode": code}}
                if not _starts_again(spec, code):
                    self._tell(place, last, restarts)
                    await unwanted
                    return
                restarts += 1
                self._tell(place, {"waiting": {"reason": "CrashLoopBackOff"}}, restarts, last)
                await asyncio.wait({unwanted}, timeout=doubled(self.restart_s, restarts - 1, _MOST_WAIT_S))
        finally:
            unwanted.cancel()
            if process is not None and process.returncode is None:
                await _end(process, 0)

    async def _until_unwanted(self, place: ObjectPlace) -> None:
        while self.objects.get(place) and self._is_wanted(place):
            await self.objects.after(self.objects.version)

    async def _start(self, place: ObjectPlace, spec: KubeObject) -> Process:
        container, volume = spec["containers"][0], self.folder / f"home-{place.name}"
        volume.mkdir(exist_ok=True)
        for mounted in spec.get("volumes", ()):
            for name, text in self._data(place, "configmaps", mounted.get("configMap", {})).items():
                (volume / name).write_text(text, encoding="utf-8")
        environment = {"PATH": os.environ["PATH"]}
        for source in container.get("envFrom", ()):
            secret = self._data(place, "secrets", source["secretRef"])
            environment |= {key: base64.b64decode(value).decode() for key, value in secret.items()}
        environment |= {one["name"]: one["value"] for one in container.get("env", ())}
        command = [*self.images.get(container["image"], self.entrypoint), *container.get("args", ())]
        with (self.folder / f"{place.name}.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *command, cwd=volume, env=environment, stdin=log, stdout=log, stderr=log, start_new_session=True
            )

    def _data(self, place: ObjectPlace, plural: str, named: KubeObject) -> dict[str, str]:
        return dict((self.objects.get(_beside(place, plural, named.get("name", ""))) or {}).get("data", {}))

    def _tell(
        self, place: ObjectPlace, state: KubeObject | None, restarts: int = 0, last: KubeObject | None = None
    ) -> None:
        """Write the state of the container, None for no pod, and the matching conditions of its Sandbox."""
        sandbox, pod = self.objects.get(place), _beside(place, "pods", place.name)
        if state is None:
            self.objects.delete(pod)
        if sandbox is None:
            return
        suspended, code = not self._is_wanted(place), (state or {}).get("terminated", {}).get("exitCode")
        phase = "Running" if code is None else "Failed" if code else "Succeeded"
        if state is not None:
            status = {"name": "soul", "restartCount": restarts, "state": state, "lastState": last or {}}
            template = self.objects.get(pod) or sandbox["spec"]["podTemplate"]
            self.objects.put(pod, {**template, "status": {"phase": phase, "containerStatuses": [status]}})
        ready = "running" in (state or {}) and not suspended
        reason = "SandboxSuspended" if suspended else "DependenciesReady" if ready else "DependenciesNotReady"
        conditions = [("Ready", ready, reason)]
        if suspended:
            conditions.append(("Suspended", state is None, "PodTerminating" if state else "PodTerminated"))
        if code is not None:
            conditions.append(("Finished", True, f"Pod{phase}"))
        seen = {"observedGeneration": sandbox["metadata"]["generation"]}
        told = [{"type": one, "status": str(is_so), "reason": why, **seen} for one, is_so, why in conditions]
        self.objects.put(place, {**sandbox, "status": {"conditions": told}})


def _beside(place: ObjectPlace, plural: str, name: str) -> ObjectPlace:
    """Return the place of an object of the core API in the same namespace."""
    return ObjectPlace(f"/api/v1/namespaces/{place.collection.split('/')[-2]}/{plural}", name)


def _starts_again(spec: KubeObject, code: int) -> bool:
    """Return whether the kubelet restarts a container that ended with `code`."""
    rules = [one["exitCodes"] for one in spec["containers"][0].get("restartPolicyRules", ())]
    if any((code in one["values"]) == (one["operator"] == "In") for one in rules):
        return True
    return spec["restartPolicy"] == "Always" or (spec["restartPolicy"] == "OnFailure" and code != 0)


async def _end(process: Process, grace_s: float) -> None:
    """Ask the process to end; kill it, with all that it started, if it has not ended after `grace_s`."""
    with suppress(ProcessLookupError, TimeoutError):
        process.send_signal(SIGTERM)
        await asyncio.wait_for(process.wait(), grace_s)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, SIGKILL)
    await process.wait()
