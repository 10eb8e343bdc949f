"""`soul fleet`: many SOULs on a Kubernetes cluster, each in a Sandbox of its own."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
import yaml

from adapters.kube import Cluster, KubeObject, cluster_access
from common.clock import SystemClock
from common.errors import ConfigError, UsageError
from common.files import expanded
from modules.runtime.sleep_note import Figures
from soul.fleet.fleet_file import Fleet, manifests, read_fleet, read_souls, resource_of
from soul.fleet.policy import HomeState, canaries_of, canary_of, detail_of, figures_of, image_of, state_of
from soul.fleet.sandboxes import GROUP, VERSION, RollOut, Sandboxes
from soul.terminal.output import write_answer, write_lines
from soul.watch.policy import used_usd

T = TypeVar("T")

_LOOK_S = 10.0
_RELEASE = (1, 35)
"""The first release of Kubernetes with restart rules of containers that need no feature gate."""

FleetFile = Annotated[
    Path, typer.Argument(metavar="FLEET.yaml", callback=expanded, help="The file that describes the fleet.")
]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Homes of the file; without it, all.")]
Context = Annotated[str, typer.Option("--context", help="The context of your kubeconfig; by default the current one.")]
Within = Annotated[float, typer.Option("--within", help="How many seconds to wait for it.", min=0)]


def run_fleet_render(file: FleetFile) -> None:
    """Print the manifests as YAML. Raises `ConfigError`."""
    fleet = read_fleet(file)
    told = manifests(fleet, read_souls(file, fleet))
    write_lines(*yaml.safe_dump_all(told, sort_keys=False, allow_unicode=True).splitlines())


def run_fleet_apply(file: FleetFile, *, context: Context = "") -> None:
    """Send the manifests to the cluster. Raises `ConfigError`, and `SoulError` if the cluster refuses one."""
    fleet = read_fleet(file)
    wanted = manifests(fleet, read_souls(file, fleet))

    async def apply(cluster: Cluster) -> None:
        found = (await cluster.versions(GROUP)).or_raise()
        if VERSION not in found:
            served = f"serves {GROUP} as {', '.join(found)}" if found else "has no agent-sandbox"
            remedy = f"Install a version of agent-sandbox that serves {VERSION}: docs/fleet.md tells how."
            raise ConfigError(f"The cluster {served}", remedy=remedy)
        if (release := (await cluster.release()).or_raise()) < _RELEASE:
            told = f"The cluster runs Kubernetes {release[0]}.{release[1]}, which would not restart a SOUL that fails"
            raise ConfigError(told, remedy=f"Update it to {_RELEASE[0]}.{_RELEASE[1]} or later.")
        sandboxes = Sandboxes(cluster)
        present = (await sandboxes.all()).or_raise()[0]
        if tried := next(filter(None, map(canary_of, present.values())), None):
            remedy = f"End that first: `soul fleet upgrade {file} --image {tried.image}`."
            raise ConfigError(f"{tried.image} is being tried, and would be replaced", remedy=remedy)
        for one in wanted:
            (await cluster.apply(resource_of(one), one)).or_raise()
        for home in fleet.homes:
            if not home.sleep and home.name in present:
                (await sandboxes.wake(home.name, by_owner=False)).or_raise()

    _with_cluster(fleet, context, apply)
    write_lines(f"Applied {len(wanted)} objects for {len(fleet.homes)} homes in {fleet.namespace}.")


def run_fleet_list(file: FleetFile, *, context: Context = "", as_json: bool = False) -> None:
    """Print the state of each home. Raises the same errors as `run_fleet_apply`."""
    fleet = read_fleet(file)
    named = [home.name for home in fleet.homes]

    async def read(cluster: Cluster) -> tuple[list[dict[str, str]], list[Figures]]:
        found, pods = (await Sandboxes(cluster).all()).or_raise()
        names = dict.fromkeys([*named, *sorted(found)])
        rows = [_row(name, found.get(name), pods.get(name), named) for name in names]
        return rows, [*filter(None, map(figures_of, found.values()))]

    rows, figures = _with_cluster(fleet, context, read)
    wide = max(len(row["name"]) for row in rows)
    lines = [f"{row['name']:{wide}}  {row['state']:14}  {row['image']}  {row['detail']}".rstrip() for row in rows]
    write_answer(rows, [*lines, *_dollars(fleet, figures)], as_json=as_json)


def _dollars(fleet: Fleet, figures: Sequence[Figures]) -> list[str]:
    """Return a line on how many of the day's dollars are used; none if the fleet has no limit."""
    total, aside = fleet.budget_usd_per_day, fleet.set_aside_usd
    if total is None:
        return []
    used = used_usd(figures, SystemClock().now())
    waits = "; wakes for time alone wait" if used + aside >= total else ""
    kept = f", {aside:.2f} set aside for those that never sleep" if aside else ""
    return [f"Today's dollars: {used:.2f} of {total:.2f} used{kept}{waits}"]


