"""Proves that an event stream is read as the standard has it, in whatever pieces it comes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.runtime.llm.stream import END, SaidError, chunks

OBJECTS = st.lists(
    st.fixed_dictionaries({"text": st.text(max_size=20), "choices": st.just([{"index": 0}])}), max_size=4
)


async def _read(body: bytes, cuts: tuple[int, ...] = (), *, is_stream: bool = True) -> list[Any]:
    async def pieces() -> AsyncIterator[bytes]:
        for begin, end in pairwise((0, *sorted(cuts), len(body))):
            yield body[begin:end]

    return [one async for one in chunks(pieces(), is_stream=is_stream)]


def _event(value: object, indent: int | None, space: str) -> list[str]:
    return [f"data:{space}{line}" for line in json.dumps(value, indent=indent).split("\n")]


@given(
    objects=OBJECTS,
    line_end=st.sampled_from(["\n", "\r", "\r\n"]),
    begin=st.sampled_from(["", "\ufeff"]),
    indent=st.sampled_from([None, 0, 2]),
    data=st.data(),
)
async def test_the_same_is_read_with_every_line_end_and_in_every_piece(
    objects: list[dict[str, Any]], line_end: str, begin: str, indent: int | None, data: st.DataObject
) -> None:
    lines = [
        line
        for one in objects
        for line in (*_event(one, indent, data.draw(st.sampled_from(["", " "]))), ": a comment", "id: 1", "")
    ]
    body = (begin + line_end.join([*lines, "data: [DONE]", "", ""])).encode()
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6))
    assert await _read(body, tuple(cuts)) == [*objects, END]


@given(objects=OBJECTS, data=st.data())
async def test_events_that_no_empty_line_parts_are_told_apart(
    objects: list[dict[str, Any]], data: st.DataObject
) -> None:
    body = "".join(f"data: {json.dumps(one)}\n" for one in objects).encode() + b"data: [DONE]\n"
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6))
    assert await _read(body, tuple(cuts)) == [*objects, END]


@pytest.mark.parametrize(
    "body", ['event: error\ndata: {"message": "no"}\n\n', 'data: {"message": "no"}\nevent: error\n\n']
)
async def test_an_event_is_an_error_wherever_its_name_stands(body: str) -> None:
    with pytest.raises(SaidError, match="no"):
        await _read(body.encode())


async def test_a_mark_of_the_byte_order_is_no_part_of_a_json_answer() -> None:
    (found,) = await _read('\ufeff{"choices": []}'.encode(), is_stream=False)
    assert found == {"choices": []}
