"""Which compilers runs are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.runtime.sandbox.policy import PATH
from modules.runtime.sandbox.runner import toolchains


@pytest.mark.parametrize(
    "settings", ['default_toolchain = "stable-x86_64"', 'default_toolchain = "stable"', "nothing", ""]
)
def test_the_default_toolchain_of_rustup_is_shared_where_there_is_one(tmp_path: Path, settings: str) -> None:
    home, system = tmp_path / "rustup", tmp_path / "system"
    for name in ("nightly-x86_64", "stable-x86_64"):
        (home / "toolchains" / name / "bin").mkdir(parents=True)
    (home / "settings.toml").write_text(settings)
    found = [one.path.name for one in toolchains({"RUSTUP_HOME": str(home)}, path=str(system)) if one.name == "rust"]
    assert found == (["stable-x86_64"] if "stable" in settings else [])
    system.mkdir()
    (system / "cargo").touch(mode=0o755)
    assert not [one for one in toolchains({"RUSTUP_HOME": str(home)}, path=f"{PATH}:{system}") if one.name == "rust"]
