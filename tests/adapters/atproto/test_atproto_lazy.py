"""Starting up stays quick: the SDK is loaded by the first client, not by those who only name one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from adapters.atproto.request import _Deferred


def test_what_is_loaded_late_is_loaded_once_whoever_asks_for_how_many_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long_list.py").write_text("class First: ...\nclass Second: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    taken_early = _Deferred("long_list")
    monkeypatch.setitem(sys.modules, "long_list", taken_early)
    first, second = taken_early.First, taken_early.Second
    assert (taken_early.First, taken_early.Second) == (first, second)
