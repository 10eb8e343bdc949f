"""Validates what is passed to `git`, limits what is worked on, and defines how each run is set up. Pure."""

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
"""Settings that override those of a repository.

They let it run no program and use no other protocol; large files are streamed and never compared.
"""


def is_valid_git_param(value: str) -> bool:
    """Return whether a value may be put on the command line of `git`.

    It has only ASCII letters and digits and `_ . - /`, no `..`, and does not begin like an option.
    """
    return bool(_PARAM.fullmatch(value)) and ".." not in value


def environment(address: str, *, login: str, token: str, home: str, path: str) -> dict[str, str]:
    """Return the whole environment of a run: no user's settings, no prompts, and the token for `address` only.

    The token is nowhere else, neither on the command line nor in a file, and is sent to no other address.
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
    """Return the output of `git` on one line, without token and login."""
    if token:
        secret = b64encode(f"{login}:{token}".encode()).decode()
        told = told.replace(secret, "[redacted]").replace(token, "[redacted]")
    if login:
        told = re.sub(rf"(?<=//){re.escape(login)}(?=[:@])", "[redacted]", told)
        told = told.replace(f"'{login}'", "[redacted]")
    return " ".join(told.split())


LISTING = ("ls-tree", "-r", "-l", "-z", "--full-tree")
"""The arguments that make git list all files of a commit with their sizes."""
MOST_PATH_BYTES = 2_000
"""The length of the longest path. The operating system allows 4,096 bytes, which include the path of the home."""

_MOST_FILES = 50_000
_MIB = 1024 * 1024
_MOST_BYTES = 512 * _MIB


def why_too_large(listing: str) -> str:
    """Return why the files that git listed are too many, too large or too deep to write to disk, or ""."""
    entries = [entry.partition("\t") for entry in listing.split("\0")[:-1]]
    if len(entries) > _MOST_FILES:
        return f"{len(entries)} files"
    if any(len(path.encode()) > MOST_PATH_BYTES for _, _, path in entries):
        return f"a path of more than {MOST_PATH_BYTES} bytes"
    sizes = [told.split()[3] for told, _, _ in entries]
    size = sum(int(one) for one in sizes if one.isdecimal())
    return f"{size // _MIB} MiB of files" if size > _MOST_BYTES else ""
