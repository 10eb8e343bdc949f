"""Tests of the cluster client: it loses no change, waits as the cluster asks, and says what the cluster refused."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from adapters.kube import Cluster, ClusterAccess, KubeObject, Resource
from common.clock import FakeClock, SystemClock
from common.result import ApiResult, Err, Ok
from tests.patience import until, while_time_passes
from tests.town.running_kube import SANDBOXES, RunningCluster, running_cluster
from town.kube import ObjectPlace
from town.serving import serve

KIND = Resource("agents.x-k8s.io/v1beta1", "sandboxes")


@pytest.fixture
async def town() -> AsyncIterator[RunningCluster]:
    async with running_cluster() as running:
        running.add("rowan")
        yield running


def _suspended(present: KubeObject) -> KubeObject | None:
    return None if present["spec"].get("operatingMode") == "Suspended" else {"spec": {"operatingMode": "Suspended"}}


async def test_a_list_has_all_that_has_the_labels(town: RunningCluster) -> None:
    for number in range(30):
        town.add(f"n{number}")
    town.objects.put(ObjectPlace(SANDBOXES, "other"), {"spec": {}})
    async with town.cluster() as cluster:
        items, version = (await cluster.listed(KIND, "soul.town/home")).or_raise()
        assert len(items) == 31
        assert version == str(town.objects.version)
        assert len((await cluster.listed(KIND, "soul.town/home=n7")).or_raise()[0]) == 1
        assert (await cluster.versions("agents.x-k8s.io")).or_raise() == ("v1beta1",)
        assert (await cluster.versions("other.example")).or_raise() == ()


async def test_a_change_that_others_overtake_is_decided_anew(town: RunningCluster) -> None:
    async with town.cluster() as cluster:
        seen = 0

        def patch_for(present: KubeObject) -> KubeObject | None:
            nonlocal seen
            seen += 1
            if seen == 1:  # the controller writes in between
                town.objects.put(
                    ObjectPlace(SANDBOXES, "soul-rowan"), {**town.sandbox("rowan"), "status": {"conditions": []}}
                )
            return _suspended(present)

        done = (await cluster.change(KIND, "soul-rowan", patch_for)).or_raise()
        assert seen == 2
        assert done["spec"]["operatingMode"] == "Suspended"
        assert done["status"] == {"conditions": []}
        town.arm("conflict", "PATCH *", times=100)
        gave_up = await cluster.change(KIND, "soul-rowan", lambda _: {"spec": {"operatingMode": "Running"}})
        assert isinstance(gave_up, Err)
        assert gave_up.kind == "conflict"


async def test_a_change_whose_answer_was_lost_is_done_once(town: RunningCluster) -> None:
    town.arm("lost_answer", "PATCH *")
    clock = FakeClock()
    async with town.cluster(clock) as cluster:
        await while_time_passes(clock, cluster.change(KIND, "soul-rowan", _suspended))
    assert town.sandbox("rowan")["metadata"]["generation"] == 2


async def test_it_asks_again_only_when_the_cluster_allows_it_and_not_for_ever(town: RunningCluster) -> None:
    clock = FakeClock()
    began = clock.monotonic()
    async with town.cluster(clock) as cluster:
        town.arm("too_many", seconds=7)
        assert isinstance(await while_time_passes(clock, cluster.read(KIND, "soul-rowan")), Ok)
        assert clock.monotonic() - began == 7
    async with town.cluster(clock, timeout_s=1.0) as cluster:
        town.arm("stall", seconds=600)
        assert isinstance(await while_time_passes(clock, cluster.read(KIND, "soul-rowan")), Ok)
        assert clock.monotonic() - began < 30
        town.arm("unavailable", times=1000)
        refused = await while_time_passes(clock, cluster.read(KIND, "soul-rowan"))
        assert isinstance(refused, Err)
        assert refused.kind == "transient"
        assert clock.monotonic() - began < 120


@pytest.mark.parametrize(
    ("act", "kind", "told"),
    [
        (lambda cluster: cluster.read(KIND, "soul-nobody"), "not_found", '"soul-nobody" not found'),
        (
            lambda cluster: cluster.change(KIND, "soul-rowan", lambda _: {"spec": {"operatingMode": "Asleep"}}),
            "invalid",
            "operatingMode: Unsupported value",
        ),
        (
            lambda cluster: cluster.change(KIND, "soul-rowan", lambda _: {"spec": {"volumeClaimTemplates": [{}]}}),
            "invalid",
            "volumeClaimTemplates is immutable",
        ),
    ],
)
async def test_what_the_cluster_refuses_is_told_at_once_in_its_words(
    town: RunningCluster, act: Callable[[Cluster], Any], kind: str, told: str
) -> None:
    async with town.cluster() as cluster:
        refused: ApiResult[KubeObject] = await act(cluster)
        assert isinstance(refused, Err)
        assert refused.kind == kind
        assert told in refused.error
    async with Cluster(ClusterAccess(town.url), "souls", SystemClock()) as stranger:
        asked = await stranger.listed(KIND)
        assert isinstance(asked, Err)
        assert asked.kind == "auth"


class _Watching:
    """Collects what a watch yields."""

    def __init__(self, cluster: Cluster) -> None:
        self.modes: list[str] = []
        self.last: Err | None = None
        self._task = asyncio.create_task(self._run(cluster))

    async def _run(self, cluster: Cluster) -> None:
        async for seen in cluster.watch(KIND, "soul.town/home"):
            if isinstance(seen, Err):
                self.last = seen
            elif "deletionTimestamp" in seen.data["metadata"]:
                self.modes.append("deleted")
            else:
                self.modes.append(seen.data["spec"].get("operatingMode", "Running"))

    async def saw(self, *modes: str) -> None:
        await until(lambda: self.modes == [*modes], what=f"{modes}, not {self.modes},")

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_a_watch_loses_nothing_while_its_connection_is_cut(town: RunningCluster) -> None:
    town.arm("cut", "WATCH *", times=10)
    async with town.cluster() as cluster:
        watching = _Watching(cluster)
        await watching.saw("Running")
        for mode in ("Suspended", "Running", "Suspended"):
            town.mode("rowan", mode)
        await watching.saw("Running", "Suspended", "Running", "Suspended")
        town.objects.delete(ObjectPlace(SANDBOXES, "soul-rowan"))
        await watching.saw("Running", "Suspended", "Running", "Suspended", "deleted")
        await watching.end()


async def test_a_watch_that_the_cluster_has_forgotten_lists_again(town: RunningCluster) -> None:
    town.arm("cut", "WATCH *")
    async with town.cluster() as cluster:
        watching = _Watching(cluster)
        await watching.saw("Running")
        town.mode("rowan", "Suspended")
        await watching.saw("Running", "Suspended")
        town.mode("rowan", "Running")
        town.objects.forget()  # before the client connects again
        await watching.saw("Running", "Suspended", "Running")
        assert town.service.requests.count(f"GET {SANDBOXES}") == 2
        await watching.end()


async def test_a_watch_goes_on_from_the_last_bookmark() -> None:
    asked: list[str] = []

    async def answer(request: Request) -> Response:
        if "watch" not in request.query_params:
            return JSONResponse({"items": [], "metadata": {"resourceVersion": "1"}})
        asked.append(request.query_params["resourceVersion"])
        bookmark = {"type": "BOOKMARK", "object": {"kind": "Sandbox", "metadata": {"resourceVersion": "9"}}}
        next_line = {"metadata": {"name": "a", "resourceVersion": "8"}, "spec": {"operatingMode": "a\u0085\u2028b"}}
        lines = (json.dumps(one, ensure_ascii=False) for one in ({"type": "ADDED", "object": next_line}, bookmark))
        return Response("".join(f"{line}\n" for line in lines))

    app = Starlette(routes=[Route("/{path:path}", answer)])
    async with serve(app) as url, Cluster(ClusterAccess(url), "souls", SystemClock()) as cluster:
        watching = _Watching(cluster)
        await until(lambda: len(asked) == 2)
        assert asked == ["1", "9"]
        assert watching.modes[0] == "a\u0085\u2028b"
        await watching.end()


async def test_a_watch_that_is_silent_is_begun_anew(town: RunningCluster) -> None:
    async with town.cluster(silence_s=0.05) as cluster:
        watching = _Watching(cluster)
        await watching.saw("Running")
        await until(lambda: len(town.service.requests) >= 3)
        town.mode("rowan", "Suspended")
        await watching.saw("Running", "Suspended")
        await watching.end()


async def test_a_watch_ends_with_what_waiting_does_not_help(town: RunningCluster) -> None:
    town.service.token = "another"
    async with town.cluster() as cluster:
        watching = _Watching(cluster)
        await until(lambda: watching.last)
        assert watching.last is not None
        assert watching.last.kind == "auth"
        await watching.end()
