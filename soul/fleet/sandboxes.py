"""Wakes and suspends the homes of a fleet, and gives them a newer image: first a few, then all.

A field of a home's Sandbox says whether it runs. All get the image once the first have run with it for two days;
sleeping homes that do not try it take it at their next wake. The progress is stored on the Sandboxes, so that a killed
roll-out continues where it was. Each step can be repeated.
"""

import json
from collections.abc import Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal, NamedTuple

from adapters.kube import Cluster, KubeObject, Resource
from common.clock import Clock, iso
from common.errors import ConfigError
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.sleep_note import Figures
from soul.fleet.fleet_file import Fleet
from soul.fleet.policy import (
    FIGURES,
    HELD,
    UPGRADE,
    Canary,
    HomeState,
    Mode,
    canary_of,
    figures_of,
    has_tried,
    has_woken,
    image_of,
    is_held,
    mode_of,
    state_of,
    trouble_of,
)

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


class RollOutStep(NamedTuple):
    """The state of a roll-out, and lines on it to print."""

    standing: Literal["under way", "done", "put back"]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RollOut:
    """The roll-out of `image`, which `first` homes try before the others."""

    sandboxes: Sandboxes
    fleet: Fleet
    image: str
    first: int
    clock: Clock

    @answering
    async def step(self) -> ApiResult[RollOutStep]:
        """Check the homes, and do what is due. Raises `ConfigError` if another image is being tried."""
        now, (found, pods) = self.clock.now(), (await self.sandboxes.all()).or_raise()
        homes = [home.name for home in self.fleet.homes if home.name in found]
        tried = {name: canary for name in homes if (canary := canary_of(found[name]))}
        if other := next((one.image for one in tried.values() if one.image != self.image), ""):
            raise ConfigError(f"{other} is being tried", remedy=f"Finish that first: `--image {other}`.")
        woken = {one for one, canary in tried.items() if has_woken(canary, found[one], pods.get(one))}
        tried |= {one: replace(tried[one], ready=tried[one].ready or iso(now)) for one in woken}
        for name, canary in tried.items():
            if why := canary.stopped or trouble_of(canary, found[name], pods.get(name), now):
                tried[name] = replace(canary, stopped=why)
                (await self._set(name, canary.image, tried[name])).or_raise()
                # NOTE(self): the home with the reason is put back last, so that a kill in between does not lose it.
                return await self._put_back({one: tried[one] for one in tried if one != name} | {name: tried[name]})
        fresh = [one for one in homes if one not in tried and image_of(found[one]) != self.image]
        if not fresh and not tried:
            return Ok(RollOutStep("done", (f"All homes have {self.image}; write it into FLEET.yaml",)))
        for name in [one for one in fresh if not is_held(found[one])][: max(0, self.first - len(tried))]:
            figures = figures_of(found[name])
            frictions = figures.frictions if figures else None
            tried[name] = Canary(self.image, image_of(found[name]), iso(now), frictions=frictions)
        for name, canary in tried.items():
            (await self._set(name, self.image, canary)).or_raise()
            if not canary.ready:
                (await self.sandboxes.wake(name, by_owner=False, image=self.image)).or_raise()
                (await self._set(name, self.image, replace(canary, woken=True))).or_raise()
        if tried and all(has_tried(one, now) for one in tried.values()):
            return await self._finish(homes, [*tried])
        lines = (f"{name}: {f'tries it since {one.ready}' if one.ready else 'starts'}" for name, one in tried.items())
        return Ok(RollOutStep("under way", (*lines,) or ("Nobody can try it: all sleep until you wake them",)))

    @answering
    async def _put_back(self, tried: dict[str, Canary]) -> ApiResult[RollOutStep]:
        for name, canary in tried.items():
            (await self._set(name, canary.before, canary)).or_raise()
            (await self.sandboxes.wake(name, by_owner=False, image=canary.before)).or_raise()
            (await self._set(name, canary.before, None)).or_raise()
        whys = tuple(f"{name}: {canary.stopped}" for name, canary in tried.items() if canary.stopped)
        return Ok(RollOutStep("put back", (*whys, f"{', '.join(tried)}: the image before is back")))

    @answering
    async def _finish(self, homes: Sequence[str], tried: Sequence[str]) -> ApiResult[RollOutStep]:
        never_sleeps = {home.name for home in self.fleet.homes if not home.sleep}
        for name in (one for one in homes if one not in tried):
            (await self._set(name, self.image, None)).or_raise()
            if name in never_sleeps:
                (await self.sandboxes.wake(name, by_owner=False, image=self.image)).or_raise()
        for name in tried:
            (await self._set(name, self.image, None)).or_raise()
        return await self.step()

    async def _set(self, name: str, image: str, canary: Canary | None) -> ApiResult[KubeObject]:
        """Set the image of a home from its next pod on, and store the state of its trial."""

        def patch_for(present: KubeObject) -> KubeObject | None:
            if image_of(present) == image and canary_of(present) == canary:
                return None
            first, *others = present["spec"]["podTemplate"]["spec"]["containers"]
            spec = {"podTemplate": {"spec": {"containers": [{**first, "image": image}, *others]}}}
            return {"metadata": {"annotations": {UPGRADE: canary and canary.text()}}, "spec": spec}

        return await self.sandboxes.cluster.change(SANDBOXES, sandbox_name(name), patch_for)
