"""What may be handed to `git`: addresses, branches, and the settings that every run gets. Pure."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping

_PARAM = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*")
SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.askPass": "",
    "core.quotePath": "false",
    "credential.helper": "",
    "http.followRedirects": "false",
    "http.sslVerify": "true",
    "protocol.allow": "never",
    "protocol.https.allow": "always",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "core.bigFileThreshold": "4m",
    "core.deltaBaseCacheLimit": "16m",
    "core.packedGitLimit": "64m",
    "core.packedGitWindowSize": "8m",
    "pack.windowMemory": "32m",
    "pack.threads": "1",
    "transfer.unpackLimit": "1",
}
"""Settings that go before those of a repository.

Nothing there runs a program, no other protocol is spoken, and large files are streamed and never compared.
"""


def is_valid_git_param(value: str) -> bool:
    """Whether a value may stand on the command line of `git`.

    It holds only letters and digits of ASCII and `_ . - /`, no `..`, and does not begin as an option does.
    """
    return bool(_PARAM.fullmatch(value)) and ".." not in value


def environment(address: str, *, login: str, token: str, home: str, path: str) -> dict[str, str]:
    """The whole environment of a run: nobody's own settings, no questions, and the token for `address` alone.

    The token stands nowhere else: not on the command line, and in no file. No address but `address` is sent it.
    """
    settings = dict(SETTINGS)
    if address.startswith("http://"):
        settings["protocol.http.allow"] = "always"
    if token:
        secret = b64encode(f"{login}:{token}".encode()).decode()
        settings[f"http.{address}/.extraHeader"] = f"Authorization: Basic {secret}"
    numbered = list(enumerate(settings.items()))
    return {
        "PATH": path,
        "HOME": home,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CONFIG_COUNT": str(len(numbered)),
        **{f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in numbered},
        **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in numbered},
    }


def without_secrets(told: str, *, login: str, token: str) -> str:
    """What `git` told, on one line, with neither token nor login."""
    if token:
        secret = b64encode(f"{login}:{token}".encode()).decode()
        told = told.replace(secret, "[redacted]").replace(token, "[redacted]")
    if login:
        told = re.sub(rf"(?<=//){re.escape(login)}(?=[:@])", "[redacted]", told)
        told = told.replace(f"'{login}'", "[redacted]")
    return " ".join(told.split())
