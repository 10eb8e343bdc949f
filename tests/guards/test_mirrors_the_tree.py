"""The tests of a folder lie in the folder of the same name below `tests`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import ROOT

pytestmark = pytest.mark.guard

OF_THE_WHOLE = {
    "contract",  # what every service of a kind must do
    "crash",
    "fixtures",
    "github_rig",
    "guards",  # what is read from the source, for `make check`
    "interop",
    "model",
    "network",
    "scenarios",
    "security",
}
"""Folders of tests that belong to no single folder of the program."""


def _folders_of_tests() -> set[Path]:
    """Folders below `tests` that hold a test, relative to it."""
    return {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}


def test_each_folder_of_tests_is_one_of_the_program() -> None:
    held = [folder for folder in _folders_of_tests() if folder.parts and folder.parts[0] not in OF_THE_WHOLE]
    assert {"adapters/space", "modules/lives/space", "soul/commands"} <= {folder.as_posix() for folder in held}
    assert [folder.as_posix() for folder in sorted(held) if not (ROOT / folder).is_dir()] == []


def test_each_folder_of_the_whole_is_there() -> None:
    assert sorted(name for name in OF_THE_WHOLE if not (ROOT / "tests" / name).is_dir()) == []
