"""Proves that a fleet's manifests have only fields that the API knows, no secret, and only needed permissions."""

from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from common.errors import ConfigError
from soul import cli
from soul.fleet.fleet_file import manifests, read_fleet, read_souls, resource_of
from tests.soul.fleet.fleet_files import written


class _Known(BaseModel):
    """A model that refuses a field that the API does not have, or has in another form."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class _Named(_Known):
    name: str


class _Metadata(_Known):
    name: str | None = Field(default=None, max_length=63)
    namespace: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)


class _ExitCodes(_Known):
    operator: Literal["In", "NotIn"]
    values: list[int]


class _RestartRule(_Known):
    action: Literal["Restart"]
    exit_codes: _ExitCodes


class _Mount(_Known):
    name: str
    mount_path: str
    sub_path: str = ""
    read_only: bool = False


class _EnvFrom(_Known):
    secret_ref: _Named


class _Env(_Known):
    name: str
    value: str


class _Exec(_Known):
    command: list[str]


class _Probe(_Known):
    exec: _Exec
    period_seconds: int
    timeout_seconds: int


class _Capabilities(_Known):
    drop: list[Literal["ALL"]]


class _ContainerSecurity(_Known):
    allow_privilege_escalation: Literal[False]
    read_only_root_filesystem: Literal[True]
    capabilities: _Capabilities


class _Resources(_Known):
    requests: dict[Literal["cpu", "memory", "storage"], str]
    limits: dict[Literal["memory"], str] = Field(default_factory=dict)


class _Container(_Known):
    name: str
    image: str
    args: list[str]
    env: list[_Env]
    env_from: list[_EnvFrom]
    resources: _Resources
    security_context: _ContainerSecurity
    restart_policy: Literal["Never"]
    restart_policy_rules: list[_RestartRule]
    readiness_probe: _Probe
    volume_mounts: list[_Mount]


class _Seccomp(_Known):
    type: Literal["RuntimeDefault"]


class _PodSecurity(_Known):
    run_as_non_root: Literal[True]
    run_as_user: int = Field(gt=0)
    run_as_group: int = Field(gt=0)
    fs_group: int = Field(gt=0)
    fs_group_change_policy: Literal["OnRootMismatch"]
    seccomp_profile: _Seccomp


class _EmptyDir(_Known):
    size_limit: str


class _Volume(_Known):
    name: str
    config_map: _Named | None = None
    empty_dir: _EmptyDir | None = None


class _Pod(_Known):
    containers: list[_Container]
    enable_service_links: Literal[False]
    automount_service_account_token: Literal[False]
    restart_policy: Literal["Never"]
    security_context: _PodSecurity
    termination_grace_period_seconds: int
    volumes: list[_Volume]


class _Claim(_Known):
    access_modes: list[Literal["ReadWriteOncePod"]]
    resources: _Resources
    storage_class_name: str | None = None


class _ClaimTemplate(_Known):
    metadata: _Metadata
    spec: _Claim


class _PodTemplate(_Known):
    metadata: _Metadata
    spec: _Pod


class _SandboxSpec(_Known):
    pod_template: _PodTemplate
    volume_claim_templates: list[_ClaimTemplate]


class _Sandbox(_Known):
    api_version: Literal["agents.x-k8s.io/v1beta1"]
    kind: Literal["Sandbox"]
    metadata: _Metadata
    spec: _SandboxSpec


_SANDBOX_FIELDS = {
    "operatingMode",
    "podTemplate",
    "service",
    "shutdownPolicy",
    "shutdownTime",
    "volumeClaimTemplates",
}
"""All fields of a Sandbox's spec."""


def _rendered(folder: Path, **changes: Any) -> list[dict[str, Any]]:
    file = written(folder, **changes)
    fleet = read_fleet(file)
    return manifests(fleet, read_souls(file, fleet))


def _of(kind: str, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in told if one["kind"] == kind]


def test_each_home_is_a_sandbox_of_its_own_with_a_volume_that_one_pod_mounts(tmp_path: Path) -> None:
    told = _rendered(tmp_path, storage_class="fast")
    rowan, wren = (_Sandbox.model_validate(one) for one in _of("Sandbox", told))
    assert [one.metadata.name for one in (rowan, wren)] == ["soul-rowan", "soul-wren"]
    assert [one.spec.volume_claim_templates[0].spec.resources.requests["storage"] for one in (rowan, wren)] == [
        "1Gi",
        "5Gi",
    ]
    assert wren.spec.volume_claim_templates[0].spec.storage_class_name == "fast"
    container = rowan.spec.pod_template.spec.containers[0]
    env = {one.name: one.value for one in container.env}
    assert env["AGENT_NAME"] == "rowan"
    assert env["AGENT_BLUESKY_USERNAME"] == "rowan.test"
    assert env["AI_GATEWAY_MODEL"] == "openai/gpt-5.2"
    assert env["SLEEP"] == "on"
    assert container.env_from[0].secret_ref.name == "soul-rowan"
    assert {one.mount_path for one in container.volume_mounts if not one.read_only} == {"/home/soul/life", "/tmp"}  # noqa: S108
    assert {"name": "SLEEP", "value": "off"} in _of("Sandbox", told)[-1]["spec"]["podTemplate"]["spec"]["containers"][
        0
    ]["env"]


