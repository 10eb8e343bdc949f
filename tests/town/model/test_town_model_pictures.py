"""Pictures reach the model service as the public ones take them."""

from __future__ import annotations

from typing import Any

import pytest

from town.model.service import BadRequest, read_request, usage
from town.model.types import Completion

MODEL = "any"
DOT = "data:image/png;base64,iVBORw0KGgo="


def asked(*parts: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": role, "content": list(parts)}]}


def picture(url: object = DOT, **more: object) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_words_and_pictures_of_one_message_are_told_apart() -> None:
    (message,) = read_request(
        asked(words("look"), picture(detail="low"), words("well?"), picture("https://a.example/b.png")), models=[MODEL]
    ).messages
    assert (message.text, message.pictures) == ("look\nwell?", 2)


def test_a_system_prompt_in_parts_reads_as_one_in_paragraphs() -> None:
    parts = (words("I am.") | {"cache_control": {"type": "ephemeral"}}, words("It is noon."))
    (message,) = read_request(asked(*parts, role="system"), models=[MODEL]).messages
    assert message.text == "I am.\n\nIt is noon."


@pytest.mark.parametrize(
    "part",
    [
        picture("iVBORw0KGgo="),
        picture("data:text/html;base64,iVBORw0KGgo="),
        picture("data:image/png;base64,iVBORw0KGgo"),
        picture("data:image/png;base64,"),
        picture("media/a/1.png"),
        picture(None),
        picture(detail="tiny"),
        {"type": "image_url"},
        {"type": "image_url", "image_url": DOT},
    ],
)
def test_what_is_no_picture_is_refused_by_name(part: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match=r"image_url|detail"):
        read_request(asked(words("look"), part), models=[MODEL])


def test_only_a_user_shows_pictures() -> None:
    with pytest.raises(BadRequest, match="Only a user message"):
        read_request(asked(words("look"), picture(), role="system"), models=[MODEL])


def test_a_picture_takes_tokens_of_its_own() -> None:
    plain, seen = (
        read_request(asked(*parts), models=[MODEL]) for parts in ([words("look")], [words("look"), picture()])
    )
    thought = Completion("yes")
    assert usage(seen, thought)["prompt_tokens"] - usage(plain, thought)["prompt_tokens"] == 85
