"""Starting up stays quick: the SDK is loaded by the first client, not by those who only name one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapters.atproto.sdk import _Deferred


@pytest.mark.parametrize("module", ["types", "richtext", "tid", "records", "session", "client"])
def test_importing_the_adapter_does_not_load_the_sdk(module: str) -> None:
    code = f"import sys, adapters.atproto.{module}; sys.exit('atproto_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0


def test_what_is_loaded_late_is_loaded_once_whoever_asks_for_how_many_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long_list.py").write_text("class First: ...\nclass Second: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    taken_early = _Deferred("long_list")
    monkeypatch.setitem(sys.modules, "long_list", taken_early)
    first, second = taken_early.First, taken_early.Second
    assert (taken_early.First, taken_early.Second) == (first, second)
