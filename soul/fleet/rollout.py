"""Gives the homes of a fleet a newer image: first a few, and all once those have run with it for two days.

The progress is stored on the Sandboxes, so that a killed roll-out continues where it was. Each step can be repeated.
Sleeping homes that do not try the image take it at their next wake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from adapters.kube.cluster import KubeObject
from common.clock import Clock, iso
from common.errors import ConfigError
from common.result import ApiResult, Ok, answering
from soul.fleet.canary import UPGRADE, Canary, canary_of, has_tried, has_woken, trouble_of
from soul.fleet.fleet_file import Fleet
from soul.fleet.policy import figures_of, image_of, is_held
from soul.fleet.sandboxes import SANDBOXES, Sandboxes, sandbox_name


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
