"""FLEET.yaml (the homes of a cluster and the settings of their pods), and the manifests made from it.

Manifests are the YAML files of this folder, filled in. They hold no value of a secret and no address of a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from string import Template
from typing import Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from adapters.kube import KubeObject, Resource
from common.constants import STATE_MAX_BYTES, TEXT_MAX_BYTES
from common.errors import ConfigError, UsageError
from common.files import read_bounded
from common.settings import KNOWN, complaint, settings_of
from soul.exit_codes import ASLEEP, ExitCode

_SEE = "docs/fleet.md shows an example."
_LIMIT = "BUDGET_USD_PER_DAY"
_MANIFESTS_OWN = {
    "AGENT_NAME": "`name` of the home",
    "MEMORY_DIR": "the volume",
    "SLEEP": "`sleep` of the home",
    "SLEEP_WATCH_URL": "the watcher of the fleet",
    "SPACE_DISCOVERY": "the network policy",
}


def _setting_value(value: object) -> object:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


def _known_settings(values: dict[str, str]) -> dict[str, str]:
    """Return `values`. Raises `ValueError` for one that is unknown, secret, wrong, or decided by the manifests."""
    for name, value in values.items():
        if name in _MANIFESTS_OWN:
            raise ValueError(f"{name} cannot be set here: {_MANIFESTS_OWN[name]} decides it")
        if name not in KNOWN:
            raise ValueError(f"{name} is not a setting")
        settings, mistakes = settings_of({name.lower(): value})
        if wrong := next((str(one) for one in mistakes if one.setting == name), ""):
            raise ValueError(wrong)
        if settings.secrets or "@" in urlsplit(value).netloc:
            raise ValueError(f"{name} is a secret: put it into the home's Secret in the cluster, never into this file")
    return values


Label = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=50)]
ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Quantity = Annotated[str, Field(pattern=r"^[1-9][0-9]*(Mi|Gi|Ti)$")]
SettingValues = Annotated[dict[str, Annotated[str, BeforeValidator(_setting_value)]], AfterValidator(_known_settings)]


class _OfFleetFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Egress(_OfFleetFile):
    """A service in a private network that the SOULs may reach, such as a model service in the cluster."""

    cidr: IPv4Network | IPv6Network
    port: int = Field(ge=1, le=65535)


class FleetHome(_OfFleetFile):
    """One SOUL.

    Attributes:
        secret: the Secret with the home's passwords and keys, by the names of their settings; `soul-NAME` by default.
        soul_md: the file with its SOUL.md, relative to FLEET.yaml; `NAME/SOUL.md` by default.
        settings: those that are not secret; they override the fleet's.
        storage: the size of its volume, which cannot be changed later.
        sleep: whether its pod may end while nothing is due.

    """

    name: Label
    secret: ObjectName = ""
    soul_md: Path = Path()
    settings: SettingValues = Field(default_factory=dict)
    storage: Quantity = "1Gi"
    sleep: bool = True

    @model_validator(mode="before")
    @classmethod
    def _named_after_it(cls, value: Any) -> Any:  # noqa: ANN401 - what a file holds
        name = value.get("name") if isinstance(value, dict) else None
        return {"secret": f"soul-{name}", "soul_md": f"{name}/SOUL.md", **value} if name else value


class Fleet(_OfFleetFile):
    """The content of FLEET.yaml. The fleet has its name space to itself.

    `budget_usd_per_day` is for all homes together: once it is used, none wakes for time alone.
    """

    namespace: Label
    image: str = Field(pattern=r"^[^\s:/][^\s]*$", max_length=500)
    storage_class: ObjectName | None = None
    budget_usd_per_day: float | None = Field(default=None, gt=0)
    settings: SettingValues = Field(default_factory=dict)
    egress: tuple[Egress, ...] = ()
    homes: tuple[FleetHome, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_its_own(self) -> Fleet:
        for what in ("name", "secret"):
            values = [getattr(home, what) for home in self.homes]
            if twice := next((value for value in values if values.count(value) > 1), ""):
                raise ValueError(f"two homes have the {what} {twice}")
        if any(home.name == "watch" for home in self.homes):
            raise ValueError("no home can be named watch: that is the watcher's name")
        unbounded = next((home.name for home in self.homes if not self.value_of(home, _LIMIT)), "")
        if self.budget_usd_per_day and unbounded:
            raise ValueError(f"{unbounded} needs {_LIMIT}, since budget_usd_per_day is set")
        return self

    def value_of(self, home: FleetHome, setting: str) -> str:
        """Return a setting of a home, its own before the fleet's; "" if neither names it."""
        return home.settings.get(setting, self.settings.get(setting, ""))

    @property
    def set_aside_usd(self) -> float:
        """The dollars that homes which never sleep may spend in a day; what they really spend is not known."""
        return sum(float(self.value_of(home, _LIMIT) or 0) for home in self.homes if not home.sleep)

    @property
    def wakes_usd(self) -> float | None:
        """The dollars left in a day for the homes that sleep; None for any amount."""
        return None if self.budget_usd_per_day is None else self.budget_usd_per_day - self.set_aside_usd


class _PlainLoader(yaml.SafeLoader):
    """Loads YAML; refuses duplicate keys, and merge keys (`<<`)."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if wrong := next((key for key, times in keys.items() if key == "<<" or times > 1), None):
            raise yaml.MarkedYAMLError(problem=f"{wrong} is merged or stands twice", problem_mark=node.start_mark)


def read_fleet(path: Path) -> Fleet:
    """Read and check FLEET.yaml. Raises `UsageError` if it cannot be read, and `ConfigError` for its content."""
    try:
        return Fleet.model_validate(yaml.load(read_bounded(path, STATE_MAX_BYTES), _PlainLoader))  # noqa: S506 - safe
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", remedy=_SEE) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {where or 'the file'} {complaint(first)}", remedy=_SEE) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}", remedy=_SEE) from None


def read_souls(path: Path, fleet: Fleet) -> dict[str, str]:
    """Return the text of each SOUL.md beside the file, by the home's name. Raises `ConfigError`."""
    return {home.name: _soul_md(path.parent / home.soul_md, home) for home in fleet.homes}


def _soul_md(path: Path, home: FleetHome) -> str:
    try:
        return read_bounded(path, TEXT_MAX_BYTES).decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        remedy = f"Write it, or name another file in `soul_md` of {home.name}."
        raise ConfigError(f"{path} of {home.name} cannot be read: {why}", remedy=remedy) from error


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
