"""State files: stamped, kept by every version, and never lost in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.state import (
    MEMORY_VERSION,
    check_jsonl_version,
    load_state,
    save_state,
    stamp_jsonl_version,
)
from tests.exploration import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(50))
@given(state=st.dictionaries(st.text().filter(lambda key: key != "_memoryVersion"), JSON, max_size=4))
def test_what_was_saved_is_what_is_loaded(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("state") / "state.json"
    save_state(path, state)
    loaded = load_state(path, {})
    assert (loaded.data, loaded.notice) == (state, "")


def test_half_a_surrogate_pair_survives_too(tmp_path: Path) -> None:
    save_state(tmp_path / "state.json", {"text": "broken \ud83d emoji"})
    assert load_state(tmp_path / "state.json", {}).data == {"text": "broken \ud83d emoji"}


def test_an_absent_file_is_the_default_without_a_word_and_the_default_is_not_shared(tmp_path: Path) -> None:
    default = {"items": 1}
    loaded = load_state(tmp_path / "none.json", default)
    loaded.data["items"] = 2
    assert default == {"items": 1}
    assert loaded.notice == ""


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{ broken", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[1, 2]", "does not hold a JSON object"),
        (b"\xff\xfe", "could not be read"),
    ],
)
def test_an_unreadable_file_is_set_aside_and_reported(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    loaded = load_state(path, {"fresh": True})
    assert loaded.data == {"fresh": True}
    assert complaint in loaded.notice
    (aside,) = tmp_path.glob("state.json.corrupt-*")
    assert aside.read_bytes() == content
    assert aside.name in loaded.notice
    assert not path.exists()


def test_deep_nesting_cannot_bring_the_process_down(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("[" * 200_000)
    assert load_state(path, {"fresh": True}).data == {"fresh": True}


def test_a_folder_in_place_of_the_file_is_reported_and_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.mkdir()
    loaded = load_state(path, {})
    assert "could not be read" in loaded.notice
    assert not path.exists()


@pytest.mark.parametrize("stamp", [{"_memoryVersion": "0.0.1"}, {}])
def test_the_data_of_another_version_is_kept_and_stamped_with_the_next_change(
    tmp_path: Path, stamp: dict[str, str]
) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"a": 1, **stamp}))
    loaded = load_state(path, {})
    assert (loaded.data, loaded.notice) == ({"a": 1}, "")
    save_state(path, loaded.data)
    assert json.loads(path.read_text()) == {"a": 1, "_memoryVersion": MEMORY_VERSION}


def test_a_file_of_lines_is_of_this_version_only_while_its_sidecar_names_it(tmp_path: Path) -> None:
    lines = tmp_path / "log.jsonl"
    assert not check_jsonl_version(lines)
    stamp_jsonl_version(lines)
    assert check_jsonl_version(lines)
    (tmp_path / "log.jsonl.version").write_text("0.0.1")
    assert not check_jsonl_version(lines)


def test_stamping_a_file_of_lines_writes_the_version_beside_it(tmp_path: Path) -> None:
    stamp_jsonl_version(tmp_path / "log.jsonl")
    assert (tmp_path / "log.jsonl.version").read_text() == MEMORY_VERSION
