"""An extra is added in the way in which the program was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.installation import command_in


@pytest.mark.parametrize(
    ("mark", "origin", "command"),
    [
        ("uv-receipt.toml", "file:///d/a.whl", "uv tool install --reinstall 'py-general-agent[mcp] @ file:///d/a.whl'"),
        ("pipx_metadata.json", "", "pipx install --force 'py-general-agent[mcp]'"),
        ("pyvenv.cfg", "", "{}/bin/python -m pip install 'py-general-agent[mcp]'"),
    ],
)
def test_an_extra_is_added_by_whoever_made_the_environment(
    tmp_path: Path, mark: str, origin: str, command: str
) -> None:
    (tmp_path / mark).touch()
    assert command_in(tmp_path, "mcp", origin, has_pip=True) == command.format(tmp_path)
