"""Wakes and suspends the homes of a fleet, by the field of their Sandboxes that says whether they run."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass

from adapters.kube.cluster import Cluster, KubeObject, Resource
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.sleep_note import Figures
from soul.fleet.policy import FIGURES, HELD, HomeState, Mode, image_of, is_held, mode_of, state_of

GROUP, VERSION = "agents.x-k8s.io", "v1beta1"
SANDBOXES, PODS = Resource(f"{GROUP}/{VERSION}", "sandboxes"), Resource("v1", "pods")
HOME_LABEL = "soul.town/home"
_GONE_S = 100.0
"""How long a pod may take to disappear; it has 90 seconds to end by itself."""


def sandbox_name(home: str) -> str:
    """Return the name of a home's Sandbox, which is also that of its pod."""
    return f"soul-{home}"


@dataclass(frozen=True, slots=True)
class Sandboxes:
    """The homes in one name space of a cluster."""

    cluster: Cluster

    @answering
    async def all(self) -> ApiResult[tuple[dict[str, KubeObject], dict[str, KubeObject]]]:
        """Return the Sandboxes and the pods, by the names of their homes."""
        lists = [(await self.cluster.listed(kind, HOME_LABEL)).or_raise()[0] for kind in (SANDBOXES, PODS)]
        found, pods = ({one["metadata"]["labels"][HOME_LABEL]: one for one in listed} for listed in lists)
        return Ok((found, pods))

    @answering
    async def wake(self, home: str, *, by_owner: bool = True, image: str = "") -> ApiResult[None]:
        """Wake a home; one that runs is left alone, and one that its owner put to sleep wakes only with `by_owner`.

        A pod that has ended is removed first, since the cluster does not restart it; so is one with another image than
        `image`, if that is given.
        """
        name = sandbox_name(home)
        found = (await self.cluster.read(SANDBOXES, name)).or_raise()
        pod = (await self.cluster.read(PODS, name)).or_else({}, "not_found") if image else {}
        if state_of(found) == "ended" or image_of(pod) not in {"", image}:
            (await self.suspend(home, by_owner=False)).or_raise()
            states = (await self.reach([home], "asleep", _GONE_S)).or_raise()
            if states.get(home) != "asleep":
                return Err(f"could not wake {home}: its pod has not gone within {_GONE_S:g} s", "transient")
        return await self._set_mode(home, "Running", by_owner=by_owner)

    async def suspend(self, home: str, *, by_owner: bool = True) -> ApiResult[None]:
        """End a home's pod, within 90 seconds; accepted work is kept. With `by_owner`, only the owner can wake it."""
        return await self._set_mode(home, "Suspended", by_owner=by_owner)

    async def note_figures(self, home: str, figures: Figures) -> ApiResult[KubeObject]:
        """Write the figures of a home on its Sandbox, for the list of the fleet."""
        told = {FIGURES: json.dumps(asdict(figures))}
        return await self.cluster.change(SANDBOXES, sandbox_name(home), lambda _: {"metadata": {"annotations": told}})

    async def reach(
        self, homes: Collection[str], wanted: HomeState, within_s: float
    ) -> ApiResult[dict[str, HomeState]]:
        """Wait up to `within_s` seconds until all `homes` are as `wanted`; return the state of each that exists."""
        states: dict[str, HomeState] = {}
        with suppress(TimeoutError):
            async with (
                self.cluster.clock.timeout(within_s),
                aclosing(self.cluster.watch(SANDBOXES, HOME_LABEL)) as seen,
            ):
                async for one in seen:
                    if isinstance(one, Err):
                        return one
                    states[one.data["metadata"]["labels"][HOME_LABEL]] = state_of(one.data)
                    if all(states.get(home) == wanted for home in homes):
                        break
        return Ok({home: states[home] for home in homes if home in states})

    async def _set_mode(self, home: str, mode: Mode, *, by_owner: bool) -> ApiResult[None]:
        def patch_for(present: KubeObject) -> KubeObject | None:
            held = is_held(present)
            wanted = mode == "Suspended" if by_owner else held
            if (held and not by_owner) or (mode_of(present) == mode and held == wanted):
                return None
            annotations = {} if held == wanted else {"annotations": {HELD: "true" if wanted else None}}
            return {"metadata": annotations, "spec": {"operatingMode": mode}}

        changed = await self.cluster.change(SANDBOXES, sandbox_name(home), patch_for)
        return changed if isinstance(changed, Err) else Ok(None)
