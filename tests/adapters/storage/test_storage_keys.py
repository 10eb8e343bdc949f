"""Proves that no input, however crafted, leaves its place in a store, and that no two inputs share one."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.storage import keys

TRICKY = st.text(alphabet="./~-\\%:a2E\0é\ud800\n", max_size=8) | st.text(max_size=300) | st.just("x" * 400)
LONG = re.compile(r"~~[0-9a-f]{64}$")


def decoded(part: str) -> str:
    """What a part was made from, if it was not too long."""
    raw = re.sub(r"~([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), "" if part == "~" else part)
    return raw.encode("latin-1").decode(errors="surrogatepass")


@given(TRICKY)
def test_from_each_part_that_is_not_too_long_what_it_was_made_from_can_be_read_back(text: str) -> None:
    part = keys.part(text)
    assert LONG.search(part) or decoded(part) == text


@example("x" * 400, "x" * 180)
@given(TRICKY, TRICKY)
def test_what_is_built_from_any_parts_is_a_key_under_its_prefix(session: str, name: str) -> None:
    key = keys.media_key(session, name, "image/png")
    assert keys.refused_key(key) == ""
    assert key.startswith(keys.media_prefix(session))
    assert key.count("/") == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("memory", "memory"),
        ("owner:terminal", "owner~3Aterminal"),
        ("", "~"),
        ("..", "~2E~2E"),
        (".env", "~2Eenv"),
        ("a\x00b\n", "a~00b~0A"),
        ("~2E", "~7E2E"),
        ("é", "~C3~A9"),
    ],
)
def test_a_part_stays_readable(text: str, part: str) -> None:
    assert keys.part(text) == part


def test_a_part_that_is_too_long_is_cut_and_keeps_apart_from_its_like() -> None:
    one, other = keys.part("at://" * 100 + "a"), keys.part("at://" * 100 + "b")
    assert len(one) <= 180
    assert one != other


@pytest.mark.parametrize(
    "key",
    [
        "", "/", "a//b", "/a", "a/", "a/../b", "a/./b", ".hidden", "a/.b", "a b", "a\x00", "a\n", "é", "a\\b",
        "SOUL.md.meta.json", "x" * 221, "/".join(["x" * 100] * 10),
    ],
)  # fmt: skip
def test_what_was_not_built_here_is_no_key(key: str) -> None:
    assert keys.refused_key(key)


def test_the_layout_is_the_one_that_others_know() -> None:
    assert keys.workspace_key("rowan", "GOALS.md") == "agents/rowan/GOALS.md"
    assert keys.workspace_key("rowan", "memory/2026-11-22.md") == "agents/rowan/memory/2026-11-22.md"
    assert keys.workspace_key("rowan", "skills/tea/SKILL.md") == "agents/rowan/skills/tea/SKILL.md"
    assert keys.archive_key("rowan", "5f1c") == "agents/rowan/sessions/5f1c.jsonl.gz"
    assert keys.archive_key("rowan", "5f1c", epoch_ms=17) == "agents/rowan/sessions/5f1c-part17.jsonl.gz"
    assert keys.skill_key("tea") == "skills/tea/SKILL.md"
    assert keys.media_key("owner:terminal", "u", "image/jpeg") == "media/owner~3Aterminal/u.jpg"


def test_a_session_named_like_a_part_of_another_has_an_archive_of_its_own() -> None:
    assert keys.archive_key("rowan", "5f1c-part17") != keys.archive_key("rowan", "5f1c", epoch_ms=17)


@pytest.mark.parametrize(
    ("mime", "extension"),
    [
        ("IMAGE/PNG", "png"),
        ("image/svg+xml; charset=utf-8", "svg"),
        ("audio/mp4", "m4a"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
        ("text/html", "bin"),
        ("../../etc", "bin"),
    ],
)
def test_the_ending_tells_the_kind(mime: str, extension: str) -> None:
    assert keys.extension_of(mime) == extension
