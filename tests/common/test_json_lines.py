"""JSON lines end at a line feed alone, whatever else people write in them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from common.json_lines import json_line, json_object, split_lines

_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@given(st.lists(st.text(st.sampled_from(f"a\ud800\n{_ENDS}"))))
def test_what_was_written_as_lines_is_read_as_the_same_lines(values: list[str]) -> None:
    content = b"".join(map(json_line, values))
    assert [json.loads(line) for line in split_lines(content)] == values
    assert [json.loads(line) for line in split_lines(content.decode())] == values


def test_no_byte_is_lost_by_splitting_and_joining() -> None:
    for content in (b"", b"\n", b"a", b"a\n\n b", b"a\r\nb\n"):
        assert b"".join(split_lines(content)) == content


def test_what_is_no_object_or_is_nested_too_deep_is_none() -> None:
    for content in ("", "[]", "1", "{", b"\xff", '{"a":' * 100_000):
        assert json_object(content) is None
    assert json_object(b'{"a": "\xff"}') == {"a": "\ufffd"}
