"""A cluster with Sandboxes: its objects in memory, its API over HTTP, and real processes as pods.

A pod's process runs as long as its Sandbox says so.
"""

import asyncio
import base64
import copy
import json
import os
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Literal, NamedTuple, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from common.clock import doubled
from town import faults
from town.serving import drop

KubeObject = dict[str, Any]


class ObjectPlace(NamedTuple):
    """The place of an object: `collection` is the path of its kind and namespace."""

    collection: str
    name: str


class ObjectChange(NamedTuple):
    """A change of one object: `ADDED`, `MODIFIED` or `DELETED`."""

    version: int
    collection: str
    kind: str
    told: KubeObject


class TooOld(Exception):
    """The changes since then are no longer kept."""


@dataclass
class KubeObjects:
    """All objects. `remembered` is how many changes a watch can go back."""

    remembered: int = 1000
    version: int = 0
    _found: dict[ObjectPlace, KubeObject] = field(default_factory=dict)
    _changes: deque[ObjectChange] = field(default_factory=deque)
    _forgotten: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def get(self, place: ObjectPlace) -> KubeObject | None:
        return copy.deepcopy(self._found.get(place))

    def under(self, end: str) -> list[ObjectPlace]:
        """Return the places of objects in collections whose path ends with `end`, sorted."""
        return sorted(place for place in self._found if place.collection.endswith(end))

    def put(self, place: ObjectPlace, wanted: KubeObject) -> KubeObject:
        """Create or replace an object; its generation grows with its spec."""
        before, told = self._found.get(place), copy.deepcopy(wanted)
        known: KubeObject = before["metadata"] if before else {"name": place.name, "generation": 0}
        told["metadata"] = {**known, **told.get("metadata", {})}
        if before is None or before.get("spec") != told.get("spec"):
            told["metadata"]["generation"] = known["generation"] + 1
        if before != told:
            self._found[place] = told
            self._note("MODIFIED" if before else "ADDED", place, told)
        return copy.deepcopy(told)

    def delete(self, place: ObjectPlace) -> None:
        if told := self._found.pop(place, None):
            self._note("DELETED", place, told)

    def since(self, collection: str, version: int) -> list[ObjectChange]:
        """Return the changes in `collection` after `version`. Raises `TooOld`."""
        if version < self._forgotten:
            raise TooOld
        return [one for one in self._changes if one.collection == collection and one.version > version]

    def forget(self) -> None:
        """Forget all changes: the next watch must list again."""
        self._changes.clear()
        self._forgotten = self.version

    async def after(self, version: int) -> None:
        """Wait until something has changed since `version`."""
        while self.version <= version:
            await self._changed.wait()

    def _note(self, kind: str, place: ObjectPlace, told: KubeObject) -> None:
        self.version += 1
        told["metadata"]["resourceVersion"] = str(self.version)
        self._changes.append(ObjectChange(self.version, place.collection, kind, copy.deepcopy(told)))
        while len(self._changes) > self.remembered:
            self._forgotten = self._changes.popleft().version
        self._changed.set()
        self._changed = asyncio.Event()


