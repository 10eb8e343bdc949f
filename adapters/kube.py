"""A Kubernetes cluster: the address of its API, the credentials for it, and the objects of one namespace."""

import json
import os
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import httpx

from adapters.web.client import WebTransport, kind_of_status, shortened, transport_error
from adapters.web.spacing import retry_after_s
from common.clock import Clock, doubled
from common.errors import ConfigError
from common.installation import command_for_extra
from common.result import LASTING, ApiResult, Err, ErrKind, Ok, answering

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


KubeObject = dict[str, Any]

_SERVICE = "the cluster"
_TIMEOUT_S = 15.0
_LONGEST_S = 60.0
"""How long a request is retried while the cluster is busy."""
_FIRST_WAIT_S, _MOST_WAIT_S = 0.5, 10.0
_CHANGES = 8
"""How often a change is tried while others change the object first."""
_SILENCE_S = 90.0
"""Servers send a bookmark about each minute; a watch that is silent for longer is restarted."""
_WATCH_S = 300
_EXPIRED = 410
_OWN_KINDS: Mapping[int, ErrKind] = {409: "conflict", 422: "invalid"}
_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
_MANAGER = "soul-fleet"


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object, such as `agents.x-k8s.io/v1beta1` and `sandboxes`. Not all belong to a namespace."""

    api: str
    plural: str
    is_namespaced: bool = True

    def path(self, namespace: str, name: str = "") -> str:
        root = f"/apis/{self.api}" if "/" in self.api else f"/api/{self.api}"
        within = f"/namespaces/{namespace}" if self.is_namespaced else ""
        return f"{root}{within}/{self.plural}{'/' if name else ''}{name}"


@dataclass
class Cluster:
    """The objects of `namespace`. Each call has a deadline, until which it is retried while the cluster is busy."""

    access: ClusterAccess
    namespace: str
    clock: Clock
    timeout_s: float = _TIMEOUT_S
    silence_s: float = _SILENCE_S
    _client: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        transport = WebTransport(allow=(self.access.url,), certificates=self.access.certificates)
        self._client = httpx.AsyncClient(transport=transport, timeout=self.timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    @answering
    async def versions(self, group: str) -> ApiResult[tuple[str, ...]]:
        """Return the versions of an API group that the cluster serves; none if it has no such group."""
        found = (await self._asked("GET", f"/apis/{group}")).or_else({}, "not_found")
        return Ok(tuple(one["version"] for one in found.get("versions", ())))

    @answering
    async def release(self) -> ApiResult[tuple[int, int]]:
        """Return the version of Kubernetes, such as (1, 35)."""
        told = (await self._asked("GET", "/version")).or_raise()
        found = [str(told.get(part, "")).rstrip("+") for part in ("major", "minor")]  # some clouds add a plus
        major, minor = (int(one) if one.isdecimal() else 0 for one in found)
        return Ok((major, minor))

    @answering
    async def listed(self, resource: Resource, selector: str = "") -> ApiResult[tuple[list[KubeObject], str]]:
        """Return all objects with these labels, and the version of the list, from which a watch continues."""
        found = (await self._asked("GET", resource.path(self.namespace), labelSelector=selector)).or_raise()
        return Ok((found.get("items") or [], found.get("metadata", {}).get("resourceVersion", "")))

    async def read(self, resource: Resource, name: str) -> ApiResult[KubeObject]:
        return await self._asked("GET", resource.path(self.namespace, name))

    async def apply(self, resource: Resource, wanted: KubeObject) -> ApiResult[KubeObject]:
        """Create the object, or set these fields; fields that others set and `wanted` lacks stay."""
        path = resource.path(self.namespace, wanted["metadata"]["name"])
        return await self._asked("PATCH", path, wanted, _APPLY, fieldManager=_MANAGER, force="true")

    @answering
    async def change(
        self, resource: Resource, name: str, patch_for: Callable[[KubeObject], KubeObject | None]
    ) -> ApiResult[KubeObject]:
        """Patch the object with what `patch_for` returns for its present state; None: no change. Return the result.

        If somebody else changes it in between, it is read and `patch_for` is called again.
        """
        for _ in range(_CHANGES):
            present = (await self.read(resource, name)).or_raise()
            if (patch := patch_for(present)) is None:
                return Ok(present)
            version = {"resourceVersion": present.get("metadata", {}).get("resourceVersion", "")}
            patch["metadata"] = patch.get("metadata", {}) | version
            done = await self._asked("PATCH", resource.path(self.namespace, name), patch, _MERGE)
            if isinstance(done, Ok) or done.kind != "conflict":
                return done
        return Err(f"could not change {name}: others change it all the time", "conflict")

    async def watch(self, resource: Resource, selector: str = "") -> AsyncGenerator[ApiResult[KubeObject], None]:
        """Yield each object as it is now, and again at each change, until the caller stops; an `Err` ends it.

        A deleted one has a `metadata.deletionTimestamp`. Changes missed while the connection was lost are yielded
        later; after a gap that the cluster does not remember, all objects come again.
        """
        version, tries = "", 0
        while True:
            if not version:
                found = await self.listed(resource, selector)
                if isinstance(found, Err):
                    yield found
                    return
                objects, version = found.data
                for one in objects:
                    yield Ok(one)
            async with aclosing(self._events(resource, selector, version)) as events:
                async for event in events:
                    if isinstance(event, Ok):
                        tries, version = 0, event.data["metadata"].get("resourceVersion", version)
                        if "name" in event.data["metadata"]:  # a bookmark has none
                            yield event
                    elif event.status == _EXPIRED:
                        version = ""
                    elif event.kind in LASTING:
                        yield event
                        return
                    else:
                        await self.clock.sleep(event.retry_after or doubled(_FIRST_WAIT_S, tries, _MOST_WAIT_S))
                        tries += 1

    async def _events(
        self, resource: Resource, selector: str, version: str
    ) -> AsyncGenerator[ApiResult[KubeObject], None]:
        """Yield the object of each event of one connection, and last an `Err` that says how it ended."""
        params = {"labelSelector": selector, "resourceVersion": version, "watch": "true"}
        params |= {"allowWatchBookmarks": "true", "timeoutSeconds": str(_WATCH_S)}
        url, timeout = (
            f"{self.access.url}{resource.path(self.namespace)}",
            httpx.Timeout(self.timeout_s, read=self.silence_s),
        )
        try:
            headers = self.access.headers()
            async with self._client.stream("GET", url, params=params, headers=headers, timeout=timeout) as answer:
                if not answer.is_success:
                    await answer.aread()
                    yield self._refused(answer.status_code, answer.content, answer.headers, "watch")
                    return
                rest = b""
                async for piece in answer.aiter_bytes():
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        kind, told, metadata = event["type"], event["object"], event["object"].get("metadata", {})
                        if kind == "ERROR":
                            yield self._refused(int(told["code"]), json.dumps(told), {}, "watch")
                            return
                        if kind == "DELETED":
                            metadata.setdefault("deletionTimestamp", "")
                        yield Ok({**told, "metadata": metadata})
            yield Err("watch: the connection ended", "transient")
        except (httpx.HTTPError, OSError) as error:
            yield transport_error(error, what="watch", service=_SERVICE, write=False)
        except (ValueError, LookupError, TypeError, AttributeError):
            yield Err("watch: the answer cannot be read", "transient")

    async def _asked(
        self, method: str, path: str, body: KubeObject | None = None, kind: str = "application/json", **params: str
    ) -> ApiResult[KubeObject]:
        """Send a request, and again while the cluster is busy: every request here is safe to repeat."""
        until_s, tries = self.clock.monotonic() + _LONGEST_S, 0
        while True:
            answer = await self._once(method, path, json.dumps(body) if body else "", kind, params)
            if isinstance(answer, Ok) or answer.kind in LASTING:
                return answer
            wait_s = answer.retry_after or doubled(_FIRST_WAIT_S, tries, _MOST_WAIT_S)
            if self.clock.monotonic() + wait_s > until_s:
                return answer
            await self.clock.sleep(wait_s)
            tries += 1

    async def _once(
        self, method: str, path: str, content: str, kind: str, params: dict[str, str]
    ) -> ApiResult[KubeObject]:
        what, url = f"{method} {path}", f"{self.access.url}{path}"
        try:
            headers = {**self.access.headers(), "Content-Type": kind}
            async with self.clock.timeout(self.timeout_s):
                answer = await self._client.request(method, url, params=params, content=content, headers=headers)
            if not answer.is_success:
                return self._refused(answer.status_code, answer.content, answer.headers, what)
            told = answer.json()
        except (httpx.HTTPError, OSError) as error:
            return transport_error(error, what=what, service=_SERVICE, write=False)
        except ValueError:
            told = None
        return Ok(told) if isinstance(told, dict) else Err(f"{what}: the answer cannot be read", "transient")

    def _refused(self, status: int, content: str | bytes, headers: Mapping[str, str], what: str) -> Err:
        try:
            message = str(json.loads(content)["message"])
        except (ValueError, LookupError, TypeError):
            message = f"HTTP {status}"
        kind = kind_of_status(status, write=False, own=_OWN_KINDS)
        return Err(shortened(f"{what}: {message}"), kind, status, retry_after_s(headers, self.clock.now()))