def test_a_soul_that_ended_or_sleeps_is_not_started_again_and_one_that_failed_is(tmp_path: Path) -> None:
    rules = _of("Sandbox", _rendered(tmp_path))[0]["spec"]["podTemplate"]["spec"]["containers"][0]["restartPolicyRules"]
    assert len(rules) == 1
    assert rules[0]["exitCodes"]["operator"] == "NotIn"
    settled = set(rules[0]["exitCodes"]["values"])
    assert {0, 2, 78, 79} == settled
    assert not settled & {1, 74, 75, 137}


def test_to_apply_the_file_again_says_nothing_of_who_runs(tmp_path: Path) -> None:
    assert all("operatingMode" not in one["spec"] for one in _of("Sandbox", _rendered(tmp_path)))


def test_nobody_reaches_the_page_and_a_soul_reaches_the_web_names_and_what_the_file_permits(tmp_path: Path) -> None:
    told = _rendered(tmp_path, egress=[{"cidr": "10.1.2.3/32", "port": 11434}])
    policy = next(one for one in _of("NetworkPolicy", told) if one["metadata"]["name"] == "souls")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == []
    opened = {(port["port"], port["protocol"]) for rule in policy["egress"] for port in rule["ports"]}
    assert opened == {(53, "UDP"), (53, "TCP"), (443, "TCP"), (11434, "TCP"), (8080, "TCP")}
    web = next(rule for rule in policy["egress"] if rule["ports"][0]["port"] == 443)
    assert {private for to in web["to"] for private in to["ipBlock"]["except"]} >= {
        "10.0.0.0/8",
        "169.254.0.0/16",
        "fc00::/7",
    }
    for sandbox in _of("Sandbox", told):
        assert (
            policy["podSelector"]["matchLabels"].items() <= sandbox["spec"]["podTemplate"]["metadata"]["labels"].items()
        )


def test_the_watcher_may_look_at_sandboxes_and_patch_them_and_gets_the_logins_of_those_that_sleep_alone(
    tmp_path: Path,
) -> None:
    told = _rendered(tmp_path)
    verbs = ["get", "list", "watch", "patch"]
    assert [one["rules"] for one in _of("Role", told)] == [
        [{"apiGroups": ["agents.x-k8s.io"], "resources": ["sandboxes"], "verbs": verbs}]
    ]
    assert not _of("ClusterRole", told)
    pod = _of("Deployment", told)[0]["spec"]["template"]["spec"]
    sources = next(one for one in pod["volumes"] if "projected" in one)["projected"]["sources"]
    secrets = [one["secret"] for one in sources if "secret" in one]
    assert [one["name"] for one in secrets] == ["soul-rowan"]
    assert {item["key"] for item in secrets[0]["items"]} == {"AGENT_BLUESKY_PASSWORD", "AGENT_GITHUB_TOKEN"}
    paths = [item["path"] for one in sources for item in next(iter(one.values()))["items"]]
    assert {*paths} == {f"rowan/AGENT_{one}" for one in ("BLUESKY_USERNAME", "BLUESKY_PASSWORD", "GITHUB_TOKEN")}
    assert len(paths) == 3
    known = next(one["data"] for one in _of("ConfigMap", told) if one["metadata"]["name"] == "soul-watch")
    assert known["rowan.AGENT_BLUESKY_USERNAME"] == "rowan.test"
    (tmp_path / "of_the_watcher.yaml").write_text(known["FLEET.yaml"], encoding="utf-8")
    assert read_fleet(tmp_path / "of_the_watcher.yaml") == read_fleet(tmp_path / "FLEET.yaml")
    assert "envFrom" not in pod["containers"][0]


def test_the_watcher_starts_anew_with_another_limit_of_dollars_and_else_runs_on(tmp_path: Path) -> None:
    pods = [
        _of("Deployment", _rendered(tmp_path, budget_usd_per_day=usd, settings={"BUDGET_USD_PER_DAY": 1}))[0]["spec"]
        for usd in (3, 3, 4)
    ]
    assert [one["template"] == pods[0]["template"] for one in pods] == [True, True, False]


class _ResourceRule(_Known):
    api_groups: list[str]
    api_versions: list[str]
    operations: list[Literal["UPDATE"]]
    resources: list[str]


class _Selector(_Known):
    match_labels: dict[str, str]


