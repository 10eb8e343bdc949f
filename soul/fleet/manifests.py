"""The manifests of a fleet: the YAML files of this folder, filled in. They hold no secret and no cluster address."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

import yaml

from adapters.kube.cluster import KubeObject, Resource
from soul.exit_codes import ASLEEP, ExitCode
from soul.fleet.fleet_file import Fleet

_PLURALS = {
    "sandbox": "sandboxes",
    "networkpolicy": "networkpolicies",
    "validatingadmissionpolicy": "validatingadmissionpolicies",
}
_SETTLED = (0, ExitCode.USAGE, ExitCode.CONFIG, ASLEEP)
"""The exit codes after which a restart is useless: it ended, only the owner can help, or it sleeps. A home that is
still in use (75) is tried again, since the lease of a lost node expires."""
_LOGIN = ("AGENT_BLUESKY_USERNAME", "AGENT_BLUESKY_PASSWORD", "AGENT_GITHUB_TOKEN")
"""The keys of each Secret that the watcher is given, if they exist."""
_WATCHER_URL = "http://soul-watch:8080"


def manifests(fleet: Fleet, souls: Mapping[str, str]) -> list[KubeObject]:
    """Return all objects that `soul fleet apply` sends, in order; `souls` are the texts of SOUL.md by name."""
    common = {"namespace": fleet.namespace, "image": fleet.image, "storage_class": fleet.storage_class}
    found = _filled("network", common)
    if is_watched := any(home.sleep for home in fleet.homes):
        found += _filled("watch", {**common, "env": _env({**fleet.settings, "HOME": "/tmp"}), **_watched(fleet)})  # noqa: S108
    for home in fleet.homes:
        decided = {"AGENT_NAME": home.name, "SPACE_DISCOVERY": "off", "HOME": "/tmp"}  # noqa: S108 - of the pod alone
        sleep = {"SLEEP": "on", "SLEEP_WATCH_URL": _WATCHER_URL} if home.sleep else {"SLEEP": "off"}
        values = {**fleet.settings, **home.settings, **decided, **sleep}
        of_home = {"name": home.name, "secret": home.secret, "storage": home.storage, "soul_md": souls[home.name]}
        settled = [int(code) for code in _SETTLED]
        found += _filled("homes", {**common, **of_home, "env": _env(values), "settled": settled})
    if is_watched:  # last: not every user may change cluster-wide objects
        found += _filled("guard", common)
    for policy in (one for one in found if one["kind"] == "NetworkPolicy"):
        policy["spec"]["egress"] += [
            {"to": [{"ipBlock": {"cidr": str(one.cidr)}}], "ports": [{"port": one.port, "protocol": "TCP"}]}
            for one in fleet.egress
        ]
    return found


def _watched(fleet: Fleet) -> dict[str, Any]:
    """Return the watcher's data on homes that sleep: a folder for each home, with a file for each setting.

    Another `digest` of FLEET.yaml starts the watcher anew.
    """
    file, accounts = fleet.model_dump_json(), list[KubeObject]()
    told = {"FLEET.yaml": file}
    for home in (one for one in fleet.homes if one.sleep):
        told |= {f"{home.name}.{key}": value for key, value in home.settings.items()}
        open_ = [{"key": f"{home.name}.{key}", "path": f"{home.name}/{key}"} for key in home.settings]
        secret = [{"key": key, "path": f"{home.name}/{key}"} for key in _LOGIN if key not in home.settings]
        accounts.append({"secret": {"name": home.secret, "optional": True, "items": secret}})
        accounts += [{"configMap": {"name": "soul-watch", "items": open_}}] if open_ else []
    return {"watched": told, "accounts": accounts, "digest": sha256(file.encode()).hexdigest()}


def resource_of(manifest: KubeObject) -> Resource:
    """Return the API resource of a manifest: its version, its plural, and whether it has a name space."""
    kind = str(manifest["kind"]).lower()
    return Resource(manifest["apiVersion"], _PLURALS.get(kind, f"{kind}s"), "namespace" in manifest["metadata"])


def _env(values: Mapping[str, str]) -> list[KubeObject]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _filled(file: str, given: Mapping[str, Any]) -> list[KubeObject]:
    """Return the objects of a file, filled in after parsing, so that no value is parsed as YAML."""
    text = Path(__file__).with_name(f"{file}.yaml").read_text(encoding="utf-8")
    return [_with(one, given) for one in yaml.safe_load_all(text)]


def _with(value: Any, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any part of an object
    """Fill in one part of an object. A field whose value is None is left out."""
    if isinstance(value, dict):
        return {key: told for key, one in value.items() if (told := _with(one, given)) is not None}
    if isinstance(value, list):
        return [_with(one, given) for one in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    return given[value[1:]] if value[1:] in given else Template(value).substitute(given)