def _row(name: str, sandbox: KubeObject | None, pod: KubeObject | None, named: Sequence[str]) -> dict[str, str]:
    if sandbox is None:
        return {"name": name, "state": "not applied", "image": "", "detail": ""}
    told = filter(None, (detail_of(sandbox, pod), "" if name in named else "not in the file"))
    return {"name": name, "state": state_of(sandbox, pod), "image": image_of(sandbox), "detail": ", ".join(told)}


def run_fleet_mode(
    file: FleetFile, names: Names = None, *, wanted: HomeState, context: Context = "", within_s: Within = 120
) -> bool:
    """Start or end the pods of homes; return whether all are as `wanted` in time. Raises as `run_fleet_apply` does."""
    fleet = read_fleet(file)
    known = [home.name for home in fleet.homes]
    if unknown := [name for name in names or () if name not in known]:
        raise UsageError(f"{file} has no home {unknown[0]}", remedy=f"It has {', '.join(known)}.")
    chosen = names or known

    async def act(cluster: Cluster) -> dict[str, HomeState]:
        sandboxes = Sandboxes(cluster)
        for name in chosen:
            (await (sandboxes.wake(name) if wanted == "awake" else sandboxes.suspend(name))).or_raise()
        return (await sandboxes.reach(chosen, wanted, within_s)).or_raise()

    states = _with_cluster(fleet, context, act)
    write_lines(*(f"{name}: {states.get(name, 'gone')}" for name in chosen))
    return all(states.get(name) == wanted for name in chosen)


def run_fleet_upgrade(
    file: FleetFile,
    *,
    image: Annotated[str, typer.Option(help="The image to roll out.")],
    canary: Annotated[str, typer.Option(help="How many homes try it first: a number, or a share such as 5%.")] = "1",
    context: Context = "",
    within_s: Annotated[
        float,
        typer.Option(
            "--within", help="How many seconds to follow it; by default until it ends.", min=0, show_default=False
        ),
    ] = math.inf,
) -> bool:
    """Roll an image out, or go on with it; return False if it was put back. Raises as `run_fleet_apply` does."""
    fleet, clock = read_fleet(file), SystemClock()
    first, until_s = canaries_of(canary, len(fleet.homes)), clock.monotonic() + within_s

    async def follow(cluster: Cluster) -> bool:
        roll_out, told = RollOut(Sandboxes(cluster), fleet, image, first, clock), set[str]()
        while True:
            step = (await roll_out.step()).or_raise()
            write_lines(*(line for line in step.told if line not in told))
            told |= {*step.told}
            if step.standing != "under way" or clock.monotonic() >= until_s:
                return step.standing != "put back"
            await clock.sleep(_LOOK_S)

    return _with_cluster(fleet, context, follow)


def _with_cluster(fleet: Fleet, context: str, act: Callable[[Cluster], Awaitable[T]]) -> T:
    async def acted() -> T:
        async with Cluster(cluster_access(context), fleet.namespace, SystemClock()) as cluster:
            return await act(cluster)

    return asyncio.run(acted())
