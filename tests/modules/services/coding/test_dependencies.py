"""What a repository depends on: real npm and pip in a real sandbox, and registries on loopback."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from common.redact import Redactor
from modules.runtime.sandbox.runner import Sandbox
from modules.services.coding.dependencies import (
    Registries,
    install,
    move_installed,
    npm_installation,
    python_installation,
)
from modules.services.coding.suites import run_suites
from tests.modules.services.coding.coding_rig import needs_sandbox

HASH = f"--hash=sha256:{'0' * 64}"
PACKAGE = '{"dependencies": {"beds": "1.0.0"}, "scripts": {"test": "node --test"}}'
ELSEWHERE = "http://192.0.2.1"


def lock(**package: str) -> str:
    """A lock of one package."""
    locked = {"version": "1.0.0", "integrity": "sha512-x", **package}
    packages = {"": json.loads(PACKAGE), "node_modules/beds": locked}
    return json.dumps({"name": "a", "lockfileVersion": 3, "requires": True, "packages": packages})


def test_no_address_of_a_lock_is_followed() -> None:
    texts = {"package.json": PACKAGE, "package-lock.json": lock(resolved=f"{ELSEWHERE}/beds.tgz"), ".npmrc": "x=1"}
    wanted = npm_installation(texts)
    assert wanted.command
    assert set(wanted.files) == {"package.json", "package-lock.json"}
    assert ELSEWHERE not in wanted.files["package-lock.json"]


@pytest.mark.parametrize(
    "texts",
    [
        {"package.json": PACKAGE},
        {"package.json": PACKAGE, "package-lock.json": lock(integrity="")},
        {"package.json": PACKAGE, "package-lock.json": "{"},
        {"requirements.txt": "beds==1.0.0"},
        {"requirements.txt": f"--index-url {ELSEWHERE}\nbeds==1.0.0 {HASH}"},
        {"requirements.txt": f"beds @ {ELSEWHERE}/beds.whl {HASH}"},
        {"requirements.txt": f"beds==1.0.0; x == 1 --index-url {ELSEWHERE} {HASH}"},
    ],
)
def test_what_is_not_locked_by_hash_is_not_installed_and_why_is_told(texts: dict[str, str]) -> None:
    wanted = (npm_installation(texts), python_installation(texts))
    assert not any(one.command for one in wanted)
    assert any(one.lacks for one in wanted)


@contextmanager
def registry(folder: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    """Serve files on loopback; `URL` in them is where."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(
                content if name.endswith((".whl", ".tgz")) else content.replace(b"URL", url.encode())
            )
        Thread(target=server.serve_forever, daemon=True).start()
        yield url
        server.shutdown()


def places(folder: Path) -> tuple[Path, Path]:
    """A tree, and what is served."""
    found = (folder / "tree", folder / "served")
    for place in found:
        place.mkdir()
    return found


@needs_sandbox
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
async def test_npm_packages_of_a_lock_are_there_for_the_tests_and_their_scripts_did_not_run(tmp_path: Path) -> None:
    manifest = {"name": "beds", "version": "1.0.0", "scripts": {"postinstall": "touch ran"}, "main": "beds.js"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps(manifest), "beds.js": "module.exports = 3;"}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()}"
    version = {**manifest, "dist": {"tarball": "URL/beds.tgz", "integrity": integrity}}
    told = {"name": "beds", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    tree, served = places(tmp_path)
    (tree / "package.json").write_text(PACKAGE)
    (tree / "package-lock.json").write_text(lock(integrity=integrity, resolved=f"{ELSEWHERE}/beds.tgz"))
    (tree / "a.test.js").write_text(
        'require("node:test").test("three", () => { if (require("beds") !== 3) throw 1; });'
    )
    sandbox = Sandbox(redactor=Redactor())
    with registry(served, {"beds": json.dumps(told).encode(), "beds.tgz": packed.getvalue()}) as url:
        assert await install(tree, sandbox, Registries(npm=url)) == ""
    assert not list(tree.rglob("ran"))
    (ran,) = (await run_suites(tree, sandbox, network=False)).runs
    assert ran.passed


def wheel_of(module: str) -> tuple[str, dict[str, bytes]]:
    """A package of one module that counts three beds: the hash of its wheel, and what a registry serves of it."""
    wheel, about = io.BytesIO(), f"{module}-1.0.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{module}.py", "BEDS = 3\n")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    name = f"{module}-1.0.0-py3-none-any.whl"
    index = f'<a href="URL/{name}">{name}</a>'.encode()
    digest = hashlib.sha256(wheel.getvalue()).hexdigest()
    return digest, {f"simple/{module}/index.html": index, name: wheel.getvalue()}


@needs_sandbox
@pytest.mark.slow
async def test_python_packages_of_a_lock_are_there_for_the_tests(tmp_path: Path) -> None:
    digest, files = wheel_of("beds")
    tree, served = places(tmp_path)
    (tree / "requirements.txt").write_text(f"# locked\nbeds==1.0.0 \\\n    --hash=sha256:{digest}  # by hand\n")
    (tree / "Makefile").write_text("test:\n\tpython3 -c 'import beds; assert beds.BEDS == 3'\n")
    sandbox = Sandbox(redactor=Redactor())
    with registry(served, files) as url:
        assert await install(tree, sandbox, Registries(python=f"{url}/simple")) == ""
    (ran,) = (await run_suites(tree, sandbox, network=False)).runs
    assert ran.passed


def test_a_link_that_leads_nowhere_is_no_installation_and_gives_way_to_one(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / ".venv" / "bin").mkdir(parents=True)
    (source / "node_modules").symlink_to("node_modules")
    target.mkdir()
    (target / ".venv").symlink_to(tmp_path / "away")
    move_installed(source, target)
    assert (target / ".venv" / "bin").is_dir()
    assert not (target / ".venv").is_symlink()
    assert not (target / "node_modules").exists()