def merged(target: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return `target` after a merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    before = target if isinstance(target, Mapping) else {}
    kept = {key: value for key, value in before.items() if key not in patch}
    return kept | {key: merged(before.get(key), value) for key, value in patch.items() if value is not None}


FaultKind = Literal[
    "too_many",  # 429 with retry-after
    "unavailable",  # 503
    "conflict",  # 409, as if somebody else had changed the object
    "stall",  # no answer for `seconds`, then a dropped connection
    "lost_answer",  # do it, then drop the connection
    "cut",  # a watch ends after its first event
]
_STATUS = {
    "too_many": (429, "TooManyRequests"),
    "unavailable": (503, "ServiceUnavailable"),
    "conflict": (409, "Conflict"),
}
_GROUP = "agents.x-k8s.io"


class KubeFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the town's cluster."""

    kinds = get_args(FaultKind)


@dataclass
class KubeService:
    """Serves `objects` to clients with `token` ("": anybody)."""

    objects: KubeObjects
    token: str = ""
    versions: tuple[str, ...] = ("v1beta1",)
    minor: str = "36+"
    bookmark_s: float = 60.0
    faults: KubeFaults = field(default_factory=KubeFaults)
    requests: list[str] = field(default_factory=list)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "PATCH"])])

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        told = f"{'WATCH' if 'watch' in request.query_params else request.method} {path}"
        self.requests.append(told)
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized", "Unauthorized")
        fault = self.faults.meet(told)
        if fault and fault.kind in _STATUS:
            code, reason = _STATUS[fault.kind]
            headers = {"retry-after": f"{fault.seconds:g}"} if fault.kind == "too_many" else {}
            return _status(code, reason, "a fault of the town", headers)
        if fault and fault.kind == "stall":
            await asyncio.sleep(fault.seconds)
            return drop(request)
        answer = await self._do(request, path, cut=fault is not None and fault.kind == "cut")
        return drop(request) if fault and fault.kind == "lost_answer" else answer

    async def _do(self, request: Request, path: str, *, cut: bool) -> Response:
        root, _, within = path.partition("/namespaces/")
        served = [f"/apis/{_GROUP}/{one}" for one in self.versions]
        if path == f"/apis/{_GROUP}" and served:
            groups = [{"groupVersion": f"{_GROUP}/{one}", "version": one} for one in self.versions]
            return JSONResponse({"kind": "APIGroup", "name": _GROUP, "versions": groups})
        if path == "/version":
            return JSONResponse({"major": "1", "minor": self.minor})
        if root.startswith("/apis/admissionregistration.k8s.io/v1/"):
            return await self._one(request, ObjectPlace(*path.rsplit("/", 1)))
        if not within or (_GROUP in root and root not in served):
            return _status(404, "NotFound", "the server could not find the requested resource")
        if within.count("/") == 1:
            return self._watch(request, path, cut=cut) if "watch" in request.query_params else self._list(request, path)
        return await self._one(request, ObjectPlace(*path.rsplit("/", 1)))

    def _list(self, request: Request, collection: str) -> Response:
        places = [one for one in self.objects.under(collection) if one.collection == collection]
        items = [one for place in places if _has(one := self.objects.get(place) or {}, request)]
        return JSONResponse({"metadata": {"resourceVersion": str(self.objects.version)}, "items": items})

    async def _one(self, request: Request, place: ObjectPlace) -> Response:
        present = self.objects.get(place)
        applies = request.headers.get("content-type", "").startswith("application/apply-patch")
        if present is None and not applies:
            return _status(404, "NotFound", f'{place.collection.rsplit("/", 1)[-1]} "{place.name}" not found')
        if request.method == "PATCH":
            patch = json.loads(await request.body())
            version = patch.get("metadata", {}).get("resourceVersion")
            if version and present and version != present["metadata"]["resourceVersion"]:
                return _status(409, "Conflict", "the object has been modified; please apply your changes to the latest")
            wanted = merged(present, patch)
            if wrong := _refused(present, wanted) if place.collection.endswith("/sandboxes") else "":
                return _status(422, "Invalid", f'Sandbox "{place.name}" is invalid: {wrong}')
            return JSONResponse(self.objects.put(place, wanted), 200 if present else 201)
        return JSONResponse(present)

    def _watch(self, request: Request, collection: str, *, cut: bool) -> Response:
        version = int(request.query_params["resourceVersion"])

        async def lines() -> AsyncIterator[str]:
            nonlocal version
            while True:
                try:
                    changes, version = self.objects.since(collection, version), self.objects.version
                except TooOld:
                    yield _line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
                    return
                for change in changes:
                    if _has(change.told, request):
                        yield _line(change.kind, change.told)
                        if cut:
                            return
                try:
                    async with asyncio.timeout(self.bookmark_s):
                        await self.objects.after(version)
                except TimeoutError:
                    yield _line("BOOKMARK", {"kind": "Sandbox", "metadata": {"resourceVersion": str(version)}})

        return StreamingResponse(lines(), media_type="application/json")


def _line(kind: str, told: KubeObject) -> str:
    return json.dumps({"type": kind, "object": told}) + "\n"


def _has(told: KubeObject, request: Request) -> bool:
    """Return whether an object has the requested labels."""
    labels = told.get("metadata", {}).get("labels", {})
    asked = [part.partition("=") for part in request.query_params.get("labelSelector", "").split(",") if part]
    return all(key in labels and (not equal or labels[key] == value) for key, equal, value in asked)


def _refused(before: KubeObject | None, wanted: KubeObject) -> str:
    """Return which rule of its schema a Sandbox breaks; "" if none."""
    spec: dict[str, Any] = wanted.get("spec") or {}
    if not (spec.get("podTemplate") or {}).get("spec"):
        return "spec.podTemplate.spec: Required value"
    if spec.get("operatingMode", "Running") not in {"Running", "Suspended"}:
        return f"spec.operatingMode: Unsupported value: {spec['operatingMode']!r}"
    changed = before is not None and before["spec"].get("volumeClaimTemplates") != spec.get("volumeClaimTemplates")
    return "spec: Invalid value: volumeClaimTemplates is immutable" if changed else ""


def _status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> Response:
    told = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return JSONResponse(told, code, headers)


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
