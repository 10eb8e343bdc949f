"""A lock installs what it pins, also on the day on which a newer release of something appears."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.patience import HANG_S

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(2 * HANG_S)]

ROOT = Path(__file__).resolve().parents[1]
UV = shutil.which("uv") or ""


def wheel(index: Path, name: str, version: str, *requires: str) -> str:
    """Write an empty package into the folder `index`; return its line in a lock."""
    path = index / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = [
        f"Name: {name}",
        f"Version: {version}",
        "Provides-Extra: mail",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(f"{name}.py", "")
        packed.writestr(f"{info}/METADATA", "\n".join(["Metadata-Version: 2.1", *metadata, ""]))
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{info}/RECORD", "")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.mark.parametrize("uv", ["", pytest.param(UV, marks=pytest.mark.skipif(not UV, reason="uv is not installed"))])
async def test_a_newer_release_of_a_package_with_an_extra_changes_nothing(tmp_path: Path, uv: str) -> None:
    index, lock, venv = tmp_path / "index", tmp_path / "requirements.lock", tmp_path / "venv"
    index.mkdir()
    pinned = [
        wheel(index, "outer", "1.0", "inner[mail]>=1.0"),
        wheel(index, "inner", "1.0", 'leaf>=1.0; extra == "mail"'),
        wheel(index, "leaf", "1.0"),
    ]
    for name in ("inner", "leaf"):
        wheel(index, name, "2.0")
    lock.write_text("".join(pinned))
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(index)}
    process = await asyncio.create_subprocess_exec(
        "bash", ROOT / ".ci/venv", venv, sys.executable, uv, lock, env={**os.environ, **offline}
    )
    assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    (packages,) = venv.glob("lib/python*/site-packages")
    installed = {path.stem for path in packages.glob("*.dist-info")}
    assert installed >= {"outer-1.0", "inner-1.0", "leaf-1.0"}
    assert not installed & {"inner-2.0", "leaf-2.0"}
