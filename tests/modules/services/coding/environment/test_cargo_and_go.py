"""Installing what a Rust or Go repository needs, with real tools in a real sandbox and indexes on loopback."""

import base64
import hashlib
import io
import json
import re
import shutil
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.sandbox.policy import PATH
from modules.runtime.sandbox.runner import Sandbox, toolchains
from modules.services.coding.environment.installer import Installer, cargo_needs
from modules.services.coding.environment.types import Indexes
from modules.services.coding.suites import SuiteRun, run_suites
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.modules.services.coding.environment.served import index, write

TOOLS = toolchains()


def is_here(program: str) -> bool:
    """Return whether a run in the sandbox finds a program."""
    return bool(shutil.which(program, path=":".join([PATH, *(f"{one.path}/bin" for one in TOOLS)])))


needs_cargo = pytest.mark.skipif(not is_here("cargo"), reason="needs cargo")
needs_go = pytest.mark.skipif(not is_here("go"), reason="needs go")

RAN = "ran-build-script"
BUILD = f'fn main() {{ std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/{RAN}"), "").unwrap(); }}\n'
PAGE = '[package]\nname = "{}"\nversion = "{}"\nedition = "2021"\n{}'
GARDEN = {
    "Cargo.toml": PAGE.format("garden", "0.1.0", '[[bin]]\nname = "garden"\n[dependencies]\nbeds = "1"\n'),
    "src/main.rs": "fn main() {}\n",
    "tests/beds.rs": "#[test]\nfn three() { assert_eq!(beds::COUNT, 3); }\n",
}


