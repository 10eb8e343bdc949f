"""Installing what a repository needs, with real uv and npm in a real sandbox and indexes on loopback."""

import base64
import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.sandbox.gateway import host_of
from modules.runtime.sandbox.runner import Sandbox
from modules.services.coding.environment.installer import Installer, move_installed
from modules.services.coding.environment.room import InstallRoom
from modules.services.coding.environment.types import Indexes
from modules.services.coding.suites import run_suites
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.modules.services.coding.environment.served import index, listener, write

pytestmark = [needs_sandbox, pytest.mark.slow]

needs_npm = pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
PROJECT = """
[project]
name = "garden-plan"
version = "2.5"
dependencies = ["beds"]
scripts = {garden = "garden:main"}
[project.optional-dependencies]
dev = ["garden-plan[tests]"]
tests = ["rakes"]
[tool.setuptools_scm]
version_file = "src/garden/_version.py"
"""
MODULE = """
import beds
from garden._version import version_tuple
assert version_tuple == (2, 5)

def main():
    print('beds', beds.COUNT)
"""
CHECK = "from importlib.metadata import version; import rakes; assert version('garden-plan') == '2.5'"


def add_wheel(folder: Path, module: str, version: str, count: int = 3) -> str:
    """Add a package of one module to an index, and return the hash of its wheel."""
    wheel, about = io.BytesIO(), f"{module}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{module}.py", f"COUNT = {count}\n")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    name = f"{module}-{version}-py3-none-any.whl"
    page = folder / "simple" / module / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(wheel.getvalue())
    with page.open("a") as links:
        links.write(f'<a href="../../{name}">{name}</a>\n')
    return hashlib.sha256(wheel.getvalue()).hexdigest()


def makefile(python: str) -> str:
    return f'test:\n\tpython3 -c "{python}"\n\tgarden\n'


async def test_a_project_in_src_its_extras_and_its_command_are_there_for_the_tests(tmp_path: Path) -> None:
    files = {"pyproject.toml": PROJECT, "src/garden/__init__.py": MODULE, "Makefile": makefile(CHECK)}
    tree, sandbox = write(tmp_path / "tree", files), Sandbox(redactor=Redactor())
    for name in ("beds", "rakes"):
        add_wheel(tmp_path / "served", name, "1.0")
    with index(tmp_path / "served") as url:
        installer = Installer(Indexes(python=f"{url}/simple"), tmp_path / "cache", FakeClock())
        assert await installer.install(tree, sandbox) == ""
    (ran,) = (await run_suites(tree, sandbox, network=False)).runs
    assert ran.passed, ran.output
    assert "beds 3" in ran.output
    modules = [path for path in (tree / ".venv").rglob("*.py") if path.name in {"beds.py", "rakes.py"}]
    assert [path.stat().st_nlink for path in modules] == [1, 1], "a tree shares a file with the cache"


async def test_rounds_and_reviews_of_a_repository_get_the_same_versions_for_a_week_and_new_needs_change_no_others(
    tmp_path: Path,
) -> None:
    sandbox, served, clock = Sandbox(redactor=Redactor()), tmp_path / "served", FakeClock()
    add_wheel(served, "beds", "1.0")

    async def version(place: str, wanted: str) -> str:
        tree = write(tmp_path / place / "tree", {"requirements.txt": wanted})
        assert await installer.install(tree, sandbox) == ""
        (found,) = tree.glob(".venv/lib/*/site-packages/beds-*.dist-info")
        return found.name[len("beds-") : -len(".dist-info")]

    with index(served) as url:
        installer = Installer(Indexes(python=f"{url}/simple"), tmp_path / "cache", clock)
        assert await version("ada-garden--1-task-2-e3", "beds\n") == "1.0"
        for name in ("beds", "rakes"):
            add_wheel(served, name, "2.0")
        assert await version("ada-garden--review-4", "beds\n") == "1.0"
        assert await version("ada-garden--revise-4", "beds\nrakes\n") == "1.0"
        assert await version("ada-meadow--review-4", "beds\nrakes\n") == "2.0"
        await clock.advance(8 * 86_400)
        assert await version("ada-garden--review-5", "beds\n") == "2.0"


@pytest.mark.parametrize("is_true", [True, False])
async def test_the_hash_of_a_lock_decides(tmp_path: Path, is_true: bool) -> None:  # noqa: FBT001 - a case
    sandbox, served = Sandbox(redactor=Redactor()), tmp_path / "served"
    digest = add_wheel(served, "beds", "1.0")
    add_wheel(served, "beds", "2.0")
    told = digest if is_true else "0" * 64
    lock = f'[[package]]\nname="beds"\nversion="1.0"\nfiles=[{{file="b", hash="sha256:{told}"}}]'
    tree = write(tmp_path / "tree", {"poetry.lock": lock, "requirements.txt": "beds>=1"})
    with index(served) as url:
        lacks = await Installer(Indexes(python=f"{url}/simple"), tmp_path / "cache", FakeClock()).install(tree, sandbox)
    assert bool(list(tree.glob(".venv/lib/*/site-packages/beds-1.0.dist-info"))) is is_true
    assert ("Hash mismatch" in lacks) is not is_true


