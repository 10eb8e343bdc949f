"""Finds out how this program was installed, and thus the command that adds one of its extras."""

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

_NAME = "py-general-agent"
_BY_MARK = {"uv-receipt.toml": "uv tool install --reinstall", "pipx_metadata.json": "pipx install --force"}
"""The file that an installer leaves in its environments, and the command that builds such an environment again."""


def command_for_extra(extra: str) -> str:
    """Return the command that installs this program with an extra, from the same source, with the same installer."""
    return command_in(Path(sys.prefix), extra, _origin(), has_pip=find_spec("pip") is not None)


def command_in(prefix: Path, extra: str, origin: str, *, has_pip: bool) -> str:
    """Return the command for an environment; `origin` is the URL of what was installed, "" for a package index."""
    made = next((command for mark, command in _BY_MARK.items() if (prefix / mark).exists()), "")
    python = prefix / "bin" / "python"
    installs = made or (f"{python} -m pip install" if has_pip else f"uv pip install --python {python}")
    return f"{installs} '{_NAME}[{extra}]{f' @ {origin}' if origin else ''}'"


def _origin() -> str:
    """Return the URL that an installer recorded (PEP 610), with a commit if it came from a repository; else ""."""
    try:
        noted = json.loads(distribution(_NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return ""
    url, repository = noted.get("url", ""), noted.get("vcs_info", {})
    return f"{repository['vcs']}+{url}@{repository['commit_id']}" if repository else url
