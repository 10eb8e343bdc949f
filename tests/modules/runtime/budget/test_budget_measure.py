"""Proves that a request is never larger than its bound, by a tokenizer that makes a token of every byte."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.runtime.budget.policy import TOKENS_PER_PICTURE, input_bound, output_limit, sent_as
from tests.modules.runtime.budget.budget_rig import CHEAP, request

_TEXT = st.text(max_size=60)
_TOOLS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("function"),
            "function": st.fixed_dictionaries(
                {
                    "name": _TEXT,
                    "description": _TEXT,
                    "parameters": st.dictionaries(_TEXT, st.dictionaries(_TEXT, _TEXT, max_size=3), max_size=3),
                }
            ),
        }
    ),
    max_size=3,
)
_MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": _TEXT}), max_size=5
)
_PREAMBLE = "You may call one or more functions to assist with the user query. " * 8


def _rendered(messages: list[dict[str, Any]], tools: list[dict[str, Any]], *, ascii_only: bool) -> str:
    """A wordy chat template: marks around each message, tools as indented JSON."""
    written = [json.dumps(tool, indent=4, ensure_ascii=ascii_only) for tool in tools]
    said = [f"<|im_start|>{item['role']}\n{item['content']}<|im_end|>\n" for item in messages]
    return "".join([_PREAMBLE, *written, *said, "<|im_start|>assistant\n"])


@given(messages=_MESSAGES, tools=_TOOLS, ascii_only=st.booleans())
def test_no_template_and_no_byte_tokenizer_makes_more_of_it(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]], *, ascii_only: bool
) -> None:
    asked = {"model": "m", "messages": messages, "max_tokens": 5, **({"tools": tools} if tools else {})}
    rendered = _rendered(messages, tools, ascii_only=ascii_only)
    assert len(rendered.encode()) <= input_bound(asked)


@pytest.mark.parametrize("letter", ["a", "\x00", "한", "\ufb2c", "\U0001d160"])
def test_the_bound_holds_for_long_texts_of_the_worst_letters_even_taken_apart(letter: str) -> None:
    text = unicodedata.normalize("NFC", letter * 5000)
    assert len(text.encode()) <= input_bound(request(letter * 5000)) <= 12 * 5000 + 1500


def _with_picture(url: str, kind: str = "image_url") -> dict[str, Any]:
    parts = [{"type": "text", "text": "look"}, {"type": kind, "image_url": {"url": url, "detail": "low"}}]
    return {"model": "m", "messages": [{"role": "user", "content": parts}], "max_tokens": 5}


def test_a_picture_counts_the_same_whatever_its_bytes() -> None:
    small, large = (_with_picture("data:image/png;base64," + "A" * length) for length in (10, 500_000))
    assert input_bound(small) == input_bound(large) == input_bound(_with_picture("")) + TOKENS_PER_PICTURE
    twice = {**small, "messages": small["messages"] * 2}
    assert 2 * TOKENS_PER_PICTURE < input_bound(twice) - input_bound(request("")) < 2 * TOKENS_PER_PICTURE + 1000


@pytest.mark.parametrize(
    "odd",
    [
        request("data:image/png;base64," + "A" * 5000),
        _with_picture("https://a.example/" + "A" * 5000),
        _with_picture("data:image/png;base64," + "A" * 5000, kind="text_url"),
        _with_picture("data:text/plain;base64," + "A" * 5000),
    ],
    ids=["in words", "elsewhere", "no picture", "a text"],
)
def test_what_only_looks_like_a_picture_is_counted_by_its_bytes(odd: dict[str, Any]) -> None:
    assert 5000 < input_bound(odd) < TOKENS_PER_PICTURE


def test_half_a_surrogate_pair_is_measured_too() -> None:
    assert input_bound(request("\ud83d")) > input_bound(request(""))


def test_the_limit_is_found_and_changed_under_both_of_its_names() -> None:
    old, new = request(limit=700), {"model": "m", "messages": [], "max_completion_tokens": 900}
    assert (output_limit(old), output_limit(new)) == (700, 900)
    assert sent_as(old, model=CHEAP, limit=300) == old | {"model": CHEAP, "max_tokens": 300}
    assert sent_as(new, model="m", limit=300) == new | {"max_completion_tokens": 300}
    assert old["max_tokens"] == 700
