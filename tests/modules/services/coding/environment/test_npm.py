"""The packages that the files of an npm repository ask for."""

import json
from pathlib import Path

import pytest

from modules.services.coding.environment.npm import LOCK, npm_needs, pinned, read_files

ELSEWHERE = "http://192.0.2.1"
PAGE = json.dumps({"dependencies": {"beds": "^1.0.0"}, "scripts": {"test": "x"}})


def lock(**package: str) -> str:
    """Return a lock file with one package."""
    locked = {"version": "1.0.0", "integrity": "sha512-x", **package}
    return json.dumps({"lockfileVersion": 3, "packages": {"": {}, "node_modules/beds": locked}})


def test_no_address_of_a_lock_is_followed() -> None:
    needs = npm_needs({"package.json": PAGE, LOCK: lock(resolved=f"{ELSEWHERE}/beds.tgz")})
    assert needs.is_locked
    assert ELSEWHERE not in str(needs)
    assert "scripts" not in needs.files["package.json"]


def test_manifests_are_read_beside_many_files_and_templates_and_with_a_byte_order_mark(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"a{number}.md").touch()
        (tmp_path / f"a{number}.txt").touch()
    optional = json.dumps({**json.loads(PAGE), "peerDependenciesMeta": {"beds": {"optional": True}}})
    (tmp_path / "package.json").write_text(f"\ufeff{optional}")
    (tmp_path / "template").mkdir()
    (tmp_path / "template" / "package.json").write_text('{"name": {{name}}}')
    needs = npm_needs(read_files(tmp_path))
    assert needs.lacks == ()
    assert list(needs.files) == ["package.json"]
    assert json.loads(needs.files["package.json"])["peerDependenciesMeta"]["beds"] == {"optional": True}


@pytest.mark.parametrize("address", [f"{ELSEWHERE}/x.tgz", f"git+{ELSEWHERE}/x", "file:../x", "ada/garden", "link:x"])
def test_no_address_of_a_dependency_is_followed_and_what_is_left_out_is_told(address: str) -> None:
    page = json.dumps({"dependencies": {"beds": address, "lint": "^1"}, "overrides": {"lint": address}})
    needs = npm_needs({"package.json": page})
    assert json.loads(needs.files["package.json"]) == {"dependencies": {"lint": "^1"}}
    assert "beds" in needs.lacks[0]


@pytest.mark.parametrize("text", [lock(integrity=""), "{", "[]", '{"packages": 3}', "[" * 100_000])
def test_a_lock_that_cannot_be_followed_is_told_and_npm_resolves(text: str) -> None:
    needs = npm_needs({"package.json": PAGE, LOCK: text})
    assert needs.files
    assert not needs.is_locked
    assert needs.lacks


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("yarn.lock", f'beds@^1.0.0, beds@^1.1:\n  version "1.2.0"\n  resolved "{ELSEWHERE}"\n'),
        ("yarn.lock", '"beds@npm:^1.0.0":\n  version: 1.2.0\n  resolution: "beds@npm:1.2.0"\n'),
        (
            "pnpm-lock.yaml",
            "importers: {.: {dependencies: {beds: {specifier: ^1.0.0, version: 1.2.0(x@1)}}}}",
        ),
    ],
)
def test_other_locks_give_the_versions_of_what_is_named(file: str, text: str) -> None:
    assert pinned(file, text)["beds@^1.0.0"] == "1.2.0"
    needs = npm_needs({"package.json": PAGE, file: text})
    assert json.loads(needs.files["package.json"])["dependencies"] == {"beds": "1.2.0"}
    assert file in needs.lacks[0]
