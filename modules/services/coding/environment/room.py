"""Runs the installation of packages in a sandbox that reaches the package index and nothing else."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import uv

from modules.runtime.sandbox.gateway import Gateway, Host, open_gateway
from modules.runtime.sandbox.policy import MIB, Limits, Ran, Shared
from modules.runtime.sandbox.runner import Sandbox

_LIMITS = Limits(
    wall_s=300.0,
    cpu_s=300,
    memory_bytes=2048 * MIB,
    file_bytes=1024 * MIB,
    disk_bytes=2048 * MIB,
    tmp_bytes=512 * MIB,
)
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class InstallRoom:
    """Runs the tools that install packages.

    Attributes:
        sandbox: runs the tools.
        folder: the only files that they see of the repository; they also install here.
        cache: the cache folder of the tool, kept for the next task; None: no cache is kept.
        hosts: the hosts that may be reached; None: every host, for a run without files of a repository.

    """

    sandbox: Sandbox
    folder: Path
    cache: Path | None
    hosts: frozenset[Host] | None

    async def run(self, script: str, env: Mapping[str, str]) -> tuple[Ran, Gateway]:
        """Run a shell script, in which `$UV` is the path of uv. Raises `SoulError` if the sandbox does not work."""
        program = Shared("uv", Path(uv_program()))
        kept = Shared("cache", self.cache, writable=True) if self.cache else None
        if self.cache:
            self.cache.mkdir(parents=True, exist_ok=True)
        async with open_gateway(self.hosts) as gateway:
            sees = (*gateway.shared, program, *([kept] if kept else []))
            at = {one.name: self.sandbox.seen_at(one) for one in sees}
            caches = at["cache"] if kept else "/tmp/cache"  # noqa: S108 - the /tmp of the sandbox
            command, interpreter = gateway.relayed(self.sandbox.seen_at, ["/bin/sh", "-c", script])
            given = {
                "UV": at["uv"],
                "UV_CACHE_DIR": caches,
                "npm_config_cache": caches,
                "CARGO_HOME": caches,
                "GOMODCACHE": caches,
                **_certificates(),
                **interpreter,
                **env,
            }
            ran = await self.sandbox.run(command, self.folder, limits=_LIMITS, env=given, shared=sees)
            return ran, gateway


def reason(ran: Ran, gateway: Gateway) -> str:
    """Return in one line why a run failed."""
    said = " ".join((ran.stderr or ran.stdout).split())
    if ran.ended != "exited":
        said = f"ended by its limit ({ran.ended}) {said}"
    refused = ", ".join(sorted(host for host, _ in gateway.refused))
    told = f"not let through to {refused}; {said}" if refused else said
    return told[:_REASON_CHARS].strip() or f"ended with {ran.returncode}"


def uv_program() -> str:
    """Return the path of uv; one that does not exist if uv is not installed."""
    try:
        return uv.find_uv_bin()
    except FileNotFoundError:
        return shutil.which("uv") or "/nonexistent"


def _certificates() -> Mapping[str, str]:
    """Return the environment variables that name the certificates that this machine trusts."""
    names = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO")
    return dict.fromkeys(names, _CERTIFICATES) if Path(_CERTIFICATES).exists() else {}