async def test_one_package_that_cannot_be_had_leaves_the_others(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"requirements.txt": "beds\nnowhere>=3\n"})
    add_wheel(tmp_path / "served", "beds", "1.0")
    with index(tmp_path / "served") as url:
        installer = Installer(Indexes(python=f"{url}/simple"), tmp_path / "cache", FakeClock())
        lacks = await installer.install(tree, Sandbox(redactor=Redactor()))
    assert "nowhere>=3" in lacks
    assert "beds" not in lacks
    assert list(tree.glob(".venv/lib/*/site-packages/beds.py"))


def npm_files(served: Path) -> str:
    """Serve an npm package with an install script, and return its hash."""
    manifest = {"name": "beds", "version": "1.0.0", "scripts": {"postinstall": "touch ran"}, "main": "beds.js"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps(manifest), "beds.js": "module.exports = 3;"}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    served.mkdir(exist_ok=True)
    (served / "beds.tgz").write_bytes(packed.getvalue())
    return f"sha512-{base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()}"


@needs_npm
@pytest.mark.parametrize("lock", ["package-lock.json", "yarn.lock", ""])
async def test_npm_packages_are_there_for_the_tests_and_their_scripts_did_not_run(tmp_path: Path, lock: str) -> None:
    served, sandbox = tmp_path / "served", Sandbox(redactor=Redactor())
    integrity = npm_files(served)
    with index(served) as url, listener() as (elsewhere, asked):
        dist = {"tarball": f"{url}/beds.tgz", "integrity": integrity}
        version = {"name": "beds", "version": "1.0.0", "hasInstallScript": True, "dist": dist}
        told = {"name": "beds", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        (served / "beds").write_text(json.dumps(told))
        locked = {"version": "1.0.0", "integrity": integrity, "resolved": f"{elsewhere}/beds.tgz"}
        page = {"name": "a", "version": "1.0.0", "dependencies": {"beds": "1.0.0"}, "scripts": {"test": "node --test"}}
        locks = {
            "package-lock.json": json.dumps(
                {
                    "name": "a",
                    "lockfileVersion": 3,
                    "requires": True,
                    "packages": {"": page, "node_modules/beds": locked},
                }
            ),
            "yarn.lock": f'beds@1.0.0:\n  version "1.0.0"\n  resolved "{elsewhere}/beds.tgz"\n',
        }
        page["devDependencies"] = {} if lock == "package-lock.json" else {"rakes": f"{elsewhere}/rakes.tgz"}
        test = 'require("node:test").test("three", () => { if (require("beds") !== 3) throw 1; });'
        files = {"package.json": json.dumps(page), "a.test.js": test, ".npmrc": f"registry={elsewhere}\n"}
        tree = write(tmp_path / "tree", files | ({lock: locks[lock]} if lock else {}))
        lacks = await Installer(Indexes(npm=url), tmp_path / "cache", FakeClock()).install(tree, sandbox)
    assert "npm:" not in lacks
    assert ("rakes" in lacks) is (lock != "package-lock.json")
    assert (lock == "yarn.lock") is ("yarn.lock" in lacks)
    assert not asked
    assert not list(tree.rglob("ran"))
    (ran,) = (await run_suites(tree, sandbox, network=False)).runs
    assert ran.passed, ran.output


async def test_nothing_but_the_index_is_ever_contacted(tmp_path: Path) -> None:
    sandbox, served = Sandbox(redactor=Redactor()), tmp_path / "served"
    add_wheel(served, "beds", "1.0")
    with index(served) as url, listener() as (elsewhere, asked):
        # Even the index may name files on its own host only: a page with a link to another host is not followed.
        page = served / "simple" / "rakes" / "index.html"
        page.parent.mkdir()
        page.write_text(f'<a href="{elsewhere}/rakes-1.0-py3-none-any.whl">rakes-1.0-py3-none-any.whl</a>')
        text = f"--index-url {elsewhere}\n--find-links {elsewhere}\nx @ {elsewhere}/x.whl\nbeds\nrakes\n"
        lock = f'[[package]]\nname="beds"\nversion="1.0"\nsource={{registry="{elsewhere}"}}\n'
        uv = f'[project]\nname="a"\n[tool.uv]\nindex-url="{elsewhere}"\n[build-system]\nrequires=["x @ {elsewhere}"]\n'
        tree = write(tmp_path / "tree", {"requirements.txt": text, "uv.lock": lock, "pyproject.toml": uv})
        lacks = await Installer(Indexes(python=f"{url}/simple"), tmp_path / "cache", FakeClock()).install(tree, sandbox)
        assert list(tree.glob(".venv/lib/*/site-packages/beds.py"))
        assert "rakes" in lacks
        host = host_of(url)
        assert host
        room = InstallRoom(sandbox, tmp_path / "tree", None, frozenset({host}))
        get = "import urllib.request as r; print(r.urlopen('{}').status)"
        direct = "import socket; socket.create_connection(('127.0.0.1', {}), 2)"
        script = (
            f'python3 -c "{get.format(url)}"; python3 -c "{get.format(elsewhere)}";'
            f' python3 -c "{direct.format(elsewhere.rpartition(":")[2])}"'
        )
        ran, gateway = await room.run(script, {})
        assert ran.stdout == "200\n"
        assert "403" in ran.stderr
        assert "ConnectionRefusedError" in ran.stderr
        assert gateway.refused == {host_of(elsewhere)}
    assert not asked


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