class _Constraints(_Known):
    namespace_selector: _Selector
    resource_rules: list[_ResourceRule]


class _Expression(_Known):
    name: str | None = None
    expression: str


class _PolicySpec(_Known):
    failure_policy: Literal["Fail"]
    match_constraints: _Constraints
    match_conditions: list[_Expression]
    validations: list[_Expression]


class _BindingSpec(_Known):
    policy_name: str
    validation_actions: list[Literal["Deny"]]


def test_the_watcher_may_change_of_a_sandbox_whether_it_runs_and_its_figures_alone(tmp_path: Path) -> None:
    told = _rendered(tmp_path)
    policy, binding = told[-2:]
    spec = _PolicySpec.model_validate(policy["spec"])
    assert spec.match_conditions[0].expression.endswith("== 'system:serviceaccount:souls:soul-watch'")
    assert spec.match_constraints.namespace_selector.match_labels == {"kubernetes.io/metadata.name": "souls"}
    assert spec.match_constraints.resource_rules[0].resources == ["sandboxes"]
    kept = " ".join(one.expression for one in spec.validations)
    for field in _SANDBOX_FIELDS - {"operatingMode"}:
        assert f"{field} == oldObject.spec." in kept
    assert "operatingMode" not in kept
    assert kept.count("k == 'soul.town/figures'") == kept.count("(k, ") == 2
    assert _BindingSpec.model_validate(binding["spec"]).policy_name == policy["metadata"]["name"] == "soul-watch.souls"
    assert resource_of(policy).path("souls", "x") == (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/x"
    )


def test_where_nobody_sleeps_there_is_no_watcher(tmp_path: Path) -> None:
    told = _rendered(tmp_path, homes=[{"name": "rowan", "sleep": False}])
    assert {one["kind"] for one in told} == {"NetworkPolicy", "ConfigMap", "Sandbox"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"settings": {"AI_GATEWAY_API_KEY": "sk-1"}}, "AI_GATEWAY_API_KEY is a secret"),
        ({"settings": {"ALARM_URL": "https://hooks.example/abc"}}, "ALARM_URL is a secret"),
        ({"settings": {"AI_GATEWAY_BASE_URL": "https://key:sk-1@host.test/v1"}}, "AI_GATEWAY_BASE_URL is a secret"),
        ({"settings": {"AI_GATEWAY_MODEL": ""}}, "settings AI_GATEWAY_MODEL"),
        ({"settings": {"AI_GATEWAY_MODLE": "x"}}, "AI_GATEWAY_MODLE is not a setting"),
        ({"settings": {"SLEEP": "on"}}, "SLEEP cannot be set here: `sleep` of the home decides it"),
        ({"image": ""}, "image"),
        ({"imag": "x"}, "imag is unknown"),
        ({"homes": []}, "homes"),
        ({"homes": [{"name": "Rowan Oak"}]}, "homes.0.name"),
        ({"homes": [{"name": "rowan"}, {"name": "rowan"}]}, "two homes have the name rowan"),
        (
            {"homes": [{"name": "rowan"}, {"name": "wren", "secret": "soul-rowan"}]},
            "two homes have the secret soul-rowan",
        ),
        ({"homes": [{"name": "watch"}]}, "no home can be named watch"),
        ({"homes": [{"name": "rowan", "storage": "big"}]}, "homes.0.storage"),
        ({"homes": [{"name": "nobody"}]}, "nobody/SOUL.md of nobody cannot be read"),
        ({"egress": [{"cidr": "10.0.0.0/33", "port": 1}]}, "egress.0.cidr"),
    ],
)
def test_a_mistake_in_the_file_is_told_in_one_line(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _rendered(tmp_path, **changes)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "sk-1" not in str(caught.value)


_TWICE = "namespace: souls\nimage: a/b:1\nhomes: [{name: a}]\nhomes: [{name: b}]"
_MERGED = "namespace: souls\nimage: a/b:1\nhomes: [&a {name: a}, {<<: *a, name: b}]"


@pytest.mark.parametrize("content", ["[1, 2", "- 1", "\x00", "homes: &a [*a]", _TWICE, _MERGED])
def test_what_is_no_fleet_at_all_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file = tmp_path / "FLEET.yaml"
    file.write_text(content, encoding="utf-8")
    assert cli.run(["fleet", "render", str(file)]) == 78
    assert str(file) in capsys.readouterr().err
    assert cli.run(["fleet", "render", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml cannot be read" in capsys.readouterr().err


def test_the_command_prints_what_a_yaml_reader_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, soul_md="# Rowan\n\tü: 'a' \u2028 " + "x" * 5000)
    fleet = read_fleet(file)
    assert cli.run(["fleet", "render", str(file)]) == 0
    assert [*yaml.safe_load_all(capsys.readouterr().out)] == manifests(fleet, read_souls(file, fleet))
