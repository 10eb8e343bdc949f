"""The API of the town's cluster over HTTP: discovery, objects, merge patches, watches, and what can go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from town import faults
from town.kube.objects import KubeObject, KubeObjects, ObjectPlace, TooOld, merged
from town.serving import drop

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
