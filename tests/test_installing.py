"""A lock installs what it pins, even after a newer release of a package appears, and the wheel is complete."""

import asyncio
import hashlib
import os
import re
import shutil
import sys
import venv
import zipfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import httpx
import pytest

from tests.patience import HANG_S
from tests.program import until
from tests.running_town import write_home

pytestmark = pytest.mark.timeout(4 * HANG_S)

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


@pytest.mark.smoke
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


@pytest.mark.smoke
async def test_an_environment_that_was_begun_and_not_finished_is_made_anew(tmp_path: Path) -> None:
    lock, folder = tmp_path / "requirements.lock", tmp_path / "venv"
    lock.write_text("")
    venv.create(folder)  # as without Debian's python3-venv, or after Ctrl-C before pip was installed
    process = await asyncio.create_subprocess_exec("bash", ROOT / ".ci/venv", folder, sys.executable, "", lock)
    assert await asyncio.wait_for(process.wait(), HANG_S) == 0


def link_locked_packages(folder: Path) -> None:
    """Link the installed packages of requirements.lock into the environment at `folder`."""
    (into,) = folder.glob("lib/python*/site-packages")
    for name in re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE):
        try:
            there = distribution(name)
        except PackageNotFoundError:
            continue  # it is for another system
        for part in {file.parts[0] for file in there.files or ()} - {"..", "__pycache__"}:
            target = into / part
            if not target.exists():
                target.symlink_to(Path(str(there.locate_file(part))))


async def ended(folder: Path, *command: str | Path, answers: str = "") -> str:
    """Return the output of a command that must succeed, run in a folder with only PATH from this environment."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        stdin=PIPE,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    told, _ = await asyncio.wait_for(process.communicate(answers.encode()), HANG_S)
    assert process.returncode == 0, told.decode()
    return told.decode()


@pytest.mark.slow
async def test_the_wheel_has_all_that_the_program_needs_in_an_empty_folder(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    await ended(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist")
    (built,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    link_locked_packages(tmp_path / "venv")
    python, soul, home = tmp_path / "venv/bin/python", tmp_path / "venv/bin/soul", tmp_path / "home"
    await ended(tmp_path, python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", built)
    home.mkdir()
    path = await ended(home, python, "-c", "import soul, sys; print(soul.__file__, *sys.path)")
    assert str(ROOT) not in path.replace(str(tmp_path), "")
    assert "init" in await ended(home, soul, "--help")
    nobody = f"http://127.0.0.1:{unused_tcp_port}"
    settings = {"ATPROTO_SERVICE_URL": nobody, "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:ada"}
    write_home(home, "rowan", **settings).soul.unlink()
    await ended(home, soul, "init")
    assert {path.name for path in home.iterdir()} >= {".env", "SOUL.md", "SELF.md", "workspace"}
    assert "rowan is not awake" in await ended(home, soul, "status")
    page = await asyncio.create_subprocess_exec(
        soul, "dashboard", cwd=home, env={"DASHBOARD_PORT": "0"}, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    try:
        (address,) = re.findall(r"http://\S+", await until(page, "The page of"))
        async with httpx.AsyncClient(base_url=address.partition("/?")[0], follow_redirects=True) as browser:
            shown = await browser.get(address)
            parts = re.findall(r"(?:href|src)=\"(/[^\"]+\.(?:css|js))\"", shown.text)
            assert parts
            assert [(await browser.get(part)).status_code for part in parts] == [200] * len(parts)
    finally:
        page.terminate()
        await page.wait()
    assert "Traceback" not in await ended(home, soul, "demo", "--minutes", "0.5", "--port", "0")
