"""The manifests of a fleet. Pure: no secret's value, no address of a cluster, the same for the same file.

No Sandbox says whether it runs: the API's default starts a new one, and to apply the file again wakes nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from soul.exit_codes import ASLEEP, ExitCode
from soul.fleet.fleet_file import Fleet, FleetHome

Manifest = dict[str, Any]

GROUP, VERSION = "agents.x-k8s.io", "v1beta1"
HOME_LABEL, _PART_LABEL = "soul.town/home", "soul.town/part"
_MANAGER = {"app.kubernetes.io/managed-by": "soul-fleet"}
CONTAINER = "soul"
WATCHER = "soul-watch"
WATCH_PORT = 8080
_FOLDER = "/home/soul/life"
_USER = 10_001
"""The user that the Containerfile makes."""
_GRACE_S = 90
_SETTLED = (0, ExitCode.USAGE, ExitCode.CONFIG, ASLEEP)
"""The exit codes after which a start would be useless: it ended, only the owner can help, or it sleeps. A home that is
still in use (75) is tried again, for the lease of a lost node expires."""
_PRIVATE = {
    "0.0.0.0/0": ["10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"],
    "::/0": ["fc00::/7", "fe80::/10"],
}
_NODE_DNS = ("169.254.20.10/32", "169.254.169.254/32")
"""Where DNS caches on nodes, and Cloud DNS of GKE, answer; only port 53 of them is opened."""
_AWAKE = "soul status --json | grep -q '\"awake\": true'"
_LOGIN = ("AGENT_BLUESKY_USERNAME", "AGENT_BLUESKY_PASSWORD")
"""What the watcher is given of each Secret."""


def manifests(fleet: Fleet, souls: Mapping[str, str]) -> list[Manifest]:
    """Return all that `soul fleet apply` sends, in order; `souls` are the texts of SOUL.md by name."""
    sleepers = [home for home in fleet.homes if home.sleep]
    return [
        _network_policy(fleet, "souls", "home", _soul_egress(fleet, watched=bool(sleepers)), []),
        *([*_watcher(fleet, sleepers)] if sleepers else []),
        *(one for home in fleet.homes for one in (_soul_md(fleet, home, souls[home.name]), _sandbox(fleet, home))),
    ]


def _sandbox(fleet: Fleet, home: FleetHome) -> Manifest:
    labels = {_PART_LABEL: "home", HOME_LABEL: home.name}
    spec = {
        "podTemplate": {"metadata": {"labels": labels}, "spec": _soul_pod(fleet, home)},
        "volumeClaimTemplates": [{"metadata": {"name": "home"}, "spec": _claim(fleet, home.storage)}],
    }
    return _object(f"{GROUP}/{VERSION}", "Sandbox", fleet, home.sandbox, labels) | {"spec": spec}


def _soul_pod(fleet: Fleet, home: FleetHome) -> Manifest:
    values = {
        "AGENT_NAME": home.name,
        **fleet.settings,
        **home.settings,
        "SLEEP": "on" if home.sleep else "off",
        "SPACE_DISCOVERY": "off",
        "HOME": "/tmp",  # noqa: S108 - a volume of the pod's own
    }
    container = {
        **_container(fleet, CONTAINER, ["run"], values, memory=("96Mi", "512Mi")),
        "envFrom": [{"secretRef": {"name": home.secret}}],
        "restartPolicy": "Never",
        "restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [int(code) for code in _SETTLED]}}
        ],
        "readinessProbe": {"exec": {"command": ["sh", "-c", _AWAKE]}, "periodSeconds": 30, "timeoutSeconds": 20},
        "volumeMounts": [
            {"name": "home", "mountPath": _FOLDER},
            {"name": "soul-md", "mountPath": f"{_FOLDER}/SOUL.md", "subPath": "SOUL.md", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
        ],
    }
    volumes = [{"name": "soul-md", "configMap": {"name": home.sandbox}}, _scratch()]
    return _pod(container, volumes) | {"automountServiceAccountToken": False, "restartPolicy": "Never"}


def _soul_md(fleet: Fleet, home: FleetHome, text: str) -> Manifest:
    return _object("v1", "ConfigMap", fleet, home.sandbox) | {"data": {"SOUL.md": text}}


def _watcher(fleet: Fleet, sleepers: Sequence[FleetHome]) -> Iterable[Manifest]:
    """One process that sees that something came for those that sleep, and may do nothing but wake and suspend."""
    labels = {_PART_LABEL: "watch"}
    yield _object("v1", "ServiceAccount", fleet, WATCHER) | {"automountServiceAccountToken": False}
    rule = {"apiGroups": [GROUP], "resources": ["sandboxes"], "verbs": ["get", "list", "watch", "patch"]}
    rbac = "rbac.authorization.k8s.io"
    yield _object(f"{rbac}/v1", "Role", fleet, WATCHER) | {"rules": [rule]}
    yield _object(f"{rbac}/v1", "RoleBinding", fleet, WATCHER) | {
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": WATCHER},
        "subjects": [{"kind": "ServiceAccount", "name": WATCHER, "namespace": fleet.namespace}],
    }
    yield _object("v1", "PersistentVolumeClaim", fleet, WATCHER) | {"spec": _claim(fleet, "1Gi")}
    port = {"port": WATCH_PORT, "protocol": "TCP"}
    yield _object("v1", "Service", fleet, WATCHER) | {"spec": {"selector": labels, "ports": [port]}}
    everywhere = [{"ports": [{"port": one, "protocol": "TCP"} for one in (443, 6443)]}]
    callers = [{"from": [_pods("home")], "ports": [port]}]
    yield _network_policy(fleet, WATCHER, "watch", [_DNS, *everywhere, *_named_egress(fleet)], callers)
    container = {
        **_container(fleet, "watch", ["watch"], dict(fleet.settings), memory=("64Mi", "256Mi")),
        "ports": [{"containerPort": WATCH_PORT}],
        "volumeMounts": [
            {"name": "state", "mountPath": _FOLDER},
            {"name": "accounts", "mountPath": "/accounts", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
        ],
    }
    logins = [
        {"secret": {"name": one.secret, "items": [{"key": key, "path": f"{one.name}/{key}"} for key in _LOGIN]}}
        for one in sleepers
    ]
    volumes = [
        {"name": "state", "persistentVolumeClaim": {"claimName": WATCHER}},
        {"name": "accounts", "projected": {"defaultMode": 0o440, "sources": logins}},
        _scratch(),
    ]
    pod = _pod(container, volumes) | {"serviceAccountName": WATCHER, "automountServiceAccountToken": True}
    yield _object("apps/v1", "Deployment", fleet, WATCHER) | {
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
    }


def _network_policy(
    fleet: Fleet, name: str, part: str, egress: Sequence[Manifest], ingress: Sequence[Manifest]
) -> Manifest:
    """Limit what this part of the fleet reaches, and who reaches it: with no `ingress`, nobody."""
    return _object("networking.k8s.io/v1", "NetworkPolicy", fleet, name) | {
        "spec": {
            **_pods(part),
            "policyTypes": ["Ingress", "Egress"],
            "ingress": list(ingress),
            "egress": list(egress),
        }
    }


def _soul_egress(fleet: Fleet, *, watched: bool) -> list[Manifest]:
    public = [{"ipBlock": {"cidr": cidr, "except": private}} for cidr, private in _PRIVATE.items()]
    watcher = {
        "to": [_pods("watch")],
        "ports": [{"port": WATCH_PORT, "protocol": "TCP"}],
    }
    web = {"to": public, "ports": [{"port": 443, "protocol": "TCP"}]}
    return [_DNS, web, *_named_egress(fleet), *([watcher] if watched else [])]


def _named_egress(fleet: Fleet) -> list[Manifest]:
    return [
        {"to": [{"ipBlock": {"cidr": str(one.cidr)}}], "ports": [{"port": one.port, "protocol": "TCP"}]}
        for one in fleet.egress
    ]


_DNS: Manifest = {
    "to": [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},
        *({"ipBlock": {"cidr": cidr}} for cidr in _NODE_DNS),
    ],
    "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
}


def _pod(container: Manifest, volumes: Sequence[Manifest]) -> Manifest:
    return {
        "containers": [container],
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": _GRACE_S,
        "volumes": list(volumes),
    }


def _container(
    fleet: Fleet, name: str, args: Sequence[str], env: Mapping[str, str], *, memory: tuple[str, str]
) -> Manifest:
    """Return a container with its memory as requested and at most."""
    return {
        "name": name,
        "image": fleet.image,
        "args": list(args),
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "resources": {"requests": {"cpu": "20m", "memory": memory[0]}, "limits": {"memory": memory[1]}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _scratch() -> Manifest:
    return {"name": "tmp", "emptyDir": {"sizeLimit": "512Mi"}}


def _claim(fleet: Fleet, storage: str) -> Manifest:
    """Return the spec of a volume that one pod at a time mounts."""
    named = {"storageClassName": fleet.storage_class} if fleet.storage_class else {}
    return {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": storage}}, **named}


def _pods(part: str) -> Manifest:
    """Return what selects the pods of this part: the homes, or the watcher."""
    return {"podSelector": {"matchLabels": {_PART_LABEL: part}}}


def _object(api: str, kind: str, fleet: Fleet, name: str, labels: Mapping[str, str] | None = None) -> Manifest:
    metadata = {"name": name, "namespace": fleet.namespace, "labels": {**_MANAGER, **(labels or {})}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata}
