"""Tests of the access to a cluster: that of the pod, or that of a kubeconfig, whose command may print the token."""

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.kube import cluster_access
from common.errors import ConfigError
from tests.certificates import certificate_for


def _kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> dict[str, str]:
    told = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
    }
    (folder / "config").write_text(yaml.safe_dump(told), encoding="utf-8")
    return {"KUBECONFIG": str(folder / "config")}


def test_a_pod_uses_its_own_account_and_reads_its_token_anew(tmp_path: Path) -> None:
    certificate_for("kubernetes.example", tmp_path).rename(tmp_path / "ca.crt")
    (tmp_path / "token").write_text("first\n", encoding="utf-8")
    access = cluster_access("", {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, tmp_path)
    assert access.url == "https://[fd00::1]:443"
    assert access.headers() == {"Authorization": "Bearer first"}
    (tmp_path / "token").write_text("renewed\n", encoding="utf-8")
    assert access.headers() == {"Authorization": "Bearer renewed"}
    assert access.certificates is not None
    assert access.certificates.verify_mode is ssl.CERT_REQUIRED
    assert access.certificates.cert_store_stats()["x509"] == 1


def test_a_kubeconfig_names_the_cluster_whom_to_trust_and_the_certificate_of_its_owner(tmp_path: Path) -> None:
    pem = certificate_for("owner.example", tmp_path)
    data = base64.b64encode(pem.read_bytes()).decode()
    user = {"client-certificate-data": data, "client-key-data": data}
    access = cluster_access("", _kubeconfig(tmp_path, user, **{"certificate-authority-data": data}), tmp_path)
    assert access.url == "https://127.0.0.1:6443"
    assert access.headers() == {}
    assert access.certificates is not None
    assert access.certificates.cert_store_stats()["x509"] == 1
    assert access.certificates.check_hostname


def test_a_cloud_s_command_says_the_token(tmp_path: Path) -> None:
    told = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of-the-cloud"}}'
    command = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", f"echo '{told}'"],
        "interactiveMode": "Never",
    }
    access = cluster_access("here", _kubeconfig(tmp_path, {"exec": command}), tmp_path)
    assert access.headers() == {"Authorization": "Bearer of-the-cloud"}
    assert "of-the-cloud" not in repr(access)


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-command"}}, {}),
        ({"client-certificate": "/none/cert", "client-key": "/none/key"}, {}),
        ({"token": "t"}, {"certificate-authority-data": "!"}),
        ({"token": "t"}, {"certificate-authority-data": base64.b64encode(b"no certificate").decode()}),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_told_in_one_line(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        cluster_access("", _kubeconfig(tmp_path, user, **cluster), tmp_path)
    assert str(caught.value).startswith("The kubeconfig cannot be used: ")
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
