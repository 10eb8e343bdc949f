"""The address of a cluster's API and the credentials for it: in a pod, or from a kubeconfig."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.installation import command_for_extra

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The API at `url`.

    Attributes:
        certificates: the certificates to trust, and that of this program if it has one; None over HTTP.
        authorization: the header, "" for none.
        token_file: a file with a token that the cluster renews, used instead of `authorization`.

    """

    url: str
    certificates: ssl.SSLContext | None = None
    authorization: str = field(default="", repr=False)
    token_file: Path | None = None

    def headers(self) -> dict[str, str]:
        """Return the authorization header. Raises `OSError` if the token cannot be read."""
        told = f"Bearer {self.token_file.read_text().strip()}" if self.token_file else self.authorization
        return {"Authorization": told} if told else {}


def cluster_access(
    context: str = "", environment: Mapping[str, str] = os.environ, account: Path = _ACCOUNT
) -> ClusterAccess:
    """Return the access to the cluster: of the pod that this runs in, else of the kubeconfig and its `context`.

    Raises:
        ConfigError: there is none, it cannot be read, or the extra that reads a kubeconfig is not installed.

    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if host and not context and (account / "token").exists():
        named = f"[{host}]" if ":" in host else host
        trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
        return ClusterAccess(f"https://{named}:{port}", trusted, token_file=account / "token")
    if find_spec("kubernetes") is None:
        remedy = f"Install it beside this program: `{command_for_extra('fleet')}`."
        raise ConfigError("What reads a kubeconfig is not installed", remedy=remedy)
    return _of_kubeconfig(context, environment.get("KUBECONFIG"))


def _of_kubeconfig(context: str, file: str | None) -> ClusterAccess:
    """Return the access that the kubeconfig describes. Its commands, which clouds use to log in, are run."""
    from kubernetes.client import Configuration  # noqa: PLC0415 - an optional library
    from kubernetes.config import ConfigException, load_kube_config  # noqa: PLC0415 - the same

    found, remedy = Configuration(), "Check it with `kubectl auth whoami`, or name a context with --context."
    try:
        load_kube_config(file, context or None, found, persist_config=False)  # type: ignore[no-untyped-call]
        certificates = _certificates(found) if found.host.startswith("https:") else None
    except (ConfigException, OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"The kubeconfig cannot be used: {' '.join(str(error).split())}", remedy=remedy) from error
    token = found.auth_settings().get("BearerToken", {}).get("value") or ""
    if certificates and not (token or found.cert_file):  # the library only logs why a command failed
        raise ConfigError("The kubeconfig cannot be used: it gives no token and no certificate", remedy=remedy)
    return ClusterAccess(found.host.rstrip("/"), certificates, token)


def _certificates(found: Any) -> ssl.SSLContext:  # noqa: ANN401 - a type of an optional library
    context = ssl.create_default_context(cafile=found.ssl_ca_cert)
    if not found.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if found.cert_file:
        context.load_cert_chain(found.cert_file, found.key_file)
    return context
