"""Tests of JSON that strangers can shape: an odd value costs itself, and nothing beside it.

JSON lines end at a line feed alone, whatever other line breaks people write in them.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.json_lines import json_line, json_object, split_lines
from common.lenient_json import MOST_NESTING, cut_nesting, deepest, parse, top_level_text
from tests.cpu_time import cpu_s

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=30,
)


def nested(levels: int, inside: str = "1") -> str:
    return '{"a":[' * (levels // 2) + inside + "]}" * (levels // 2)


def depth_of(value: object) -> int:
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else None
    return 0 if inner is None else 1 + max((depth_of(item) for item in inner), default=0)


def cut(value: object, most: int) -> object:
    if isinstance(value, list | dict) and most == 0:
        return None
    if isinstance(value, list):
        return [cut(item, most - 1) for item in value]
    return {name: cut(item, most - 1) for name, item in value.items()} if isinstance(value, dict) else value


@given(VALUES, st.integers(0, 6), st.booleans())
def test_only_what_is_nested_too_deep_is_null(value: object, most: int, ascii_only: bool) -> None:  # noqa: FBT001
    content = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert deepest(content) == depth_of(value)
    assert parse(content, most_nesting=most) == cut(value, most)


@given(st.binary(max_size=60))
def test_what_is_no_json_is_refused_and_never_breaks_the_reader(content: bytes) -> None:
    cut_nesting(content, 2)
    top_level_text(content, "cursor")
    try:
        parse(content)
    except ValueError:
        return


@pytest.mark.parametrize("levels", [200, 2_000, 200_000])
def test_what_no_parser_bears_costs_only_itself(levels: int) -> None:
    read = parse(f'{{"before":1,"odd":{nested(levels)},"after":"x"}}'.encode())
    assert isinstance(read, dict)
    assert (read["before"], read["after"]) == (1, "x")
    assert depth_of(read) == MOST_NESTING


@pytest.mark.parametrize(
    ("odd", "read_as"),
    [
        (rb'"half \ud83d pair"', "half \N{REPLACEMENT CHARACTER} pair"),
        (b'"not \xff UTF-8"', "not \N{REPLACEMENT CHARACTER} UTF-8"),
        (b'"a\x00control"', "a\x00control"),
        (b"9" * 5_000, None),
        (b'{"\\udc00":1}', {"\N{REPLACEMENT CHARACTER}": 1}),
    ],
)
def test_an_odd_value_costs_only_itself(odd: bytes, read_as: object) -> None:
    assert parse(b'[1,%s,"\\ud83c\\udf0a"]' % odd) == [1, read_as, "\N{WATER WAVE}"]


def test_the_cursor_of_an_answer_without_an_end_is_found_and_no_strangers_one() -> None:
    spoiled = (
        rb'{"notifications":[{"record":{"cursor":"theirs"}},{"text":"\"cursor\":\"theirs\""}], "cursor" : "ours", x'
    )
    assert top_level_text(spoiled, "cursor") == "ours"
    assert top_level_text(b'{"list":[{"cursor":"theirs"', "cursor") == ""


@pytest.mark.perf
@pytest.mark.parametrize(
    "content",
    [b'["' + b'\\"' * 100_000, b'"' * 200_000, b"[" * 200_000, nested(100_000).encode(), b"[" + b"[]," * 60_000],
    ids=["escaped quotes", "quotes", "opened", "deep", "wide"],
)
def test_many_signs_take_no_time_that_matters(content: bytes) -> None:
    assert cpu_s(lambda: (cut_nesting(content), top_level_text(content, "cursor")), runs=3) < 1


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