def packed(files: Mapping[str, str]) -> bytes:
    """Return files as a compressed archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def add_crate(served: Path, url: str, version: str) -> None:
    """Add a version of a crate with a build script to the index."""
    files = {
        "Cargo.toml": PAGE.format("beds", version, ""),
        "src/lib.rs": "pub const COUNT: u32 = 3;\n",
        "build.rs": BUILD,
    }
    crate = packed({f"beds-{version}/{name}": text for name, text in files.items()})
    download = served / "files" / "beds" / version / "download"
    download.parent.mkdir(parents=True, exist_ok=True)
    download.write_bytes(crate)
    line = {"name": "beds", "vers": version, "deps": [], "features": {}, "yanked": False}
    line["cksum"] = hashlib.sha256(crate).hexdigest()
    write(served, {"config.json": json.dumps({"dl": f"{url}/files"}), "be/ds/.keep": ""})
    with (served / "be" / "ds" / "beds").open("a") as versions:
        versions.write(f"{json.dumps(line)}\n")


async def outcome_of(tree: Path, sandbox: Sandbox) -> SuiteRun:
    """Run the one suite of a tree without a network."""
    (ran,) = (await run_suites(tree, sandbox, network=False)).runs
    return ran


@needs_sandbox
@needs_cargo
@pytest.mark.slow
async def test_crates_are_there_for_the_tests_as_the_lock_says_and_no_build_script_ran_before(tmp_path: Path) -> None:
    sandbox, served = Sandbox(redactor=Redactor(), tools=TOOLS), tmp_path / "served"
    with index(served) as url:
        add_crate(served, url, "1.0.0")
        installer = Installer(Indexes(cargo=url), tmp_path / "cache", FakeClock())
        tree = write(tmp_path / "ada-garden--1" / "tree", GARDEN)
        assert await installer.install(tree, sandbox) == ""
        assert not list(tree.rglob(RAN))
        ran = await outcome_of(tree, sandbox)
        assert (ran.outcome, ran.passing) == ("passed", 1), ran.output
        assert list(tree.rglob(RAN))

        add_crate(served, url, "1.1.0")
        lock = (tree / "Cargo.lock").read_text()
        failing = {
            **GARDEN,
            "Cargo.lock": lock,
            "tests/beds.rs": "#[test]\nfn four() { assert_eq!(beds::COUNT, 4); }\n",
        }
        locked = write(tmp_path / "ada-meadow--1" / "tree", failing)
        assert await installer.install(locked, sandbox) == ""
        assert [path.name for path in locked.glob(".soul-packages/cargo/vendor/*")] == ["beds-1.0.0"]
        ran = await outcome_of(locked, sandbox)
        assert ran.failing == {"four", "--test beds"}, ran.output

        wrong = re.sub(r'(?<=checksum = ")\w+', "0" * 64, lock)
        other = write(tmp_path / "ada-bog--1" / "tree", {**GARDEN, "Cargo.lock": wrong})
        assert "checksum" in await installer.install(other, sandbox)


@pytest.mark.parametrize("table", ["dependencies", "target.'cfg(unix)'.dev-dependencies", "patch.crates-io"])
def test_a_crate_from_a_repository_is_not_fetched_and_named(tmp_path: Path, table: str) -> None:
    page = f'{GARDEN["Cargo.toml"]}\n[{table}.rakes]\ngit = "https://example.org/rakes"\n'
    needs = cargo_needs(write(tmp_path, {**GARDEN, "Cargo.toml": page}))
    assert not needs.files
    assert "rakes" in "".join(needs.lacks)


def test_a_template_that_cargo_cannot_read_is_left_out(tmp_path: Path) -> None:
    tree = write(tmp_path, {**GARDEN, "template/Cargo.toml": "[package]\nname = {{name}}\n"})
    needs = cargo_needs(tree)
    assert "Cargo.toml" in needs.files
    assert "template/Cargo.toml" not in needs.files


MODULE = "example.org/beds"
TREE = {
    "go.mod": f"module example.org/garden\n\ngo 1.17\n\nrequire {MODULE} v1.0.0\n",
    "garden_test.go": f'package garden\n\nimport (\n\t"testing"\n\n\t"{MODULE}"\n)\n\n'
    "func TestBeds(t *testing.T) {\n\tif beds.Count != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
}


def hash_of(files: Mapping[str, bytes]) -> str:
    """Return the hash of files as `go.sum` has it."""
    lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    return f"h1:{base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()}"


def add_module(served: Path) -> str:
    """Add a module to the index, and return its lines of `go.sum`."""
    page, versions = f"module {MODULE}\n\ngo 1.17\n", served / MODULE / "@v"
    files = {f"{MODULE}@v1.0.0/go.mod": page.encode(), f"{MODULE}@v1.0.0/beds.go": b"package beds\n\nconst Count = 3\n"}
    write(versions, {"v1.0.0.mod": page, "v1.0.0.info": '{"Version": "v1.0.0"}', "list": "v1.0.0\n"})
    with zipfile.ZipFile(versions / "v1.0.0.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return f"{MODULE} v1.0.0 {hash_of(files)}\n{MODULE} v1.0.0/go.mod {hash_of({'go.mod': page.encode()})}\n"


@needs_sandbox
@needs_go
@pytest.mark.slow
async def test_go_modules_are_there_for_the_tests_if_they_have_the_hash_of_go_sum(tmp_path: Path) -> None:
    sandbox, served = Sandbox(redactor=Redactor(), tools=TOOLS), tmp_path / "served"
    sums = add_module(served)
    with index(served) as url:
        installer = Installer(Indexes(go=url), tmp_path / "cache", FakeClock())
        tree = write(tmp_path / "ada-garden--1" / "tree", {**TREE, "go.sum": sums})
        assert await installer.install(tree, sandbox) == ""
        ran = await outcome_of(tree, sandbox)
        assert ran.outcome == "passed", ran.output
        write(tree, {"garden_test.go": TREE["garden_test.go"].replace("!= 3", "!= 4")})
        ran = await outcome_of(tree, sandbox)
        assert ran.failing == {"TestBeds", "example.org/garden"}, ran.output

        wrong = write(tmp_path / "ada-bog--1" / "tree", {**TREE, "go.sum": re.sub(r"h1:\w{4}", "h1:AAAA", sums)})
        assert "checksum mismatch" in await installer.install(wrong, sandbox)
        assert not list(wrong.glob(".soul-packages/go/**/beds.go"))
        page = TREE["go.mod"].replace("beds v1", "rakes v1")
        gone = write(tmp_path / "ada-fen--1" / "tree", {"go.mod": page, "go.sum": sums})
        assert "rakes" in await installer.install(gone, sandbox)
    bare = write(tmp_path / "ada-moor--1" / "tree", TREE)
    assert "go.sum" in await installer.install(bare, sandbox)
